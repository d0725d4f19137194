"""Each supporting passage followed through a recorded run: available, delivered, or lost, and where.

Reads records and evidence labels; runs nothing. Source: PSA, 2.1 and B.2 (available, delivered;
immediate, recovered, never), in the terms of this project's stages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from searchops.errors import DataError, FrameError
from searchops.labels import Label, to_labels
from searchops.records import HasRun, Run, as_run

IMMEDIATE, RECOVERED, NEVER, UNAVAILABLE = "immediate", "recovered", "never", "unavailable"
NOT_RETRIEVED = "not retrieved"


class Seen(NamedTuple):
    """A label's document or passages in one side of one event."""

    event: int
    side: str
    passage: int | None
    start: int | None
    end: int | None
    rank: int | None
    score: float | None


@dataclass(frozen=True)
class Stage:
    """One event of a task, as the accounting needs it."""

    event: int
    stage: str
    label: str
    kind: str
    parent: int
    n_in: int
    n_out: int
    decision: int
    error: str | None

    @property
    def top(self) -> bool:
        """Whether it stands in the pipeline itself, not in a branch."""
        return "." not in self.stage


@dataclass
class Life:
    """One label's life in a run.

    Attributes:
        label: The evidence label.
        retrieved: Its document came out of a retrieve stage.
        available: An extract event scored passages that cover it.
        selected: An extract event kept passages that cover it.
        delivered: It was still there at the end of the pipeline.
        outcome: immediate, recovered or never; unavailable if it was never available.
        lost_at: Label of the stage that dropped it; "" if it was delivered.
        present: Share covered by event and side, for the events that saw its document.
    """

    label: Label
    retrieved: bool = False
    available: bool = False
    selected: bool = False
    delivered: bool = False
    outcome: str = UNAVAILABLE
    lost_at: str = ""
    present: dict[tuple[int, str], float] = field(default_factory=dict)


def delivery(
    run: Run | HasRun | str | Path,
    evidence: pd.DataFrame,
    *,
    overlap: float = 1.0,
    pipeline: int | None = None,
) -> pd.DataFrame:
    """What became of each supporting passage: one row a label.

    Labels of tasks that the run did not touch are left out; labels in documents that were never
    retrieved stay in, as `not retrieved`.

    Columns: the label's qid, docno, start, end, text, then retrieved, available, selected,
        delivered (bool), outcome (immediate, recovered, never, unavailable), lost_at.
    Source: PSA, B.2.

    Args:
        run: A run, a recorder or a run's folder.
        evidence: Labels: qid, docno, start, end; or qid, passage_id; or qid, docno.
        overlap: Share of a span that kept passages must cover together.
        pipeline: Which of several recorded pipelines (number, in first-seen order).

    Raises:
        FrameError: The labels lack a column, or the run holds several pipelines and none is named.
        DataError: There is no readable run.
    """
    rows = []
    for life in lives(run, evidence, overlap=overlap, pipeline=pipeline):
        rows.append(
            {
                **life.label.as_record(),
                "retrieved": life.retrieved,
                "available": life.available,
                "selected": life.selected,
                "delivered": life.delivered,
                "outcome": life.outcome,
                "lost_at": life.lost_at,
            }
        )
    columns = [
        "qid",
        "docno",
        "start",
        "end",
        "text",
        "retrieved",
        "available",
        "selected",
        "delivered",
        "outcome",
        "lost_at",
    ]
    return pd.DataFrame(rows, columns=columns)


def funnel(
    run: Run | HasRun | str | Path,
    evidence: pd.DataFrame | None = None,
    *,
    overlap: float = 1.0,
    pipeline: int | None = None,
    found: Sequence[Life] | None = None,
) -> pd.DataFrame:
    """What each stage took in and put out, in rows and in labels.

    Columns: stage, label, kind, tasks, n_in, n_out (mean rows a task), seconds (mean a task); with
        labels also labels_in, labels_out, lost (counts over all tasks; a label counts as in a stage
        that makes candidates if it is in the run's tasks at all).

    Args:
        run: A run, a recorder or a run's folder.
        evidence: Labels, as `delivery` takes them.
        overlap: Share of a span that must be covered.
        pipeline: Which of several recorded pipelines.
        found: What `lives` gave for the same arguments, if it is at hand.

    Raises:
        FrameError, DataError: As `delivery`.
    """
    read = as_run(run)
    events = _pipeline_events(read, pipeline)
    grouped = events.groupby("stage", sort=False, observed=True)
    table = grouped.agg(
        label=("label", "first"),
        kind=("kind", "first"),
        tasks=("qid", "nunique"),
        n_in=("n_in", "mean"),
        n_out=("n_out", "mean"),
        seconds=("seconds", "mean"),
    )
    table = table.reset_index().sort_values("stage", key=lambda column: column.map(_stage_key), ignore_index=True)
    if evidence is None:
        return table
    if found is None:
        found = lives(read, evidence, overlap=overlap, pipeline=pipeline)
    stage_of = {int(event): str(stage) for event, stage in zip(events["event"], events["stage"], strict=True)}
    children: dict[int, set[str]] = {}
    for parent, stage in zip(events["parent"], events["stage"], strict=True):
        children.setdefault(int(parent), set()).add(str(stage))
    inside: dict[str, int] = dict.fromkeys(table["stage"], 0)
    outside = dict(inside)
    for life in found:
        alive = [key for key, share in life.present.items() if share >= overlap - 1e-9]
        put_out = {event for event, side in alive if side == "out"}
        read_in = {stage_of[event] for event, side in alive if side == "in"}
        for stage in read_in.union(*(children.get(event, set()) for event in put_out)):
            inside[stage] += 1
        for stage in {stage_of[event] for event in put_out}:
            outside[stage] += 1
    makes = {str(stage) for stage, n in zip(events["stage"], events["parent"], strict=True) if n < 0}
    table["labels_in"] = [len(found) if s in makes else inside[s] for s in table["stage"]]
    table["labels_out"] = [outside[s] for s in table["stage"]]
    table["lost"] = table["labels_in"] - table["labels_out"]
    return table


def why(
    run: Run | HasRun | str | Path,
    qid: str,
    what: str,
    *,
    pipeline: int | None = None,
) -> pd.DataFrame:
    """One label's or document's whole life: where it stood at each stage, and where it was dropped.

    Columns: event, stage, label, side, present (share covered), rank, score, passages.

    Args:
        run: A run, a recorder or a run's folder.
        qid: The task.
        what: `docno`, `docno%pN` or `docno:start-end`.
        pipeline: Which of several recorded pipelines.

    Raises:
        FrameError: The run has no such task.
        DataError: There is no readable run.
    """
    read = as_run(run)
    if qid not in set(read.qids):
        raise FrameError(
            "a qid of the run is needed",
            repr(qid),
            where="why",
            hint="It has: " + ", ".join(read.qids[:5]) + (", …" if len(read.qids) > 5 else "."),
        )
    label = Label.parse(qid, what)
    events = _pipeline_events(read, pipeline)
    stages = _stages(events[events["qid"] == qid])
    seen = _seen(read, [label], events)[label]
    rows = []
    for stage in stages:
        for side in ("in", "out"):
            here = [item for item in seen if item.event == stage.event and item.side == side]
            if side == "in" and not here:
                continue
            covering = [item for item in here if label.covered([item]) > 0]
            best = covering[0] if covering else None
            rows.append(
                {
                    "event": stage.event,
                    "stage": stage.stage,
                    "label": stage.label,
                    "side": side,
                    "present": label.covered(here),
                    "rank": best.rank if best else None,
                    "score": best.score if best else None,
                    "passages": len(covering),
                }
            )
    return pd.DataFrame(rows, columns=["event", "stage", "label", "side", "present", "rank", "score", "passages"])


def lives(
    run: Run | HasRun | str | Path,
    evidence: pd.DataFrame,
    *,
    overlap: float = 1.0,
    pipeline: int | None = None,
) -> list[Life]:
    """The life of every label of the run's tasks; `delivery` is its table."""
    if not 0.0 < overlap <= 1.0:
        raise FrameError("overlap must be a share above 0 and at most 1", repr(overlap), where="delivery")
    read = as_run(run)
    events = _pipeline_events(read, pipeline)
    tasks: dict[str, list[Stage]] = {}
    for qid, stage in zip(events["qid"], _stages(events), strict=True):
        tasks.setdefault(str(qid), []).append(stage)
    labels = [label for label in to_labels(evidence) if label.qid in tasks]
    seen = _seen(read, labels, events)
    return [_life(label, seen[label], tasks[label.qid], overlap) for label in labels]


def _life(label: Label, seen: Sequence[Seen], stages: Sequence[Stage], overlap: float) -> Life:
    life = Life(label)
    sides: dict[tuple[int, str], list[Seen]] = {}
    for item in seen:
        sides.setdefault((item.event, item.side), []).append(item)
    life.present = {key: label.covered(items) for key, items in sides.items()}

    def there(event: int, side: str) -> bool:
        return life.present.get((event, side), 0.0) >= overlap - 1e-9

    life.retrieved = any(stage.kind == "retrieve" and (stage.event, "out") in sides for stage in stages)
    extracts = [stage for stage in stages if stage.kind == "extract"]
    scored = {
        stage.event
        for stage in extracts
        if label.covered([i for i in sides.get((stage.event, "in"), ()) if i.passage is not None]) >= overlap - 1e-9
    }
    life.available = bool(scored)
    life.selected = any(there(stage.event, "out") for stage in extracts)
    runs = _runs(stages)
    ends = [run[-1] for run in runs if any(stage.kind == "extract" for stage in run)]
    life.delivered = life.available and any(there(stage.event, "out") for stage in ends)
    if life.available:
        at_once = there(min(scored), "out")
        life.outcome = NEVER if not life.delivered else IMMEDIATE if at_once else RECOVERED
    if not life.delivered:
        life.lost_at = _lost_at(life, runs, there)
    return life


def _lost_at(life: Life, runs: Sequence[Sequence[Stage]], there: Any) -> str:
    """The stage that dropped the label in the run where it came furthest."""
    if not life.retrieved and not life.present:
        return NOT_RETRIEVED
    furthest = (-1, NOT_RETRIEVED)
    for run in runs:
        top = [stage for stage in run if stage.top]
        alive = [place for place, stage in enumerate(top) if there(stage.event, "out")]
        last = alive[-1] if alive else -1
        if last + 1 < len(top) and last > furthest[0]:
            furthest = (last, top[last + 1].label)
        elif not alive and furthest[0] < 0 and life.retrieved:
            furthest = (-1, top[0].label if top else NOT_RETRIEVED)
        elif alive and last + 1 == len(top):
            # It reached the end, but no extract stage read it: nothing was delivered as evidence.
            furthest = max(furthest, (last, "no extract stage"))
    return furthest[1]


def _runs(stages: Sequence[Stage]) -> list[list[Stage]]:
    """The events of one task, cut where the pipeline started anew."""
    runs: list[list[Stage]] = []
    place = math.inf
    for stage in stages:
        number = int(stage.stage.split(".")[0])
        if number < place or not runs:
            runs.append([])
        place = number
        runs[-1].append(stage)
    return [sorted(run, key=lambda stage: (stage.top, stage.event)) for run in runs]


def _stages(events: pd.DataFrame) -> list[Stage]:
    columns = ["event", "stage", "label", "kind", "parent", "n_in", "n_out", "decision", "error"]
    values = zip(*(events[name].tolist() for name in columns), strict=True)
    return [Stage(*row) for row in values]


def _pipeline_events(run: Run, pipeline: int | None) -> pd.DataFrame:
    events = run.events
    numbers = sorted(set(events["pipeline"].tolist()))
    if pipeline is None and len(numbers) > 1:
        names = run.meta.get("pipelines", {})
        raise FrameError(
            "the number of one pipeline is needed",
            f"{len(numbers)} pipelines in {run!r}",
            where="delivery",
            hint="Give pipeline=N: " + "; ".join(f"{n} is {name}" for name, n in names.items())[:400],
        )
    if pipeline is not None and pipeline not in numbers:
        raise FrameError(
            "a pipeline of the run is needed",
            repr(pipeline),
            where="delivery",
            hint="It has: " + ", ".join(map(str, numbers)) + ".",
        )
    return events if pipeline is None else events[events["pipeline"] == pipeline]


def _seen(run: Run, labels: Sequence[Label], events: pd.DataFrame) -> dict[Label, list[Seen]]:
    """For each label, the candidate rows of its task that lie in its document."""
    found: dict[Label, list[Seen]] = {label: [] for label in labels}
    wanted: dict[tuple[str, str], list[Label]] = {}
    for label in labels:
        wanted.setdefault((label.qid, label.docno), []).append(label)
    for key, item in _rows_of(run, events, {docno for _, docno in wanted}):
        for label in wanted.get(key, ()):
            found[label].append(item)
    return found


def _rows_of(run: Run, events: pd.DataFrame, docnos: set[str]) -> Iterable[tuple[tuple[str, str], Seen]]:
    """Candidate rows of the documents, read column-wise: most rows of a run are never touched."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = run.candidate_table
    if not table.num_rows or not docnos:
        return
    try:
        keep = pc.is_in(table.column("docno").cast(pa.string()), value_set=pa.array(sorted(docnos)))
        table = table.filter(keep)
    except pa.ArrowException as error:
        raise DataError("readable candidate rows are needed", str(error), where=repr(run)) from error
    qid_of = dict(zip(events["event"].tolist(), events["qid"].tolist(), strict=True))
    names = ["event", "side", "docno", "passage", "start", "end", "rank", "score"]
    for event, side, docno, *rest in zip(*(table.column(name).to_pylist() for name in names), strict=True):
        qid = qid_of.get(event)
        if qid is not None:
            yield (str(qid), docno), Seen(event, side, *rest)


def _stage_key(stage: str) -> tuple[int, ...]:
    return tuple(int(part) for part in stage.split("."))
