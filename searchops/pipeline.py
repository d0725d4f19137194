"""`>>`: a pt.Compose that converts frames once, at its edges, and traces every stage."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import pandas as pd
import pyterrier as pt
from pyterrier._ops import Compose

from searchops import recorder
from searchops.errors import FrameError
from searchops.frames import (
    Group,
    Record,
    frame_to_groups,
    groups_to_records,
    records_to_frame,
    to_groups,
)
from searchops.primitives.base import Outcome, Primitive, Traced, record_failure, record_stage, run_stage
from searchops.primitives.scored import statistics_from


class Pipeline(Compose):
    """Stages run one after the other over lists of records.

    Built by `>>` as soon as its left side is a searchops stage. Equal to a `pt.Compose` of the same
    stages, but frames are converted once at the edges instead of once a stage. Other PyTerrier
    transformers may stand anywhere in it; they get and give DataFrames, and are traced too.

    Columns: those of its first stage in, of its last stage out; zero rows keep the columns.

    Example:
        >>> from searchops.primitives import Dedupe, Filter
        >>> Filter("year >= 2019") >> Dedupe()
        (Filter(field('year') >= 2019) >> Dedupe())
    """

    def __init__(self, *transformers: pt.Transformer) -> None:
        flat: list[pt.Transformer] = []
        for transformer in transformers:
            if not isinstance(transformer, pt.Transformer):
                raise FrameError(
                    "a pipeline's stages must be transformers",
                    repr(transformer),
                    where="Pipeline",
                    hint="Wrap a function with pt.apply, build a class with ().",
                )
            flat.extend(transformer if isinstance(transformer, Compose) else [transformer])
        if not flat:
            raise FrameError("at least one stage is needed", "none", where="Pipeline")
        super().__init__(*(normalise(transformer) for transformer in flat))
        engine = None
        for stage in self._transformers:
            engine = _engine_of(stage, engine)
            if engine is not None and isinstance(stage, Primitive):
                stage.remember(engine)

    @property
    def engine(self) -> Any | None:
        """The first index the pipeline retrieves from."""
        return next((engine for stage in self._transformers if (engine := _engine_of(stage)) is not None), None)

    def run(self, groups: Sequence[Group]) -> list[Group]:
        """Runs the stages over grouped records; a task left without rows stays as an empty group."""
        items = [Traced(group) for group in groups]
        run = recorder.current()
        with recorder.scope(repr(self) if run else "") as place:
            engine = None
            for index, stage in enumerate(self._transformers):
                engine = _engine_of(stage, engine)
                with statistics_from(engine) if engine is not None else nullcontext():
                    if isinstance(stage, Primitive):
                        items = run_stage(stage, items, place, index)
                    else:
                        items = self._run_foreign(stage, items, place, index)
        return [item.group for item in items]

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """DataFrame in, DataFrame out.

        Raises:
            FrameError: A column that a stage needs is missing.
        """
        columns = [str(column) for column in inp.columns]
        first = self._transformers[0]
        if isinstance(first, Primitive):
            first.check_columns(columns, empty=len(inp) == 0)
        if len(inp) == 0:
            return records_to_frame([], self._promised(columns))
        rows = groups_to_records(self.run(frame_to_groups(inp, where=repr(first))))
        return records_to_frame(rows, () if rows else self._promised(columns))

    def _promised(self, columns: list[str]) -> list[str]:
        """The columns of zero rows; a foreign stage that cannot say what it puts out adds none."""
        for stage in self._transformers:
            if isinstance(stage, Primitive):
                columns = stage.transform_outputs(columns)
            else:
                columns = pt.inspect.transformer_outputs(stage, columns, strict=False) or columns
        return columns

    def transform_iter(self, inp: Iterable[Record]) -> Iterator[Record]:
        """Records in, records out."""
        return iter(groups_to_records(self.run(to_groups(inp, where=repr(self._transformers[0])))))

    def transform_inputs(self) -> list[list[str]]:
        """The first stage's columns, and those that a later stage needs and no stage before it makes."""
        if not isinstance(self._transformers[0], Primitive):
            return super().transform_inputs()
        asked: list[str] = []
        columns: list[str] = []
        for stage in self._transformers:
            new = [name for name in getattr(stage, "needs", ()) if name not in columns]
            asked, columns = [*asked, *new], [*columns, *new]
            columns = pt.inspect.transformer_outputs(stage, columns, strict=False) or columns
        return [asked]

    def _run_foreign(
        self, stage: pt.Transformer, items: list[Traced], place: recorder.Scope, index: int
    ) -> list[Traced]:
        """Runs somebody else's transformer on a frame of the whole batch."""
        start = time.perf_counter()
        rows = [row for item in items for row in item.group.rows]
        found: dict[str, list[Record]] = {}
        # With no row there is nothing to run: many transformers fail on empty frames.
        if rows:
            try:
                with recorder.inside_stage(place, index):
                    frame = stage.transform(records_to_frame(rows, ()))
                found = {group.qid: group.rows for group in frame_to_groups(frame, where=repr(stage))}
            except Exception as error:
                record_failure(stage, items, place, index, error)
                raise
        outcomes = [Outcome(found.pop(item.group.qid, [])) for item in items]
        # A transformer may make tasks of its own (a question taken apart): they go on beside the others.
        new = [Traced(Group(qid, str(made[0].get("query", "")), [])) for qid, made in found.items()]
        items, outcomes = [*items, *new], [*outcomes, *(Outcome(made) for made in found.values())]
        run = recorder.current()
        if run is None:
            return [Traced(Group(*item.group[:2], out.rows)) for item, out in zip(items, outcomes, strict=True)]
        return record_stage(run, stage, items, outcomes, place, index, time.perf_counter() - start)

    def schematic(self, *, input_columns: list[str]) -> dict[str, Any]:
        """PyTerrier's picture of the stages, drawn without the network."""
        with without_help_pages():
            return super().schematic(input_columns=input_columns)

    def compile(self, verbose: bool = False) -> pt.Transformer:
        """PyTerrier's fusing of neighbouring stages; the result is a Pipeline again."""
        return normalise(super().compile(verbose))

    def __rshift__(self, right: pt.Transformer) -> pt.Transformer:
        return Pipeline(self, right)

    def __rrshift__(self, left: pt.Transformer) -> pt.Transformer:
        return Pipeline(left, self)

    def __hash__(self) -> int:
        return hash(("Compose", self._transformers))


Primitive.composition = Pipeline


@contextmanager
def without_help_pages() -> Iterator[None]:
    """PyTerrier looks up a help page on the web for each stage it draws; in this block it does not."""
    documentation: Any = pt.documentation
    known = documentation._cached_objects_inv
    documentation._cached_objects_inv = known or {}
    try:
        yield
    finally:
        documentation._cached_objects_inv = known


def _engine_of(stage: pt.Transformer, before: Any | None = None) -> Any | None:
    """The engine a stage of ours brings, else the one before it; a foreign stage's `engine` may be anything."""
    brought = stage.engine if isinstance(stage, (Primitive, Pipeline)) else None
    if brought is None and not isinstance(stage, Primitive):
        # PyTerrier's operators hold their operands: `(a | b) >> Rerank(Lexical())` has an index in a.
        for inside in pt.inspect.subtransformers(stage).values():
            for operand in inside if isinstance(inside, list) else [inside]:
                brought = brought if brought is not None else _engine_of(normalise(operand))
    return before if brought is None else brought


def normalise(transformer: pt.Transformer) -> pt.Transformer:
    """The transformer, with a plain composition that holds our stages turned into a Pipeline.

    Python asks the left operand first, so `foreign >> Retrieve(...)` makes a plain `pt.Compose`.
    Whatever of ours is given a pipeline brings it into this form, so that every stage is traced.

    Example:
        >>> from searchops.primitives import Dedupe
        >>> type(normalise(pt.Transformer.identity() >> Dedupe())).__name__
        'Pipeline'
    """
    if type(transformer) is Compose:
        return Pipeline(*transformer)
    return transformer
