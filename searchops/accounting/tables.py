"""The tables of the accounting: what became of each label, and what each stage kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from searchops.accounting.agents import OBSERVATION, answered_tasks, shown_parts
from searchops.accounting.following import lives
from searchops.accounting.life import Life
from searchops.accounting.reading import pipeline_events, query_events
from searchops.records import HasRun, Run, as_run

_LABEL: Final = ("qid", "docno", "start", "end", "text")
_FATE: Final = ("retrieved", "available", "selected", "delivered", "outcome", "lost_at")
_AGENT: Final = ("referenced", "delivered_at")


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
        delivered (bool), outcome (immediate, recovered, never, unavailable), lost_at; for an agent also
        referenced (named but not shown) and delivered_at (the decision by which it was shown).
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
    read = as_run(run)
    agent = bool(answered_tasks(read, pipeline))
    columns = [*_LABEL, *_FATE, *(_AGENT if agent else ())]
    rows = [
        {**life.label.as_record(), **{name: getattr(life, name) for name in columns[len(_LABEL) :]}}
        for life in lives(read, evidence, overlap=overlap, pipeline=pipeline)
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
        that makes candidates if it is in the run's tasks at all). For an agent with labels, a last row
        `observation` says how many labels that extraction kept were shown.

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
    events = pipeline_events(read, pipeline)
    table = _stage_table(events)
    if evidence is None:
        return table
    if found is None:
        found = lives(read, evidence, overlap=overlap, pipeline=pipeline)
    inside, outside = _label_counts(events, found, overlap)
    agent = bool(answered_tasks(read, pipeline))
    # An agent puts lists together as it likes, so a stage of its own that read several has no one parent.
    queries = query_events(read, events)
    first = (events["kind"] == "retrieve") if agent else (events["parent"] < 0) | events["parent"].isin(queries)
    makes = set(map(str, events["stage"][first]))
    passes = set(map(str, events["stage"][events["event"].isin(queries)]))
    table["labels_in"] = [len(found) if s in makes else inside[s] for s in table["stage"]]
    # A stage that puts out queries has no candidates to lose: labels are as much ahead of it as behind it.
    table["labels_out"] = [len(found) if s in passes else outside[s] for s in table["stage"]]
    table["lost"] = table["labels_in"] - table["labels_out"]
    if not agent:
        return table
    shown = shown_parts(read, pipeline)
    n_extracted = int(events.loc[events["kind"] == "extract", "n_out"].sum())
    n_shown = sum(len(frame) for frames in shown.values() for frame in frames)
    row = _observed(found, len(shown), n_extracted, n_shown)
    return pd.concat([table, pd.DataFrame([row])[list(table.columns)]], ignore_index=True)


def _stage_table(events: pd.DataFrame) -> pd.DataFrame:
    """One row a stage, in the order of the stages: names, and means over the tasks."""
    grouped = events.groupby("stage", sort=False, observed=True)
    table = grouped.agg(
        label=("label", "first"),
        kind=("kind", "first"),
        tasks=("qid", "nunique"),
        n_in=("n_in", "mean"),
        n_out=("n_out", "mean"),
        seconds=("seconds", "mean"),
    )
    table = table.reset_index().astype({"stage": "object"})
    # Not by sort_values: pandas takes tuples of unequal length apart.
    order = sorted(range(len(table)), key=lambda n: _stage_key(table["stage"].iloc[n]))
    return table.iloc[order].reset_index(drop=True)


def _label_counts(events: pd.DataFrame, found: Sequence[Life], overlap: float) -> tuple[Counter[str], Counter[str]]:
    """How many labels each stage read and put out."""
    stage_of = {int(event): str(stage) for event, stage in zip(events["event"], events["stage"], strict=True)}
    children: dict[int, set[str]] = {}
    for parent, stage in zip(events["parent"], events["stage"], strict=True):
        children.setdefault(int(parent), set()).add(str(stage))
    inside: Counter[str] = Counter()
    outside: Counter[str] = Counter()
    for life in found:
        alive = [key for key, share in life.present.items() if share >= overlap - 1e-9]
        put_out = {event for event, side in alive if side == "out"}
        read_in = {stage_of[event] for event, side in alive if side == "in"}
        inside.update(read_in.union(*(children.get(event, set()) for event in put_out)))
        outside.update({stage_of[event] for event in put_out})
    return inside, outside


def _observed(found: Sequence[Life], tasks: int, n_extracted: int, n_shown: int) -> dict[str, Any]:
    """The row of an agent's observations: passages and labels that extraction kept, and that were shown."""
    kept = sum(life.selected or life.delivered for life in found)
    delivered = sum(life.delivered for life in found)
    return {
        "stage": OBSERVATION,
        "label": OBSERVATION,
        "kind": OBSERVATION,
        "tasks": tasks,
        "n_in": n_extracted / tasks,
        "n_out": n_shown / tasks,
        "seconds": 0.0,
        "labels_in": kept,
        "labels_out": delivered,
        "lost": kept - delivered,
    }


def _stage_key(stage: str) -> tuple[int, ...]:
    return tuple(int(part) for part in stage.split("."))
