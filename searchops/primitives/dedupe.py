"""dedupe(C1‖…‖Cm, key): the first candidate of each key, in order."""

from __future__ import annotations

from typing import ClassVar

from searchops.errors import FrameError
from searchops.frames import Record, require
from searchops.primitives.base import Primitive

KEYS = ("docno", "passage_id")


class Dedupe(Primitive):
    """Keeps the first row of each document or passage; order, scores and ranks stay.

    Columns: R -> R (unchanged).
    Source: PSA, Table 2 (dedupe).

    Args:
        key: `docno` or `passage_id`.

    Raises:
        FrameError: Another key, or rows without that column.
    """

    kind: ClassVar[str] = "dedupe"
    needs: ClassVar[tuple[str, ...]] = ("qid", "docno")

    def __init__(self, key: str = "docno") -> None:
        if key not in KEYS:
            raise FrameError("key must be docno or passage_id", repr(key), where="Dedupe")
        self.key = key

    def kernel(self, rows: list[Record]) -> list[Record]:
        """First occurrences only."""
        first: dict[str, Record] = {}
        for row in rows:
            first.setdefault(require(row, self.key, where="Dedupe"), row)
        return list(first.values())
