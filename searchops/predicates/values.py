"""What a predicate sees in a record: plain Python values, each of one kind.

Frames bring NumPy scalars, pandas time stamps and several ways to say "missing"; the leaves of a
predicate only meet `None`, `bool`, `int`, `float`, `str` and lists of them.
"""

from __future__ import annotations

import math
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd

from searchops.errors import SpecError

Scalar: TypeAlias = str | bool | int | float
"""What a predicate may compare with."""

KIND_WORDS: Final = {"text": "text", "number": "a number", "bool": "true or false", "list": "a list"}
MAX_STRING: Final = 10_000
_PLAIN_TYPES: Final = frozenset({str, int, bool, float, type(None)})


def plain(value: Any) -> Any:
    """The value as the leaves see it: missing ones are None, dates are ISO text.

    A date, or a time at midnight, is `2020-01-31`; other times are `2020-01-31T13:05:00`, in UTC where
    they carry a zone. So their order as text is their order in time.

    Example:
        >>> plain(np.int64(3)), plain(float("nan")), plain(pd.Timestamp("2020-01-31"))
        (3, None, '2020-01-31')
    """
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)  # np.float64 is a float
    if isinstance(value, Decimal):
        return None if value.is_nan() else value
    if isinstance(value, date):
        return _iso(value)
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return _from_numpy(value)
    return str.__str__(value) if isinstance(value, str) else value  # not an enumeration's own str


def plain_column(values: list[Any]) -> list[Any]:
    """`plain` over a column, with the common cases fast."""
    types = set(map(type, values))
    if not types <= _PLAIN_TYPES:
        return [plain(value) for value in values]
    if float in types:
        return [None if value != value else value for value in values]  # NaN differs from itself
    return values


def kind_of_type(kind: type) -> str:
    """The kind of plain values of a type; types that no leaf can use keep their own name.

    Example:
        >>> kind_of_type(int), kind_of_type(bool), kind_of_type(dict)
        ('number', 'bool', 'dict')
    """
    if kind is type(None):
        return "missing"
    if issubclass(kind, bool):
        return "bool"
    if issubclass(kind, str):
        return "text"
    if issubclass(kind, (Real, Decimal)):
        return "number"
    if issubclass(kind, (list, tuple, set, frozenset)):
        return "list"
    return kind.__name__


def kind(value: Any) -> str:
    """The kind of one plain value."""
    return kind_of_type(type(value))


def literal(value: Any, *, context: str) -> Scalar:
    """The value of a predicate, made plain and checked.

    Raises:
        SpecError: It is missing, not finite, too long, or of a kind that records are not compared with.

    Example:
        >>> literal(np.float64(0.5), context="year")
        0.5
    """
    simple = plain(value)
    if simple is None:
        raise SpecError(
            f"{context} needs a value: a comparison with a missing value is always false",
            "null" if value is None else repr(value),
            where="filter",
            hint="To ask whether there is a value, write exists(…) or not exists(…).",
        )
    if isinstance(simple, (bool, str)):
        return _short(simple, context)
    if isinstance(simple, (int, float)):
        return _finite(simple if isinstance(simple, float) else int(simple), context)
    raise SpecError(
        f"{context} needs text, a number, or true or false",
        type(value).__name__,
        where="filter",
        hint="Convert the value first.",
    )


def _short(value: bool | str, context: str) -> bool | str:
    if isinstance(value, str) and len(value) > MAX_STRING:
        raise SpecError(
            f"{context} needs a text of at most {MAX_STRING:,} characters",
            f"{len(value):,} characters",
            where="filter",
        )
    return value


def _finite(value: int | float, context: str) -> int | float:
    if abs(value) > sys.float_info.max:
        raise SpecError(f"{context} needs a number between -1e308 and 1e308", "a larger one", where="filter")
    return value


def _iso(value: date) -> str:
    if not isinstance(value, datetime):
        return value.isoformat()
    if value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    text = value.isoformat()
    return text.removesuffix("T00:00:00")


def _from_numpy(value: np.generic) -> Any:
    if isinstance(value, np.datetime64):
        return plain(pd.Timestamp(value))
    if isinstance(value, np.longdouble):
        return plain(float(value))  # its item() is itself
    if isinstance(value, np.timedelta64):
        return plain(pd.Timedelta(value))  # its item() can be a bare count of nanoseconds
    return plain(value.item())
