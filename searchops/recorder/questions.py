"""Questions of agents in a run: each gathered on its own, and brought to disk whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from searchops.errors import DataError
from searchops.records.parts import split_parts
from searchops.records.trajectories import ANSWERS_FILE, DECISIONS_FILE, committed, iter_answers

__all__ = ["Trajectories", "clear_unanswered"]


class Trajectories:
    """The decisions and answers of a run; kept in memory where it has no folder.

    Attributes:
        decisions: Lines in memory.
        answers: Lines in memory.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.decisions: list[Mapping[str, Any]] = []
        self.answers: list[Mapping[str, Any]] = []
        self._ends = dict.fromkeys((DECISIONS_FILE, ANSWERS_FILE), 0)
        if path is not None:
            for name in self._ends:
                file = path / name
                self._ends[name] = file.stat().st_size if file.exists() else 0

    def add(self, decisions: Sequence[Mapping[str, Any]], answer: Mapping[str, Any], part: int) -> None:
        """Takes one finished question; its answer's line is written last.

        Raises:
            DataError: The disk is full or the folder is gone; the question does not count.
        """
        if self.path is None:
            self.decisions.extend(decisions)
            self.answers.append({**answer, "part": part, "decisions_end": 0})
            return
        ends = dict(self._ends)
        try:
            ends[DECISIONS_FILE] = _append(self.path / DECISIONS_FILE, decisions, ends[DECISIONS_FILE])
            line = {**answer, "part": part, "decisions_end": ends[DECISIONS_FILE]}
            ends[ANSWERS_FILE] = _append(self.path / ANSWERS_FILE, [line], ends[ANSWERS_FILE])
        except OSError as error:
            raise DataError(
                "room and leave to write the record are needed",
                str(error),
                where=str(self.path),
                hint="Earlier questions are safe; make room and resume.",
            ) from error
        self._ends = ends

    def answered(self, pipeline: int) -> dict[str, dict[str, Any]]:
        """The answers of one agent by qid, without their ledgers."""
        lines = self.answers if self.path is None else iter_answers(self.path)
        return {
            str(line["qid"]): {name: value for name, value in line.items() if name != "ledger"}
            for line in lines
            if line["pipeline"] == pipeline
        }


def _append(file: Path, lines: Sequence[Mapping[str, Any]], end: int) -> int:
    """Appends lines behind the byte `end`, over what an earlier failure left there; returns the new end."""
    data = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode("utf-8", "backslashreplace")
    with file.open("ab") as stream:
        if stream.tell() > end:
            stream.truncate(end)
        stream.write(data)
        stream.flush()
        return end + len(data)


def clear_unanswered(folder: Path) -> None:
    """Removes what a crash left of questions without an answer: their events, decisions and torn lines.

    Raises:
        DataError: The record is damaged.
    """
    for part in split_parts(folder)[1]:
        for table in ("events", "candidates"):
            part.file(folder, table).unlink(missing_ok=True)
    whole = committed(folder)
    for name, end in ((DECISIONS_FILE, whole.decisions_end), (ANSWERS_FILE, whole.answers_end)):
        file = folder / name
        if file.exists() and file.stat().st_size > end:
            os.truncate(file, end)
