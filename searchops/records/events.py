"""What one stage event is, and the tables that events and candidates are kept in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa


class Event(NamedTuple):
    """One stage run on one task's rows.

    Attributes:
        qid: The task.
        query: The task's query.
        pipeline: Number of the top-level pipeline in this run, in first-seen order.
        stage: Place in that pipeline: `2`, or `2.0.1` inside the branches of stage 2.
        label: A short name for tables, such as `rerank k=10`.
        kind: retrieve, filter, rerank, extract, dedupe, fuse, …; `stage` for a foreign transformer.
        name: The stage's repr.
        config: Hash of the name, to compare runs by.
        parent: Event whose output this one read, -1 where it read topics or several outputs.
        n_in: Rows in.
        n_out: Rows out.
        seconds: Its share of the stage's time (a stage may run many tasks in one batch).
        error: What it failed with, else None.
        decision: Decision of an agent, -1 in a pipeline.
        call: Call within the decision, -1 in a pipeline.
        cache: `hit` or `miss` where a stage says so.
        cost: In USD, where a stage has one.
    """

    qid: str
    query: str
    pipeline: int
    stage: str
    label: str
    kind: str
    name: str
    config: str
    parent: int
    n_in: int
    n_out: int
    seconds: float
    error: str | None = None
    decision: int = -1
    call: int = -1
    cache: str | None = None
    cost: float | None = None


def event_schema() -> pa.Schema:
    """Columns of the events table: those of `Event`, after the event's number."""
    import pyarrow as pa

    text, number = pa.dictionary(pa.int32(), pa.string()), pa.int32()
    types: dict[str, pa.DataType] = {
        "event": pa.int64(),
        "qid": text,
        "query": text,
        "pipeline": number,
        "stage": text,
        "label": text,
        "kind": text,
        "name": text,
        "config": text,
        "parent": pa.int64(),
        "n_in": number,
        "n_out": number,
        "seconds": pa.float64(),
        "error": pa.string(),
        "decision": number,
        "call": number,
        "cache": text,
        "cost": pa.float64(),
    }
    return pa.schema(list(types.items()))


def candidate_schema() -> pa.Schema:
    """Columns of the candidates table: one row a candidate on one side of one event.

    `side` is `out`, or `in` for what a stage read that no recorded event put out and for the
    passages that an extract stage scored. `passage` is the N of `docno%pN`, null for a document.
    """
    import pyarrow as pa

    return pa.schema(
        [
            ("event", pa.int64()),
            ("side", pa.dictionary(pa.int8(), pa.string())),
            ("docno", pa.dictionary(pa.int32(), pa.string())),
            ("passage", pa.int32()),
            ("start", pa.int32()),
            ("end", pa.int32()),
            ("rank", pa.int32()),
            ("score", pa.float32()),
        ]
    )
