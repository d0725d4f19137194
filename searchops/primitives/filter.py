"""filter(C, φ): the candidates for which a predicate holds, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from searchops.frames import Group, Record
from searchops.predicates import Predicate, as_predicate
from searchops.primitives.base import Outcome, Primitive


class Filter(Primitive):
    """Keeps the rows for which a predicate holds, in their original order.

    Columns: R -> R (unchanged).
    Source: PSA, Table 2 (filter).

    Args:
        predicate: A predicate object (`field("year") >= 2019`) or its text (`"year >= 2019"`).

    Raises:
        SpecError: The text does not parse.
        FrameError: The predicate names a column that no row has, or compares mixed types.
    """

    kind: ClassVar[str] = "filter"
    needs: ClassVar[tuple[str, ...]] = ("qid", "docno")

    def __init__(self, predicate: Predicate | str) -> None:
        self.predicate = as_predicate(predicate)

    def process(self, groups: Sequence[Group]) -> list[Outcome]:
        """The rows that pass; scores and ranks stay as they were."""
        # A column that only some tasks' rows have is missing in the others', not unknown.
        columns = {name for group in groups for row in group.rows for name in row}
        return [Outcome(self._kept(group.rows, columns) if group.rows else []) for group in groups]

    def _kept(self, rows: list[Record], columns: set[str]) -> list[Record]:
        keep = self.predicate.mask(rows, columns=columns)
        return [row for row, kept in zip(rows, keep, strict=True) if kept]
