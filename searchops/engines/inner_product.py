"""The rows of a matrix with the highest inner product: exact by blocked products, or by a graph."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float32]
    Rows: TypeAlias = npt.NDArray[np.int64]

__all__ = ["Exact", "Found", "Graph", "Half", "Nearest"]

BLOCK_ROWS = 65_536
"""Rows a product: large enough for BLAS, small enough that the scores of 256 queries take 64 MB."""

_QUERIES_TOGETHER = 256
_GROUP = 64
_MARGIN = 1e-5  # of the best score: more than float32 rounding can move a score
_SCAN_BELOW = 32  # queries; below that, faiss's scan of float16 is faster than widening the rows


class Found(NamedTuple):
    """The best rows of one query, unordered: k of them and all that tie with the last."""

    rows: Rows
    scores: Floats


class Nearest(Protocol):
    """What finds the best rows for query vectors."""

    def __call__(self, queries: Floats, k: int) -> list[Found]:
        """The k best rows of each query, or all where there are fewer."""


class Exact:
    """Every row is looked at: float32 rows, read from a memory-mapped file.

    Scores are worked out once more for the rows found, in one way, so a row has one score whatever
    block, position or batch it was found in, and equal rows have equal scores.
    """

    def __init__(self, rows: Floats) -> None:
        self.rows = rows

    def __call__(self, queries: Floats, k: int) -> list[Found]:
        """The k best rows of each query and all that tie with the last of them."""
        k = min(k, len(self.rows))
        if not k:
            return [_NOTHING for _ in queries]
        pools = self._one(queries[0], k) if len(queries) == 1 else self._many(queries, k)
        return [self._scored(query, pool, k) for query, pool in zip(queries, pools, strict=True)]

    def _one(self, query: Floats, k: int) -> list[Rows]:
        return [_best(self.rows @ query, k)]

    def _many(self, queries: Floats, k: int) -> list[Rows]:
        found: list[Rows] = []
        for first in range(0, len(queries), _QUERIES_TOGETHER):
            found += _by_blocks(queries[first : first + _QUERIES_TOGETHER], self._blocks(), k)
        return found

    def _blocks(self) -> Iterator[tuple[int, Floats]]:
        for first in range(0, len(self.rows), BLOCK_ROWS):
            yield first, self.rows[first : first + BLOCK_ROWS]

    def _scored(self, query: Floats, rows: Rows, k: int) -> Found:
        # einsum adds every row up in the same order, which a BLAS product does not promise.
        exact = np.einsum("ij,j->i", self.rows[rows].astype(np.float64), query.astype(np.float64))
        scores = exact.astype(np.float32)
        good = scores >= _kth(scores, k)
        return Found(rows[good], scores[good])


class Half(Exact):
    """Every row is looked at: float16 rows in a faiss file that is memory-mapped.

    A few queries are scanned for by faiss (numpy has no fast float16 product); for many, each block
    of rows is widened once and multiplied.
    """

    def __init__(self, index: Any, dimensions: int) -> None:
        faiss: Any = importlib.import_module("faiss")
        self._index = index  # owns the memory that `rows` looks at
        codes = faiss.rev_swig_ptr(index.codes.data(), index.codes.size())
        rows: Any = codes.view(np.float16).reshape(-1, dimensions)
        super().__init__(rows)

    def _one(self, query: Floats, k: int) -> list[Rows]:
        return self._many(query[None], k)

    def _many(self, queries: Floats, k: int) -> list[Rows]:
        if len(queries) >= _SCAN_BELOW:
            return super()._many(queries, k)
        return [self._scan(query[None], k) for query in queries]

    def _scan(self, query: Floats, k: int) -> Rows:
        depth = k
        while True:  # until nothing that ties with the k-th can be left out
            depth = min(2 * depth + 8, len(self.rows))
            scores, rows = (found[0] for found in self._index.search(query, depth))
            if depth == len(self.rows) or scores[-1] < scores[k - 1] - _margin(scores):
                kept: Rows = rows[scores >= scores[k - 1] - _margin(scores)]
                return kept

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

    def __call__(self, queries: Floats, k: int) -> list[Found]:
        """About the k best rows of each query."""
        faiss: Any = importlib.import_module("faiss")
        k = min(k, self._index.ntotal)
        if not k:
            return [_NOTHING for _ in queries]
        settings = faiss.SearchParametersHNSW(efSearch=max(self._ef_search, k))
        scores, rows = self._index.search(queries, k, params=settings)
        there = rows >= 0
        return [Found(row[ok], score[ok]) for row, score, ok in zip(rows, scores, there, strict=True)]


_NOTHING = Found(np.empty(0, np.int64), np.empty(0, np.float32))


def _margin(scores: Floats) -> float:
    return _MARGIN * max(1.0, float(np.abs(scores).max()))


def _kth(scores: Floats, k: int) -> float:
    """The k-th highest score, or the lowest where there are fewer."""
    if len(scores) <= k:
        return float(scores.min())
    return float(np.partition(scores, len(scores) - k)[len(scores) - k])


def _best(scores: Floats, k: int) -> Rows:
    """The places of the k highest of many scores, and of all within rounding of the k-th.

    The k-th highest of the maxima of groups is a floor under the k-th highest of all, so only the
    few scores above it need sorting out.
    """
    margin = _margin(scores)
    whole = len(scores) // _GROUP * _GROUP
    if whole // _GROUP <= k:
        return np.flatnonzero(scores >= _kth(scores, k) - margin)
    floor = _kth(scores[:whole].reshape(-1, _GROUP).max(axis=1), k)
    places = np.flatnonzero(scores >= floor - margin)
    few = scores[places]
    return places[few >= _kth(few, k) - margin]


class _Pool:
    """The best rows of one query so far."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._floor = -np.inf
        self.rows: Rows = np.empty(0, np.int64)
        self._scores: Floats = np.empty(0, np.float32)

    def add(self, first: int, products: Floats) -> None:
        """Takes what a block of rows has above the floor, and raises the floor."""
        if len(self.rows) < self._k:
            places = _best(products, self._k)
        else:
            places = np.flatnonzero(products >= self._floor)
            if not len(places):
                return
        rows = np.concatenate([self.rows, places + first])
        scores = np.concatenate([self._scores, products[places]])
        if len(rows) >= self._k:
            self._floor = _kth(scores, self._k) - _margin(scores)
        good = scores >= self._floor
        self.rows, self._scores = rows[good], scores[good]


def _by_blocks(queries: Floats, blocks: Iterator[tuple[int, Floats]], k: int) -> list[Rows]:
    """The best rows of each query, one product of all queries with a block of rows at a time."""
    pools = [_Pool(k) for _ in queries]
    buffer = np.empty(0, np.float32)
    for first, block in blocks:
        size = len(queries) * len(block)
        if len(buffer) < size:
            buffer = np.empty(size, np.float32)
        products = np.matmul(queries, block.T, out=buffer[:size].reshape(len(queries), len(block)))
        for pool, ours in zip(pools, products, strict=True):
            pool.add(first, ours)
    return [pool.rows for pool in pools]
