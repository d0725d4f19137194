"""Qwen3-Reranker: a causal language model is asked whether a document answers, yes or no."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from searchops.errors import DataError

__all__ = ["YesNo"]

PREFIX = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the "
    'Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
)
SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
MAX_LENGTH = 8192


def question(instruction: str, query: str, document: str) -> str:
    """What stands between prefix and suffix."""
    return f"<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}"


class YesNo:
    """The probability of "yes" against "no" as the next token after the prompt.

    Prompts of a batch are padded on the left, so the last position is each one's last token.

    Source: Qwen3-Reranker model card.
    """

    def __init__(self, folder: Path, dtype: str, device: str | None) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype), local_files_only=True)
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._model = model.to(device).eval()
        self._yes, self._no = (self._answer(word, folder) for word in ("yes", "no"))
        self._prefix = self._tokens(PREFIX)
        self._suffix = self._tokens(SUFFIX)

    def _answer(self, word: str, folder: Path) -> int:
        token = self.tokenizer.convert_tokens_to_ids(word)
        if token is None or token == self.tokenizer.unk_token_id:
            raise DataError(
                f"a reranker whose vocabulary has the token {word!r} is needed",
                "none such",
                where=str(folder),
                hint="Give a model of Qwen3-Reranker's kind, or one with a classification head.",
            )
        return int(token)

    def _tokens(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def room(self, instruction: str, max_length: int | None) -> int:
        """Tokens left for query and document together."""
        positions = int(self._model.config.max_position_embeddings)
        around = len(self._prefix) + len(self._suffix) + len(self._tokens(question(instruction, "", "")))
        # A text joined to others may have a token more at each border than by itself.
        room = min(max_length or MAX_LENGTH, positions) - around - 4
        if room < 2:
            raise DataError(
                "a max_length with room for the prompt, a query and a text is needed",
                f"{room + around + 4} tokens, of which the prompt takes {around}",
                where="CrossEncoder",
            )
        return room

    def read(self, pairs: Sequence[tuple[str, str]], instruction: str, batch_size: int) -> list[float]:
        """One score a pair, from 0 to 1."""
        prompts = [
            self._prefix + self._tokens(question(instruction, query, text)) + self._suffix for query, text in pairs
        ]
        scores: list[float] = []
        for first in range(0, len(prompts), batch_size):
            scores += self._forward(prompts[first : first + batch_size])
        return scores

    def _forward(self, prompts: list[list[int]]) -> list[float]:
        import torch

        longest = max(map(len, prompts))
        # What the padding holds does not matter, the mask hides it; any token will do.
        ids = torch.tensor([[0] * (longest - len(p)) + p for p in prompts], device=self._model.device)
        mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts], device=self._model.device)
        settings: dict[str, Any] = {"logits_to_keep": 1, "use_cache": False}
        with torch.inference_mode():
            logits = self._model(input_ids=ids, attention_mask=mask, **settings).logits[:, -1, :]
            both = torch.stack([logits[:, self._no], logits[:, self._yes]], dim=1).float()
            found: list[float] = torch.softmax(both, dim=1)[:, 1].tolist()
        return found
