"""The conditions on one field: comparison, in, contains, matches, exists.

Each checks the kinds of the whole column before it looks at a value, so that mixed columns are an error
and never a quiet false.
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any, ClassVar, Final, Literal, TypeAlias

from searchops.errors import SpecError
from searchops.predicates.columns import Column, Table, clip
from searchops.predicates.logic import Predicate
from searchops.predicates.patterns import compiled, found_in
from searchops.predicates.values import KIND_WORDS, Scalar, kind, literal, plain
from searchops.predicates.writing import quote, write_name, write_value

Operator: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">="]
OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MAX_NAME: Final = 200


@dataclass(frozen=True, eq=False, repr=False)
class _Leaf(Predicate):
    name: str

    leaves: ClassVar[int] = 1  # type: ignore[misc]
    depth: ClassVar[int] = 1  # type: ignore[misc]

    def __post_init__(self) -> None:
        check_name(self.name)
        self._prepare()
        self._refuse_oversize()

    @cached_property
    def text(self) -> str:  # type: ignore[override]
        return self._written()

    @cached_property
    def fields(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({self.name})

    @property
    def _field(self) -> str:
        return f"field({self.name!r})"

    def _prepare(self) -> None:
        """Checks and normalises the arguments."""

    @abstractmethod
    def _written(self) -> str:
        """The text form, made once."""

    def _column(self, table: Table) -> Column:
        return table.column(self.name, leaf=self.text)


@dataclass(frozen=True, eq=False, repr=False)
class Compare(_Leaf):
    """A comparison with a number, a text or a truth value; only like kinds compare."""

    operator: Operator
    value: Scalar

    _python_binds_loosely = True

    def _prepare(self) -> None:
        if self.operator not in OPERATORS:
            raise SpecError(f"one of {' '.join(OPERATORS)} is needed", repr(self.operator), where="filter")
        value = literal(self.value, context=f"{clip(write_name(self.name))} {self.operator}")
        if isinstance(value, bool) and self.operator not in ("==", "!="):
            raise SpecError(
                f"{self.operator} needs a number or text",
                write_value(value),
                where="filter",
                hint="Use == or !=.",
            )
        object.__setattr__(self, "value", value)

    def _written(self) -> str:
        return f"{write_name(self.name)} {self.operator} {write_value(self.value)}"

    def _python(self) -> str:
        return f"{self._field} {self.operator} {self.value!r}"

    def _check(self, table: Table) -> None:
        self._column(table).require({kind(self.value)}, leaf=clip(self.text), hint=_other_kind(self))

    def _evaluate(self, table: Table, _live: list[bool], /) -> list[bool]:
        column, compare, value = self._column(table), OPERATORS[self.operator], self.value
        if "missing" in column.kinds:
            return [item is not None and compare(item, value) for item in column.values]
        return list(map(compare, column.values, repeat(value)))


@dataclass(frozen=True, eq=False, repr=False)
class IsIn(_Leaf):
    """The value is one of those listed; none listed is always false."""

    values: tuple[Scalar, ...]

    def _prepare(self) -> None:
        context = f"{clip(write_name(self.name))} in"
        if isinstance(self.values, (str, bytes)) or not hasattr(self.values, "__iter__"):
            raise SpecError(f"{context} needs a list of values", type(self.values).__name__, where="filter")
        values = [literal(value, context=context) for value in self.values]
        if isinstance(self.values, (set, frozenset)):
            values.sort(key=write_value)  # the order of a set differs from run to run
        object.__setattr__(self, "values", tuple({write_value(value): value for value in values}.values()))

    @cached_property
    def _kinds(self) -> frozenset[str]:
        return frozenset(map(kind, self.values))

    @cached_property
    def _keys(self) -> frozenset[tuple[bool, Scalar]]:
        return frozenset((isinstance(value, bool), value) for value in self.values)

    def _written(self) -> str:
        return f"{write_name(self.name)} in [{', '.join(map(write_value, self.values))}]"

    def _python(self) -> str:
        return f"{self._field}.isin({list(self.values)!r})"

    def _check(self, table: Table) -> None:
        column = self._column(table)
        column.require(self._kinds or column.kinds, leaf=clip(self.text), hint="Only like kinds compare.")

    def _evaluate(self, table: Table, _live: list[bool], /) -> list[bool]:
        values = self._column(table).values
        if "bool" in self._kinds:  # 1 == True in Python, but not here
            return [(isinstance(item, bool), item) in self._keys for item in values]
        wanted = frozenset(self.values)
        return [item in wanted for item in values] if wanted else [False] * len(values)


@dataclass(frozen=True, eq=False, repr=False)
class Contains(_Leaf):
    """The text has this part (case counts), or the list has this element."""

    value: Scalar

    def _prepare(self) -> None:
        value = literal(self.value, context=f"{clip(write_name(self.name))} contains")
        object.__setattr__(self, "value", value)

    def _written(self) -> str:
        return f"{write_name(self.name)} contains {write_value(self.value)}"

    def _python(self) -> str:
        return f"{self._field}.contains({self.value!r})"

    def _check(self, table: Table) -> None:
        column, wanted = self._column(table), kind(self.value)
        column.require({"text", "list"} if wanted == "text" else {"list"}, leaf=clip(self.text))
        if "list" in column.kinds:
            hint = "These are elements of its lists; only like kinds compare."
            column.elements().require({wanted}, leaf=clip(self.text), hint=hint)

    def _evaluate(self, table: Table, _live: list[bool], /) -> list[bool]:
        column, value = self._column(table), self.value
        if column.kinds <= {"text"}:
            return [value in item for item in column.values]
        return [
            value in (item if isinstance(item, str) else map(plain, item)) if item is not None else False
            for item in column.values
        ]


@dataclass(frozen=True, eq=False, repr=False)
class Matches(_Leaf):
    """The regular expression is found somewhere in the text."""

    pattern: str

    def _prepare(self) -> None:
        if not isinstance(self.pattern, str):
            raise SpecError("matches needs a pattern in quotes", type(self.pattern).__name__, where="filter")
        object.__setattr__(self, "pattern", str(self.pattern))
        compiled(self.pattern)

    def _written(self) -> str:
        return f"{write_name(self.name)} matches {quote(self.pattern)}"

    def _python(self) -> str:
        return f"{self._field}.matches({self.pattern!r})"

    def _check(self, table: Table) -> None:
        self._column(table).require({"text"}, leaf=clip(self.text))

    def _evaluate(self, table: Table, live: list[bool], /) -> list[bool]:
        values = self._column(table).values
        return [
            wanted and item is not None and found_in(self.pattern, item, table, where)
            for where, (wanted, item) in enumerate(zip(live, values, strict=True))
        ]


@dataclass(frozen=True, eq=False, repr=False)
class Exists(_Leaf):
    """There is a value: not None, NaN or NaT, and the column is in the record. Empty text is a value."""

    def _written(self) -> str:
        return f"exists({write_name(self.name)})"

    def _python(self) -> str:
        return f"{self._field}.exists()"

    def _check(self, table: Table) -> None:
        self._column(table)

    def _evaluate(self, table: Table, _live: list[bool], /) -> list[bool]:
        return [item is not None for item in self._column(table).values]


def check_name(name: object) -> None:
    """Checks the name of a column.

    Raises:
        SpecError: It is not a text of 1 to 200 characters.
    """
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        found = f"{len(name):,} characters" if isinstance(name, str) else type(name).__name__
        raise SpecError(f"a column name of 1 to {MAX_NAME} characters is needed", found, where="filter")


def _other_kind(leaf: Compare) -> str:
    """What to write if the column is right and the literal is not."""
    value = leaf.value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        other = clip(f"{write_name(leaf.name)} {leaf.operator} {quote(repr(value))}")
        return f"To compare as text, quote the value: {other}."
    return f"Only like kinds compare, and the value here is {KIND_WORDS[kind(value)]}."
