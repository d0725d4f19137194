"""Lines of a record as the exports read them, and files as they write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from searchops.errors import DataError
from searchops.recorder import write_text
from searchops.records import ANSWERS_FILE, DECISIONS_FILE, Run

__all__ = ["Line", "answers_of", "decisions_of", "names_of", "safe_name", "write_file"]

T = TypeVar("T")


class Line:
    """A line of a record's file that knows where it stands."""

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        self.data = data
        self.where = where

    def get(self, name: str, kind: type[T]) -> T:
        """A field that must be there.

        Raises:
            DataError: It is missing or of another kind; the text names file and row.
        """
        value = self.data.get(name)
        if not isinstance(value, kind):
            found = "no such field" if name not in self.data else type(value).__name__
            raise DataError(f"a field {name!r} of type {kind.__name__} is needed", found, where=self.where)
        return value

    def parts(self, name: str) -> list[Line]:
        """The objects of a list field; none if there is no such field.

        Raises:
            DataError: It is no list of objects.
        """
        values = self.get(name, list) if name in self.data else []
        if not all(isinstance(value, dict) for value in values):
            raise DataError(f"objects in {name!r} are needed", "something else", where=self.where)
        return [Line(value, f"{self.where}, {name} {place}") for place, value in enumerate(values)]


def answers_of(run: Run) -> Iterator[Line]:
    """The answers of a run, each with its row.

    Raises:
        DataError: The record is damaged.
    """
    return _lines(run.iter_answers(), run, ANSWERS_FILE)


def decisions_of(run: Run) -> Iterator[Line]:
    """The exchanges of a run's answered questions, each with its row.

    Raises:
        DataError: The record is damaged.
    """
    return _lines(run.iter_decisions(), run, DECISIONS_FILE)


def _lines(lines: Iterator[Mapping[str, Any]], run: Run, file: str) -> Iterator[Line]:
    place = f"{run.path / file}" if run.path is not None else file
    return (Line(data, f"{place}:{row}") for row, data in enumerate(lines, start=1))


def names_of(run: Run) -> dict[int, str]:
    """The name of every pipeline of a run, by number: the file's, else its place."""
    given = run.meta.get("names", {})
    numbers = [str(number) for number in run.meta.get("pipelines", {}).values()]
    return {int(number): str(given.get(number, f"pipeline-{number}")) for number in {**given, **dict.fromkeys(numbers)}}


def safe_name(text: str) -> str:
    """A text as part of a file's name; different texts give different names.

    Example:
        >>> safe_name("q 1/2"), safe_name("größe")
        ('q%201%2F2', 'größe')
    """
    return "".join(c if c.isalnum() or c in "-_." else "".join(f"%{b:02X}" for b in c.encode()) for c in text)


def write_file(file: Path, text: str) -> Path:
    """Writes a file whole, with the folders above it.

    Raises:
        DataError: It cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, text)
    except OSError as error:
        raise DataError("a folder that can be written is needed", str(error), where=str(file)) from error
    return file
