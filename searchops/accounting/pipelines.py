"""The lives of labels in a pipeline: events are the runs of its stages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from searchops.accounting.life import IMMEDIATE, NEVER, NOT_RETRIEVED, RECOVERED, Life
from searchops.accounting.reading import Seen, Stage
from searchops.labels import Label


def pipeline_life(label: Label, seen: Sequence[Seen], stages: Sequence[Stage], overlap: float) -> Life:
    """One label's life in the runs of a pipeline over one task."""
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
        elif not alive and furthest[0] < 0 and top and (life.retrieved or there(top[0].event, "in")):
            furthest = (-1, top[0].label)
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
        # A stage's branches come before it: behind a stage, its number can only stand in a new run.
        if number < place or (number == place and runs[-1][-1].top):
            runs.append([])
        place = number
        runs[-1].append(stage)
    return [sorted(run, key=lambda stage: (stage.top, stage.event)) for run in runs]
