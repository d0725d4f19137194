"""The files of checkpoints: their names, which of them count, and how they are read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from searchops.errors import DataError
from searchops.records.events import candidate_schema, event_schema
from searchops.records.trajectories import committed

if TYPE_CHECKING:
    import pyarrow as pa

_NAME: Final = re.compile(r"(\d+)(-q)?")


class Part(NamedTuple):
    """A checkpoint: its number, and whether it is all of one question of an agent."""

    number: int
    question: bool = False

    def file(self, folder: Path, table: str) -> Path:
        """Its file of a table.

        Example:
            >>> Part(7, question=True).file(Path("run"), "events").as_posix()
            'run/events/000007-q.parquet'
        """
        return folder / table / f"{self.number:06d}{'-q' * self.question}.parquet"


def parts_of(folder: Path) -> list[Part]:
    """The checkpoints whose events file is in place, in order."""
    names = (_NAME.fullmatch(file.stem) for file in (folder / "events").glob("*.parquet"))
    return sorted(Part(int(name[1]), bool(name[2])) for name in names if name)


def split_parts(folder: Path) -> tuple[list[Part], list[Part]]:
    """The checkpoints that count, and those of questions that a crash left without an answer."""
    counts: list[Part] = []
    left: list[Part] = []
    parts = parts_of(folder)
    answered = committed(folder).parts if any(part.question for part in parts) else frozenset()
    for part in parts:
        (counts if not part.question or part.number in answered else left).append(part)
    return counts, left


def read_table(folder: Path, table: str) -> pa.Table:
    """The events or candidates of all checkpoints that count.

    Raises:
        DataError: A file is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = event_schema() if table == "events" else candidate_schema()
    tables: list[pa.Table] = []
    for part in split_parts(folder)[0]:
        file = part.file(folder, table)
        try:
            tables.append(pq.read_table(file).cast(schema))
        except (OSError, pa.ArrowException, ValueError) as error:
            raise DataError(
                "a readable Parquet file is needed",
                str(error).splitlines()[0],
                where=str(file),
                hint="The record is damaged; delete this checkpoint's two files or run again.",
            ) from error
    return pa.concat_tables(tables).unify_dictionaries() if tables else schema.empty_table()
