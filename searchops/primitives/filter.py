"""filter(C, φ): the candidates for which a predicate holds, in their order."""

from __future__ import annotations

from typing import ClassVar

from searchops.frames import Record
from searchops.predicates import Predicate, parse
from searchops.primitives.base import Primitive


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
        self.predicate = parse(predicate) if isinstance(predicate, str) else predicate

    def kernel(self, rows: list[Record]) -> list[Record]:
        """The rows that pass; scores and ranks stay as they were."""
        return [row for row, keep in zip(rows, self.predicate.mask(rows), strict=True) if keep]
