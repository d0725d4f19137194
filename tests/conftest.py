"""Fixtures that all tests may use, and the guard against the network."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("PT_TEST_TRANSFORMER_REPORTS", "0")


def data_root() -> Path:
    """Where the real collections are: $SEARCHOPS_DATA, else ../shared/data beside the project."""
    return Path(os.environ.get("SEARCHOPS_DATA") or REPO.parent / "shared" / "data")


@pytest.fixture(scope="session")
def shared_data():
    """The folder of a real collection; a test that needs an absent one is skipped, with the reason."""

    def find(name: str) -> Path:
        folder = data_root() / name
        if not folder.is_dir():
            pytest.skip(f"collection {name} is not at {folder}; set SEARCHOPS_DATA")
        return folder

    return find


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch):
    """No test reaches another machine."""
    connect = socket.socket.connect

    def guarded(self, address):
        host = address[0] if isinstance(address, tuple) else ""
        if self.family in (socket.AF_INET, socket.AF_INET6) and not (
            str(host).startswith("127.") or host in ("::1", "localhost")
        ):
            raise OSError(f"tests may not connect to {host}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Caches of the tests are their own, so that a user's cache can neither help nor hurt."""
    old = os.environ.get("SEARCHOPS_CACHE")
    os.environ["SEARCHOPS_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if old is None:
        del os.environ["SEARCHOPS_CACHE"]
    else:
        os.environ["SEARCHOPS_CACHE"] = old
