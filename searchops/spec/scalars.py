"""Which type a plain scalar of YAML has. Source: YAML 1.2.2, 10.3.2 (core schema)."""

from __future__ import annotations

import re
from typing import Final

from searchops.errors import SpecError

__all__ = ["resolve"]

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITE: Final = re.compile(r"([-+]?)\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_MAX_DIGITS: Final = 400


def resolve(text: str) -> bool | int | float | str | None:
    """The value of a scalar without quotes.

    Raises:
        SpecError: A number of more digits than any setting needs.

    Example:
        >>> [resolve(text) for text in ("20", "0.9", "1e-3", "true", "no", "2020-01-01", "~")]
        [20, 0.9, 0.001, True, 'no', '2020-01-01', None]
    """
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    whole = _INT.fullmatch(text)
    if (whole or _FLOAT.fullmatch(text)) and len(text) > _MAX_DIGITS:
        raise SpecError(f"a number of at most {_MAX_DIGITS} digits is needed", f"{len(text):,} characters")
    if whole:
        return int(text, 0) if text.startswith(("0o", "0x")) else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    infinite = _INFINITE.fullmatch(text)
    if infinite:
        return float("nan") if infinite[1] is None else float(f"{infinite[1]}inf")
    return text
