"""Candidate rows and events as columns, and their way to Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from numbers import Real
from operator import contains
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from searchops.errors import FrameError
from searchops.frames import Record
from searchops.records import Event, candidate_schema, event_schema

if TYPE_CHECKING:
    import pyarrow as pa


class ScoredPassage(NamedTuple):
    """A passage that an extract stage scored: one member of its available set."""

    docno: str
    passage: int
    start: int
    end: int
    score: float


def _passage_number(row: Record) -> int | None:
    passage_id = row.get("passage_id")
    if passage_id is None or passage_id != passage_id:
        return None
    try:
        return int(passage_id.rpartition("%p")[2])
    except (AttributeError, ValueError):
        raise FrameError("a passage_id such as 'd7%p0' is needed", repr(passage_id), where="record") from None


def _check_types(column: str, values: Sequence[Any], kind: type) -> set[type]:
    types = set(map(type, values))
    for found in types:
        if not (issubclass(found, kind) or (kind is not str and found is type(None))):
            raise FrameError(
                f"a column {column!r} of {'text' if kind is str else 'numbers'} is needed",
                found.__name__,
                where="record",
                hint="Mend the stage that makes it.",
            )
    return types


class CandidateColumns:
    """Candidate rows as columns of plain lists, until they become an Arrow table."""

    def __init__(self) -> None:
        self.docno: list[str] = []
        self.passage: list[int | None] = []
        self.start: list[int | None] = []
        self.end: list[int | None] = []
        self.rank: list[int | None] = []
        self.score: list[float | None] = []
        self.runs: list[tuple[int, int, int]] = []

    def __len__(self) -> int:
        return len(self.docno)

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """What the block adds goes again if it fails: no rows stay without their event."""
        n_rows, n_runs = len(self), len(self.runs)
        try:
            yield
        except BaseException:
            for column in (self.docno, self.passage, self.start, self.end, self.rank, self.score):
                del column[n_rows:]
            del self.runs[n_runs:]
            raise

    def add_rows(self, event: int, side: int, rows: Sequence[Record], *, checks: bool = True) -> None:
        """Adds documents or passages; side 0 is in, 1 is out. `checks` looks at scores and ranks of others."""
        n = len(rows)
        columns = self._checked(rows, checks)
        kept: list[list[Any]] = [self.docno, self.score, self.rank, self.passage, self.start, self.end]
        for column, values in zip(kept, columns, strict=False):  # documents have the first three
            column.extend(values)
        self.runs.append((event, side, n))
        self._pad()

    def _checked(self, rows: Sequence[Record], checks: bool) -> list[Sequence[Any]]:
        """The rows as columns; all of them are looked at before one is kept, so that none is torn."""
        try:
            score: list[Any] = [row["score"] for row in rows]
            rank: list[Any] = [row["rank"] for row in rows]
        except KeyError:  # set operators leave no score and no rank
            score, rank = [row.get("score") for row in rows], [row.get("rank") for row in rows]
        docno: list[Any] = [row["docno"] for row in rows]
        _check_types("docno", docno, str)
        if checks:
            _check_types("score", score, Real)
        if checks and any(issubclass(kind, float) for kind in _check_types("rank", rank, Real)):
            rank = [None if place is None or place != place else int(place) for place in rank]
        columns: list[Sequence[Any]] = [docno, score, rank]
        if any(map(contains, rows, repeat("passage_id"))):
            columns += [
                [_passage_number(row) for row in rows],
                [row.get("start") for row in rows],
                [row.get("end") for row in rows],
            ]
        return columns

    def add_scored(self, event: int, scored: Sequence[ScoredPassage]) -> None:
        """Adds an available set, on the in side."""
        docno, passage, start, end, score = zip(*scored, strict=True)
        self.docno.extend(docno)
        self.passage.extend(passage)
        self.start.extend(start)
        self.end.extend(end)
        self.score.extend(score)
        self.runs.append((event, 0, len(scored)))
        self._pad()

    def _pad(self) -> None:
        n = len(self.docno)
        for column in (self.passage, self.start, self.end, self.rank):
            if len(column) < n:
                column.extend(repeat(None, n - len(column)))

    def table(self) -> pa.Table:
        """All rows gathered so far."""
        import numpy as np
        import pyarrow as pa

        runs = np.array(self.runs, dtype=np.int64).reshape(-1, 3)
        event = pa.array(np.repeat(runs[:, 0], runs[:, 2]))
        side = pa.DictionaryArray.from_arrays(
            pa.array(np.repeat(runs[:, 1], runs[:, 2]).astype(np.int8)), pa.array(["in", "out"])
        )
        schema = candidate_schema()
        rest = [
            _array(getattr(self, name), schema.field(name).type)
            for name in ("docno", "passage", "start", "end", "rank", "score")
        ]
        return pa.Table.from_arrays([event, side, *rest], schema=schema)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        array = pa.array(values, kind.value_type).dictionary_encode()
        return array if array.type == kind else array.cast(kind)
    return pa.array(values, kind, from_pandas=pa.types.is_floating(kind))


def write_parquet(table: pa.Table, file: Path) -> None:
    """Writes a table whole: a crash leaves no half file under its name."""
    import pyarrow.parquet as pq

    part = file.with_suffix(".part")
    try:
        pq.write_table(
            table,
            part,
            compression="zstd",
            use_dictionary=[name for name in table.column_names if name != "score"],
            column_encoding=None,
            write_statistics=False,
        )
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def event_table(events: Sequence[Event], first: int) -> pa.Table:
    """The events as a table, numbered from `first`."""
    import pyarrow as pa

    schema = event_schema()
    columns = zip(*events, strict=True) if events else iter([()] * len(Event._fields))
    arrays = [pa.array(range(first, first + len(events)), pa.int64())]
    arrays += [_array(values, schema.field(name).type) for name, values in zip(Event._fields, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
