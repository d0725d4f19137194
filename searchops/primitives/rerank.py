"""rerank(C, k): candidates ordered by a scorer against the query that found them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import ClassVar

from searchops.frames import Group, Record, ranked, require
from searchops.primitives.base import Outcome, cutoff
from searchops.primitives.scored import ScoredPrimitive, check_scorer, scores_of, text_of
from searchops.scorers.base import Scorer


class Rerank(ScoredPrimitive):
    """Orders the candidates by a scorer's relevance and keeps the k best.

    Each candidate is scored against its stored source query. Candidates of several source queries
    are ranked branch by branch and merged by rank, round-robin in the branches' first-seen order,
    first occurrence kept. Scores of different queries do not compare, so the `score` of a merged
    row is 1 / (1 + place); the scorer's own number is in `branch_score`.

    Columns: R -> R with new score and rank (branch_score where several branches were merged).
    Rows: at most k a task, in rank order.
    Source: PSA, Table 2 (rerank).

    Args:
        scorer: `Lexical()`, `BiEncoder()`, `CrossEncoder()`, `Chat()`, …
        k: Rows a task; None keeps all.
        fields: Columns whose text is scored, joined by a space; those that are there count.

    Raises:
        FrameError: k is no whole number above 0, a row has no text, or a score is NaN.
    """

    kind: ClassVar[str] = "rerank"
    needs: ClassVar[tuple[str, ...]] = ("qid", "query", "docno")

    def __init__(self, scorer: Scorer, k: int | None = 10, *, fields: Sequence[str] = ("title", "text")) -> None:
        self.scorer = check_scorer(scorer, "Rerank")
        self.k = cutoff(k, where="Rerank", optional=True)
        self.fields = tuple(fields)

    def process(self, groups: Sequence[Group]) -> list[Outcome]:
        """Scores the whole batch in one call to the scorer."""
        rows = [row for group in groups for row in group.rows]
        pairs = [(_source_query(row), text_of(row, self.fields, where="Rerank")) for row in rows]
        scores = iter(scores_of(self.bound_scorer(), pairs, rows))
        outcomes = []
        for group in groups:
            branches: dict[str, list[Record]] = {}
            for row in group.rows:
                branches.setdefault(_source_query(row), []).append({**row, "score": next(scores)})
            outcomes.append(Outcome(self._merge(list(branches.values()))))
        return outcomes

    def _merge(self, branches: list[list[Record]]) -> list[Record]:
        where = f"Rerank({self.scorer!r})"
        if len(branches) == 1:
            return ranked(branches[0], where=where)[: self.k]
        merged: dict[str, Record] = {}
        for places in zip_longest(*(ranked(branch, where=where) for branch in branches)):
            for row in places:
                if row is not None:
                    merged.setdefault(str(row.get("passage_id", row["docno"])), row)
        rows = list(merged.values())[: self.k]
        return [
            {**row, "branch_score": row["score"], "score": 1.0 / (1 + place), "rank": place}
            for place, row in enumerate(rows)
        ]

    def transform_outputs(self, input_columns: list[str]) -> list[str]:
        """The input's columns, with score and rank."""
        self.check_columns(input_columns, empty=True)
        return list(dict.fromkeys([*input_columns, "score", "rank"]))

    def fuse_rank_cutoff(self, k: int) -> Rerank:
        """`Rerank(scorer, k=20) % 10` keeps 10."""
        return self if self.k is not None and k >= self.k else self.with_arguments(k=k)


def _source_query(row: Record) -> str:
    query = row.get("source_query")
    return query if isinstance(query, str) else str(require(row, "query", where="Rerank"))
