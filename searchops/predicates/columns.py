"""The columns of the records that one call of a predicate looks at."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

from searchops.errors import FrameError, did_you_mean
from searchops.frames import Record
from searchops.predicates.values import KIND_WORDS, kind, kind_of_type, plain, plain_column

_SHOWN_COLUMNS: Final = 40
_SHOWN_CHARS: Final = 60


class Column(NamedTuple):
    """The plain values of one column, in the order of the records, and their kinds."""

    name: str
    values: list[Any]
    kinds: frozenset[str]

    def require(self, allowed: Collection[str], *, leaf: str, hint: str = "") -> None:
        """Checks that every value that is there is of an allowed kind.

        Raises:
            FrameError: Some are not; the text counts the kinds there are.

        Example:
            >>> Column("year", [2019, None], frozenset({"number", "missing"})).require({"number"}, leaf="")
        """
        if self.kinds - {"missing"} <= set(allowed):
            return
        raise FrameError(
            f"{leaf} needs {_words(allowed)} in column {self.name!r}",
            _count_kinds(self.values, set(allowed)),
            where="filter",
            hint=hint,
        )

    def elements(self) -> Column:
        """The elements of all its lists as one column (for what is asked of them)."""
        inside = [plain(item) for value in self.values if kind(value) == "list" for item in value]
        return Column(self.name, inside, frozenset(map(kind, inside)))


class Table:
    """Records seen by column, each read once; it keeps the time that patterns may still use.

    Args:
        records: The records, in order.
        columns: Columns known to exist although no record here may carry them.
        timeout_s: Seconds that all patterns of the predicate may take together.
    """

    def __init__(self, records: Sequence[Record], columns: Iterable[str] | None = None, timeout_s: float = 1.0) -> None:
        self.records = records
        self.timeout_s = timeout_s
        self._known = frozenset(columns or ())
        self._columns: dict[str, Column] = {}
        self._deadline: float | None = None

    def column(self, name: str, *, leaf: str) -> Column:
        """A column by name.

        Raises:
            FrameError: No record has it; the text names the columns there are.

        Example:
            >>> Table([{"year": 2019}, {}]).column("year", leaf="exists(year)").values
            [2019, None]
        """
        found = self._columns.get(name)
        if found is None:
            if name not in self._known and not any(name in record for record in self.records):
                raise self._unknown(name, leaf)
            values = plain_column([record.get(name) for record in self.records])
            found = Column(name, values, frozenset(map(kind_of_type, set(map(type, values)))))
            self._columns[name] = found
        return found

    def seconds_left(self) -> float:
        """Seconds until the patterns' time is over; it starts with the first pattern."""
        now = time.perf_counter()
        if self._deadline is None:
            self._deadline = now + self.timeout_s
        return self._deadline - now

    def _unknown(self, name: str, leaf: str) -> FrameError:
        known = sorted({str(column) for record in self.records for column in record} | self._known)
        shown = ", ".join(known[:_SHOWN_COLUMNS]) + (", …" if len(known) > _SHOWN_COLUMNS else "")
        guess = did_you_mean(name, known)
        return FrameError(
            f"a column {name!r} is needed for {clip(leaf)}",
            f"columns {shown or 'none'}",
            where="filter",
            hint="Did" + guess[3:] if guess.startswith("did you mean") else "",
        )


def clip(text: str) -> str:
    """A text short enough for one line of an error.

    Example:
        >>> clip("a" * 100)[-3:]
        'aa…'
    """
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"


def _words(kinds: Collection[str]) -> str:
    return " or ".join(word for kind_name, word in KIND_WORDS.items() if kind_name in kinds)


def _count_kinds(values: list[Any], allowed: set[str]) -> str:
    counts: Counter[str] = Counter()
    samples: dict[str, Any] = {}
    for value in values:
        name = kind(value)
        if name != "missing":
            counts[name] += 1
            samples.setdefault(name, value)
    wrong = [
        f"{name} in {count} of {len(values)}, such as {clip(repr(samples[name]))}"
        for name, count in counts.items()
        if name not in allowed
    ]
    return "; ".join(wrong)
