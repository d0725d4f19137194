"""The index that a pipeline file asks for: opened where it stands, built where it does not."""

from __future__ import annotations

import hashlib
import inspect
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from searchops import registry
from searchops.corpus import Collection
from searchops.datasets.cache import cache_folder
from searchops.errors import SpecError, did_you_mean, sentence
from searchops.spec import IndexSpec


def opener(collection: Collection, *, progress: bool = True) -> Callable[[IndexSpec], Any]:
    """A function that opens an index of the collection, or builds it first.

    Without a `path` in its settings an index is kept in the user's cache folder, under a name made
    of the data and the settings it was built with: other settings make another index.

    Args:
        collection: What is indexed.
        progress: Show progress bars while building.
    """

    def open_index(wanted: IndexSpec) -> Any:
        engine: Any = registry.lookup("engine", wanted.engine)
        build = _parameters(engine.build) - {"collection", "path", "progress", "overwrite"}
        opening = _parameters(engine) - {"path"}
        settings = {name: value for name, value in wanted.settings.items() if name != "path"}
        _check(settings, build | opening, wanted)
        for_build = {name: value for name, value in settings.items() if name in build}
        path = wanted.settings.get("path") or default_path(collection, wanted.engine, for_build)
        try:
            engine.build(collection, path, progress=progress, **for_build)
            return engine(path, **{name: value for name, value in settings.items() if name in opening})
        except SpecError as error:
            raise SpecError(error.needed, error.found, where=wanted.where or error.where, hint=error.hint) from error
        except TypeError as error:
            raise SpecError("settings of the right kind are needed", str(error), where=wanted.where) from error

    return open_index


def default_path(collection: Collection, engine: str, settings: Mapping[str, Any]) -> Path:
    """Where an index is kept that names no path."""
    told = json.dumps([collection.data_hash, engine, settings], sort_keys=True, default=repr)
    name = f"{engine}-{hashlib.sha256(told.encode()).hexdigest()[:16]}"
    home = cache_folder() or Path(tempfile.gettempdir()) / "searchops"
    return home / "indexes" / name


def _parameters(function: Any) -> set[str]:
    return {p.name for p in inspect.signature(function).parameters.values()}


def _check(settings: Mapping[str, Any], known: set[str], wanted: IndexSpec) -> None:
    for name in settings:
        if name not in known:
            raise SpecError(
                f"{wanted.engine}: a known setting is needed",
                repr(name),
                where=wanted.where,
                hint=sentence(did_you_mean(name, known | {"path"})),
            )
