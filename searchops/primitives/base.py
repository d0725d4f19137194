"""What the five primitives share: a stage that is its constructor arguments and nothing else."""

from __future__ import annotations

import copy
import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import pandas as pd
import pyterrier as pt
from pyterrier._ops import Compose

from searchops import recorder
from searchops.errors import FrameError, SearchopsError
from searchops.frames import (
    Group,
    Record,
    frame_to_groups,
    groups_to_records,
    records_to_frame,
    to_groups,
)
from searchops.recorder import ScoredPassage
from searchops.records import Event

MOST = 2**31 - 1  # what a Java engine can be asked for


class Outcome(NamedTuple):
    """What a kernel makes of one task's rows.

    Attributes:
        rows: The rows that go on.
        scored: Passages that were scored on the way (the available set of an extract stage).
    """

    rows: list[Record]
    scored: Sequence[ScoredPassage] = ()


class Traced(NamedTuple):
    """A group on its way through a pipeline, with the event that put it out (-1: none)."""

    group: Group
    event: int = -1


class Primitive(pt.Transformer):
    """A search primitive: a PyTerrier transformer over lists of records.

    Subclasses store their constructor arguments under the arguments' names and implement `kernel`
    (one task at a time) or `process` (a batch of tasks). repr, equality, hash, YAML and PyTerrier's
    inspection all follow from the arguments. The input is never changed.
    """

    kind: ClassVar[str] = "stage"
    needs: ClassVar[tuple[str, ...]] = ("qid",)
    parameters: ClassVar[tuple[tuple[str, Any], ...]] = ()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        declared = inspect.signature(cls).parameters.values()
        cls.parameters = tuple((p.name, p.default) for p in declared if not p.name.startswith("_"))

    def kernel(self, rows: list[Record]) -> list[Record]:
        """One task's rows in, the rows that go on out."""
        raise NotImplementedError(f"{type(self).__name__} implements neither kernel nor process")

    def process(self, groups: Sequence[Group]) -> list[Outcome]:
        """A batch of tasks; one outcome each, in order. An empty group gives an empty outcome."""
        return [Outcome(self.kernel(group.rows) if group.rows else []) for group in groups]

    @property
    def engine(self) -> Any | None:
        """The engine that stages behind this one take collection statistics from, if it brings one."""
        return None

    def remember(self, engine: Any) -> None:
        """Notes the engine of a pipeline the stage was composed into (default: nothing to note)."""

    # -- the faces of a pt.Transformer ---------------------------------------------------------

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """DataFrame in, DataFrame out.

        Raises:
            FrameError: A column the stage needs is missing.
        """
        columns = [str(column) for column in inp.columns]
        self.check_columns(columns, empty=len(inp) == 0)
        if len(inp) == 0:
            return records_to_frame([], self.transform_outputs(columns))
        groups = self.run_alone(frame_to_groups(inp, where=type(self).__name__))
        rows = groups_to_records(groups)
        return records_to_frame(rows, () if rows else self.transform_outputs(columns))

    def transform_iter(self, inp: Iterable[Record]) -> Iterator[Record]:
        """Records in, records out."""
        groups = to_groups(inp, where=type(self).__name__)
        return iter(groups_to_records(self.run_alone(groups)))

    def run_alone(self, groups: Sequence[Group]) -> list[Group]:
        """Runs the stage on its own, as a pipeline of one."""
        if recorder.current() is None:
            return [Group(g.qid, g.query, o.rows) for g, o in zip(groups, self.process(groups), strict=True)]
        with recorder.scope(repr(self)) as place:
            traced = run_stage(self, [Traced(group) for group in groups], place, 0)
        return [item.group for item in traced]

    def check_columns(self, columns: Sequence[str], *, empty: bool = False) -> None:
        """Raises for missing columns: PyTerrier's error where it inspects, FrameError on data."""
        missing = [name for name in self.needs if name not in columns]
        if not missing:
            return
        if empty:
            pt.validate.columns(pd.DataFrame(columns=list(columns)), includes=list(self.needs))
        raise FrameError(
            "columns " + ", ".join(self.needs) + " are needed",
            "columns " + (", ".join(columns) or "none"),
            where=type(self).__name__,
            hint="Missing: " + ", ".join(missing) + ".",
        )

    def transform_inputs(self) -> list[list[str]]:
        """The columns the stage needs; read by `pt.inspect` without running anything."""
        return [list(self.needs)]

    def transform_outputs(self, input_columns: list[str]) -> list[str]:
        """The columns the stage puts out for given input columns; runs nothing."""
        self.check_columns(input_columns, empty=True)
        return list(input_columns)

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        """PyTerrier's picture of the stage. No help page is looked up, so it draws offline."""
        settings = {name: short(value) for name, value in self.arguments(all_of_them=True).items()}
        return {"label": self.label(), "help_url": None, "settings": settings}

    def subtransformers(self) -> dict[str, Any]:
        """Transformers inside the stage, for `pt.inspect`; it would take an empty tuple for some."""
        return {}

    def label(self) -> str:
        """A name of at most 20 characters for pictures and tables, such as `rerank k=10`."""
        k = getattr(self, "k", None)
        return self.kind if k is None else f"{self.kind} k={k}"

    # -- its constructor arguments, and all that follows from them -----------------------------

    def arguments(self, *, all_of_them: bool = False) -> dict[str, Any]:
        """Constructor arguments by name; those at their default only if asked for."""
        return {
            name: getattr(self, name)
            for name, default in self.parameters
            if all_of_them or default is inspect.Parameter.empty or getattr(self, name) != default
        }

    def __setattr__(self, name: str, value: Any) -> None:
        # PyTerrier's grid search sets parameters on a built stage: whatever was derived goes.
        super().__setattr__(name, value)
        self.__dict__.pop("_repr", None)

    def __repr__(self) -> str:
        text: str | None = self.__dict__.get("_repr")
        if text is None:
            required = {name for name, default in self.parameters if default is inspect.Parameter.empty}
            parts = [
                repr(value) if name in required else f"{name}={value!r}" for name, value in self.arguments().items()
            ]
            text = f"{type(self).__name__}({', '.join(parts)})"
            self.__dict__["_repr"] = text
        return text

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, Primitive)
        return self.arguments(all_of_them=True) == other.arguments(all_of_them=True)

    def __hash__(self) -> int:
        return hash(repr(self))

    def with_arguments(self, **changed: Any) -> Self:
        """An equal stage but for the arguments given."""
        twin = copy.copy(self)
        for name, value in changed.items():
            setattr(twin, name, value)
        return twin

    # -- composition ---------------------------------------------------------------------------

    # What `>>` builds. The pipeline module, one floor up, puts its Pipeline here.
    composition: ClassVar[Callable[..., pt.Transformer]] = Compose

    def __rshift__(self, right: pt.Transformer) -> pt.Transformer:
        return Primitive.composition(self, right)

    def __rrshift__(self, left: pt.Transformer) -> pt.Transformer:
        return Primitive.composition(left, self)


def run_stage(stage: Primitive, items: Sequence[Traced], place: recorder.Scope, index: int) -> list[Traced]:
    """Runs one primitive on a batch of tasks and records one event a task."""
    run = recorder.current()
    groups = [item.group for item in items]
    start = time.perf_counter()
    try:
        first = next((group.rows[0] for group in groups if group.rows), None)
        if first is not None:
            stage.check_columns(list(first))
        with recorder.inside_stage(place, index):
            outcomes = stage.process(groups)
    except Exception as error:
        record_failure(stage, items, place, index, error)
        raise
    seconds = time.perf_counter() - start
    if run is None:
        return [Traced(Group(g.qid, g.query, o.rows)) for g, o in zip(groups, outcomes, strict=True)]
    return record_stage(run, stage, items, outcomes, place, index, seconds)


def record_stage(
    run: recorder.Recorder,
    stage: pt.Transformer,
    items: Sequence[Traced],
    outcomes: Sequence[Outcome],
    place: recorder.Scope,
    index: int,
    seconds: float,
) -> list[Traced]:
    """Hands the events of one stage over a batch of tasks to the recorder."""
    make = _event_maker(stage, place, index, seconds / max(len(items), 1))
    foreign = not isinstance(stage, Primitive)
    traced = []
    for item, outcome in zip(items, outcomes, strict=True):
        group = item.group
        event = make(item, len(outcome.rows), None)
        read = group.rows if item.event < 0 else ()
        number = run.add(event, outcome.rows, read=read, scored=outcome.scored, foreign=foreign)
        traced.append(Traced(Group(group.qid, group.query, outcome.rows), number))
    run.checkpoint(force=False)
    return traced


def record_failure(
    stage: pt.Transformer, items: Sequence[Traced], place: recorder.Scope, index: int, error: Exception
) -> None:
    """Notes, where a run is recorded, what a stage failed with, for every task of the batch."""
    run = recorder.current()
    if run is None:
        return
    make = _event_maker(stage, place, index, 0.0)
    text = str(error) if isinstance(error, SearchopsError) else f"{type(error).__name__}: {error}"
    for item in items:
        run.add(make(item, 0, text), ())


def _event_maker(stage: pt.Transformer, place: recorder.Scope, index: int, seconds: float) -> Any:
    name = repr(stage)
    config = recorder.config_hash(name)
    kind = getattr(stage, "kind", "stage")
    label = stage.label() if isinstance(stage, Primitive) else short(name, 30)
    path = f"{place.prefix}{index}"
    decision, call = recorder.current_step()

    def make(item: Traced, n_out: int, error: str | None) -> Event:
        group = item.group
        return Event(
            group.qid,
            group.query,
            place.pipeline,
            path,
            label,
            kind,
            name,
            config,
            item.event,
            len(group.rows),
            n_out,
            seconds,
            error,
            decision,
            call,
        )

    return make


def cutoff(value: int | None, *, where: str, name: str = "k", optional: bool = False) -> int | None:
    """A cut-off that is a whole number of at least 1 (or None where that means no cut).

    Raises:
        FrameError: It is anything else.

    Example:
        >>> cutoff(10, where="Retrieve")
        10
    """
    if value is None and optional:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise FrameError(
            f"{name} must be a whole number of at least 1" + (" (or None)" if optional else ""),
            repr(value),
            where=where,
            hint=f"Give for example {name}=10.",
        )
    return value


def short(value: object, limit: int = 60) -> str:
    """A value for a table: its repr, cut in the middle where it is long."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 20]} … {text[-17:]}"
