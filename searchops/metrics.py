"""Evidence measures beside ir_measures': they print, parse and compare the same way.

Frames in, (qid, measure, value) out; everything is computed from records. Source: PSA, 2.1, B.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ir_measures
import pandas as pd
from ir_measures import Measure
from ir_measures.measures import ParamInfo, register, registry

from searchops.accounting import Life, answered_tasks, lives, shown_parts
from searchops.errors import SpecError, did_you_mean, sentence
from searchops.records import HasRun, Run, as_run

NAN = float("nan")
READERS = ("extract", "observation")
"""Stages that read passages: without one, no passage was available or delivered, and none was lost."""


class Task(NamedTuple):
    """What a measure is computed from: one task of one recorded pipeline.

    Attributes:
        lives: Its labels, followed through the run.
        ends: Its final passages (start, end, …), in one frame; none where it put out no passage.
        stages: Its stage events.
        overlap: Share of a label that must be covered.
        is_agents: An agent answered it: its observations are what was read, also where there was none.
    """

    lives: Sequence[Life]
    ends: Sequence[pd.DataFrame]
    stages: pd.DataFrame
    overlap: float = 1.0
    is_agents: bool = False

    @property
    def reads(self) -> bool:
        """Whether passages can have been available or delivered at all."""
        return self.is_agents or bool(self.stages["kind"].isin(READERS).any())


class EvidenceMeasure(Measure):
    """A measure of where supporting passages went; computed from a recorded run and labels.

    Shares are over all labels of a task, so a label whose document was never retrieved counts
    against it. A task without labels has no value.
    """

    DEFAULT = NAN
    compute: Callable[..., float]
    needs_passages = True

    def value(self, task: Task) -> float:
        """One task's value; NaN where it has none."""
        if not task.lives or (self.needs_passages and not task.reads):
            return NAN
        return type(self).compute(task, **self.params)

    def __truediv__(self, other: object) -> Measure:
        if repr(self) == "Delivered" and isinstance(other, EvidenceMeasure) and repr(other) == "Available":
            return DeliveredOfAvailable
        return NotImplemented


def _define(name: str, doc: str, compute: Callable[..., float], **more: Any) -> EvidenceMeasure:
    body = {"__doc__": doc, "__name__": name, "NAME": name, "compute": staticmethod(compute), **more}
    measure: EvidenceMeasure = type(f"_{name}", (EvidenceMeasure,), body)()
    if name not in registry:
        register(measure, name=name)
    return measure


def _share(holds: Callable[[Life], bool]) -> Callable[[Task], float]:
    return lambda task: sum(map(holds, task.lives)) / len(task.lives)


_delivered = _share(lambda life: life.delivered)


def _ratio(task: Task) -> float:
    available = sum(life.available for life in task.lives)
    # A program can show what it never extracted; that is delivered, but was not available.
    return sum(life.delivered and life.available for life in task.lives) / available if available else NAN


def _named(stages: pd.DataFrame, stage: str) -> pd.Series[bool]:
    return stages["kind"].eq(stage) | stages["label"].eq(stage) | stages["stage"].eq(stage)


def _at_stage(task: Task, stage: str) -> float:
    events = set(task.stages.loc[_named(task.stages, stage), "event"])
    enough = task.overlap - 1e-9
    return _share(lambda life: any(life.present.get((event, "out"), 0.0) >= enough for event in events))(task)


def _check_stage(measure: EvidenceMeasure, events: pd.DataFrame) -> None:
    """A stage that no task came to is no stage of the pipeline; one that failed may lack it in one task."""
    stage = measure.params.get("stage")
    if stage is None or _named(events, stage).any():
        return
    known = map(str, [*events["kind"], *events["label"], *events["stage"]])
    raise SpecError(
        "a stage of the pipeline is needed",
        repr(stage),
        where=repr(measure),
        hint=sentence(did_you_mean(stage, set(known))),
    )


def _characters(task: Task) -> float:
    return float(sum((rows["end"] - rows["start"]).sum() for rows in task.ends))


Retrieved = _define(
    "Retrieved",
    "Share of labels whose document a retrieve stage put out.",
    _share(lambda life: life.retrieved),
    needs_passages=False,
)
Available = _define(
    "Available",
    "Share of labels that an extract stage scored passages of.",
    _share(lambda life: life.available),
)
Delivered = _define("Delivered", "Share of labels covered by the passages at the pipeline's end.", _delivered)
DeliveredOfAvailable = _define(
    "Delivered/Available", "Delivered labels among available ones; NaN where none was.", _ratio
)
CompleteDelivery = _define(
    "CompleteDelivery", "1 where all labels were delivered.", lambda task: float(_delivered(task) == 1.0)
)
PartialDelivery = _define(
    "PartialDelivery", "1 where some but not all were delivered.", lambda task: float(0.0 < _delivered(task) < 1.0)
)
NoDelivery = _define("NoDelivery", "1 where none was delivered.", lambda task: float(_delivered(task) == 0.0))
DeliveredCharacters = _define(
    "DeliveredCharacters",
    "Characters of the passages at the pipeline's end, or in an agent's observations.",
    _characters,
)
EvidenceRecall = _define(
    "EvidenceRecall",
    "Share of labels that the named stage put out.",
    _at_stage,
    needs_passages=False,
    SUPPORTED_PARAMS={"stage": ParamInfo(dtype=str, required=True, desc="kind, label or place of a stage")},
)

FUNNEL: tuple[Measure, ...] = (Retrieved, Available, Delivered, DeliveredOfAvailable)


def parse_measure(text: str | Measure) -> Measure:
    """A measure from its printed form: evidence measures, ir_measures' and trec_eval's names.

    Raises:
        SpecError: There is no such measure, a parameter is missing or unknown, or a name of trec_eval's
            stands for several measures.

    Example:
        >>> parse_measure("Delivered / Available"), parse_measure("nDCG@10"), parse_measure("map")
        (Delivered/Available, nDCG@10, AP)
    """
    if isinstance(text, Measure):
        return _checked(text)
    if not isinstance(text, str):
        raise SpecError("a measure is needed", repr(text)[:80], where="measures", hint="Give its name, as text.")
    if "".join(text.split()) == "Delivered/Available":
        return DeliveredOfAvailable
    try:
        return _checked(ir_measures.parse_measure(text.strip()))
    except (NameError, ValueError, TypeError, SyntaxError) as error:
        reason = error
    try:
        found = ir_measures.parse_trec_measure(text.strip())
    except (NameError, ValueError, IndexError, KeyError):
        name = text.split("@")[0].split("(")[0]
        hint = did_you_mean(name, registry) if isinstance(reason, NameError) else str(reason)
        raise SpecError("a measure is needed", repr(text)[:80], where="measures", hint=sentence(hint)) from None
    if len(found) != 1:
        several = ", ".join(map(repr, found[:4])) + (", …" if len(found) > 4 else "")
        raise SpecError("one measure is needed", f"{text!r}, which stands for {several}", where="measures")
    return found[0]


def _checked(measure: Measure) -> Measure:
    name = measure.NAME or type(measure).__name__
    lacks = [param for param, info in measure.SUPPORTED_PARAMS.items() if info.required and param not in measure.params]
    if lacks:
        written = f"{name}@…" if lacks == [measure.AT_PARAM] else f"{name}({lacks[0]}=…)"
        raise SpecError(f"{name} needs {', '.join(lacks)}", where="measures", hint=f"Write {written}.")
    try:
        measure.validate_params()
    except AssertionError as error:
        known = ", ".join(measure.SUPPORTED_PARAMS) or "none"
        raise SpecError(
            f"parameters of {name} are needed ({known})", str(error), where="measures", hint="Mend or leave them out."
        ) from None
    return measure


def is_evidence(measure: object) -> bool:
    """Whether a measure needs a record and evidence labels."""
    return isinstance(measure, EvidenceMeasure)


def evidence_values(
    run: Run | HasRun | str | Path,
    evidence: pd.DataFrame,
    measures: Sequence[str | Measure] = FUNNEL,
    *,
    overlap: float = 1.0,
    pipeline: int | None = None,
) -> pd.DataFrame:
    """Evidence measures of every task of a run that has labels.

    Measures that are no evidence measures are passed over.

    Columns: qid, measure (text), value (NaN where a task has none).

    Raises:
        SpecError: No such measure, or one names a stage that the pipeline does not have.
        FrameError, DataError: As `accounting.delivery`.
    """
    parsed = [m for m in map(parse_measure, measures) if isinstance(m, EvidenceMeasure)]
    read = as_run(run)
    found: dict[str, list[Life]] = {}
    for life in lives(read, evidence, overlap=overlap, pipeline=pipeline):
        found.setdefault(life.label.qid, []).append(life)
    events = read.events if pipeline is None else read.events[read.events["pipeline"] == pipeline]
    for measure in parsed if found else ():
        _check_stage(measure, events)
    stages_of = dict(tuple(events.groupby("qid", sort=False, observed=True)))
    ends: Mapping[str, Sequence[pd.DataFrame]] = {}
    if any(repr(m) == "DeliveredCharacters" for m in parsed):
        ends = shown_parts(read, pipeline) or _final_rows(read, events)
    none = events.iloc[:0]
    agents = answered_tasks(read, pipeline)
    tasks = {
        qid: Task(labels, ends.get(qid, ()), stages_of.get(qid, none), overlap, qid in agents)
        for qid, labels in found.items()
    }
    rows = [
        {"qid": qid, "measure": repr(measure), "value": measure.value(task)}
        for qid, task in tasks.items()
        for measure in parsed
    ]
    return pd.DataFrame(rows, columns=["qid", "measure", "value"])


def _final_rows(run: Run, events: pd.DataFrame) -> dict[str, list[pd.DataFrame]]:
    """The passages that came out of each task's last top-level stage."""
    top = events[~events["stage"].astype(str).str.contains(".", regex=False)]
    last = top.groupby("qid", sort=False, observed=True)["event"].max()
    rows = run.candidates
    rows = rows[(rows["side"] == "out") & rows["event"].isin(set(last)) & rows["passage"].notna()]
    by_event = dict(tuple(rows.groupby("event", sort=False)))
    return {str(qid): [by_event[event]] for qid, event in last.items() if event in by_event}
