"""Stages that score: where their scorer gets the collection's statistics from."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import isfinite
from typing import TYPE_CHECKING, Any

from searchops.errors import FrameError
from searchops.frames import Record
from searchops.primitives.base import Primitive
from searchops.scorers.base import Scorer

if TYPE_CHECKING:
    from collections.abc import Iterator

_engine: ContextVar[Any | None] = ContextVar("searchops_engine", default=None)


@contextmanager
def statistics_from(engine: Any | None) -> Iterator[None]:
    """Stages run in this block score with that engine's collection statistics."""
    token = _engine.set(engine)
    try:
        yield
    finally:
        _engine.reset(token)


class ScoredPrimitive(Primitive):
    """A stage with a `scorer`, which may need the statistics of the pipeline's collection.

    In a pipeline they are those of the nearest retrieve stage before it. A planner such as
    `pt.Experiment(plan="tree")` runs stages one by one, outside their pipeline: for that case a
    stage remembers the engine it was composed with, and refuses where there were two.
    """

    scorer: Scorer

    def remember(self, engine: Any) -> None:
        """Notes the engine of a pipeline the stage was composed into."""
        known: tuple[Any, ...] = self.__dict__.get("_engines", ())
        if not any(engine == other for other in known):
            self.__dict__["_engines"] = (*known, engine)

    def bound_scorer(self) -> Scorer:
        """The scorer, bound to the engine at hand.

        Raises:
            FrameError: The stage runs outside its pipelines, and they have different engines.
        """
        engine = _engine.get()
        if engine is None:
            known: tuple[Any, ...] = self.__dict__.get("_engines", ())
            if len(known) > 1 and self.scorer.bind(known[0]) is not self.scorer:
                raise FrameError(
                    "one index to take collection statistics from is needed",
                    f"{len(known)} pipelines over different indexes",
                    where=repr(self),
                    hint="Give the scorer its index: Lexical(index).",
                )
            engine = known[0] if known else None
        if engine is None:
            return self.scorer
        cached: tuple[Any, Scorer, Scorer] | None = self.__dict__.get("_bound")
        if cached is None or cached[0] is not engine or cached[1] is not self.scorer:
            cached = self.__dict__["_bound"] = (engine, self.scorer, self.scorer.bind(engine))
        return cached[2]


def scores_of(scorer: Scorer, pairs: Sequence[tuple[str, str]], rows: Sequence[Record]) -> list[float]:
    """A scorer's scores of the rows' pairs, one finite number each: whatever else it gives is refused here.

    Raises:
        FrameError: It gave another number of scores, or what is no finite number.
    """
    if not pairs:
        return []
    given = scorer.score(pairs)
    try:
        scores = [float(score) for score in given]
    except (TypeError, ValueError, OverflowError) as error:
        raise FrameError("a list of numbers is needed", str(error), where=repr(scorer)) from None
    if len(scores) != len(pairs):
        raise FrameError(f"{len(pairs)} scores are needed, one a pair", str(len(scores)), where=repr(scorer))
    for score, row in zip(scores, rows, strict=True):
        if not isfinite(score):
            name = row.get("passage_id") or f"docno {row.get('docno')!r}"
            raise FrameError("a finite score is needed", f"{score} for {name}", where=repr(scorer))
    return scores


def check_scorer(scorer: object, where: str) -> Scorer:
    """The scorer, or a clear error for what is none (a class not called, a model's name).

    Raises:
        FrameError: It is no scorer.
    """
    if isinstance(scorer, Scorer):
        return scorer
    hint = f"Write {scorer.__name__}()." if isinstance(scorer, type) else "Give for example Lexical()."
    raise FrameError("a scorer is needed", repr(scorer), where=where, hint=hint)


def text_of(row: Record, fields: Sequence[str], *, where: str) -> str:
    """The text of a candidate that is scored: its fields, joined by a space.

    Raises:
        FrameError: None of the fields is a column, or one holds something that is no text.
    """
    values = [row[name] for name in fields if name in row]
    if not values:
        raise FrameError(
            "one of the columns " + ", ".join(fields) + " is needed",
            "columns " + ", ".join(sorted(map(str, row))),
            where=where,
            hint="Retrieve from an index that stores the text, or name other fields.",
        )
    parts = []
    for value in values:
        if isinstance(value, str):
            parts.append(value)
        elif value is not None and value == value:
            raise FrameError("text is needed", f"{type(value).__name__} for docno {row.get('docno')!r}", where=where)
    return " ".join(part for part in parts if part)
