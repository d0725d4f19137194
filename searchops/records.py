"""What a recorded run looks like on disk, and how it is read back.

A run is a folder: `run.json` (versions, spec, data hashes, seeds), `events/` and `candidates/`
(Parquet, one pair of files a checkpoint), `run.trec`, `measures.json`. A checkpoint counts once its
events file is there; it is written last. Source: PSA, B.2 (extraction events, in their order).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from searchops.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FORMAT_VERSION = 1
RUN_FILE = "run.json"


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


@runtime_checkable
class HasRun(Protocol):
    """Anything that can hand out a run: a recorder in progress, an agent's result."""

    def run(self) -> Run:
        """What has been recorded so far."""
        ...


@dataclass(frozen=True)
class Run:
    """A recorded run, read.

    Attributes:
        event_table: Arrow table of events.
        candidate_table: Arrow table of candidates.
        meta: The content of run.json.
        path: Its folder; None for a run kept in memory.
    """

    event_table: pa.Table
    candidate_table: pa.Table
    meta: dict[str, Any]
    path: Path | None = None

    @cached_property
    def events(self) -> pd.DataFrame:
        """One row a stage event, in event order (columns of `Event`, after `event`)."""
        return _frame(self.event_table, "event")

    @cached_property
    def candidates(self) -> pd.DataFrame:
        """One row a candidate on one side of an event: event, side, docno, passage, start, …"""
        return _frame(self.candidate_table, None)

    @property
    def qids(self) -> list[str]:
        """Tasks with events, in order."""
        return [str(qid) for qid in self.events["qid"].drop_duplicates()]

    def __repr__(self) -> str:
        where = str(self.path) if self.path else "memory"
        n_events, n_rows = self.event_table.num_rows, self.candidate_table.num_rows
        return f"<Run {where}: {n_events:,} events, {n_rows:,} candidate rows>"

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """Reads a run's folder; what a crash left unfinished is not in it.

        Raises:
            DataError: There is no run at the path, or one of its files is damaged.
        """
        folder = Path(path)
        meta = read_meta(folder)
        events = _read_parts(folder, "events")
        return cls(events, _read_parts(folder, "candidates"), meta, folder)


def as_run(source: Run | HasRun | str | Path) -> Run:
    """The run that a recorder, a path or a run stands for."""
    if isinstance(source, Run):
        return source
    if isinstance(source, HasRun):
        return source.run()
    return Run.open(source)


def read_meta(folder: Path) -> dict[str, Any]:
    """The content of a run's run.json.

    Raises:
        DataError: It is missing, is no JSON object or is of a format this version cannot read.
    """
    file = folder / RUN_FILE
    try:
        meta = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(
            "a run's folder (with run.json) is needed",
            "nothing" if not folder.exists() else "a folder without it",
            where=str(folder),
            hint="Make one with `searchops run FILE.yaml --out DIR` or so.record(DIR).",
        ) from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError("readable JSON is needed", str(error), where=str(file)) from error
    if not isinstance(meta, dict) or meta.get("format") != FORMAT_VERSION:
        found = meta.get("format") if isinstance(meta, dict) else type(meta).__name__
        raise DataError(f"a run of format {FORMAT_VERSION} is needed", repr(found), where=str(file))
    return meta


def part_numbers(folder: Path) -> list[int]:
    """Numbers of the finished checkpoints: those whose events file is in place."""
    return sorted(int(file.stem) for file in (folder / "events").glob("[0-9]*.parquet"))


def _read_parts(folder: Path, table: str) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = event_schema() if table == "events" else candidate_schema()
    parts: list[pa.Table] = []
    for number in part_numbers(folder):
        file = folder / table / f"{number:06d}.parquet"
        try:
            parts.append(pq.read_table(file).cast(schema))
        except (OSError, pa.ArrowException, ValueError) as error:
            raise DataError(
                "a readable Parquet file is needed",
                str(error).splitlines()[0],
                where=str(file),
                hint="The record is damaged; delete this checkpoint's two files or run again.",
            ) from error
    return pa.concat_tables(parts).unify_dictionaries() if parts else schema.empty_table()


def _frame(table: pa.Table, key: str | None) -> pd.DataFrame:
    frame = table.to_pandas()
    return frame.sort_values(key, kind="stable", ignore_index=True) if key else frame
