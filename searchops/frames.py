"""PyTerrier's data model: columns, the order of rows, and frames as lists of records.

Kernels work on one query's rows as a list of dicts; pandas stands at the edges only.
Source: PyTerrier data model (Q, D, R); trec_eval's tie order for ranks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import pandas as pd

from searchops.errors import FrameError, did_you_mean, sentence

Record: TypeAlias = dict[str, Any]
"""One row of a frame. Kernels never change a record they were given."""

RESERVED_COLUMNS = frozenset(
    (
        "qid",
        "query",
        "score",
        "rank",
        "source_query",
        "passage_id",
        "start",
        "end",
        "passage_score",
        "branch_score",
        "instruction",
        "note",
        "quote",
    )
)
"""Columns that stages write; a document's metadata cannot have these names."""


class Group(NamedTuple):
    """The rows of one task (qid). It keeps its identity when no row is left."""

    qid: str
    query: str
    rows: list[Record]


def to_groups(records: Iterable[Record], *, where: str = "input") -> list[Group]:
    """Groups records by qid, in the order in which each qid is first seen.

    Integer qids become strings here, at the border, once.

    Raises:
        FrameError: A record has no qid.

    Example:
        >>> [g.qid for g in to_groups([{"qid": 2, "query": "b"}, {"qid": "1", "query": "a"}])]
        ['2', '1']
    """
    groups: dict[str, Group] = {}
    for record in records:
        try:
            qid = record["qid"]
        except KeyError:
            raise _no_column("qid", record, where) from None
        if not isinstance(qid, str):
            qid = _qid_text(qid, where)
            record = {**record, "qid": qid}
        group = groups.get(qid)
        if group is None:
            groups[qid] = Group(qid, _text_or_empty(record.get("query")), [record])
        else:
            group.rows.append(record)
    return list(groups.values())


def frame_to_groups(frame: pd.DataFrame, *, where: str = "input") -> list[Group]:
    """Groups a DataFrame by qid (columns stay as they are; NaN stays NaN)."""
    if "qid" not in frame.columns:
        raise FrameError(
            "a column 'qid' is needed",
            "columns " + (", ".join(map(str, frame.columns)) or "none"),
            where=where,
        )
    columns = [str(column) for column in frame.columns]
    arrays = [frame[column].tolist() for column in frame.columns]
    return to_groups((dict(zip(columns, row, strict=True)) for row in zip(*arrays, strict=True)), where=where)


def groups_to_records(groups: Iterable[Group]) -> list[Record]:
    """All rows of all groups, in order."""
    return [row for group in groups for row in group.rows]


def records_to_frame(records: Sequence[Record], columns: Sequence[str]) -> pd.DataFrame:
    """A DataFrame of the records; with no rows, still the promised columns.

    Example:
        >>> list(records_to_frame([], ["qid", "docno"]).columns)
        ['qid', 'docno']
    """
    if not records:
        return pd.DataFrame({column: _empty_column(column) for column in columns})
    seen: dict[str, None] = dict.fromkeys(records[0])
    for record in records:
        if record.keys() != seen.keys():
            seen.update(dict.fromkeys(record))
    return pd.DataFrame({name: [record.get(name) for record in records] for name in seen})


def _empty_column(name: str) -> pd.Series[Any]:
    if name in ("rank", "start", "end"):
        return pd.Series([], dtype="int64")
    if name in ("score", "passage_score"):
        return pd.Series([], dtype="float64")
    return pd.Series([], dtype="object")


def ranked(rows: Iterable[Record], *, where: str = "score") -> list[Record]:
    """New records in rank order, with `rank` from 0.

    The order is trec_eval's: score descending, then docno descending, so `rank` and the measures
    agree on ties. Passages of one document with one score keep the order of their passage ids.

    Raises:
        FrameError: A score is missing, not a number or NaN.

    Example:
        >>> rows = [{"docno": "a", "score": 1.0}, {"docno": "b", "score": 1.0}]
        >>> [(r["docno"], r["rank"]) for r in ranked(rows)]
        [('b', 0), ('a', 1)]
    """
    pool = list(rows)
    for row in pool:
        score = row.get("score")
        if not isinstance(score, Real) or math.isnan(score):
            raise FrameError(
                "a score that is a number is needed",
                f"{score!r} for docno {row.get('docno')!r}",
                where=where,
                hint="Drop or mend such rows before they are ranked.",
            )
    pool.sort(key=lambda row: str(row["docno"]), reverse=True)
    pool.sort(key=lambda row: -row["score"])
    return [{**row, "rank": rank} for rank, row in enumerate(pool)]


def require(record: Record, column: str, *, where: str) -> Any:
    """The value of a column a stage cannot do without.

    Raises:
        FrameError: The column is not there; the text names the columns there are.

    Example:
        >>> require({"docno": "d1"}, "docno", where="Rerank")
        'd1'
    """
    try:
        return record[column]
    except KeyError:
        raise _no_column(column, record, where) from None


def _no_column(column: str, record: Record, where: str) -> FrameError:
    return FrameError(
        f"a column {column!r} is needed",
        "columns " + (", ".join(sorted(map(str, record))) or "none"),
        where=where,
        hint=sentence(did_you_mean(column, record)) if record else "",
    )


def _qid_text(qid: Any, where: str) -> str:
    if qid is None or (isinstance(qid, float) and (math.isnan(qid) or not qid.is_integer())):
        raise FrameError("a qid that is text or a whole number is needed", repr(qid), where=where)
    return str(int(qid)) if isinstance(qid, float) else str(qid)


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""
