"""How names and values are written in the text form, and how they are read back."""

from __future__ import annotations

import re
from typing import Final

from searchops.errors import SpecError
from searchops.predicates.values import Scalar

KEYWORDS: Final = frozenset(
    {"and", "or", "not", "in", "contains", "matches", "exists", "true", "false", "null", "none"}
)
NAME: Final = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_BARE = re.compile(NAME)
_SHORT = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_LONG = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "`": "`"}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)


def quote(text: str, mark: str = "'") -> str:
    r"""The text between quotes, with escapes for what cannot be printed.

    Example:
        >>> print(quote("it's\n"))
        'it\'s\n'
    """
    return mark + "".join(_written(char, mark) for char in text) + mark


def write_name(name: str) -> str:
    """A column name, between backquotes where it is not a plain (or dotted) word.

    Example:
        >>> write_name("meta.year"), write_name("publication year"), write_name("in")
        ('meta.year', '`publication year`', '`in`')
    """
    bare = _BARE.fullmatch(name) and name.lower() not in KEYWORDS
    return name if bare else quote(name, "`")


def write_value(value: Scalar) -> str:
    """A literal.

    Example:
        >>> write_value(True), write_value(2019), write_value("de")
        ('true', '2019', "'de'")
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return quote(value) if isinstance(value, str) else repr(value)


def unescape(body: str, *, pattern: bool = False) -> str:
    r"""What stands between quotes, with its escapes read.

    In a pattern, an escape that is not ours (`\d`, `\b`, `\.`) is left to the regular expression, and so
    are `\x2e` and `\u002e`, which mean the character itself there and not the sign of the same look.

    Raises:
        SpecError: An escape is unknown.

    Example:
        >>> unescape(r"caf\u00e9"), unescape(r"\d", pattern=True)
        ('café', '\\d')
    """

    def read(match: re.Match[str]) -> str:
        code = match[1] or match[2] or match[3]
        if code is None:
            known = _LONG.get(match[4])
        else:
            known = chr(int(code, 16)) if int(code, 16) <= 0x10FFFF else None
            if pattern and known is not None and known.isascii() and known.isprintable():
                return match[0]
        if known is not None:
            return known
        if pattern:
            return match[0]
        raise SpecError(
            "a text needs the escapes \\\\ \\' \\\" \\n \\t \\r \\xHH \\uHHHH",
            ascii(match[0][:10]).replace("\\\\", "\\"),
            where="filter",
            hint="Write \\\\ for one backslash.",
        )

    return _ESCAPE.sub(read, body)


def _written(char: str, mark: str) -> str:
    if char == mark:
        return "\\" + char
    if char in _SHORT:
        return _SHORT[char]
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"
