"""Fixtures that all tests may use, and the guard against the network."""

from __future__ import annotations

import os
import signal
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
def ctrl_c_interrupts():
    """Ctrl-C means what it means to a user, also where a parallel test runner has it ignored."""
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, old)


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


@pytest.fixture(scope="session")
def tiny_collection():
    """Twelve short documents with metadata, two topics with answers in known places."""
    import pandas as pd

    from searchops.corpus import Collection

    texts = {
        "lakes/1": ("Lake Baikal", "Lake Baikal lies in Siberia. It is the deepest lake on Earth. Seals live in it."),
        "lakes/2": ("Lake Tanganyika", "Lake Tanganyika lies in Africa. It is the second deepest lake."),
        "lakes 3": ("Lake Superior", "Lake Superior is the largest lake of North America. It is cold."),
        "rivers%p1": ("Nile", "The Nile flows north. It is a long river. Cairo lies on the Nile."),
        "rivers/2": ("Amazon", "The Amazon carries more water than any river. It crosses Brazil."),
        "rivers/3": ("Lena", "The Lena flows north through Siberia. It freezes in winter."),
        "seals": ("Baikal seal", "The Baikal seal lives only in Lake Baikal. It is a small seal."),
        "cities/1": ("Cairo", "Cairo is the capital of Egypt. The Nile runs through Cairo."),
        "cities/2": ("Irkutsk", "Irkutsk lies near Lake Baikal. The city was founded in 1661."),
        "größe": ("Größe", "Die Größe des Sees ist bekannt. Der See ist tief."),
        "empty": ("Empty", ""),
        "long": ("Long", "A long text about nothing much. " * 40),
    }
    documents = pd.DataFrame(
        [
            {
                "docno": docno,
                "title": title,
                "text": text,
                "year": 2010 + place,
                "lang": "de" if docno == "größe" else "en",
            }
            for place, (docno, (title, text)) in enumerate(texts.items())
        ]
    )
    topics = pd.DataFrame(
        [{"qid": "1", "query": "deepest lake Siberia"}, {"qid": "2", "query": "Nile capital Egypt Cairo"}]
    )

    def span(qid, docno, quote):
        start = texts[docno][1].index(quote)
        return {"qid": qid, "docno": docno, "start": start, "end": start + len(quote), "text": quote}

    evidence = pd.DataFrame(
        [
            span("1", "lakes/1", "Lake Baikal lies in Siberia."),
            span("1", "lakes/1", "It is the deepest lake on Earth."),
            span("2", "cities/1", "Cairo is the capital of Egypt."),
            span("2", "rivers%p1", "Cairo lies on the Nile."),
        ]
    )
    qrels = evidence[["qid", "docno"]].drop_duplicates().assign(label=1).reset_index(drop=True)
    return Collection(name="tiny", documents=documents, topics=topics, qrels=qrels, evidence=evidence)


@pytest.fixture(scope="session")
def tiny_index(tiny_collection, tmp_path_factory):
    """A real Lucene index of the tiny collection."""
    from searchops.engines.lucene import LuceneIndex

    return LuceneIndex.build(tiny_collection, tmp_path_factory.mktemp("index") / "tiny")
