"""The one-line text form of pipelines, read by recursive descent; nothing of it is ever evaluated.

    chain  = stage { ">>" stage }
    stage  = NAME [ "(" [ argument { "," argument } [","] ] ")" ]
    argument = [ NAME "=" ] value
    value  = NUMBER | TEXT | true | false | null | "[" values "]" | "{" key ":" value, … "}" | chain

Texts stand between single or double quotes with the escapes of JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final, NamedTuple, NoReturn

from searchops.errors import SpecError
from searchops.spec.nodes import MAX_NODES, Call, Node, Place
from searchops.spec.problems import Problems, shown
from searchops.spec.scalars import resolve

__all__ = ["parse_text"]

MAX_CHARACTERS: Final = 100_000
_MAX_DEPTH: Final = 20
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<name>[A-Za-z_][\w-]*)|(?P<number>[-+]?\.?\d[\w.]*(?:(?<=[eE])[-+]\d+)?|[-+]?\.(?:inf|nan)\b)
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<sign>>>|[()\[\]{},=:])|(?P<end>\Z)|(?P<bad>.))""",
    re.VERBOSE | re.DOTALL,
)
_WORDS: Final[dict[str, bool | None]] = {
    "true": True, "True": True, "false": False, "False": False, "null": None, "None": None
}  # fmt: skip


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


def parse_text(text: str, place: Place | str = "text", problems: Problems | None = None) -> Node:
    """A text form as nodes: a call, or a tuple of calls where stages are chained.

    Args:
        text: Such as `retrieve(k=20) >> filter("year >= 2019") >> rerank(k=10)`.
        place: Where the text stands, or what errors call it.
        problems: Where problems are gathered.

    Raises:
        SpecError: It is no such text; the place names the column.

    Example:
        >>> [stage.value.name for stage in parse_text("retrieve(k=20) >> dedupe").value]
        ['retrieve', 'dedupe']
        >>> parse_text("retrieve(k=20) > dedupe")
        Traceback (most recent call last):
        searchops.spec.problems.SpecErrors: text:1:16: '>>' or the end is needed; found '>'
    """
    if isinstance(place, str):
        place = Place(place, 1, 1, None if "\n" in text else 0)
    problems = Problems() if problems is None else problems
    if len(text) > MAX_CHARACTERS:
        problems.refuse(place, f"a text of at most {MAX_CHARACTERS:,} characters is needed", f"{len(text):,}")
    return _Reader(text, place, problems).whole()


class _Reader:
    def __init__(self, text: str, place: Place, problems: Problems) -> None:
        self.place = place
        self.problems = problems
        self.tokens: list[_Token] = []
        position = 0
        while not self.tokens or self.tokens[-1].kind != "end":
            match = _TOKEN.match(text, position)
            assert match is not None
            assert match.lastgroup is not None
            kind = match.lastgroup
            self.tokens.append(_Token(kind, match[kind], match.start(kind)))
            position = match.end()
            if len(self.tokens) > MAX_NODES:
                problems.refuse(place, f"a text of at most {MAX_NODES:,} words is needed", "more")
        self.next = 0

    def whole(self) -> Node:
        chain = self._chain(0)
        if self._peek().kind != "end":
            self._refuse("'>>' or the end is needed")
        return chain

    def _peek(self) -> _Token:
        return self.tokens[self.next]

    def _take(self) -> _Token:
        token = self.tokens[self.next]
        self.next += 1
        return token

    def _taken(self, sign: str) -> bool:
        if self._peek().text == sign and self._peek().kind == "sign":
            self.next += 1
            return True
        return False

    def _need(self, sign: str, instead: str) -> None:
        if not self._taken(sign):
            self._refuse(f"{instead} is needed")

    def _refuse(self, needed: str, hint: str = "") -> NoReturn:
        token = self._peek()
        found = "the end" if token.kind == "end" else shown(token.text)
        if token.kind == "bad" and token.text in "'\"":
            found = "a quote that is not closed"
        self.problems.refuse(self.place.at(token.start), needed, found, hint)

    def _at(self, token: _Token, straight: int | None = None) -> Place:
        source, line, column, first = self.place
        if first is None or not line:
            return Place(self.place.at(token.start))
        return Place(source, line, column + first + token.start, straight)

    def _chain(self, depth: int) -> Node:
        start = self._peek()
        stages = [self._stage(depth)]
        while self._taken(">>"):
            stages.append(self._stage(depth))
        return stages[0] if len(stages) == 1 else Node(tuple(stages), self._at(start))

    def _stage(self, depth: int) -> Node:
        if self._peek().kind != "name":
            self._refuse("a stage such as retrieve(k=20) is needed")
        token = self._take()
        return self._call(token, depth) if self._peek().text == "(" else self._named(token)

    def _named(self, token: _Token) -> Node:
        return Node(Call(token.text), self._at(token))

    def _call(self, name: _Token, depth: int) -> Node:
        self._take()
        if depth >= _MAX_DEPTH:
            self._refuse(f"at most {_MAX_DEPTH} levels of parentheses are needed")
        positional: list[Node] = []
        named: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        while not self._taken(")"):
            token, sign = self._peek(), self.tokens[min(self.next + 1, len(self.tokens) - 1)]
            if token.kind == "name" and sign.text == "=" and sign.kind == "sign":
                if token.text in named:
                    self._refuse(f"{name.text}: each argument once is needed")
                self.next += 2
                keys[token.text] = self._at(token)
                named[token.text] = self._value(depth + 1)
            elif named:
                self._refuse(f"{name.text}: a NAME=VALUE behind other such is needed")
            else:
                positional.append(self._value(depth + 1))
            if self._peek().text != ")":
                self._need(",", "',' or ')'")
        return Node(Call(name.text, tuple(positional), named, keys), self._at(name))

    def _value(self, depth: int) -> Node:
        token = self._peek()
        if token.kind == "name" and token.text not in _WORDS:
            return self._word(depth)
        if token.kind == "name":
            return Node(_WORDS[self._take().text], self._at(token), text=token.text, plain=True)
        if token.kind == "number":
            return self._number()
        if token.kind == "text":
            return self._text()
        if token.text not in ("[", "{"):
            self._refuse("a value is needed")
        if depth >= _MAX_DEPTH:
            self._refuse(f"at most {_MAX_DEPTH} levels of brackets are needed")
        return self._list(depth) if token.text == "[" else self._mapping(depth)

    def _word(self, depth: int) -> Node:
        """A bare name stands for a text (the name of a scorer, an index); with more to it, for stages."""
        token = self._peek()
        following = self.tokens[self.next + 1]
        if following.kind == "sign" and following.text in ("(", ">>"):
            return self._chain(depth)
        self.next += 1
        return Node(token.text, self._at(token, 0), text=token.text, plain=True)

    def _number(self) -> Node:
        token = self._peek()
        try:
            value = resolve(token.text)
        except SpecError as error:
            self._refuse(error.needed)
        if not isinstance(value, (int, float)):
            self._refuse("a number or a text between quotes is needed")
        self.next += 1
        return Node(value, self._at(token), text=token.text, plain=True)

    def _text(self) -> Node:
        token = self._peek()
        body = token.text[1:-1]
        value = body
        if "\\" in body:
            # JSON has no single quotes: bring the body into its form.
            if token.text[0] == "'":
                body = re.sub(r'\\.|"', lambda m: {"\\'": "'", '"': '\\"'}.get(m[0], m[0]), body, flags=re.DOTALL)
            try:
                value = json.loads(f'"{body}"', strict=False)
                value.encode("utf-8")
            except ValueError:
                self._refuse("a text with the escapes of JSON is needed", "Write \\\\ for one backslash.")
        self.next += 1
        return Node(value, self._at(token, None if "\\" in body else 1), text=value)

    def _list(self, depth: int) -> Node:
        start = self._take()
        items: list[Node] = []
        self._until("]", lambda: items.append(self._value(depth + 1)))
        return Node(items, self._at(start))

    def _mapping(self, depth: int) -> Node:
        start = self._take()
        entries: dict[str, Node] = {}
        keys: dict[str, Place] = {}

        def entry() -> None:
            token = self._peek()
            if token.kind not in ("name", "text"):
                self._refuse("a key is needed")
            key = self._text() if token.kind == "text" else Node(self._take().text, self._at(token))
            assert isinstance(key.value, str)
            if key.value in entries:
                self.problems.refuse(key.place, f"each key once is needed; found {shown(key.value)} again")
            self._need(":", "':'")
            keys[key.value] = key.place
            entries[key.value] = self._value(depth + 1)

        self._until("}", entry)
        return Node(entries, self._at(start), keys)

    def _until(self, sign: str, read: Callable[[], None]) -> None:
        while not self._taken(sign):
            read()
            if not (self._peek().text == sign and self._peek().kind == "sign"):
                self._need(",", f"',' or '{sign}'")
