"""The recorder: it gathers the events of one run and brings them to disk at checkpoints."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchops.errors import DataError
from searchops.frames import Record
from searchops.recorder.columns import CandidateColumns, ScoredPassage, event_table, write_parquet
from searchops.recorder.questions import Trajectories, clear_unanswered
from searchops.recorder.surroundings import now, surroundings
from searchops.records import (
    ANSWERS_FILE,
    DECISIONS_FILE,
    FORMAT_VERSION,
    RUN_FILE,
    Event,
    Run,
    candidate_schema,
    event_schema,
    read_meta,
)
from searchops.records.parts import Part, parts_of

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_ROWS = 250_000
MODES = ("new", "replace", "resume")


class Recorder:
    """Gathers the events of one run. Made by `record`; safe to use from several threads."""

    def __init__(self, path: Path | None, mode: str, meta: dict[str, Any]) -> None:
        if mode not in MODES:
            raise DataError("mode must be " + ", ".join(MODES[:-1]) + " or " + MODES[-1], repr(mode), where="record")
        self.path = path
        self._lock = threading.RLock()
        self._events: list[Event] = []
        self._rows = CandidateColumns()
        self._tables: list[tuple[pa.Table, pa.Table]] = []
        self._pipelines: dict[str, int] = {}
        self._first_event = self._next_event = 0
        self._part = 0
        self._whole = False
        self._folder_lock: int | None = None
        self.meta: dict[str, Any] = {
            "format": FORMAT_VERSION,
            "status": "running",
            "started": now(),
            **surroundings(),
            **meta,
        }
        if path is not None:
            self._open(path, mode)
        self._trajectories = Trajectories(path)

    def _open(self, path: Path, mode: str) -> None:
        old: dict[str, Any] = {}
        resumes = False
        if path.exists() and any(path.iterdir() if path.is_dir() else [path]):
            old = read_meta(path)
            if mode == "new":
                raise DataError(
                    "a new folder is needed",
                    f"the run of {old.get('started', '?')}",
                    where=str(path),
                    hint="Give another folder, or mode='resume' or mode='replace'.",
                )
            resumes = mode == "resume"
        try:
            for name in ("events", "candidates"):
                (path / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError("a folder that can be written is needed", str(error), where=str(path)) from error
        self._lock_folder(path)
        if resumes:
            self._go_on(path, old)
        elif mode == "replace":
            _remove_parts(path)
        self._write_meta()

    def _lock_folder(self, path: Path) -> None:
        """One process writes a folder at a time; the lock goes with the process, however it ends."""
        try:
            import fcntl
        except ImportError:  # no such locks on Windows
            return
        self._folder_lock = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(self._folder_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._unlock_folder()
            raise DataError(
                "a folder that no other run writes is needed",
                "one that is being written",
                where=str(path),
                hint="Wait for the other run, or give another folder.",
            ) from None

    def _unlock_folder(self) -> None:
        if self._folder_lock is not None:
            os.close(self._folder_lock)
            self._folder_lock = None

    def _go_on(self, path: Path, old: dict[str, Any]) -> None:
        clear_unanswered(path)
        done = Run.open(path)
        parts = parts_of(path)
        self._part = parts[-1].number + 1 if parts else 0
        ids = done.event_table.column("event").to_pylist()
        self._first_event = self._next_event = max(ids, default=-1) + 1
        self._pipelines = dict(old.get("pipelines", {}))
        self.meta = {**old, **self.meta, "started": old.get("started"), "resumed": now()}

    def pipeline_number(self, name: str) -> int:
        """The number of a top-level pipeline, by its repr, in first-seen order."""
        with self._lock:
            return self._pipelines.setdefault(name, len(self._pipelines))

    def add(
        self,
        event: Event,
        rows: Sequence[Record],
        *,
        read: Sequence[Record] = (),
        scored: Sequence[ScoredPassage] = (),
        foreign: bool = False,
    ) -> int:
        """Takes one event with its output rows; returns the event's number.

        Args:
            event: The event.
            rows: What the stage put out.
            read: Rows the stage read that no recorded event put out.
            scored: Passages an extract stage scored (its available set).
            foreign: The rows are somebody else's: their scores and ranks are looked at, too.

        Raises:
            FrameError: A docno, score, rank or passage id is not of its kind; nothing is taken then.
        """
        with self._lock:
            number = self._next_event
            columns = self._rows
            with columns.all_or_nothing():
                if read and "docno" in read[0]:
                    columns.add_rows(number, 0, read)
                if scored:
                    columns.add_scored(number, scored)
                if rows and "docno" in rows[0]:
                    columns.add_rows(number, 1, rows, checks=foreign)
            self._next_event = number + 1
            self._events.append(event)
            return number

    def answered(self, pipeline: int) -> dict[str, dict[str, Any]]:
        """The answers that an agent has given in this run, by qid, without their ledgers."""
        with self._lock:
            return self._trajectories.answered(pipeline)

    def adopt(self, question: Recorder, decisions: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> None:
        """Takes a finished question of an agent with all its events; on disk it is there whole or not at all.

        Args:
            question: A recorder that gathered the events of the question alone.
            decisions: Its lines of decisions.jsonl.
            answer: Its line of answers.jsonl.

        Raises:
            DataError: The disk is full or the folder is gone.
        """
        with self._lock:
            self.checkpoint()
            first, number = self._next_event, self._part
            self._events = [e._replace(parent=e.parent + first) if e.parent >= 0 else e for e in question._events]
            self._rows = question._rows
            self._rows.runs = [(event + first, side, n) for event, side, n in self._rows.runs]
            self._next_event = first + len(self._events)
            self._write_out(question=True)
            self._trajectories.add(decisions, answer, number)

    def checkpoint(self, *, force: bool = True) -> None:
        """Brings what was gathered to disk (or, in memory, into Arrow tables).

        Args:
            force: False does it only when a block is full.

        Raises:
            DataError: The disk is full or the folder is gone; earlier checkpoints stay readable.
        """
        with self._lock:
            if not self._events or not (force or (len(self._rows) >= BLOCK_ROWS and not self._whole)):
                return
            self._write_out()

    def _write_out(self, *, question: bool = False) -> None:
        tables = event_table(self._events, self._first_event), self._rows.table()
        if self.path is None:
            self._tables.append(tables)
        else:
            self._write_part(Part(self._part, question), *tables)
        self._part += 1
        self._first_event = self._next_event
        self._events, self._rows = [], CandidateColumns()

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Events of this block reach the disk together, at its end, or not at all if it fails.

        What a killed run left is then always whole batches: it can go on behind them.
        """
        self.checkpoint()
        self._whole = True
        try:
            yield
        except BaseException:
            with self._lock:
                self._events, self._rows = [], CandidateColumns()
                self._next_event = self._first_event
            raise
        finally:
            self._whole = False
        self.checkpoint()

    def run(self) -> Run:
        """What has been recorded so far, as a run to read."""
        import pyarrow as pa

        with self._lock:
            self.checkpoint()
            if self.path is not None:
                return Run.open(self.path)
            events = [pair[0] for pair in self._tables] or [event_schema().empty_table()]
            candidates = [pair[1] for pair in self._tables] or [candidate_schema().empty_table()]
            told = list(self._trajectories.decisions), list(self._trajectories.answers)
            meta = {**self.meta, "pipelines": dict(self._pipelines)}
            return Run(pa.concat_tables(events), pa.concat_tables(candidates), meta, told=told)

    def close(self, *, status: str, error: str = "") -> None:
        """Writes what is left and how the run ended."""
        try:
            self.checkpoint()
            self.meta.update({"status": status, "ended": now(), **({"error": error} if error else {})})
            if self.path is not None:
                self._write_meta()
        finally:
            self._unlock_folder()

    def _write_part(self, part: Part, events: pa.Table, candidates: pa.Table) -> None:
        assert self.path is not None
        try:
            # The events file comes last: a checkpoint without it does not count.
            write_parquet(candidates, part.file(self.path, "candidates"))
            self._write_meta()
            write_parquet(events, part.file(self.path, "events"))
        except OSError as error:
            raise DataError(
                "room and leave to write the record are needed",
                str(error),
                where=str(self.path),
                hint="Earlier checkpoints are safe; make room and resume.",
            ) from error

    def _write_meta(self) -> None:
        assert self.path is not None
        self.meta["pipelines"] = self._pipelines
        write_text(self.path / RUN_FILE, json.dumps(self.meta, indent=1, ensure_ascii=False) + "\n")

    def _repr_html_(self) -> str:
        return repr(self.run()).replace("<", "&lt;")

    def __repr__(self) -> str:
        return f"<Recorder {self.path or 'memory'}: {self._next_event:,} events>"


def write_text(file: Path, text: str) -> None:
    """Replaces a file whole, so that a crash leaves the old or the new one."""
    part = file.with_name(file.name + ".part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _remove_parts(path: Path) -> None:
    for name in ("events", "candidates"):
        for file in (path / name).glob("*.parquet"):
            file.unlink()
    for name in (ANSWERS_FILE, DECISIONS_FILE, "run.trec", "measures.json", "report.html", RUN_FILE):
        (path / name).unlink(missing_ok=True)
