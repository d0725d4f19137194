"""The words of the text form, each with its place."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from searchops.errors import SpecError
from searchops.predicates.writing import KEYWORDS, NAME

_TOKEN: Final = re.compile(
    rf"""
      (?P<space>\s+)
    | (?P<name>{NAME})
    | (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<quoted>`(?:[^`\\]|\\.)*`)
    | (?P<sign>===|!==|==|!=|<=|>=|=>|=<|<>|&&|\|\||[<>=!&|~^])
    | (?P<mark>[()\[\],])
    """,
    re.VERBOSE | re.DOTALL,
)
_GLUED: Final = re.compile(r"[\w.:/+-]*")
_QUOTES: Final = {"'": "a closing '", '"': 'a closing "', "`": "a closing `"}
_CURLY: Final = "\u2018\u2019\u201c\u201d\u00ab\u00bb\u00b4"
_SHOWN: Final = 40


class Token(NamedTuple):
    """A word: its kind (name, number, text, quoted, sign, mark, keyword, end), text and offset."""

    kind: str
    text: str
    at: int

    @property
    def shown(self) -> str:
        """How an error quotes it."""
        if self.kind == "end":
            return "the end"
        text = self.text if len(self.text) <= _SHOWN else self.text[: _SHOWN - 1] + "…"
        return repr(text) if not text.isprintable() or "'" not in text else text


class Source:
    """The text of a predicate, which knows the line and column of each of its characters."""

    def __init__(self, text: str, where: str) -> None:
        self.text = text
        self.where = where

    def error(self, at: int, needed: str, found: str = "", hint: str = "") -> SpecError:
        """An error at an offset, with a caret under it as a note."""
        start = self.text.rfind("\n", 0, at) + 1
        line = self.text.count("\n", 0, at) + 1
        place = f"{self.where}:{line}:{at - start + 1}"
        error = SpecError(needed, found, where=place, hint=hint)
        error.add_note(self._caret(start, at))
        return error

    def tokens(self) -> list[Token]:
        """All words, and the end.

        Raises:
            SpecError: Some characters are no word of the language.
        """
        found: list[Token] = []
        at = 0
        while at < len(self.text):
            match = _TOKEN.match(self.text, at)
            if match is None:
                raise self._no_word(at)
            at = match.end()
            if match.lastgroup != "space":
                found.append(self._token(match))
        return [*found, Token("end", "", len(self.text))]

    def _token(self, match: re.Match[str]) -> Token:
        group, text = str(match.lastgroup), match[0]
        if group == "name" and text.lower() in KEYWORDS:
            return Token("keyword", text.lower(), match.start())
        after = self.text[match.end() : match.end() + 1]
        if group == "number" and after and (after.isalnum() or after in "_.:/-"):
            whole = text + _GLUED.match(self.text, match.end())[0][:_SHOWN]  # type: ignore[index]
            hint = f"Quote a text or date: '{whole}'." if len(whole) < _SHOWN else "Quote a text or date."
            raise self.error(match.start(), "needs a number", repr(whole[:_SHOWN]), hint)
        return Token(group, text, match.start())

    def _no_word(self, at: int) -> SpecError:
        char = self.text[at]
        if char in _QUOTES:
            return self.error(at, f"needs {_QUOTES[char]}", "the end", "Write \\ before a quote inside.")
        hint = "Use the straight quotes ' and \"."
        if char not in _CURLY:
            hint = "Put unusual column names between backquotes."
        return self.error(at, "needs a field, a value, a comparison or a parenthesis", ascii(char), hint)

    def _caret(self, start: int, at: int) -> str:
        first = max(start, at - _SHOWN)
        stop = self.text.find("\n", at)
        stop = min(at + _SHOWN, stop if stop >= 0 else len(self.text))
        shown = "".join(char if char.isprintable() else "?" for char in self.text[first:stop])
        return f"    {shown}\n    {' ' * (at - first)}^"
