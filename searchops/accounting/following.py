"""Every label of a run followed through it, by a pipeline's rules or by an agent's."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from searchops.accounting.agents import agent_life, answered_tasks, sights_of
from searchops.accounting.life import Life
from searchops.accounting.pipelines import pipeline_life
from searchops.accounting.reading import Stage, pipeline_events, seen_of, stages_of
from searchops.errors import FrameError
from searchops.labels import to_labels
from searchops.records import HasRun, Run, as_run


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
    events = pipeline_events(read, pipeline)
    tasks: dict[str, list[Stage]] = {}
    for qid, stage in zip(events["qid"], stages_of(events), strict=True):
        tasks.setdefault(str(qid), []).append(stage)
    units = answered_tasks(read, pipeline)
    labels = [label for label in to_labels(evidence) if label.qid in tasks or label.qid in units]
    seen = seen_of(read, labels, events)
    if not units:
        return [pipeline_life(label, seen[label], tasks[label.qid], overlap) for label in labels]
    sights = sights_of(read, pipeline, labels, units)
    return [
        agent_life(
            label,
            seen[label],
            tasks.get(label.qid, []),
            sights[label],
            overlap=overlap,
            whole=units.get(label.qid) == "decision",
        )
        for label in labels
    ]
