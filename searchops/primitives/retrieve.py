"""retrieve(q, k): candidates for a query, each with its source ids, content and query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from searchops.engines.base import Engine
from searchops.errors import FrameError
from searchops.frames import Group, Record, ranked, require
from searchops.primitives.base import Outcome, Primitive, cutoff


class Retrieve(Primitive):
    """The k best documents of an index for each query.

    A task may bring several queries (rows of one qid): each is searched, and its documents follow
    those of the query before. Each document says in `source_query` which query found it.

    Columns: Q -> Q + docno, score, rank, source_query and the index's document columns.
    Rows: at most k a query, in rank order (score descending, docno descending).
    Source: PSA, Table 2 (retrieve).

    Args:
        index: An engine: `LuceneIndex`, `DenseIndex`, …
        k: Documents a query.

    Raises:
        FrameError: k is no whole number above 0, or a query is no text.
    """

    kind: ClassVar[str] = "retrieve"
    needs: ClassVar[tuple[str, ...]] = ("qid", "query")

    def __init__(self, index: Engine, k: int = 20) -> None:
        if isinstance(index, type) or not isinstance(index, Engine):
            raise FrameError(
                "an index with search, search_many and fetch is needed",
                repr(type(index).__name__),
                where="Retrieve",
                hint="Give for example LuceneIndex('path').",
            )
        self.index = index
        self.k = cutoff(k, where="Retrieve") or 1

    @property
    def engine(self) -> Any | None:
        """The index."""
        return self.index

    def process(self, groups: Sequence[Group]) -> list[Outcome]:
        """Searches all queries of the batch in one call where there is more than one."""
        queries = [_query(row) for group in groups for row in group.rows]
        if len(queries) == 1:
            found = [self.index.search(queries[0], self.k)]
        else:
            found = self.index.search_many(queries, self.k) if queries else []
        hits = iter(found)
        return [Outcome([hit for row in group.rows for hit in self._rows(row, next(hits))]) for group in groups]

    def _rows(self, query: Record, hits: Sequence[tuple[str, float]]) -> list[Record]:
        documents = self.index.fetch([docno for docno, _ in hits])
        source = query["query"]
        rows = [
            # The task's own columns stand first and win over metadata of the same name.
            {**query, **document, **query, "score": score, "source_query": source}
            for document, (_, score) in zip(documents, hits, strict=True)
        ]
        return ranked(rows, where=f"Retrieve({self.index!r})")

    def transform_outputs(self, input_columns: list[str]) -> list[str]:
        """Q columns, then the document columns, score, source_query and rank."""
        self.check_columns(input_columns, empty=True)
        return list(dict.fromkeys([*input_columns, *self.index.columns, "score", "source_query", "rank"]))

    def fuse_rank_cutoff(self, k: int) -> Retrieve:
        """`Retrieve(index, k=20) % 10` asks the engine for 10."""
        return self if k >= self.k else self.with_arguments(k=k)

    def __mod__(self, right: int) -> Any:
        return self.fuse_rank_cutoff(cutoff(right, where="Retrieve % k") or 1)


def _query(row: Record) -> str:
    query = require(row, "query", where="Retrieve")
    if "docno" in row:
        raise FrameError(
            "queries are needed",
            f"documents (docno {row['docno']!r}) for qid {row['qid']!r}",
            where="Retrieve",
            hint="A retrieve stage stands first, or in a branch of union or fuse.",
        )
    if not isinstance(query, str):
        raise FrameError("a query that is text is needed", f"{query!r} for qid {row['qid']!r}", where="Retrieve")
    return query
