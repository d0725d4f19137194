"""The text form of predicates, read by recursive descent: nothing of the text is ever evaluated.

    or        = and { "or" and }
    and       = not { "and" not }
    not       = "not" not | "(" or ")" | "exists" "(" field ")" | condition
    condition = field ( sign value | ["not"] ( "in" list | "contains" value | "matches" text | "exists" ) )
    list      = "[" [ value { "," value } [","] ] "]"        (or between parentheses)

Keywords may be written in any case; `str` writes them in lower case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from searchops.errors import SpecError, did_you_mean
from searchops.predicates.leaves import OPERATORS, Compare, Contains, Exists, IsIn, Matches
from searchops.predicates.logic import MAX_CHARS, MAX_DEPTH, And, Or, Predicate
from searchops.predicates.tokens import Source, Token
from searchops.predicates.values import Scalar, literal
from searchops.predicates.writing import unescape

_WORDS: Final = {
    "in": "in ['a', 'b']",
    "contains": "contains 'a'",
    "matches": "matches '^a'",
    "exists": "exists",
}
_OTHER_SIGNS: Final = {
    "=": "Write == for equality.",
    "===": "Write == for equality.",
    "!==": "Write !=.",
    "<>": "Write !=.",
    "=>": "Write >=.",
    "=<": "Write <=.",
    "&&": "Write and.",
    "&": "Write and.",
    "||": "Write or.",
    "|": "Write or.",
    "!": "Write not.",
    "~": "Write not.",
}
_MAX_DIGITS: Final = 400
_T = TypeVar("_T")


def parse(text: str, *, where: str = "filter") -> Predicate:
    """Reads the text form of a predicate; safe on text from anybody.

    Args:
        text: Such as `year >= 2019 and not lang in ['de']`; at most 100,000 characters.
        where: What errors call the text (a file and line, or an argument).

    Raises:
        SpecError: It is not a predicate; the text says where, and a note draws a caret under the place.

    Example:
        >>> parse("year>=2019 AND lang not in ('de',)")
        (field('year') >= 2019) & ~field('lang').isin(['de'])
        >>> parse("y and x")
        Traceback (most recent call last):
        searchops.errors.SpecError: filter:1:3: needs a comparison after 'y'; found 'and'. Write y >= 2019.
            y and x
              ^
    """
    if not isinstance(text, str):
        raise SpecError("a predicate or its text form is needed", type(text).__name__, where=where)
    if len(text) > MAX_CHARS:
        raise SpecError(f"a text of at most {MAX_CHARS:,} characters is needed", f"{len(text):,}", where=where)
    source = Source(text, where)
    return _Reader(source, source.tokens()).predicate()


class _Reader:
    def __init__(self, source: Source, tokens: list[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.next = 0
        self.nesting = 0

    def predicate(self) -> Predicate:
        if self.token.kind == "end":
            raise self.error("needs a condition", "Write year >= 2019.")
        found = self.either()
        if self.token.kind != "end":
            raise self.error("needs 'and', 'or' or the end", _OTHER_SIGNS.get(self.token.text, ""))
        return found

    def either(self) -> Predicate:
        return self.joined("or", self.both, Or)

    def both(self) -> Predicate:
        return self.joined("and", self.negation, And)

    def joined(self, word: str, part: Callable[[], Predicate], join: type[And] | type[Or]) -> Predicate:
        start = self.token
        parts = [part()]
        while self.takes("keyword", word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else self.built(start, lambda: join(tuple(parts)))

    def negation(self) -> Predicate:
        start = self.token
        if self.takes("keyword", "not"):
            self.enter(start)
            inner = self.negation()
            self.nesting -= 1
            return self.built(start, lambda: ~inner)
        if self.takes("mark", "("):
            self.enter(start)
            inner = self.either()
            self.expect("mark", ")", "needs 'and', 'or' or ')'")
            self.nesting -= 1
            return inner
        if self.takes("keyword", "exists"):
            self.expect("mark", "(", "needs '(' after 'exists'", "Write exists(year).")
            name = self.field()
            self.expect("mark", ")", "needs ')'", "Write exists(year).")
            return self.built(start, lambda: Exists(name))
        return self.condition()

    def enter(self, start: Token) -> None:
        self.nesting += 1
        if self.nesting > MAX_DEPTH:
            raise self.source.error(start.at, f"needs at most {MAX_DEPTH} levels of nesting", "more")

    def condition(self) -> Predicate:
        start = self.token
        name = self.field()
        if self.token.kind == "sign" and self.token.text in OPERATORS:
            sign, value = self.take().text, self.value()
            return self.built(start, lambda: Compare(name, sign, value))  # type: ignore[arg-type]
        if self.takes("keyword", "not"):
            return ~self.word(start, name, "needs in, contains, matches or exists after 'not'")
        return self.word(start, name, f"needs a comparison after {start.shown}")

    def word(self, start: Token, name: str, needed: str) -> Predicate:
        for word in _WORDS:
            if self.takes("keyword", word):
                return self.worded(start, name, word)
        hint = f"Write {start.text if len(start.text) < 30 else 'year'} >= 2019."
        if self.token.text in OPERATORS:
            hint = f"Write not before the field: not year {self.token.text} 2019."
        elif self.token.kind == "name":
            guess = did_you_mean(self.token.text.lower()[:30], _WORDS)
            hint = "Did" + guess[3:] if guess.startswith("did") else hint
        raise self.error(needed, _OTHER_SIGNS.get(self.token.text, hint))

    def worded(self, start: Token, name: str, word: str) -> Predicate:
        if word == "exists":
            return self.built(start, lambda: Exists(name))
        if word == "in":
            values = self.values()
            return self.built(start, lambda: IsIn(name, values))
        at = self.token
        value = self.value(pattern=word == "matches")
        if word == "contains":
            return self.built(at, lambda: Contains(name, value))
        return self.built(at, lambda: Matches(name, value))  # type: ignore[arg-type]

    def field(self) -> str:
        token = self.token
        if token.kind not in ("name", "quoted"):
            hint = "Write year >= 2019."
            if token.kind == "keyword":
                hint = f"Put backquotes around a column of that name: `{token.text}`."
            elif token.kind in ("number", "text"):
                hint = "Write the field first: year >= 2019."
            raise self.error("needs a field", _OTHER_SIGNS.get(token.text, hint))
        self.take()
        return token.text if token.kind == "name" else self.unescaped(token)

    def values(self) -> tuple[Scalar, ...]:
        close = "]" if self.takes("mark", "[") else ")"
        if close == ")":
            self.expect("mark", "(", "needs a list after 'in'", "Write in ['de', 'fr'].")
        found: list[Scalar] = []
        while not self.takes("mark", close):
            found.append(self.value())
            if self.takes("mark", ","):
                continue
            self.expect("mark", close, f"needs ',' or '{close}'")
            break
        return tuple(found)

    def value(self, *, pattern: bool = False) -> Scalar:
        token = self.token
        if token.kind == "text":
            self.take()
            return self.unescaped(token, pattern=pattern)
        if pattern:
            raise self.error("needs a pattern in quotes", "Write title matches '^A'.")
        if token.kind == "number":
            self.take()
            return self.number(token)
        if token.kind == "keyword" and token.text in ("true", "false"):
            return self.take().text == "true"
        hint = "Write year >= 2019."
        if token.kind == "keyword" and token.text in ("null", "none"):
            hint = "A comparison with null is always false; write exists(year) or not exists(year)."
        elif token.kind in ("name", "quoted"):
            hint = "Quote a text, as in lang == 'de'; fields are not compared with each other."
        raise self.error("needs a value", hint)

    def number(self, token: Token) -> Scalar:
        if len(token.text) > _MAX_DIGITS:
            raise self.source.error(token.at, f"needs a number of at most {_MAX_DIGITS} digits", "more")
        whole = token.text.lstrip("+-").isdigit()
        value = int(token.text) if whole else float(token.text)
        return self.built(token, lambda: literal(value, context="a comparison"))

    @property
    def token(self) -> Token:
        return self.tokens[self.next]

    def take(self) -> Token:
        token = self.token
        self.next += 1
        return token

    def takes(self, kind: str, text: str) -> bool:
        taken = self.token.kind == kind and self.token.text == text
        self.next += taken
        return taken

    def expect(self, kind: str, text: str, needed: str, hint: str = "") -> None:
        if not self.takes(kind, text):
            raise self.error(needed, hint or _OTHER_SIGNS.get(self.token.text, ""))

    def error(self, needed: str, hint: str = "") -> SpecError:
        """An error at the word that comes next."""
        return self.source.error(self.token.at, needed, self.token.shown, hint)

    def built(self, at: Token, build: Callable[[], _T]) -> _T:
        """What is built, or why it cannot be, with the place."""
        try:
            return build()
        except SpecError as error:
            if error.where != "filter":
                raise  # it has its place
            raise self.source.error(at.at, error.needed, error.found, error.hint) from None

    def unescaped(self, token: Token, *, pattern: bool = False) -> str:
        return self.built(token, lambda: unescape(token.text[1:-1], pattern=pattern))
