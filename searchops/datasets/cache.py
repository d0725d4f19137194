"""Derived data kept on disk until what it was derived from changes.

Nothing here may fail for the caller: a slot that cannot be read or written is an empty one.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Slot", "cache_folder"]


def cache_folder() -> Path | None:
    """Where searchops keeps derived data, or None where no such folder can be named.

    `$SEARCHOPS_CACHE`, else `$XDG_CACHE_HOME/searchops`, else `~/.cache/searchops`.

    Source: XDG Base Directory Specification (a relative path in the variable is ignored).

    Example:
        >>> from unittest.mock import patch
        >>> with patch.dict(os.environ, SEARCHOPS_CACHE="/tmp/kept"):
        ...     cache_folder().as_posix()
        '/tmp/kept'
    """
    own = os.environ.get("SEARCHOPS_CACHE")
    if own:
        return _home(own)
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return xdg / "searchops" if xdg.is_absolute() else _home("~/.cache/searchops")


def _home(path: str) -> Path | None:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # no home folder is known for this user
        return None


@dataclass(frozen=True)
class Slot:
    """One file of derived data and the fingerprint of its sources.

    Attributes:
        path: The file, or None where there is no cache folder.
        fingerprint: What its content must have been derived from to be used.
    """

    path: Path | None
    fingerprint: str

    @classmethod
    def of(cls, name: str, root: Path, sources: Iterable[Path]) -> Slot:
        """The slot for what is derived from source files below a root, under this Python.

        One file a root and Python version, so that changed sources replace what was kept of them.
        """
        digest = hashlib.sha256(sys.version.encode())
        for source in sources:
            digest.update(f"{source}\0{_signature(source)}\n".encode("utf-8", "surrogateescape"))
        folder = cache_folder()
        version = ".".join(map(str, sys.version_info[:3]))
        place = hashlib.sha256(os.fsencode(root)).hexdigest()[:12]
        path = None if folder is None else folder / f"{name}-{version}-{place}.json"
        return cls(path, digest.hexdigest())

    def read(self) -> Any | None:
        """What was kept, or None when there is nothing, nothing sound or nothing current."""
        if self.path is None:
            return None
        try:
            checksum, _, body = self.path.read_bytes().partition(b"\n")
            if checksum.decode("ascii") != hashlib.sha256(body).hexdigest():
                return None
            kept = json.loads(body)
        except (OSError, ValueError):
            return None
        return kept["value"] if kept["fingerprint"] == self.fingerprint else None

    def write(self, value: Any) -> None:
        """Keeps a JSON value; the file appears whole or not at all."""
        if self.path is None:
            return
        body = json.dumps({"fingerprint": self.fingerprint, "value": value}).encode()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _replace(self.path, hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        except OSError:
            return


def _signature(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return (-1, -1)
    return (status.st_size, status.st_mtime_ns)


def _replace(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
