"""Runs whose numbers are known by hand, and a reader for the report's HTML."""

from __future__ import annotations

from html.parser import HTMLParser

import pandas as pd

from searchops import recorder
from searchops.recorder import ScoredPassage, config_hash
from searchops.records import Event

STAGES = ("retrieve k=3", "rerank k=2", "extract k=2")


class Page(HTMLParser):
    """A page's elements, the text of its tables and of all the rest."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.inside: list[int] = []
        self.raw = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.put(" " if tag not in ("bdi", "a") else "")
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.raw = tag
        if tag == "script":
            self.scripts.append("")
        if tag == "table":
            self.tables.append([])
            self.inside.append(len(self.tables) - 1)
        if tag == "tr" and self.inside:
            self.tables[self.inside[-1]].append([])
        if tag in ("td", "th"):
            self.tables[self.inside[-1]][-1].append("")

    def handle_endtag(self, tag):
        if tag == self.raw:
            self.raw = ""
        if tag == "table":
            self.inside.pop()

    def handle_data(self, data):
        if self.raw == "script":
            self.scripts[-1] += data
        elif not self.raw:
            self.put(data)

    def put(self, data):
        if not self.raw:
            self.text.append(data)
            if self.inside and self.tables[self.inside[-1]] and self.tables[self.inside[-1]][-1]:
                self.tables[self.inside[-1]][-1][-1] += data

    @property
    def words(self) -> str:
        return " ".join("".join(self.text).split())

    def table(self, *head: str) -> list[list[str]]:
        """Rows of the first table whose first header cells are these."""
        for rows in self.tables:
            if rows and [cell.strip() for cell in rows[0][: len(head)]] == list(head):
                return [[" ".join(cell.split()) for cell in row] for row in rows[1:]]
        raise AssertionError(f"no table headed {head} among {[rows[0] for rows in self.tables if rows]}")

    def has_table(self, *head: str) -> bool:
        return any(rows and [cell.strip() for cell in rows[0][: len(head)]] == list(head) for rows in self.tables)


def note_task(run, qid, query, retrieved, reranked, scored, kept, *, pipeline=0, error=None):
    """Three stages of one task, as a pipeline would have noted them."""

    def event(place, label, parent, n_in, n_out, failed=None):
        name = f"{label.title()}()"
        return Event(qid, query, pipeline, str(place), label, label.split()[0], name, config_hash(name), parent,
                     n_in, n_out, 0.001, error=failed)  # fmt: skip

    def documents(docnos):
        return [{"docno": d, "rank": rank, "score": -float(rank)} for rank, d in enumerate(docnos)]

    first = run.add(event(0, STAGES[0], -1, 1, len(retrieved)), documents(retrieved))
    if error:
        run.add(event(1, STAGES[1], first, len(retrieved), 0, error), [])
        return
    second = run.add(event(1, STAGES[1], first, len(retrieved), len(reranked)), documents(reranked))
    rows = [{"docno": d, "passage_id": f"{d}%p{n}", "start": 10 * n, "end": 10 * n + 10, "rank": rank, "score": 1.0}
            for rank, (d, n) in enumerate(kept)]  # fmt: skip
    passages = [ScoredPassage(d, n, 10 * n, 10 * n + 10, score) for d, n, score in scored]
    run.add(event(2, STAGES[2], second, len(reranked), len(rows)), rows, scored=passages)


def note_two_tasks(run, pipeline=0):
    """Task 1: one label delivered, one lost at extract. Task 2: one lost at rerank, one never retrieved."""
    run.pipeline_number(["First() >> Rerank() >> Extract()", "Second() >> Rerank() >> Extract()"][pipeline])
    note_task(run, "1", "who sang it", ["a", "b", "c"], ["b", "a"],
              [("a", 0, 0.9), ("a", 1, 0.2), ("b", 0, 0.5), ("b", 1, 0.8), ("b", 2, 0.1)],
              [("b", 1), ("a", 0)], pipeline=pipeline)  # fmt: skip
    note_task(run, "2", "who wrote it", ["a", "d", "e"], ["a", "e"],
              [("a", 0, 0.9), ("e", 0, 0.9)], [("a", 0), ("e", 0)], pipeline=pipeline)  # fmt: skip


EVIDENCE = pd.DataFrame(
    [("1", "a", 0, 10, "sung by A"), ("1", "b", 20, 30, "third of b"),
     ("2", "d", 0, 10, "d has it"), ("2", "z", 0, 5, "z has it")],
    columns=["qid", "docno", "start", "end", "text"],
)  # fmt: skip
TOPICS = pd.DataFrame({"qid": ["1", "2"], "query": ["who sang it?", "who wrote it?"], "answer": ["Ann", "Bob"]})
MEASURES = pd.DataFrame(
    [("1", "nDCG@10", 0.5), ("2", "nDCG@10", 1.0), ("1", "AP", 0.25), ("2", "AP", None), ("1", "Delivered", 0.5),
     ("2", "Delivered", 0.0)], columns=["qid", "measure", "value"],
)  # fmt: skip


def recorded_songs():
    """The two tasks, recorded in memory."""
    with recorder.record(None, collection="songs", spec="version: 1", seeds={"rng": 7}) as run:
        note_two_tasks(run)
    return run.run()
