"""What a run was made with: versions and commit, for run.json."""

from __future__ import annotations

import datetime
import hashlib
import platform
import shutil
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_PACKAGES = (
    "searchops",
    "pyterrier",
    "pyserini",
    "pandas",
    "pyarrow",
    "numpy",
    "faiss-cpu",
    "sentence-transformers",
    "torch",
    "ir-measures",
)


def now() -> str:
    """The time, UTC, ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def config_hash(name: str) -> str:
    """A short hash of a stage's repr."""
    return hashlib.sha256(name.encode()).hexdigest()[:12]


@cache
def surroundings() -> dict[str, Any]:
    """Python, package versions and commit; looked up once a process. Do not change it."""
    found: dict[str, Any] = {"python": platform.python_version(), "versions": {}}
    for package in _PACKAGES:
        try:
            found["versions"][package] = version(package)
        except PackageNotFoundError:
            continue
    found["git_commit"] = _commit()
    return found


def _commit() -> str | None:
    """The commit of the folder the run is started in, if it is a git checkout."""
    git = shutil.which("git")
    if git is None:
        return None
    try:
        done = subprocess.run([git, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
