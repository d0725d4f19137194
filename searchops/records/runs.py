"""A recorded run, read back from its folder or held in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from searchops.errors import DataError
from searchops.records.parts import read_table
from searchops.records.trajectories import iter_answers, iter_decisions

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FORMAT_VERSION = 1
RUN_FILE = "run.json"


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
        told: Decisions and answers of a run kept in memory.
    """

    event_table: pa.Table
    candidate_table: pa.Table
    meta: dict[str, Any]
    path: Path | None = None
    told: tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]] = ((), ())

    @cached_property
    def events(self) -> pd.DataFrame:
        """One row a stage event, in event order (columns of `Event`, after `event`)."""
        return _frame(self.event_table, "event")

    @cached_property
    def candidates(self) -> pd.DataFrame:
        """One row a candidate on one side of an event: event, side, docno, passage, start, …"""
        return _frame(self.candidate_table, None)

    @cached_property
    def answers(self) -> pd.DataFrame:
        """One row an answered question, in the order of the answers: pipeline, agent, unit, qid, query, qanswer, …"""
        import pandas as pd

        lines = self.told[1] if self.path is None else list(iter_answers(self.path))
        return pd.DataFrame([{k: v for k, v in line.items() if k != "ledger"} for line in lines])

    def iter_answers(self) -> Iterator[Mapping[str, Any]]:
        """The answers one by one, each with its evidence ledger.

        Raises:
            DataError: The record is damaged.
        """
        return iter(self.told[1]) if self.path is None else iter_answers(self.path)

    def iter_decisions(self) -> Iterator[Mapping[str, Any]]:
        """The exchanges of agents one by one, as they are written (see `records.whole_requests`).

        Raises:
            DataError: The record is damaged.
        """
        return iter(self.told[0]) if self.path is None else iter_decisions(self.path)

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
        return cls(read_table(folder, "events"), read_table(folder, "candidates"), meta, folder)


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


def _frame(table: pa.Table, key: str | None) -> pd.DataFrame:
    frame = table.to_pandas()
    return frame.sort_values(key, kind="stable", ignore_index=True) if key else frame
