"""What a search engine is to the rest of searchops: one small protocol.

An engine answers queries with (docno, score) pairs and hands out the stored documents. Engines are
safe to search from many threads at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from searchops.frames import Record
from searchops.scorers.statistics import Analyzer, TermStatistics

Hits: TypeAlias = list[tuple[str, float]]
"""(docno, score) pairs, best first; at most k; ties in any order (`Retrieve` orders them)."""


@runtime_checkable
class Engine(Protocol):
    """A searchable collection.

    Equality and hash go by what the engine is (its folder and settings), so that pipelines over the
    same index are equal.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """The document columns that `fetch` returns, `docno` first."""
        ...

    def __len__(self) -> int:
        """How many documents there are."""
        ...

    def search(self, query: str, k: int) -> Hits:
        """The k best documents for one query. An empty or unmatchable query gives no hits."""
        ...

    def search_many(self, queries: Sequence[str], k: int) -> list[Hits]:
        """One list of hits a query, in the order of the queries."""
        ...

    def fetch(self, docnos: Sequence[str]) -> list[Record]:
        """The stored documents, in the order asked; records are shared: do not change them.

        Raises:
            DataError: A docno is not in the collection.
        """
        ...

    def statistics(self, analyzer: Analyzer) -> TermStatistics:
        """Document frequencies and lengths of the collection under an analyzer (cached)."""
        ...
