"""A collection: documents, and the questions, judgements and evidence labels that go with them.

All checks on ids happen here, once, at the border; whatever lies above may trust a `Collection`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from searchops.errors import DataError, did_you_mean, sentence
from searchops.frames import RESERVED_COLUMNS

__all__ = ["Collection", "misplaced_evidence"]

_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SHOWN = 3
"""How many offending ids an error names."""


@dataclass(frozen=True, eq=False, repr=False)
class Collection:
    """Documents with, where there are any, topics, qrels and evidence labels.

    The frames are checked and brought to their promised types when the object is made: ids become
    text, missing texts become empty (and `notes` says how many), duplicates are refused. They are
    shared, not copied, by whatever uses the collection: do not change them.

    Args:
        name: What the collection is called in records and reports.
        documents: `docno`, `text`, optional `title`, and any metadata columns.
        topics: `qid`, `query` and any further columns (`answer` for answers), or None.
        qrels: `qid`, `docno`, `label`, or None.
        evidence: `qid` with `docno`, `start`, `end` (and `text`), or with `passage_id`, or with
            `docno` alone (the whole document supports the answer); or None.
        notes: What was left out or mended on the way in, one sentence each.

    Raises:
        DataError: A column is missing, an id is missing or doubled, an offset or label is no whole
            number.

    Example:
        >>> documents = pd.DataFrame({"docno": [1, 2], "text": ["Ada was born in London.", None]})
        >>> c = Collection("tiny", documents, topics=pd.DataFrame({"qid": [7], "query": ["ada"]}))
        >>> c
        Collection('tiny': 2 documents, 1 topic, no qrels, no evidence; 1 note)
        >>> c.documents["docno"].tolist(), c.topics["qid"].tolist(), c.notes
        (['1', '2'], ['7'], ('1 of 2 documents has no text',))
    """

    name: str
    documents: pd.DataFrame
    topics: pd.DataFrame | None = None
    qrels: pd.DataFrame | None = None
    evidence: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Brings the frames to their promised form."""
        notes: list[str] = list(self.notes)
        put = object.__setattr__
        put(self, "documents", _documents(self.documents, f"{self.name}: documents", notes))
        if self.topics is not None:
            put(self, "topics", _topics(self.topics, f"{self.name}: topics"))
        if self.qrels is not None:
            put(self, "qrels", _qrels(self.qrels, f"{self.name}: qrels"))
        if self.evidence is not None:
            put(self, "evidence", _evidence(self.evidence, f"{self.name}: evidence"))
        for what, frame in (("qrels", self.qrels), ("evidence", self.evidence)):
            notes += self._dangling(what, frame)
        put(self, "notes", tuple(dict.fromkeys(notes)))

    def __repr__(self) -> str:
        """One line: the name and how much there is of everything."""
        parts = [
            _counted(len(self.documents), "document"),
            _counted_frame(self.topics, "topic", "topics"),
            _counted_frame(self.qrels, "qrel", "qrels"),
            _counted_frame(self.evidence, "evidence label", "evidence"),
        ]
        notes = f"; {_counted(len(self.notes), 'note')}" if self.notes else ""
        return f"Collection({self.name!r}: {', '.join(parts)}{notes})"

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self.documents)

    @cached_property
    def data_hash(self) -> str:
        """The sha256 of all documents in order: docno, title, text, then metadata by column name.

        Indexes and records keep it, so that a later run can tell whether it sees the same documents.
        """
        first = ["docno", "title", "text"]
        columns = first + sorted(str(c) for c in self.documents.columns if c not in first)
        digest = hashlib.sha256(json.dumps(columns).encode())
        arrays = [self.documents[column].tolist() for column in columns]
        for row in zip(*arrays, strict=True):
            # The newline ends a row: JSON escapes those inside a value, so rows cannot run together.
            digest.update(json.dumps(row, default=_plain).encode() + b"\n")
        return digest.hexdigest()

    def select(self, qids: Iterable[str]) -> Collection:
        """The same documents with only these questions, their qrels and their evidence.

        The questions keep the order they have here.

        Raises:
            DataError: There are no topics, or a qid is none of theirs.

        Example:
            >>> topics = pd.DataFrame({"qid": ["a", "b"], "query": ["x", "y"]})
            >>> Collection("t", pd.DataFrame({"docno": ["1"], "text": ["z"]}), topics).select(["b"])
            Collection('t': 1 document, 1 topic, no qrels, no evidence)
        """
        wanted = set(qids)
        known = self._qids()
        for qid in sorted(wanted - set(known)):
            raise DataError(
                "a qid of the collection is needed",
                repr(qid),
                where=f"{self.name}: topics",
                hint=sentence(did_you_mean(qid, known)) if len(known) <= 20 else "",
            )
        picked = replace(
            self,
            topics=_of_qids(self.topics, wanted),
            qrels=_of_qids(self.qrels, wanted),
            evidence=_of_qids(self.evidence, wanted),
        )
        if "data_hash" in self.__dict__:
            picked.__dict__["data_hash"] = self.data_hash
        return picked

    def halves(self, seed: int) -> tuple[Collection, Collection]:
        """Two collections, each with half of the questions: one to choose on, one to report on.

        Which half a question falls into depends on the seed and the set of qids, not on their
        order; the first half has the extra question of an odd number.

        Raises:
            DataError: There are fewer than two questions.
        """
        qids = self._qids()
        if len(qids) < 2:
            raise DataError("two questions or more are needed for halves", str(len(qids)), where=self.name)
        mixed = sorted(qids, key=lambda qid: hashlib.sha256(f"{seed}\n{qid}".encode()).digest())
        middle = (len(mixed) + 1) // 2
        return self.select(mixed[:middle]), self.select(mixed[middle:])

    def _qids(self) -> list[str]:
        if self.topics is None:
            raise DataError("a collection with topics is needed", "none", where=self.name)
        return list(self.topics["qid"])

    def _dangling(self, what: str, frame: pd.DataFrame | None) -> list[str]:
        """What to say of labels whose document or question is not in the collection."""
        notes: list[str] = []
        if frame is None:
            return notes
        named = set(frame["docno"]) if "docno" in frame.columns else set()
        if gone := named - set(self.documents["docno"]):
            found = f"{_counted(len(gone), 'document')} not in the collection"
            notes.append(f"{what}: {found}: {_some(gone)}")
        if self.topics is not None and (gone := set(frame["qid"]) - set(self.topics["qid"])):
            notes.append(f"{what}: {_counted(len(gone), 'question')} without a topic: {_some(gone)}")
        return notes


def misplaced_evidence(evidence: pd.DataFrame, documents: pd.DataFrame) -> list[int]:
    """The rows (by position) whose text is not what stands at their offsets in the document.

    A row without a text is judged by its end alone. Rows without offsets, and rows of documents
    that are not there, are not judged.

    Example:
        >>> documents = pd.DataFrame({"docno": ["d"], "text": ["Ada was born in London."]})
        >>> labels = {"docno": ["d", "d"], "start": [0, 1], "end": [3, 4], "text": ["Ada", "Ada"]}
        >>> misplaced_evidence(pd.DataFrame(labels), documents)
        [1]
    """
    if not {"docno", "start", "end"} <= set(evidence.columns):
        return []
    whole = dict(zip(documents["docno"], documents["text"], strict=True))
    labels = evidence["text"].tolist() if "text" in evidence.columns else [None] * len(evidence)
    columns = [evidence[column].tolist() for column in ("docno", "start", "end")]
    return [
        position
        for position, (docno, start, end, label) in enumerate(zip(*columns, labels, strict=True))
        if not _missing(start) and docno in whole and not _stands(whole[docno], int(start), int(end), label)
    ]


def _stands(text: str, start: int, end: int, label: Any) -> bool:
    return text[start:end] == label if isinstance(label, str) else end <= len(text)


def _documents(frame: pd.DataFrame, where: str, notes: list[str]) -> pd.DataFrame:
    frame = _with_columns(frame, ("docno", "text"), where)
    docnos = _ids(frame["docno"], "docno", where)
    _refuse_doubles(docnos, "docno", where)
    texts, n_missing = _texts(frame["text"], "text", where, docnos)
    if n_missing:
        verb = "has" if n_missing == 1 else "have"
        notes.append(f"{n_missing:,} of {_counted(len(docnos), 'document')} {verb} no text")
    titles = [""] * len(docnos)
    if "title" in frame.columns:
        titles, _ = _texts(frame["title"], "title", where, docnos)
    known = pd.DataFrame({"docno": docnos, "title": titles, "text": texts})
    taken = sorted(RESERVED_COLUMNS & set(map(str, frame.columns)))
    if taken:
        raise DataError(
            "metadata under other names is needed",
            "columns " + ", ".join(taken),
            where=where,
            hint="Stages write columns of these names; rename them.",
        )
    rest = frame.drop(columns=["docno", "title", "text"], errors="ignore")
    return pd.concat([known, rest], axis=1)


def _topics(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    frame = _with_columns(frame, ("qid", "query"), where)
    qids = _ids(frame["qid"], "qid", where)
    _refuse_doubles(qids, "qid", where)
    queries, n_missing = _texts(frame["query"], "query", where, qids)
    if n_missing:
        without = [qid for qid, query in zip(qids, frame["query"], strict=True) if _missing(query)]
        raise DataError("a query for every qid is needed", f"none for {_some(without)}", where=where)
    return frame.assign(qid=qids, query=queries)


def _qrels(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    frame = _with_columns(frame, ("qid", "docno", "label"), where)
    qids, docnos = _ids(frame["qid"], "qid", where), _ids(frame["docno"], "docno", where)
    _refuse_doubles(list(zip(qids, docnos, strict=True)), "pair of qid and docno", where)
    labels = [_whole(value, "label", where) for value in frame["label"]]
    return frame.assign(qid=qids, docno=docnos, label=pd.array(labels, dtype="int64"))


def _evidence(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    by = "docno" if "passage_id" not in frame.columns or "docno" in frame.columns else "passage_id"
    frame = _with_columns(frame, ("qid", by), where)
    frame = frame.assign(qid=_ids(frame["qid"], "qid", where), **{by: _ids(frame[by], by, where)})
    if {"start", "end"} & set(frame.columns):
        frame = _with_columns(frame, ("start", "end"), where)
        spans = [_span(start, end, where) for start, end in zip(frame["start"], frame["end"], strict=True)]
        # One label without offsets makes the column hold None, never a float where a slice needs an int.
        dtype = "object" if any(start is None for start, _ in spans) else "int64"
        frame = frame.assign(
            start=pd.Series([start for start, _ in spans], dtype=dtype),
            end=pd.Series([end for _, end in spans], dtype=dtype),
        )
    return frame


def _span(start: Any, end: Any, where: str) -> tuple[int | None, int | None]:
    if _missing(start) and _missing(end):
        return None, None
    first, last = _whole(start, "start", where), _whole(end, "end", where)
    if not 0 <= first < last:
        raise DataError("offsets with 0 <= start < end are needed", f"start {first}, end {last}", where=where)
    return first, last


def _with_columns(frame: pd.DataFrame, needed: Sequence[str], where: str) -> pd.DataFrame:
    for column in needed:
        if column not in frame.columns:
            found = "columns " + (", ".join(map(str, frame.columns)) or "none")
            hint = did_you_mean(column, map(str, frame.columns))
            raise DataError(f"a column {column!r} is needed", found, where=where, hint=sentence(hint))
    return frame.reset_index(drop=True)


def _ids(values: pd.Series[Any], column: str, where: str) -> list[str]:
    """Ids as text: whole numbers lose their '.0', everything else must be there and not empty."""
    ids = []
    for row, value in enumerate(values.tolist()):
        if not isinstance(value, str):
            if _missing(value) or isinstance(value, bool) or not float(value).is_integer():
                raise DataError(
                    f"a {column} that is text or a whole number is needed",
                    f"{value!r} in row {row}",
                    where=where,
                )
            value = str(int(value))
        if not value:
            raise DataError(f"a {column} that is not empty is needed", f"'' in row {row}", where=where)
        ids.append(value)
    _refuse_surrogates(ids, column, where, ids)
    return ids


def _texts(values: pd.Series[Any], column: str, where: str, ids: Sequence[str]) -> tuple[list[str], int]:
    """Texts with "" for missing ones, and how many were missing."""
    texts, n_missing = [], 0
    for name, value in zip(ids, values.tolist(), strict=True):
        if isinstance(value, str):
            texts.append(value)
        elif _missing(value):
            texts.append("")
            n_missing += 1
        else:
            raise DataError(f"{column} must be text", f"{value!r} for {name!r}", where=where)
    _refuse_surrogates(texts, column, where, ids)
    return texts, n_missing


def _refuse_surrogates(texts: Sequence[str], column: str, where: str, ids: Sequence[str]) -> None:
    """Half a character (a lone surrogate) is in no UTF-8 file, so no index could store it."""
    try:
        "".join(texts).encode()
        return
    except UnicodeEncodeError:
        bad = [name for name, text in zip(ids, texts, strict=True) if _LONE_SURROGATE.search(text)]
    raise DataError(f"{column} must be whole characters", f"lone surrogates in {_some(bad)}", where=where)


def _whole(value: Any, column: str, where: str) -> int:
    try:
        number = int(value)
        if number == float(value):
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise DataError(f"{column} must be a whole number", repr(value), where=where)


def _refuse_doubles(ids: Sequence[Hashable], what: str, where: str) -> None:
    if len(set(ids)) == len(ids):
        return
    doubled = [one for one, n in Counter(ids).items() if n > 1]
    raise DataError(
        f"every {what} once is needed",
        f"{_counted(len(doubled), 'duplicate')}: {_some(doubled)}",
        where=where,
        hint="Drop or rename them.",
    )


def _of_qids(frame: pd.DataFrame | None, qids: set[str]) -> pd.DataFrame | None:
    return None if frame is None else frame[frame["qid"].isin(qids)]


def _missing(value: Any) -> bool:
    return value is None or (pd.api.types.is_scalar(value) and bool(pd.isna(value)))


def _plain(value: Any) -> Any:
    """What JSON does not know, as something it does: arrays as lists, dates as text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return sorted(value) if isinstance(value, (set, frozenset)) else str(value)


def _some(ids: Iterable[Hashable]) -> str:
    """A few of the ids, in order of text, and how many more there are.

    Example:
        >>> _some(["b", "a", "c", "d", "e"])
        "'a', 'b', 'c' and 2 more"
    """
    ordered = sorted(ids, key=str)
    more = len(ordered) - _SHOWN
    shown = ", ".join(map(repr, ordered[:_SHOWN]))
    return shown + (f" and {more:,} more" if more > 0 else "")


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def _counted_frame(frame: pd.DataFrame | None, noun: str, plural: str) -> str:
    return f"no {plural}" if frame is None else _counted(len(frame), noun)
