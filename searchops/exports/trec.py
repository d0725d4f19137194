"""TREC runs of what pipelines put out, or of the documents that agents took evidence from."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from searchops.errors import DataError
from searchops.experiments.agent_runs import agent_numbers, agent_rows
from searchops.experiments.results import final_rows
from searchops.exports.lines import names_of, safe_name
from searchops.records import Run
from searchops.trec import write_run

__all__ = ["write_trec"]


def write_trec(run: Run, folder: Path) -> list[Path]:
    """Writes one `NAME.trec` a pipeline or agent; white space in ids, which TREC has no room for, is percent-encoded.

    Args:
        run: A run.
        folder: Where to write.

    Raises:
        DataError: A pipeline's results have no scores, the run holds none, or the folder cannot be written.
    """
    agents = agent_numbers(run)
    files = []
    for number, name in names_of(run).items():
        rows = agent_rows(run, number) if number in agents else final_rows(run, number)
        if rows["score"].isna().any():
            raise DataError(
                "results with scores are needed", f"rows without one from {name!r}", where=str(run.path or run)
            )
        if len(rows):
            files.append(_written(rows, folder / f"{safe_name(name)}.trec", safe_name(name)))
    if not files:
        raise DataError("a run with results is needed", "none", where=str(run.path or run))
    return files


def _written(rows: pd.DataFrame, file: Path, name: str) -> Path:
    encoded = rows.assign(qid=list(map(_without_spaces, rows["qid"])), docno=list(map(_without_spaces, rows["docno"])))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_run(encoded, file, name=name)
    except OSError as error:
        raise DataError("a folder that can be written is needed", str(error), where=str(file)) from error
    return file


def _without_spaces(text: str) -> str:
    return "".join("".join(f"%{b:02X}" for b in c.encode()) if c.isspace() else c for c in text)
