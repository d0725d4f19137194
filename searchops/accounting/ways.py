"""One label's way through a run, event by event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from searchops.accounting.agents import OBSERVATION, Sight, agent_life, answered_tasks, sights_of
from searchops.accounting.reading import Seen, Stage, pipeline_events, seen_of, stages_of
from searchops.errors import FrameError
from searchops.frames import Record
from searchops.labels import Label
from searchops.records import HasRun, Run, as_run


def why(
    run: Run | HasRun | str | Path,
    qid: str,
    what: str,
    *,
    pipeline: int | None = None,
) -> pd.DataFrame:
    """One label's or document's whole life: where it stood at each stage, and where it was dropped.

    Columns: event, stage, label, side, present (share covered), rank, score, passages. For an agent `stage` is
        decision/call, calls that had nothing to do with the document are left out, rows `observation` say what
        was shown, and `attrs["lost_at"]` says where it was lost ("" where it was shown).

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
    # A docno may itself look like `docno:1-5` or `docno%p1`.
    known = read.candidate_table.column("docno").unique().to_pylist()
    label = Label(qid, what) if what in known else Label.parse(qid, what)
    events = pipeline_events(read, pipeline)
    stages = stages_of(events[events["qid"] == qid])
    seen = seen_of(read, [label], events)[label]
    units = answered_tasks(read, pipeline)
    if qid not in units:
        return _table([row for stage in stages for row in _stage_rows(label, stage, seen)])
    sights = sights_of(read, pipeline, [label], units)[label]
    life = agent_life(label, seen, stages, sights, overlap=1.0, whole=units[qid] == "decision")
    table = _table(_agent_rows(label, stages, seen, sights))
    table.attrs["lost_at"] = life.lost_at
    return table


def _table(rows: list[Record]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["event", "stage", "label", "side", "present", "rank", "score", "passages"])


def _stage_rows(label: Label, stage: Stage, seen: Sequence[Seen]) -> Iterator[Record]:
    for side in ("in", "out"):
        here = [item for item in seen if item.event == stage.event and item.side == side]
        if side == "in" and not here:
            continue
        covering = [item for item in here if label.covered([item]) > 0]
        best = covering[0] if covering else None
        yield {
            "event": stage.event,
            "stage": stage.stage,
            "label": stage.label,
            "side": side,
            "present": label.covered(here),
            "rank": best.rank if best else None,
            "score": best.score if best else None,
            "passages": len(covering),
        }


def _agent_rows(label: Label, stages: Sequence[Stage], seen: Sequence[Seen], sights: Sequence[Sight]) -> list[Record]:
    """The calls that saw the document, and the observations that told of it, by decision and call."""
    here = {item.event for item in seen if item.side == "out"}
    touched = [stage for stage in stages if stage.event in here or stage.parent in here]
    rows = [
        ((stage.decision, stage.call, 0), {**row, "stage": f"{stage.decision}/{stage.call}"})
        for stage in touched
        for row in _stage_rows(label, stage, seen)
    ]
    for sight in sights:
        # A cell's observation stands behind all its calls.
        call = sight.unit[1] if len(sight.unit) > 1 else max((s.call for s in stages), default=0)
        shown = {
            "event": -1,
            "stage": "/".join(map(str, sight.unit)),
            "label": OBSERVATION,
            "side": "out",
            "present": 1.0 if sight.text else label.covered(sight.parts),
            "rank": None,
            "score": None,
            "passages": len(sight.parts),
        }
        rows.append(((sight.unit[0], call, 1), shown))
    return [row for _, row in sorted(rows, key=lambda item: item[0])]
