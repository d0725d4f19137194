"""The lives of labels in an agent's questions: an event is one call's observation, or a whole cell's.

Delivered is what reached a returned observation: the parts of passages whose text stands in it, put
together over the observations so far, or, where a program writes its own strings, the label's text.
An id without its text is a reference and delivers nothing. Source: PSA, B.2 and A.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd

from searchops.accounting.life import IMMEDIATE, NEVER, NOT_RETRIEVED, RECOVERED, Life
from searchops.accounting.reading import Seen, Stage
from searchops.labels import Label
from searchops.records import Run

__all__ = ["OBSERVATION", "agent_life", "answered_tasks", "shown_parts", "sights_of"]

OBSERVATION = "observation"
UNPROCESSED = "not extracted"
_BEHIND = {"retrieve": 0, "filter": 1, "dedupe": 1, "rerank": 2, "extract": 3}

Unit = tuple[int, ...]
"""When something happened: (decision, call), or (decision,) where a decision is one event."""


class Part(NamedTuple):
    """A part of a document that stands in an observation."""

    passage: int | None
    start: int
    end: int


@dataclass
class Sight:
    """What one observation tells of one label's document.

    Attributes:
        unit: The observation.
        parts: Parts of the document whose text stands in it.
        text: Whether the label's own text stands in it.
        referenced: Whether an id of the document stands in it.
    """

    unit: Unit
    parts: list[Part] = field(default_factory=list)
    text: bool = False
    referenced: bool = False


def answered_tasks(run: Run, pipeline: int | None) -> dict[str, str]:
    """The questions that an agent answered in a run, each with what an event of it is."""
    return {
        str(line["qid"]): str(line["unit"])
        for line in run.iter_answers()
        if pipeline is None or line["pipeline"] == pipeline
    }


def shown_parts(run: Run, pipeline: int | None = None) -> dict[str, list[pd.DataFrame]]:
    """The parts of documents that an agent's observations showed: by qid, a frame with docno, start and end.

    A part that stands in several observations is there once for each. Questions of pipelines are not in it.
    """
    parts: dict[str, list[tuple[str, int, int]]] = {qid: [] for qid in answered_tasks(run, pipeline)}
    for line in run.iter_decisions():
        if pipeline is None or line["pipeline"] == pipeline:
            shown = (part for call in line.get("calls", ()) for part in call["shown"])
            parts[str(line["qid"])] += [(docno, start, end) for docno, _, start, end in shown]
    return {qid: [pd.DataFrame(rows, columns=["docno", "start", "end"])] for qid, rows in parts.items()}


def sights_of(
    run: Run, pipeline: int | None, labels: Sequence[Label], units: Mapping[str, str]
) -> dict[Label, list[Sight]]:
    """For each label, the observations that tell of its document, in order."""
    found: dict[Label, list[Sight]] = {label: [] for label in labels}
    of_task: dict[str, list[Label]] = {}
    for label in labels:
        of_task.setdefault(label.qid, []).append(label)
    for line in run.iter_decisions():
        mine = of_task.get(str(line["qid"])) if pipeline is None or line["pipeline"] == pipeline else None
        for call in line.get("calls", ()) if mine else ():
            whole = units[str(line["qid"])] == "decision"
            unit = (int(line["decision"]),) if whole else (int(line["decision"]), int(call["call"]))
            for label, sight in _sights(call, mine or (), unit, by_text=whole):
                found[label].append(sight)
    return found


def _sights(
    call: Mapping[str, Any], labels: Iterable[Label], unit: Unit, *, by_text: bool
) -> Iterable[tuple[Label, Sight]]:
    shown: dict[str, list[Part]] = {}
    for docno, passage, start, end in call["shown"]:
        shown.setdefault(docno, []).append(Part(passage, start, end))
    told = squeezed(call["observation"]) if by_text else ""
    # An id is a document's, or that of one of its passages.
    ids = {name for key in call["referenced"] for name in (key, key.rpartition("%p")[0])}
    for label in labels:
        text = squeezed(label.text) if by_text else ""
        sight = Sight(unit, shown.get(label.docno, []), bool(text) and text in told, label.docno in ids)
        if sight.parts or sight.text or sight.referenced:
            yield label, sight


def squeezed(text: str) -> str:
    """A text for comparison: white space as single blanks, case folded."""
    return " ".join(text.split()).casefold()


def agent_life(
    label: Label,
    seen: Sequence[Seen],
    stages: Sequence[Stage],
    sights: Sequence[Sight],
    *,
    overlap: float,
    whole: bool,
) -> Life:
    """One label's life in one question of an agent.

    Args:
        label: The label.
        seen: Where its document stood in the question's events.
        stages: The question's events.
        sights: What the observations tell of its document.
        overlap: The share of a span that must be covered.
        whole: Whether a decision is one event.
    """
    life = Life(label)
    sides: dict[tuple[int, str], list[Seen]] = {}
    for item in seen:
        sides.setdefault((item.event, item.side), []).append(item)
    life.present = {key: label.covered(items) for key, items in sides.items()}
    life.retrieved = any(stage.kind == "retrieve" and (stage.event, "out") in sides for stage in stages)
    enough = overlap - 1e-9
    extracts = [stage for stage in stages if stage.kind == "extract"]
    available = [
        _unit(stage, whole=whole)
        for stage in extracts
        if label.covered([i for i in sides.get((stage.event, "in"), ()) if i.passage is not None]) >= enough
    ]
    life.available = bool(available)
    life.selected = any(life.present.get((stage.event, "out"), 0.0) >= enough for stage in extracts)
    delivered = _delivered(label, sights, seen, enough)
    life.delivered = delivered is not None
    life.delivered_at = delivered[0] if delivered else None
    life.referenced = not life.delivered and any(sight.referenced or sight.parts for sight in sights)
    if life.available:
        life.outcome = NEVER if delivered is None else IMMEDIATE if delivered <= min(available) else RECOVERED
    if not life.delivered:
        life.lost_at = _lost_at(life, stages, enough)
    return life


def _unit(stage: Stage, *, whole: bool) -> Unit:
    return (stage.decision,) if whole else (stage.decision, stage.call)


def _delivered(label: Label, sights: Sequence[Sight], seen: Sequence[Seen], enough: float) -> Unit | None:
    """The first observation by which the label has been shown."""
    parts: list[Part] = []
    for sight in sorted(sights, key=lambda sight: sight.unit):
        parts += sight.parts
        if sight.text or _covered(label, parts, seen) >= enough:
            return sight.unit
    return None


def _covered(label: Label, parts: Sequence[Part], seen: Sequence[Seen]) -> float:
    """The share of the label that the parts show; of a passage label, the share of the passage."""
    if label.passage is None:
        return label.covered(parts)
    mine = [part for part in parts if part.passage == label.passage]
    size = next((i.end - (i.start or 0) for i in seen if i.passage == label.passage and i.end), 0)
    return max((part.end - part.start for part in mine), default=0) / size if size else float(bool(mine))


def _lost_at(life: Life, stages: Sequence[Stage], enough: float) -> str:
    """Where a label that was not delivered got stuck: the stage behind the furthest one that put it out."""
    if life.selected:
        return OBSERVATION
    alive = [stage for stage in stages if life.present.get((stage.event, "out"), 0.0) >= enough]
    if not alive:
        return NOT_RETRIEVED
    events = {stage.event: stage for stage in alive}
    dropped = [
        stage
        for stage in stages
        if life.present.get((stage.event, "out"), 0.0) < enough
        and (stage.parent in events or life.present.get((stage.event, "in"), 0.0) >= enough)
    ]
    if not dropped:
        return UNPROCESSED
    return max(dropped, key=lambda stage: (_BEHIND.get(stage.kind, 0), stage.event)).label
