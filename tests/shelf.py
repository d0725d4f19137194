"""An engine of a few lines that needs no JVM, and a stage that can be watched, for tests of whole runs.

`python -m tests.shelf run FILE …` is the `searchops` command with both registered.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

from searchops import registry
from searchops.primitives.base import Primitive
from searchops.scorers.statistics import TermStatistics


class Shelf:
    """Documents in a JSON file; a document's score is how often it holds the query's words."""

    def __init__(self, path):
        self.path = str(path)
        self.documents = json.loads(Path(path, "documents.json").read_text())
        self.columns = tuple(next(iter(self.documents.values())))
        self.words = {docno: Counter(d["text"].lower().split()) for docno, d in self.documents.items()}

    @classmethod
    def build(cls, collection, path, *, progress=True):
        Path(path).mkdir(parents=True, exist_ok=True)
        rows = collection.documents.to_dict("records")
        Path(path, "documents.json").write_text(json.dumps({row["docno"]: row for row in rows}))
        return cls(path)

    def __len__(self):
        return len(self.documents)

    def search(self, query, k):
        asked = query.lower().split()
        scored = ((docno, float(sum(words[w] for w in asked))) for docno, words in self.words.items())
        return sorted(((d, s) for d, s in scored if s), key=lambda hit: (hit[1], hit[0]), reverse=True)[:k]

    def search_many(self, queries, k):
        return [self.search(query, k) for query in queries]

    def fetch(self, docnos):
        return [self.documents[docno] for docno in docnos]

    def statistics(self, analyzer):
        return TermStatistics.from_texts([d["text"] for d in self.documents.values()], analyzer)

    def __repr__(self):
        return "Shelf()"


class Gate(Primitive):
    """Lets everything through; notes each batch, and waits at the N-th where $SEARCHOPS_TEST_WAIT_AT is N.

    A row whose text holds a word of $SEARCHOPS_TEST_FAIL_ON makes it fail.
    """

    kind = "gate"
    needs = ("qid", "docno")

    def __init__(self) -> None:
        pass

    def process(self, groups):
        notes = os.environ.get("SEARCHOPS_TEST_NOTES")
        if notes:
            with Path(notes).open("a") as file:
                file.write(" ".join(group.qid for group in groups) + "\n")
            n_batches = len(Path(notes).read_text().splitlines())
            while str(n_batches) == os.environ.get("SEARCHOPS_TEST_WAIT_AT"):
                time.sleep(0.01)
        bad = os.environ.get("SEARCHOPS_TEST_FAIL_ON", "").split()
        for group in groups:
            if any(word in row["text"] for row in group.rows for word in bad):
                raise ValueError(f"cannot stand {bad}")
        return super().process(groups)

    def kernel(self, rows):
        return rows


def register_both() -> None:
    """Makes `index: shelf` and the stage `gate` known to pipeline files."""
    registry.register("engine", "shelf", "tests.shelf:Shelf")
    registry.register("stage", "gate", "tests.shelf:Gate")


if __name__ == "__main__":
    register_both()
    from searchops.cli import main

    sys.argv[0] = "searchops"
    main()
