"""Runs written in the formats of others: BrowseComp-Plus run files, cells as JSON lines, TREC runs."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Final

from searchops.errors import SpecError, did_you_mean, sentence
from searchops.exports.browsecomp_plus import write_browsecomp_plus
from searchops.exports.cells import write_cells
from searchops.exports.trec import write_trec
from searchops.records import Run

__all__ = ["FORMATS", "export"]

FORMATS: Final[dict[str, Callable[[Run, Path], list[Path]]]] = {
    "browsecomp-plus": write_browsecomp_plus,
    "cells": write_cells,
    "trec": write_trec,
}
"""What a run can be written as, by name."""


def export(run: str | PathLike[str], to: str, out: str | PathLike[str] | None = None) -> list[Path]:
    """Writes a recorded run in another format; returns the files written.

    Args:
        run: A run's folder.
        to: One of `FORMATS`.
        out: The folder to write; by default `exports/FORMAT` below the run's.

    Effects: Replaces files of the same names in the folder.

    Raises:
        SpecError: There is no such format.
        DataError: The record is damaged (the text names file and row), or holds nothing of that kind.

    Example:
        >>> export("runs/agents", "trek")
        Traceback (most recent call last):
            ...
        searchops.errors.SpecError: export: a known format is needed; found 'trek'. Did you mean 'trec'?
    """
    if to not in FORMATS:
        hint = sentence(did_you_mean(to, FORMATS))
        raise SpecError("a known format is needed", repr(to), where="export", hint=hint)
    read = Run.open(Path(run))
    folder = Path(out) if out is not None else Path(run) / "exports" / to
    return FORMATS[to](read, folder)
