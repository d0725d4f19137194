"""What flows from stage to stage of a file's pipelines: queries first, candidates behind a retrieve."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyterrier as pt
from pyterrier._ops import RankCutoff

from searchops.primitives import Retrieve
from searchops.primitives.base import Primitive
from searchops.spec.nodes import Place
from searchops.spec.problems import Problems

__all__ = ["Order"]

QUERIES: Final = "queries"
CANDIDATES: Final = "candidates"
UNKNOWN: Final = "unknown"


class Order:
    """Follows a pipeline stage by stage and notes the first stage that cannot stand where it stands.

    What a stage of somebody else's puts out is not known, so nothing behind it is refused.
    """

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.rows = QUERIES

    def behind(self, stage: pt.Transformer | None, place: Place) -> None:
        """Goes on behind a stage; None is one that could not be made."""
        if stage is None or self.rows == UNKNOWN:
            self.rows = UNKNOWN
        elif isinstance(stage, Retrieve):
            if self.rows == CANDIDATES:
                self.problems.add(place, "retrieve: queries are needed before it", "candidates",
                                  "Put it first, or into a branch of a union or fuse that stands first.")  # fmt: skip
            self.rows = CANDIDATES
        elif isinstance(stage, RankCutoff) or (isinstance(stage, Primitive) and "docno" in stage.needs):
            if self.rows == QUERIES:
                name = getattr(stage, "kind", "cutoff")
                self.problems.add(place, f"{name}: a retrieve stage before it is needed", "queries")
                self.rows = UNKNOWN
        else:
            self.rows = _put_out(stage, self.rows)

    def end(self, place: Place) -> None:
        """Notes a pipeline that ends without candidates, and starts anew."""
        if self.rows == QUERIES:
            self.problems.add(place, "a pipeline with a retrieve stage is needed", "none")
        self.rows = QUERIES

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Follows a branch; what comes behind it starts from where the branch started."""
        before = self.rows
        try:
            yield
        finally:
            self.rows = before


def _put_out(stage: pt.Transformer, rows: str) -> str:
    """What comes out of a stage, as it declares it."""
    if not isinstance(stage, Primitive):
        return UNKNOWN
    if rows == CANDIDATES or stage.engine is not None:
        return CANDIDATES
    try:
        return CANDIDATES if "docno" in stage.transform_outputs(["qid", "query"]) else QUERIES
    except Exception:  # the declaration needs what only a run can tell
        return UNKNOWN
