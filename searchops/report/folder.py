"""The files beside a run's record that the page reads: evidence, topics, measures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from searchops.errors import DataError
from searchops.records import Run


@dataclass(frozen=True)
class Pieces:
    """What a run's folder holds; None where a file is absent.

    Attributes:
        run: The record.
        evidence: Labels: qid, docno, start, end, text.
        topics: qid, query and perhaps answer.
        measures: qid, measure, value and perhaps name (of the pipeline).
    """

    run: Run
    evidence: pd.DataFrame | None
    topics: pd.DataFrame | None
    measures: pd.DataFrame | None


def read_pieces(folder: str | Path) -> Pieces:
    """Reads all that a report needs from a run's folder.

    Raises:
        DataError: There is no run, or one of the files is damaged.
    """
    path = Path(folder)
    run = Run.open(path)
    return Pieces(run, _lines(path / "evidence.jsonl"), _lines(path / "topics.jsonl"), read_measures(path))


def read_measures(folder: str | Path) -> pd.DataFrame | None:
    """Values per task of a run's measures.json; None where there is no such file.

    Columns: qid, measure, value (NaN where a task has none) and, if the file tells pipelines apart,
        name.

    Raises:
        DataError: It is no JSON or of another shape.
    """
    file = Path(folder) / "measures.json"
    text = _text(file)
    if text is None:
        return None
    try:
        found = json.loads(text)
        rows = found["per_query"] if isinstance(found, dict) else found
        return pd.DataFrame([_value(row) for row in rows], columns=["name", "qid", "measure", "value"])
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise DataError('JSON {"per_query": [[qid, measure, value], …]} is needed',
                        f"{type(error).__name__}: {error}", where=str(file),
                        hint="Run again with the record's folder, or delete this file.") from error  # fmt: skip


def _value(row: Any) -> tuple[str | None, str, str, float]:
    if isinstance(row, dict):
        row = [row.get("name"), row["qid"], row["measure"], row["value"]]
    elif len(row) == 3:
        row = [None, *row]
    name, qid, measure, value = row
    return name, str(qid), str(measure), float("nan") if value is None else float(value)


def _lines(file: Path) -> pd.DataFrame | None:
    """A frame of a file of JSON objects, one a line; None where there is no such file."""
    text = _text(file)
    return None if text is None else pd.DataFrame(list(_objects(text, file)))


def _objects(text: str, file: Path) -> Iterator[dict[str, Any]]:
    for place, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError("one JSON object a line is needed", str(error), where=f"{file}:{place}") from error
        if not isinstance(row, dict):
            raise DataError("one JSON object a line is needed", type(row).__name__, where=f"{file}:{place}")
        yield row


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError("a readable file in UTF-8 is needed", str(error), where=str(file)) from error
