"""Collections by name, by folder, or out of ir_datasets."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from searchops.corpus import Collection
from searchops.errors import DataError, did_you_mean

__all__ = ["load"]


def load(name_or_path: str | os.PathLike[str], **options: Any) -> Collection:
    """The collection of a name (`pydocs`), of a folder, or of `irds:NAME` (ir_datasets).

    A built-in name wins over a folder of the same name (write `./pydocs` for the folder). A path is
    taken from the working directory; a bare name is also tried in the folder that the environment
    variable SEARCHOPS_DATA names.

    Args:
        name_or_path: What to load.
        **options: What that kind takes: see `folder.load_folder`, `irds.load_irds` and
            `pydocs.load_pydocs`.

    Raises:
        DataError: There is no such collection, or one of its files is malformed.

    Example:
        >>> load("irds:")
        Traceback (most recent call last):
            ...
        searchops.errors.DataError: load: the name of an ir_datasets data set is needed; found 'irds:'
    """
    name = os.fspath(name_or_path)
    if name.startswith("irds:"):
        return _load_irds(name, **options)
    if name in _BUILT_IN:
        return _BUILT_IN[name](**options)
    return _load_path(name, **options)


def _load_pydocs(**options: Any) -> Collection:
    from searchops.datasets.pydocs import load_pydocs

    collection: Collection = load_pydocs(**options)
    return collection


def _load_irds(name: str, **options: Any) -> Collection:
    from searchops.datasets.irds import load_irds

    plain = name.removeprefix("irds:")
    if not plain:
        raise DataError("the name of an ir_datasets data set is needed", repr(name), where="load")
    return load_irds(plain, **options)


def _load_path(name: str, **options: Any) -> Collection:
    from searchops.datasets.folder import load_folder

    bare = Path(name).name == name
    home = os.environ.get("SEARCHOPS_DATA") if bare else None
    for folder in [Path(name).expanduser(), *([Path(home) / name] if home else [])]:
        if folder.is_dir():
            return load_folder(folder, **options)
    if Path(name).exists():
        raise DataError("the folder of a collection is needed", f"the file {name!r}", where="load")
    known = [*_BUILT_IN, *_folders(home)]
    raise DataError(
        "a collection's name or folder is needed",
        repr(name),
        where="load",
        hint=f"Known names: {', '.join(known)}; {_question(name, known)}"
        "a path to a folder with corpus.jsonl works, and so does irds:NAME (ir_datasets).",
    )


def _question(name: str, known: list[str]) -> str:
    question = did_you_mean(name, known)
    return f"{question} Else " if question.startswith("did you mean") else ""


def _folders(home: str | None) -> list[str]:
    """The collections in SEARCHOPS_DATA."""
    return sorted(path.parent.name for path in Path(home).glob("*/corpus.jsonl")) if home else []


_BUILT_IN: dict[str, Callable[..., Collection]] = {"pydocs": _load_pydocs}
