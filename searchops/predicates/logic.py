"""Predicates: what all of them can do, and how they are combined.

The logic has two values. A leaf whose field is missing in a record is false there, so its negation is
true: `not (year >= 2019)` keeps records without a year, and `exists(year) and not (year >= 2019)`
drops them.

Source: PSA, Table 2 (field predicates with conjunction, disjunction and negation; at most eight leaves and
depth three).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import and_, not_, or_
from typing import ClassVar, Final, NoReturn

from searchops.errors import SpecError
from searchops.frames import Record
from searchops.predicates.columns import Table, clip

MAX_CHARS: Final = 100_000
MAX_DEPTH: Final = 50
MAX_LEAVES: Final = 1000


class Predicate(ABC):
    """A condition on a record; immutable, comparable, hashable and picklable.

    Combine with `&`, `|` and `~`. `str` gives the text form, which `parse` reads back; `repr` gives the
    Python form.

    Example:
        >>> from searchops.predicates import field
        >>> p = (field("year") >= 2019) & ~field("lang").isin(["de"])
        >>> print(p)
        year >= 2019 and not lang in ['de']
        >>> p.mask([{"year": 2020, "lang": "en"}, {"year": 2020, "lang": "de"}, {"lang": "en"}])
        [True, False, False]
    """

    text: str
    """The text form, which identifies the predicate."""
    fields: frozenset[str]
    """The columns it looks at."""
    leaves: int
    """How many conditions it is made of."""
    depth: int
    """Levels of the tree: a condition alone is 1; each `and`, `or`, `not` above it adds one."""

    _python_binds_loosely: ClassVar[bool] = False

    def mask(
        self, records: Sequence[Record], *, columns: Iterable[str] | None = None, timeout_s: float = 1.0
    ) -> list[bool]:
        """Says of each record whether it satisfies the predicate.

        Columns and kinds are checked once, over all records, before anything is decided: whether a
        predicate fails does not depend on the order of its parts.

        Args:
            records: The records of one group; none gives an empty list, with nothing checked.
            columns: Columns that exist although none of these records may carry them.
            timeout_s: Seconds that all patterns may take together.

        Raises:
            FrameError: A column is in no record, a column holds kinds that cannot be compared, or a
                pattern takes too long.
        """
        if not records:
            return []
        table = Table(records, columns, timeout_s)
        self._check(table)
        return self._evaluate(table, [True] * len(records))

    def __call__(self, record: Record) -> bool:
        """Whether one record satisfies it; a column that is absent counts as missing."""
        return self.mask([record], columns=self.fields)[0]

    def __and__(self, other: object) -> Predicate:
        """Both."""
        return And((self, other)) if isinstance(other, Predicate) else NotImplemented

    def __or__(self, other: object) -> Predicate:
        """Either."""
        return Or((self, other)) if isinstance(other, Predicate) else NotImplemented

    def __invert__(self) -> Predicate:
        """The opposite; twice is the predicate itself."""
        return Not(self)

    def __bool__(self) -> NoReturn:
        """Refuses: `and`, `or`, `not` and chained comparisons of Python would drop half a predicate."""
        raise SpecError(
            "a predicate has no truth value of its own",
            clip(self.text),
            where="filter",
            hint="Combine with & | ~ and parentheses (not `and`, `or`, `not`, `a < x < b`); "
            "ask about a record with predicate(record).",
        )

    def __eq__(self, other: object) -> bool:
        """Equal when the text forms are."""
        return self.text == other.text if isinstance(other, Predicate) else NotImplemented

    def __hash__(self) -> int:
        """Goes with equality."""
        return hash(self.text)

    def __str__(self) -> str:
        """The text form."""
        return self.text

    def __repr__(self) -> str:
        """The Python form."""
        return self._python()

    @abstractmethod
    def _python(self) -> str:
        """The Python form."""

    @abstractmethod
    def _check(self, table: Table) -> None:
        """Checks that the columns are there and hold kinds that can be asked."""

    @abstractmethod
    def _evaluate(self, table: Table, live: list[bool], /) -> list[bool]:
        """Truth for each record; where `live` is false nobody asks, so any answer will do."""

    def _refuse_oversize(self) -> None:
        # Eagerly, so that every predicate there is can be written, read back and walked recursively.
        for needed, size, limit, hint in (
            ("levels", self.depth, MAX_DEPTH, "Filter twice."),
            ("conditions", self.leaves, MAX_LEAVES, "Use `in [...]` for many values of one field."),
            ("characters", len(self.text), MAX_CHARS, "Filter by another column."),
        ):
            if size > limit:
                raise SpecError(
                    f"a predicate of at most {limit:,} {needed} is needed",
                    f"{size:,}",
                    where="filter",
                    hint=hint,
                )


@dataclass(frozen=True, eq=False, repr=False)
class _Junction(Predicate):
    parts: tuple[Predicate, ...]

    _python_binds_loosely = True
    _word: ClassVar[str]
    _sign: ClassVar[str]

    def __post_init__(self) -> None:
        flat: list[Predicate] = []
        for part in self.parts:
            if not isinstance(part, Predicate):
                raise SpecError(f"{self._word!r} joins predicates", type(part).__name__, where="filter")
            flat.extend(part.parts if isinstance(part, _Junction) and type(part) is type(self) else [part])
        if len(flat) < 2:
            raise SpecError(f"{self._word!r} joins two predicates or more", str(len(flat)), where="filter")
        object.__setattr__(self, "parts", tuple(flat))
        self._refuse_oversize()

    @cached_property
    def text(self) -> str:  # type: ignore[override]
        return f" {self._word} ".join(
            f"({part.text})" if isinstance(part, _Junction) else part.text for part in self.parts
        )

    @cached_property
    def fields(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset().union(*(part.fields for part in self.parts))

    @cached_property
    def leaves(self) -> int:  # type: ignore[override]
        return sum(part.leaves for part in self.parts)

    @cached_property
    def depth(self) -> int:  # type: ignore[override]
        return 1 + max(part.depth for part in self.parts)

    def _python(self) -> str:
        return f" {self._sign} ".join(_bracketed(part) for part in self.parts)

    def _check(self, table: Table) -> None:
        for part in self.parts:
            part._check(table)


class And(_Junction):
    """All parts hold; nested conjunctions are one."""

    _word = "and"
    _sign = "&"

    def _evaluate(self, table: Table, live: list[bool], /) -> list[bool]:
        for part in self.parts:
            live = list(map(and_, live, part._evaluate(table, live)))
        return live


class Or(_Junction):
    """At least one part holds; nested disjunctions are one."""

    _word = "or"
    _sign = "|"

    def _evaluate(self, table: Table, live: list[bool], /) -> list[bool]:
        truth = [False] * len(live)
        for part in self.parts:
            truth = list(map(or_, truth, part._evaluate(table, live)))
            live = [a and not t for a, t in zip(live, truth, strict=True)]
        return truth


@dataclass(frozen=True, eq=False, repr=False)
class Not(Predicate):
    """The part does not hold. Write `~p`, which makes one negation out of none and none out of one."""

    part: Predicate

    def __post_init__(self) -> None:
        if isinstance(self.part, Not):
            raise SpecError("a negation of something else is needed", "not not", where="filter", hint="Write ~p.")
        self._refuse_oversize()

    @cached_property
    def text(self) -> str:  # type: ignore[override]
        """The text form."""
        return f"not ({self.part.text})" if isinstance(self.part, _Junction) else f"not {self.part.text}"

    @cached_property
    def fields(self) -> frozenset[str]:  # type: ignore[override]
        """The columns of the part."""
        return self.part.fields

    @cached_property
    def leaves(self) -> int:  # type: ignore[override]
        """The conditions of the part."""
        return self.part.leaves

    @cached_property
    def depth(self) -> int:  # type: ignore[override]
        """One level above the part."""
        return 1 + self.part.depth

    def __invert__(self) -> Predicate:
        """The part."""
        return self.part

    def _python(self) -> str:
        return "~" + _bracketed(self.part)

    def _check(self, table: Table) -> None:
        self.part._check(table)

    def _evaluate(self, table: Table, live: list[bool], /) -> list[bool]:
        return list(map(not_, self.part._evaluate(table, live)))


def check_limits(predicate: Predicate, *, leaves: int = 8, depth: int = 3) -> None:
    """Holds a predicate of an agent to the size it may have.

    Source: PSA, Table 2 (at most eight leaves and depth three).

    Raises:
        SpecError: It has more leaves or levels.

    Example:
        >>> from searchops.predicates import parse
        >>> check_limits(parse("year >= 2019 and not lang in ['de']"))
    """
    for name, found, limit in (("leaves", predicate.leaves, leaves), ("depth", predicate.depth, depth)):
        if found > limit:
            raise SpecError(
                f"a filter with {name} at most {limit} is needed",
                f"{name} {found} in {clip(predicate.text)}",
                where="filter",
                hint="Use `in [...]` for many values of one field, or filter twice.",
            )


def _bracketed(part: Predicate) -> str:
    return f"({part._python()})" if part._python_binds_loosely else part._python()
