"""decisions.jsonl and answers.jsonl: what agents asked, did and answered, and which of it counts.

A question counts once its line stands in answers.jsonl. The line is written last and names what belongs
to it: its checkpoint of events (`part`) and where its decisions end (`decisions_end`, in bytes). A line of
decisions.jsonl is one exchange with the model. Of a request that goes on from the exchange before it,
only what is new is written: `continues` says how many messages it shares, and tools and settings are the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from searchops.errors import DataError

__all__ = [
    "ANSWERS_FILE",
    "DECISIONS_FILE",
    "Committed",
    "committed",
    "iter_answers",
    "iter_decisions",
    "whole_requests",
]

DECISIONS_FILE: Final = "decisions.jsonl"
ANSWERS_FILE: Final = "answers.jsonl"


class Committed(NamedTuple):
    """What of a folder belongs to answered questions.

    Attributes:
        parts: Numbers of their checkpoints.
        decisions_end: Bytes of decisions.jsonl that count.
        answers_end: Bytes of answers.jsonl that count: its last line may have been torn by a crash.
        answered: (pipeline, qid) of every question.
    """

    parts: frozenset[int]
    decisions_end: int
    answers_end: int
    answered: frozenset[tuple[int, str]]


def committed(folder: Path) -> Committed:
    """Reads which questions of a folder count.

    Raises:
        DataError: A line of answers.jsonl is damaged.
    """
    parts, answered, decisions_end, answers_end = set(), set(), 0, 0
    for line, end in _lines(folder / ANSWERS_FILE):
        parts.add(int(line["part"]))
        answered.add((int(line["pipeline"]), str(line["qid"])))
        decisions_end, answers_end = int(line["decisions_end"]), end
    return Committed(frozenset(parts), decisions_end, answers_end, frozenset(answered))


def iter_answers(folder: Path) -> Iterator[dict[str, Any]]:
    """The answers of a folder, in the order in which they came.

    Raises:
        DataError: A line is damaged.
    """
    return (line for line, _ in _lines(folder / ANSWERS_FILE))


def iter_decisions(folder: Path) -> Iterator[dict[str, Any]]:
    """The exchanges of answered questions, as they are written (see `whole_requests`).

    Raises:
        DataError: A line is damaged.
    """
    limit = committed(folder).decisions_end
    return (line for line, end in _lines(folder / DECISIONS_FILE) if end <= limit)


def whole_requests(lines: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Exchanges with their requests whole; lines that share nothing with others pass as they are.

    Raises:
        DataError: A line goes on from an exchange that is not there.

    Example:
        >>> first = {"qid": "1", "continues": 0, "request": {"messages": ["s", "u"], "max_tokens": 5}}
        >>> second = {"qid": "1", "continues": 2, "request": {"messages": ["a", "t"]}}
        >>> list(whole_requests([first, second]))[1]["request"]
        {'messages': ['s', 'u', 'a', 't'], 'max_tokens': 5}
    """
    before: dict[tuple[Any, Any], dict[str, Any]] = {}
    for line in lines:
        key = line.get("pipeline"), line.get("qid")
        shared = line.get("continues", 0)
        if isinstance(shared, int) and shared > 0:
            old = before.get(key)
            if old is None or len(old["messages"]) < shared:
                raise DataError("the exchange that a line goes on from is needed", "none", where=f"qid {key[1]!r}")
            messages = [*old["messages"][:shared], *line["request"]["messages"]]
            line = {**line, "continues": 0, "request": {**old, **line["request"], "messages": messages}}
        if line.get("kind", "decision") == "decision" and "continues" in line:
            before[key] = line["request"]
        yield line


def _lines(file: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """Each whole line with the byte behind it; a last line without its end is a crash's, and left out."""
    try:
        stream = file.open("rb")
    except FileNotFoundError:
        return
    except OSError as error:
        raise DataError("a readable record is needed", str(error), where=str(file)) from error
    with stream:
        end = 0
        for number, raw in enumerate(stream, start=1):
            if not raw.endswith(b"\n"):
                return
            end += len(raw)
            try:
                line = json.loads(raw)
            except ValueError as error:
                raise DataError("a line of JSON is needed", str(error), where=f"{file}:{number}") from error
            if not isinstance(line, dict):
                raise DataError("a JSON object is needed", type(line).__name__, where=f"{file}:{number}")
            yield line, end
