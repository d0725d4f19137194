"""Each label's way through the stages of a pipeline: its rank where it was there, its score where it fell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pandas as pd

from searchops.accounting import Life
from searchops.labels import Label
from searchops.records import Run


class Candidate(NamedTuple):
    """One candidate row of a label's document."""

    passage: int | None
    start: int | None
    end: int | None
    rank: int | None
    score: float | None


class Step(NamedTuple):
    """What one stage did to one label.

    Attributes:
        ran: The stage ran for the label's task.
        present: Share of the label in its output; the best of its events.
        rank: Rank there of the best candidate that covers some of it.
        place: Place, from 1, of the label's best passage among those of its document that were scored.
        scored: How many passages of its document the stage scored; 0 where none.
    """

    ran: bool
    present: float
    rank: int | None
    place: int
    scored: int


_Rows = dict[tuple[int, str, str], list[Candidate]]


def paths(run: Run, events: pd.DataFrame, lives: Sequence[Life], stages: Sequence[str]) -> list[list[Step]]:
    """For each life, one step for each of the stages.

    Args:
        run: The run.
        events: Events of one pipeline of it.
        lives: Lives of the labels in that pipeline.
        stages: Places of the stages (column `stage`), in the order wanted.
    """
    rows = _rows(run, events, {(life.label.qid, life.label.docno) for life in lives})
    places: dict[tuple[str, str], list[int]] = {}
    for event, qid, stage in zip(events["event"], events["qid"], events["stage"], strict=True):
        places.setdefault((str(qid), str(stage)), []).append(int(event))
    return [[_step(life, places.get((life.label.qid, stage), ()), rows) for stage in stages] for life in lives]


def _step(life: Life, events: Sequence[int], rows: _Rows) -> Step:
    if not events:
        return Step(False, 0.0, None, 0, 0)
    return max((_at(life, event, rows) for event in events), key=lambda step: (step.present, step.scored))


def _at(life: Life, event: int, rows: _Rows) -> Step:
    label = life.label
    out = [row for row in rows.get((event, "out", label.docno), ()) if label.covered([row]) > 0]
    ranks = [row.rank for row in out if row.rank is not None]
    place, scored = _place(label, rows.get((event, "in", label.docno), ()))
    return Step(True, life.present.get((event, "out"), 0.0), min(ranks, default=None), place, scored)


def _place(label: Label, read: Sequence[Candidate]) -> tuple[int, int]:
    scores = [row.score for row in read if row.passage is not None and row.score is not None]
    own = [row.score for row in read
           if row.passage is not None and row.score is not None and label.covered([row]) > 0]  # fmt: skip
    if not own:
        return 0, len(scores)
    return 1 + sum(score > max(own) for score in scores), len(scores)


def _rows(run: Run, events: pd.DataFrame, wanted: set[tuple[str, str]]) -> _Rows:
    """Candidate rows of the labels' documents by event, side and document."""
    qid_of = {int(event): str(qid) for event, qid in zip(events["event"], events["qid"], strict=True)}
    found: _Rows = {}
    for (event, side, docno), candidate in _candidates(run, {docno for _, docno in wanted}):
        if (qid_of.get(event, ""), docno) in wanted:
            found.setdefault((event, side, docno), []).append(candidate)
    return found


def _candidates(run: Run, docnos: set[str]) -> Iterator[tuple[tuple[int, str, str], Candidate]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    table = run.candidate_table
    wanted = pa.array(sorted(docnos), pa.string())
    table = table.filter(pc.is_in(table.column("docno").cast(pa.string()), value_set=wanted))
    names = ["event", "side", "docno", "passage", "start", "end", "rank", "score"]
    for event, side, docno, *rest in zip(*(table.column(name).to_pylist() for name in names), strict=True):
        yield (event, side, docno), Candidate(*rest)
