"""The folder of an index: built beside its place, moved there whole, and checked when it is opened.

A folder that opens is complete: everything in it is on the disk before its manifest is written, and
it takes its name by one rename. What a killed build leaves has another name and no reader; the next
build in the same parent folder clears it away.
"""

from __future__ import annotations

import errno
import fcntl
import importlib.metadata
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from searchops.errors import DataError

__all__ = [
    "FORMAT_VERSION",
    "MANIFEST",
    "Manifest",
    "building",
    "library_versions",
    "read_manifest",
    "reusable",
]

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
_BUILDING = ".building-"
_REPLACED = ".replaced-"


@dataclass(frozen=True)
class Manifest:
    """What an index folder says about itself.

    Two builds are the same when kind, format version, data hash and settings agree; versions and
    facts are told, not compared.

    Args:
        kind: What is in the folder, such as `"lucene"`.
        data_hash: The hash of the collection it was built from.
        n_documents: How many documents it holds.
        settings: The settings it was built with, JSON values only.
        versions: The versions of the libraries that built it.
        facts: What was found while building; may be added to until the build ends.
        format_version: The version of the folder's layout.

    Example:
        >>> a = Manifest("lucene", "ab12", 3, {"analyzer": "porter"}, {"pyserini": "1.6.0"})
        >>> a == Manifest("lucene", "ab12", 3, {"analyzer": "porter"}, {"pyserini": "1.7.0"})
        True
    """

    kind: str
    data_hash: str
    n_documents: int
    settings: dict[str, Any]
    versions: dict[str, str] = field(default_factory=dict, compare=False)
    facts: dict[str, Any] = field(default_factory=dict, compare=False)
    format_version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        # A tuple comes back from the disk as a list: compare what the disk can hold.
        object.__setattr__(self, "settings", json.loads(json.dumps(self.settings)))


def library_versions(*names: str) -> dict[str, str]:
    """The installed versions of the named distributions; absent ones are left out.

    Example:
        >>> sorted(library_versions("pandas", "no-such-distribution"))
        ['pandas']
    """
    found = {}
    for name in names:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def read_manifest(path: str | os.PathLike[str], /, *, kind: str, **expected: Any) -> Manifest:
    """The manifest of an index folder, after checking that it is the one the caller wants.

    Args:
        path: The folder.
        kind: The kind of index it must hold.
        expected: Settings it must have been built with; None asks for nothing.

    Raises:
        DataError: There is no folder or manifest, the manifest is broken, of another kind or of
            another format version, or the index was built with other settings.
    """
    folder = Path(path)
    manifest = _load(folder, kind)
    if manifest.kind != kind:
        raise DataError(f"an index of kind {kind!r} is needed", f"kind {manifest.kind!r}", where=str(folder))
    wanted = json.loads(json.dumps({name: value for name, value in expected.items() if value is not None}))
    built = {name: manifest.settings.get(name) for name in wanted}
    if wanted != built:
        raise DataError(
            f"an index with the settings {_settings(wanted)} is needed",
            f"one built with {_settings(built)}",
            where=str(folder),
            hint="Leave the settings out to take the index as it is, or build it anew with overwrite=True.",
        )
    return manifest


def reusable(path: str | os.PathLike[str], manifest: Manifest, *, overwrite: bool = False) -> bool:
    """Whether the folder already holds what a build of this manifest would make.

    False says that a build may go ahead: nothing is there, or `overwrite` allows replacing it.

    Raises:
        DataError: Something else is there and may not be replaced. What is no index folder is
            never replaced, not even with `overwrite`.
    """
    folder = Path(path)
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    if not (folder / MANIFEST).is_file():
        raise DataError(
            "an index folder or a free path is needed",
            "a folder without a manifest" if folder.is_dir() else "a file",
            where=str(folder),
            hint="It may hold other data and is never overwritten: choose another path.",
        )
    try:
        built = _load(folder, manifest.kind)
    except DataError:
        if overwrite:
            return False
        raise
    if built == manifest:
        return True
    if overwrite:
        return False
    raise DataError(
        f"a free path is needed to build {_outline(manifest)}",
        f"an index folder with {_outline(built)}",
        where=str(folder),
        hint="Choose another path, or replace it with overwrite=True.",
    )


@contextmanager
def building(path: str | os.PathLike[str], manifest: Manifest, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary folder beside `path` to build in; it takes the name `path` when the block ends.

    Ask `reusable` first to save the work when the index is there already. If it is (another
    process may have built it meanwhile), the new folder is dropped and the old one stays.

    Effects: an exception in the block leaves nothing behind; a killed process leaves a hidden
        folder that no reader opens.

    Raises:
        DataError: `path` holds something else, cannot be written, or the disk is full.

    Example:
        >>> import tempfile
        >>> manifest = Manifest("lucene", "ab12", 3, {"analyzer": "porter"})
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     with building(parent + "/ix", manifest) as folder:
        ...         _ = (folder / "documents").write_text("…")
        ...     read_manifest(parent + "/ix", kind="lucene") == manifest
        True
    """
    target = Path(path).resolve()
    reusable(target, manifest, overwrite=overwrite)
    with _disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        _clear_leftovers(target)
        draft, lock = _new_draft(target)
    try:
        with _disk_errors(target, only=_FULL_DISK):  # other errors of the block are its caller's
            yield draft
        with _disk_errors(target):
            _write_manifest(draft, manifest)
            _take_name(draft, target, manifest, overwrite)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        os.close(lock)


@contextmanager
def _disk_errors(target: Path, only: tuple[int, ...] = ()) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if only and error.errno not in only:
            raise
        full = error.errno in _FULL_DISK
        raise DataError(
            "room on the disk is needed to build" if full else "a place that can be written is needed",
            error.strerror or str(error),
            where=str(target),
            hint="Nothing was left behind; free some space and build again." if full else "",
        ) from error


def _load(folder: Path, kind: str) -> Manifest:
    file = folder / MANIFEST
    if not folder.is_dir():
        raise DataError(
            f"the folder of an index ({kind}) is needed",
            "a file" if folder.exists() else "nothing at that path",
            where=str(folder),
            hint="Build the index first.",
        )
    try:
        content = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise DataError(f"an index folder with a {MANIFEST} is needed", "none", where=str(folder)) from None
    except (OSError, ValueError) as error:
        raise DataError(f"a {MANIFEST} of readable JSON is needed", str(error), where=str(folder)) from error
    version = content.get("format_version") if isinstance(content, dict) else None
    if isinstance(version, int) and version != FORMAT_VERSION:
        raise DataError(
            f"an index folder of format version {FORMAT_VERSION} is needed",
            f"format version {version}",
            where=str(folder),
            hint="Build it anew with this version of searchops.",
        )
    missing = [f.name for f in fields(Manifest) if not isinstance(content, dict) or f.name not in content]
    if missing:
        raise DataError(f"a complete {MANIFEST} is needed", "no " + ", ".join(missing), where=str(folder))
    return Manifest(**{f.name: content[f.name] for f in fields(Manifest)})


def _settings(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in sorted(settings.items())) or "none"


def _outline(manifest: Manifest) -> str:
    return (
        f"kind {manifest.kind}, {manifest.n_documents} documents, "
        f"data hash {manifest.data_hash[:12]}, settings {_settings(manifest.settings)}"
    )


def _new_draft(target: Path) -> tuple[Path, int]:
    """A new folder and the lock on it that says its builder lives."""
    while True:
        draft = target.with_name(f".{target.name}{_BUILDING}{secrets.token_hex(6)}")
        draft.mkdir()
        # Until the lock is ours, another builder may take the folder for a dead one's and clear it.
        with suppress(FileNotFoundError):
            lock = os.open(draft, os.O_RDONLY)
            _lock(lock, fcntl.LOCK_EX)
            if draft.is_dir():
                return draft, lock
            os.close(lock)


def _lock(descriptor: int, how: int) -> bool:
    """Whether the lock was taken; on file systems without locks, no build is ever taken for dead."""
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        return False
    return True


def _clear_leftovers(target: Path) -> None:
    prefixes = tuple(f".{target.name}{mark}" for mark in (_BUILDING, _REPLACED))
    for folder in target.parent.iterdir():
        if not folder.name.startswith(prefixes):
            continue
        with suppress(OSError):  # it may be another user's, or another builder clears it right now
            lock = os.open(folder, os.O_RDONLY)
            try:
                if _lock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    shutil.rmtree(folder)
            finally:
                os.close(lock)


def _write_manifest(draft: Path, manifest: Manifest) -> None:
    for file in [path for path in draft.rglob("*") if path.is_file()]:
        _sync(file)
    with (draft / MANIFEST).open("w", encoding="utf-8") as out:
        json.dump(asdict(manifest), out, indent=1, sort_keys=True, ensure_ascii=False)
        out.write("\n")
        out.flush()
        os.fsync(out.fileno())
    _sync(draft)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _take_name(draft: Path, target: Path, manifest: Manifest, overwrite: bool) -> None:
    try:
        draft.rename(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        # The same index may be there by now: readers may have it open, so it stays.
        if reusable(target, manifest, overwrite=overwrite):
            return
        old = target.with_name(f".{target.name}{_REPLACED}{secrets.token_hex(6)}")
        target.rename(old)
        draft.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    _sync(target.parent)
