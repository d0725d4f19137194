"""What the accounting reads of a record: stage events, and where a label's document stood in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from searchops.errors import DataError, FrameError
from searchops.labels import Label
from searchops.records import Run


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
    call: int = -1

    @property
    def top(self) -> bool:
        """Whether it stands in the pipeline itself, not in a branch."""
        return "." not in self.stage


def stages_of(events: pd.DataFrame) -> list[Stage]:
    """The events as stages, in their order."""
    columns = ["event", "stage", "label", "kind", "parent", "n_in", "n_out", "decision", "error", "call"]
    values = zip(*(events[name].tolist() for name in columns), strict=True)
    return [Stage(*row) for row in values]


def query_events(run: Run, events: pd.DataFrame) -> set[int]:
    """Events that put out rows of which none is a candidate: queries, written anew."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = run.candidate_table
    out = pc.equal(table.column("side").cast(pa.string()), "out")
    with_candidates = set(pc.unique(table.filter(out).column("event")).to_pylist())
    return {int(event) for event in events.loc[events["n_out"] > 0, "event"]} - with_candidates


def pipeline_events(run: Run, pipeline: int | None) -> pd.DataFrame:
    """The events of one pipeline; None is the only one there is.

    Raises:
        FrameError: There is no such pipeline, or there are several and none is named.
    """
    events = run.events
    # An agent whose model failed at once has answers and no event.
    agents = {int(line["pipeline"]) for line in run.iter_answers()}
    numbers = sorted(agents.union(events["pipeline"].tolist()))
    if pipeline is None and len(numbers) > 1:
        names = run.meta.get("pipelines", {})
        raise FrameError(
            "the number of one pipeline is needed",
            f"{len(numbers)} pipelines in {run!r}",
            where="delivery",
            hint="Give pipeline=N (--pipeline N): "
            + "; ".join(f"{n} is {name}" for name, n in names.items())[:400]
            + ". Operators of PyTerrier run alone record their operands apart: wrap them, Pipeline(a | b).",
        )
    if pipeline is not None and pipeline not in numbers:
        raise FrameError(
            "a pipeline of the run is needed",
            repr(pipeline),
            where="delivery",
            hint="It has: " + ", ".join(map(str, numbers)) + ".",
        )
    return events if pipeline is None else events[events["pipeline"] == pipeline]


def seen_of(run: Run, labels: Sequence[Label], events: pd.DataFrame) -> dict[Label, list[Seen]]:
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
