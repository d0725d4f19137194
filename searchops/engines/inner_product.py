"""The rows of a matrix with the highest inner product: exact by blocked products, or by a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from searchops.errors import DataError

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float32]
    Rows: TypeAlias = npt.NDArray[np.int64]

__all__ = ["Exact", "Graph", "Half", "Nearest", "RowHits"]

BLOCK_ROWS = 65_536
"""Rows a product: large enough for BLAS, small enough that the scores of 256 queries take 64 MB."""

_QUERIES_TOGETHER = 256
_GROUP = 64
_SPARE = 16  # candidates beyond k that are scored again, so that rounding cannot cost one its place
_SCAN_BELOW = 32  # queries; below that, faiss's scan of float16 is faster than widening the rows

RowHits: TypeAlias = "list[tuple[int, float]]"


class Nearest(Protocol):
    """What finds the best rows for query vectors."""

    def __call__(self, queries: Floats, k: int) -> list[RowHits]:
        """One list of (row, inner product) a query, best first, at most k."""


class Exact:
    """Every row is looked at: float32 rows, read from a memory-mapped file.

    Scores are worked out once more for the rows found, in one way, so a row has one score whatever
    block, position or batch it was found in; equal rows have equal scores.
    """

    def __init__(self, rows: Floats) -> None:
        self.rows = rows

    def __call__(self, queries: Floats, k: int) -> list[RowHits]:
        """One list of (row, inner product) a query, best first, at most k."""
        keep = min(k + _SPARE, len(self.rows))
        if not keep:
            return [[] for _ in queries]
        found = self._one(queries[0], keep) if len(queries) == 1 else self._many(queries, keep)
        return [self._scored(query, rows)[:k] for query, rows in zip(queries, found, strict=True)]

    def _one(self, query: Floats, keep: int) -> list[Rows]:
        return [_best(self.rows @ query, keep)]

    def _many(self, queries: Floats, keep: int) -> list[Rows]:
        found: list[Rows] = []
        for first in range(0, len(queries), _QUERIES_TOGETHER):
            found += _by_blocks(queries[first : first + _QUERIES_TOGETHER], self._blocks(), keep)
        return found

    def _blocks(self) -> Iterator[tuple[int, Floats]]:
        for first in range(0, len(self.rows), BLOCK_ROWS):
            yield first, self.rows[first : first + BLOCK_ROWS]

    def _scored(self, query: Floats, rows: Rows) -> RowHits:
        # einsum adds every row up in the same order, which a BLAS product does not promise.
        exact = np.einsum("ij,j->i", self.rows[rows].astype(np.float64), query.astype(np.float64))
        scores = exact.astype(np.float32)
        order = np.lexsort((rows, -scores))
        return list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))


class Half(Exact):
    """Every row is looked at: float16 rows in a faiss file that is memory-mapped.

    One query is a scan by faiss (numpy has no fast float16 product); many queries widen each block
    of rows once and take the product.
    """

    def __init__(self, index: Any, dimensions: int) -> None:
        import faiss

        self._index = index  # owns the memory that `rows` looks at
        codes = faiss.rev_swig_ptr(index.codes.data(), index.codes.size())
        super().__init__(codes.view(np.float16).reshape(-1, dimensions))

    def _one(self, query: Floats, keep: int) -> list[Rows]:
        return self._scan(query[None], keep)

    def _many(self, queries: Floats, keep: int) -> list[Rows]:
        if len(queries) < _SCAN_BELOW:
            return self._scan(queries, keep)
        return super()._many(queries, keep)

    def _scan(self, queries: Floats, keep: int) -> list[Rows]:
        _, rows = self._index.search(queries, keep)
        return [row[row >= 0] for row in rows]

    def _blocks(self) -> Iterator[tuple[int, Floats]]:
        size = BLOCK_ROWS // 8  # widened rows should stay in the processor's cache
        for first in range(0, len(self.rows), size):
            yield first, self.rows[first : first + size].astype(np.float32)


class Graph:
    """A faiss HNSW graph: looks at few rows and may miss some of the best.

    Source: Malkov and Yashunin 2016, Hierarchical Navigable Small World graphs.
    """

    def __init__(self, index: Any, ef_search: int) -> None:
        self._index = index
        self._ef_search = ef_search

    def __call__(self, queries: Floats, k: int) -> list[RowHits]:
        """One list of (row, inner product) a query, best first, at most k."""
        import faiss

        size = min(k, self._index.ntotal)
        if not size:
            return [[] for _ in queries]
        settings = faiss.SearchParametersHNSW(efSearch=max(self._ef_search, size))
        scores, rows = self._index.search(queries, size, params=settings)
        return [
            [(row, score) for row, score in zip(*pair, strict=True) if row >= 0]
            for pair in zip(rows.tolist(), scores.tolist(), strict=True)
        ]


def _best(scores: Floats, keep: int) -> Rows:
    """The places of the `keep` highest of many scores.

    The keep-th highest of the maxima of groups is a floor under the keep-th highest of all, so only
    the few scores above it need sorting out.
    """
    whole = len(scores) // _GROUP * _GROUP
    if whole // _GROUP > keep:
        maxima = scores[:whole].reshape(-1, _GROUP).max(axis=1)
        floor = np.partition(maxima, len(maxima) - keep)[len(maxima) - keep]
        places = np.flatnonzero(scores >= floor)
    else:
        places = np.arange(len(scores))
    return places[_highest(scores[places], keep)]


def _highest(scores: Floats, keep: int) -> Rows:
    if len(scores) <= keep:
        return np.arange(len(scores))
    return np.argpartition(scores, len(scores) - keep)[len(scores) - keep :]


def _by_blocks(queries: Floats, blocks: Iterator[tuple[int, Floats]], keep: int) -> list[Rows]:
    """The rows of the `keep` highest products of each query, one block of rows at a time."""
    rows: list[Rows] = [np.empty(0, np.int64) for _ in queries]
    scores: list[Floats] = [np.empty(0, np.float32) for _ in queries]
    floors = np.full(len(queries), -np.inf, np.float32)
    buffer = np.empty(0, np.float32)
    for first, block in blocks:
        size = len(queries) * len(block)
        if len(buffer) < size:
            buffer = np.empty(size, np.float32)
        products = buffer[:size].reshape(len(queries), len(block))
        np.matmul(queries, block.T, out=products)
        for query in range(len(queries)):
            _merge(products[query], first, query, rows, scores, floors, keep)
    return rows


def _merge(
    products: Floats,
    first: int,
    query: int,
    rows: list[Rows],
    scores: list[Floats],
    floors: Floats,
    keep: int,
) -> None:
    """Takes what a block has above the floor of a query and raises the floor."""
    if len(rows[query]) < keep:
        places = _best(products, keep)
    else:
        places = np.flatnonzero(products > floors[query])
        if not len(places):
            return
    pool = np.concatenate([scores[query], products[places]])
    of_pool = np.concatenate([rows[query], places + first])
    highest = _highest(pool, keep)
    rows[query], scores[query] = of_pool[highest], pool[highest]
    if len(highest) == keep:
        floors[query] = scores[query].min()


def read_faiss(path: Path) -> Any:
    """A faiss index, memory-mapped where its kind can be.

    Raises:
        DataError: The file is missing or damaged.
    """
    import faiss

    return reading(path, lambda: faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC))


def read_rows(path: Path) -> Floats:
    """A memory-mapped float32 matrix.

    Raises:
        DataError: The file is missing or damaged.
    """
    rows: Floats = reading(path, lambda: np.load(path, mmap_mode="r", allow_pickle=False))
    return rows


def reading(path: Path, read: Callable[[], Any]) -> Any:
    """What `read` returns, its failure told as that of a file."""
    try:
        return read()
    except (OSError, ValueError, RuntimeError, EOFError) as error:
        raise DataError(
            "a readable file of vectors is needed",
            str(error).splitlines()[0] if str(error) else type(error).__name__,
            where=str(path),
            hint="Build the index anew.",
        ) from error
