"""The dense engine: documents as vectors of an encoder, searched exactly or through a graph."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from searchops.engines import vectors
from searchops.engines.base import Hits
from searchops.engines.encoded import EncodedBlocks, kept_blocks
from searchops.engines.folder import Manifest, building, library_versions, read_manifest, reusable
from searchops.engines.inner_product import Found
from searchops.engines.store import DocumentStore
from searchops.errors import FrameError, SpecError
from searchops.frames import Record
from searchops.scorers.encoder import Encoder
from searchops.scorers.statistics import Analyzer, TermStatistics

__all__ = ["DenseIndex"]

_KIND = "dense"
_OF_ENCODER = ("model", "instruction", "query_prompt", "document_prompt", "max_length", "normalize")


class DenseIndex:
    """Finds the documents whose vectors have the highest inner product with the query's.

    The search is exact unless the index was built with a graph. Equal documents have equal scores,
    and ties stand in trec_eval's order (docno descending), so a shorter list is the head of a longer
    one. One index may be searched from many threads. The model loads at the first search.

    Args:
        path: The folder that `build` made.
        encoder: What encodes queries; must be what encoded the documents, though it may run on another
            device. Default: as the manifest says.
        model: The model the index must have been built with.
        dtype: The dtype of the vectors it must have been built with.
        ef_search: How many candidates a graph search keeps; more finds more and takes longer.

    Raises:
        DataError: There is no index, it is damaged, or was built with other settings.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        encoder: Encoder | None = None,
        model: str | None = None,
        dtype: str | None = None,
        ef_search: int = 128,
    ) -> None:
        if encoder is not None and model is not None:
            raise SpecError("either an encoder or a model is needed", "both", where="DenseIndex")
        if not isinstance(ef_search, int) or ef_search < 1:
            raise SpecError("ef_search must be at least 1", repr(ef_search), where="DenseIndex")
        self.path = os.fspath(path)
        self._folder = Path(path).resolve()
        expected: dict[str, Any] = {"model": model, "dtype": dtype}
        if encoder is not None:
            expected.update(_settings_of(encoder))
        self.manifest = read_manifest(self._folder, kind=_KIND, **expected)
        self.encoder = encoder or _encoder_of(self.manifest)
        self.ef_search = ef_search
        self._store = DocumentStore(self._folder)
        self._docnos = self._store.docnos()
        self._nearest = vectors.opened(self._folder, self.manifest, ef_search)

    @classmethod
    def build(
        cls,
        collection: Any,
        path: str | os.PathLike[str],
        encoder: Encoder | None = None,
        model: str | None = None,
        *,
        dtype: str = "float32",
        hnsw: bool | dict[str, int] = False,
        batch_size: int | None = None,
        progress: bool = True,
        overwrite: bool = False,
    ) -> DenseIndex:
        """Builds the index of a collection, or opens it if it is there already.

        A killed build leaves no folder that opens; the same call goes on from the blocks it has
        encoded. A document longer than the model reads is cut, as published results have it: the
        manifest says how many were (`facts["truncated"]`) and a warning does too.

        Args:
            collection: What has `documents` (a frame), `name` and `data_hash`.
            path: The folder to make.
            encoder: What makes vectors; or
            model: the model of an encoder with default settings. Neither: Qwen3-Embedding-0.6B.
            dtype: Of the stored vectors: "float32", or "float16" at half of the room.
            hnsw: A graph for collections too large to scan: True, or its `m` (links a row, 32) and
                `ef_construction` (200). It finds most of the best, not surely all.
            batch_size: Documents a forward pass; default: the encoder's.
            progress: Show a progress bar.
            overwrite: Replace another index at that path.

        Raises:
            DataError: The model is not here, another index or other data is at that path, the
                documents are malformed, or the disk is full.
            SpecError: A setting is out of range.
        """
        if encoder is not None and model is not None:
            raise SpecError("either an encoder or a model is needed", "both", where="DenseIndex.build")
        encoder = encoder or (Encoder(model) if model is not None else Encoder())
        settings = {**_settings_of(encoder), **vectors.settings(dtype, hnsw)}
        manifest = Manifest(
            kind=_KIND,
            data_hash=collection.data_hash,
            n_documents=len(collection.documents),
            settings=settings,
            versions=library_versions("searchops", "sentence-transformers", "torch", "faiss-cpu", "numpy"),
        )
        target = Path(path).resolve()
        if not reusable(target, manifest, overwrite=overwrite):
            worker = encoder if batch_size is None else encoder.with_batch_size(batch_size)
            _build(collection, target, manifest, worker, progress, overwrite)
        return cls(path, encoder=encoder)

    @property
    def columns(self) -> tuple[str, ...]:
        """The document columns that `fetch` returns, `docno` first."""
        return self._store.columns

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self._store)

    def search(self, query: str, k: int) -> Hits:
        """The k best documents; a query of white space gives no hits.

        Raises:
            DataError: The model is not here, or gave what is not a number.
            FrameError: The query is no text or k is negative.
        """
        return self.search_many([query], k)[0]

    def search_many(self, queries: Sequence[str], k: int) -> list[Hits]:
        """One list of hits a query, in order; all queries are encoded and searched together."""
        for query in queries:
            if not isinstance(query, str):
                raise FrameError("a query that is text is needed", repr(query)[:80], where="DenseIndex.search")
        if k < 0:
            raise FrameError("k of 0 or more is needed", str(k), where="DenseIndex.search")
        found: list[Hits] = [[] for _ in queries]
        asked = [place for place, query in enumerate(queries) if query.strip()]
        if asked and k and len(self):
            encoded = self.encoder.encode_queries([queries[place] for place in asked])
            for place, rows in zip(asked, self._nearest(encoded, k), strict=True):
                found[place] = self._hits(rows, k)
        return found

    def _hits(self, found: Found, k: int) -> Hits:
        hits = [
            (self._docnos[row], score) for row, score in zip(found.rows.tolist(), found.scores.tolist(), strict=True)
        ]
        hits.sort(reverse=True)
        hits.sort(key=lambda hit: -hit[1])
        return hits[:k]

    def fetch(self, docnos: Sequence[str]) -> list[Record]:
        """The stored documents, in the order asked; records are shared: do not change them.

        Raises:
            DataError: A docno is not in the collection.
        """
        return self._store.fetch(docnos)

    def texts(self, with_title: bool = False) -> Iterator[str]:
        """All texts, in the order of the collection."""
        return self._store.texts(with_title)

    def statistics(self, analyzer: Analyzer) -> TermStatistics:
        """Document frequencies and lengths of the texts under an analyzer (cached)."""
        return self._store.statistics(analyzer)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DenseIndex):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return (self._folder, self.encoder, self.ef_search)

    def __repr__(self) -> str:
        encoder = f", encoder={self.encoder!r}" if self.encoder != _encoder_of(self.manifest) else ""
        search = f", ef_search={self.ef_search}" if self.ef_search != 128 else ""
        return f"DenseIndex({self.path!r}{encoder}{search})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_reopen, (str(self._folder), self.encoder, self.ef_search))


def _reopen(path: str, encoder: Encoder, ef_search: int) -> DenseIndex:
    return DenseIndex(path, encoder=encoder, ef_search=ef_search)


def _settings_of(encoder: Encoder) -> dict[str, Any]:
    settings = {name: getattr(encoder, name) for name in _OF_ENCODER}
    return {**settings, "model_dtype": encoder.dtype}


def _encoder_of(manifest: Manifest) -> Encoder:
    settings = manifest.settings
    return Encoder(**{name: settings[name] for name in _OF_ENCODER}, dtype=settings["model_dtype"])


def _build(
    collection: Any, target: Path, manifest: Manifest, encoder: Encoder, progress: bool, overwrite: bool
) -> None:
    encoder.dimensions  # noqa: B018  (a model that is not here is told before anything is written)
    documents = collection.documents
    identity = [manifest.data_hash, manifest.n_documents, _settings_of(encoder)]
    with kept_blocks(target, identity) as kept:
        if reusable(target, manifest, overwrite=overwrite):  # a build that ran meanwhile made it
            return
        with building(target, manifest, overwrite=overwrite) as folder:
            manifest.facts.update(DocumentStore.build(documents, folder))
            titles = documents["title"] if "title" in documents.columns else [""] * len(documents)
            blocks = EncodedBlocks(kept, encoder, list(titles), list(documents["text"]))
            shown = _with_bar(blocks, collection.name) if progress else iter(blocks)
            vectors.write(folder, manifest, shown, encoder.dimensions)
            manifest.facts["truncated"] = blocks.n_truncated
    if blocks.n_truncated:
        warnings.warn(
            f"{blocks.n_truncated} of {len(documents)} documents are longer than {encoder.model} reads "
            "and were cut: their ends are not in the index",
            stacklevel=3,
        )


def _with_bar(blocks: EncodedBlocks, name: str) -> Iterator[Any]:
    import pyterrier as pt

    with pt.tqdm(total=len(blocks), desc=f"dense {name}", unit="doc") as bar:
        for block in blocks:
            bar.update(len(block))
            yield block
