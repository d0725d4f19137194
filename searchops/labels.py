"""Evidence labels: a span, a passage or a document that supports an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd

from searchops.errors import FrameError
from searchops.frames import Record
from searchops.splitting import parse_passage_id


class Extent(Protocol):
    """What part of a document a candidate is; no passage means all of it."""

    @property
    def passage(self) -> int | None:
        """Number N of `docno%pN`, None for a document."""
        ...

    @property
    def start(self) -> int | None:
        """First character."""
        ...

    @property
    def end(self) -> int | None:
        """Behind the last character."""
        ...


@dataclass(frozen=True)
class Label:
    """One supporting place, for one task.

    Attributes:
        qid: The task.
        docno: The document.
        start: First character of the span, None for a passage or document label.
        end: Behind its last character.
        passage: Number N of a passage label `docno%pN`, else None.
        text: The span's text, where the labels give it.
    """

    qid: str
    docno: str
    start: int | None = None
    end: int | None = None
    passage: int | None = None
    text: str = ""

    @classmethod
    def parse(cls, qid: str, what: str) -> Label:
        """A label written as `docno`, `docno%pN` or `docno:start-end`.

        Example:
            >>> Label.parse("1", "d7:10-25").start
            10
        """
        span = re.fullmatch(r"(.+):(\d+)-(\d+)", what, re.DOTALL)
        if span:
            return cls(qid, span[1], int(span[2]), int(span[3]))
        passage = re.fullmatch(r"(.+)%p(\d+)", what, re.DOTALL)
        return cls(qid, passage[1], passage=int(passage[2])) if passage else cls(qid, what)

    def covered(self, extents: Iterable[Extent]) -> float:
        """The share of the label that the extents of its document cover together.

        Example:
            >>> from types import SimpleNamespace as Passage
            >>> label = Label("1", "d", 0, 10)
            >>> label.covered([Passage(passage=0, start=0, end=4), Passage(passage=1, start=2, end=6)])
            0.6
        """
        items = list(extents)
        if not items:
            return 0.0
        if any(item.passage is None for item in items):
            return 1.0
        if self.passage is not None:
            return float(any(item.passage == self.passage for item in items))
        if self.start is None or self.end is None or self.end <= self.start:
            return 1.0
        covered, reach = 0, self.start
        for start, end in sorted((item.start or 0, item.end or 0) for item in items):
            low, high = max(start, reach), min(end, self.end)
            if high > low:
                covered, reach = covered + high - low, high
        return covered / (self.end - self.start)

    def as_record(self) -> Record:
        """The label as a row of an evidence frame."""
        return {"qid": self.qid, "docno": self.docno, "start": self.start, "end": self.end, "text": self.text}

    def __str__(self) -> str:
        if self.start is not None:
            return f"{self.docno}:{self.start}-{self.end}"
        return self.docno if self.passage is None else f"{self.docno}%p{self.passage}"


def to_labels(evidence: pd.DataFrame) -> list[Label]:
    """Labels out of an evidence frame; labels given twice count once.

    Args:
        evidence: qid, docno, start, end (text); or qid, passage_id; or qid, docno.

    Raises:
        FrameError: None of these shapes, or a span that ends before it starts.
    """
    columns = set(evidence.columns)
    if "qid" not in columns or not columns & {"docno", "passage_id"}:
        raise FrameError(
            "evidence labels need qid with docno, start, end; or passage_id; or docno",
            "columns " + (", ".join(map(str, evidence.columns)) or "none"),
            where="evidence",
        )
    labels = [_label(row) for row in evidence.to_dict("records")]
    return list(dict.fromkeys(labels))


def _label(row: dict[Any, Any]) -> Label:
    qid = str(row["qid"])
    text = row.get("text")
    text = text if isinstance(text, str) else ""
    start, end = row.get("start"), row.get("end")
    if start is not None and end is not None and start == start and end == end:
        if int(end) < int(start) or int(start) < 0:
            raise FrameError(
                "a span that ends behind its start is needed", f"{start}-{end} of qid {qid!r}", where="evidence"
            )
        return Label(qid, str(row["docno"]), int(start), int(end), text=text)
    if isinstance(row.get("passage_id"), str):
        docno, number = parse_passage_id(row["passage_id"])
        return Label(qid, docno, passage=number, text=text)
    return Label(qid, str(row["docno"]), text=text)
