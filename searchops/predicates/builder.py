"""The Python form of predicates: `field("year") >= 2019`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from searchops.errors import SpecError
from searchops.predicates.grammar import parse
from searchops.predicates.leaves import Compare, Contains, Exists, IsIn, Matches, check_name
from searchops.predicates.logic import Predicate


@dataclass(frozen=True, eq=False)
class Field:
    """A column to ask about; comparing it gives a predicate.

    Example:
        >>> Field("year") >= 2019
        field('year') >= 2019
        >>> ~Field("lang").isin(["de", "fr"])
        ~field('lang').isin(['de', 'fr'])
    """

    name: str

    def __post_init__(self) -> None:
        check_name(self.name)

    def isin(self, values: Iterable[Any]) -> Predicate:
        """The value is one of these."""
        return IsIn(self.name, values)  # type: ignore[arg-type]

    def contains(self, value: Any) -> Predicate:
        """The text has this part (case counts), or the list has this element."""
        return Contains(self.name, value)

    def matches(self, pattern: str) -> Predicate:
        """The regular expression (of the `regex` module) is found somewhere in the text."""
        return Matches(self.name, pattern)

    def exists(self) -> Predicate:
        """There is a value."""
        return Exists(self.name)

    def __eq__(self, value: object) -> Predicate:  # type: ignore[override]
        """A predicate, not a truth value."""
        return Compare(self.name, "==", value)  # type: ignore[arg-type]

    def __ne__(self, value: object) -> Predicate:  # type: ignore[override]
        """A predicate, not a truth value; false where the value is missing."""
        return Compare(self.name, "!=", value)  # type: ignore[arg-type]

    def __lt__(self, value: Any) -> Predicate:
        """Less."""
        return Compare(self.name, "<", value)

    def __le__(self, value: Any) -> Predicate:
        """Less or equal."""
        return Compare(self.name, "<=", value)

    def __gt__(self, value: Any) -> Predicate:
        """Greater."""
        return Compare(self.name, ">", value)

    def __ge__(self, value: Any) -> Predicate:
        """Greater or equal."""
        return Compare(self.name, ">=", value)

    def __repr__(self) -> str:
        """The Python form."""
        return f"field({self.name!r})"

    def _refuse(self, *_: object) -> NoReturn:
        raise SpecError(
            f"a comparison of {self!r} is needed",
            "the field alone",
            where="filter",
            hint="Put parentheses around each comparison: (field('year') > 1) & (field('lang') == 'en').",
        )

    __bool__ = __and__ = __rand__ = __or__ = __ror__ = __invert__ = _refuse


def field(name: str) -> Field:
    """The column of that name, to build a predicate from.

    Raises:
        SpecError: The name is not a text of 1 to 200 characters.

    Example:
        >>> print((field("year") >= 2019) & ~field("lang").isin(["de"]))
        year >= 2019 and not lang in ['de']
    """
    return Field(name)


def as_predicate(value: Predicate | str) -> Predicate:
    """A predicate from itself or from its text form.

    Raises:
        SpecError: It is neither, or the text is not a predicate.

    Example:
        >>> as_predicate("year>=2019")
        field('year') >= 2019
    """
    if isinstance(value, Predicate):
        return value
    if isinstance(value, Field):
        value._refuse()
    return parse(value)
