"""Relevance by a model that reads query and text together."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from searchops.errors import DataError
from searchops.scorers.base import Scorer, require_texts
from searchops.scorers.encoder import DEFAULT_INSTRUCTION, check_settings
from searchops.scorers.qwen3 import YesNo
from searchops.scorers.tokens import token_count, token_windows
from searchops.scorers.weights import Loaded, architecture, load

__all__ = ["CrossEncoder"]

DEFAULT_MODEL = "Qwen/Qwen3-Reranker-0.6B"


class _Reader(Protocol):
    """A model that reads pairs; both kinds of cross-encoder stand behind it."""

    tokenizer: Any

    def room(self, instruction: str, max_length: int | None) -> int:
        """Tokens left for query and text together."""

    def read(self, pairs: Sequence[tuple[str, str]], instruction: str, batch_size: int) -> list[float]:
        """One score a pair; every pair fits."""


class CrossEncoder(Scorer):
    """Scores each pair by a model that reads both texts at once: slower and better than a bi-encoder.

    Two kinds of models, told apart by their config: a classification head (sentence-transformers'
    CrossEncoder, its own activation; of two classes, the probability of the second), and causal
    language models of Qwen3-Reranker's kind, which are asked for "yes" or "no": the score is the
    probability of "yes" among the two. Each distinct pair is read once. A long text is windowed and
    its best window counts; a query that fills more than half of the room is cut to that, with a warning.

    Args:
        model: A model's folder or a Hugging Face name whose files are in the local cache.
        instruction: What relevance means, for models that are asked; default: their web search one.
        batch_size: Pairs a forward pass.
        max_length: Tokens of a pair with all that stands around it. Default: 8,192 for language
            models, as their model card has it, or less where the model reads less; else what it reads.
        dtype: Of the weights.
        device: Where it runs; default: a GPU where there is one.

    Source: Qwen3-Reranker model card (prompt and score).

    Example:
        >>> CrossEncoder()
        CrossEncoder()
        >>> CrossEncoder(instruction="Find the passage that answers the question")
        CrossEncoder(instruction='Find the passage that answers the question')
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        instruction: str | None = None,
        batch_size: int = 8,
        max_length: int | None = None,
        dtype: str = "float32",
        device: str | None = None,
    ) -> None:
        self.model = str(model)
        self.instruction = instruction
        self.batch_size = batch_size
        self.max_length = max_length
        self.dtype = dtype
        self.device = device
        check_settings("CrossEncoder", dtype=dtype, batch_size=batch_size, max_length=max_length)

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """One score a pair, the best window's for a long text.

        Raises:
            FrameError: A query or text is no string.
            DataError: The model is not here, has no relevance score, or gave what is not a number.
        """
        require_texts(pairs, where="CrossEncoder")
        if not pairs:
            return []
        loaded = self._loaded()
        with loaded.lock:
            return self._score(loaded.model, pairs)

    def _score(self, reader: _Reader, pairs: Sequence[tuple[str, str]]) -> list[float]:
        instruction = DEFAULT_INSTRUCTION if self.instruction is None else self.instruction
        room = reader.room(instruction, self.max_length)
        queries = self._fitting(reader.tokenizer, list(dict.fromkeys(query for query, _ in pairs)), room)
        read: dict[tuple[str, str], int] = {}
        rows: dict[tuple[str, str], list[int]] = {}
        for pair in pairs:
            if pair not in rows:
                query, size = queries[pair[0]]
                pieces = token_windows(reader.tokenizer, pair[1], max(1, room - size))
                rows[pair] = [read.setdefault((query, piece), len(read)) for piece in pieces]
        # Pairs of one length stand together, so little is padded.
        order = sorted(read, key=lambda pair: len(pair[0]) + len(pair[1]), reverse=True)
        scores = [0.0] * len(read)
        for pair, score in zip(order, reader.read(order, instruction, self.batch_size), strict=True):
            self._check(pair, score)
            scores[read[pair]] = score
        return [max(scores[row] for row in rows[pair]) for pair in pairs]

    def _fitting(self, tokenizer: Any, queries: list[str], room: int) -> dict[str, tuple[str, int]]:
        """Each query as it is read, with its tokens: at most half of the room."""
        fitting, cut = {}, 0
        for query in queries:
            first = token_windows(tokenizer, query, max(1, room // 2))[0]
            cut += first != query
            fitting[query] = (first, token_count(tokenizer, first))
        if cut:
            warnings.warn(
                f"{cut} of {len(queries)} queries are longer than half of what {self.model} reads "
                f"({room} tokens) and were cut",
                stacklevel=4,
            )
        return fitting

    def _check(self, pair: tuple[str, str], score: float) -> None:
        if not math.isfinite(score):
            raise DataError(
                f"a finite score of {self.model} is needed",
                f"{score} for the query {pair[0][:80]!r} and the text {pair[1][:80]!r}",
                where="CrossEncoder",
                hint="Try dtype='float32', or fetch the model anew.",
            )

    def _loaded(self) -> Loaded:
        return load(_reader, self.model, self.dtype, self.device)


def _reader(folder: Path, dtype: str, device: str | None) -> _Reader:
    if architecture(folder).endswith("ForCausalLM"):
        return YesNo(folder, dtype, device)
    return _Classifier(folder, dtype, device)


class _Classifier:
    """A cross-encoder with a classification head."""

    def __init__(self, folder: Path, dtype: str, device: str | None) -> None:
        import torch
        from sentence_transformers import CrossEncoder as Model

        settings: dict[str, Any] = {"device": device, "local_files_only": True}
        self._model = Model(str(folder), model_kwargs={"dtype": getattr(torch, dtype)}, **settings)
        self.tokenizer = self._model.tokenizer
        self._labels = int(self._model.config.num_labels)
        if self._labels > 2:
            raise DataError(
                "a model with one relevance score, or two classes, is needed",
                f"{self._labels} classes",
                where=str(folder),
                hint="Give a model trained to rank, not one for inference or topics.",
            )

    def room(self, instruction: str, max_length: int | None) -> int:
        positions = getattr(self._model.config, "max_position_embeddings", None) or 512
        reads = min(self._model.max_seq_length or positions, positions)
        return int(min(max_length or reads, reads) - self.tokenizer.num_special_tokens_to_add(pair=True))

    def read(
        self,
        pairs: Sequence[tuple[str, str]],
        instruction: str,
        batch_size: int,
    ) -> list[float]:
        scores = self._model.predict(
            list(pairs), batch_size=batch_size, apply_softmax=self._labels == 2, show_progress_bar=False
        )
        return [float(score) for score in (scores[:, 1] if self._labels == 2 else scores)]
