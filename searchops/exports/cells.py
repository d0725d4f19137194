"""Every program cell that succeeded, with what came of it: one JSON object a line.

It is what search programs can be learnt from: the question, the cell, the workspace before it, what it cost and
showed, which labelled evidence it was the first to show, and how the question ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pandas as pd

from searchops.accounting import lives
from searchops.errors import DataError
from searchops.exports.lines import Line, answers_of, decisions_of, names_of, write_file
from searchops.labels import Label
from searchops.records import Run

__all__ = ["FILE", "write_cells"]

FILE: Final = "cells.jsonl"
_EVIDENCE: Final = "evidence.jsonl"
_END: Final = ("stop_reason", "decisions", "qanswer")

Key = tuple[int, str]


def write_cells(run: Run, folder: Path) -> list[Path]:
    """Writes `cells.jsonl`.

    `delivered` lists the labels that stood in an observation for the first time behind this cell, where the
    record has evidence labels beside it (else null).

    Args:
        run: A run with a program agent.
        folder: Where to write.

    Raises:
        DataError: The run holds no successful cell, or a line of it is damaged.
    """
    cells = [json.dumps(cell, ensure_ascii=False) for cell in _cells(run)]
    if not cells:
        raise DataError("a run with program cells that succeeded is needed", "none", where=str(run.path or run))
    return [write_file(folder / FILE, "\n".join(cells) + "\n")]


def _cells(run: Run) -> Iterator[dict[str, Any]]:
    names = names_of(run)
    ends = {_key(line): line for line in answers_of(run)}
    delivered = _delivered(run)
    workspace: dict[Key, str] = {}
    for line in decisions_of(run):
        key = _key(line)
        before = workspace.get(key, "")
        for call in line.parts("calls"):
            if call.get("name", str) == "run_program" and call.data.get("status") == "ok":
                decision = line.get("decision", int)
                yield {
                    "agent": names.get(key[0], f"pipeline-{key[0]}"),
                    "qid": key[1],
                    "question": ends[key].get("query", str),
                    "decision": decision,
                    "workspace_before": before,
                    "code": call.get("arguments", dict).get("code"),
                    "observation": call.get("observation", str),
                    "costs": call.get("costs", dict),
                    "shown": call.get("shown", list),
                    "referenced": call.get("referenced", list),
                    "delivered": None if delivered is None else delivered.get((*key, decision), []),
                    "end": {name: ends[key].data.get(name) for name in _END},
                }
        workspace[key] = str(line.data.get("workspace", before))


def _key(line: Line) -> Key:
    return line.get("pipeline", int), line.get("qid", str)


def _delivered(run: Run) -> dict[tuple[int, str, int], list[str]] | None:
    """The labels first delivered by each decision; None without labels."""
    file = None if run.path is None else run.path / _EVIDENCE
    if file is None or not file.is_file():
        return None
    evidence = pd.DataFrame(_records(file))
    if evidence.empty:
        return {}
    found: dict[tuple[int, str, int], list[str]] = {}
    for number in sorted({line.get("pipeline", int) for line in answers_of(run)}):
        for life in lives(run, evidence, pipeline=number):
            if life.delivered_at is not None:
                found.setdefault((number, life.label.qid, life.delivered_at), []).append(_written(life.label))
    return found


def _records(file: Path) -> Iterator[dict[str, Any]]:
    for row, text in enumerate(file.read_text(encoding="utf-8").split("\n"), start=1):
        if text.strip():
            try:
                yield json.loads(text)
            except ValueError as error:
                raise DataError("a line of JSON is needed", str(error), where=f"{file}:{row}") from error


def _written(label: Label) -> str:
    """A label as `searchops why` takes it."""
    if label.passage is not None:
        return f"{label.docno}%p{label.passage}"
    return label.docno if label.start is None else f"{label.docno}:{label.start}-{label.end}"
