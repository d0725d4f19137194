"""What a relevance scorer is: pairs of query and text in, one number a pair out."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from searchops.errors import FrameError


class Scorer(ABC):
    """Scores (query, text) pairs; higher is more relevant.

    A scorer is its constructor arguments and nothing else, stored under their own names: equality,
    hash, repr and YAML go by them. Pairs of many queries come in one call, so a scorer may batch
    across queries. No text is cut silently: what is longer than a model reads is windowed.
    """

    @abstractmethod
    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """One finite score a pair, in order. No pairs, no work.

        Raises:
            FrameError: A pair has a text or query that is no string.
        """

    def bind(self, engine: Any) -> Scorer:
        """A scorer that may use the engine of the pipeline it stands in (default: itself)."""
        return self

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return arguments(self) == arguments(other)

    def __hash__(self) -> int:
        return hash((type(self), *arguments(self).values()))

    def __repr__(self) -> str:
        return describe(self)


_DEFAULTS: dict[Any, dict[str, Any]] = {}


def _defaults(kind: type) -> dict[str, Any]:
    found = _DEFAULTS.get(kind)
    if found is None:
        found = {name: p.default for name, p in inspect.signature(kind).parameters.items()}
        _DEFAULTS[kind] = found
    return found


def arguments(thing: Any) -> dict[str, Any]:
    """The constructor arguments of an object that stores them under their own names."""
    return {name: getattr(thing, name) for name in _defaults(type(thing))}


def describe(thing: Any) -> str:
    """The constructor call that makes the object, without the arguments left at their defaults.

    Example:
        >>> from searchops.scorers.lexical import Lexical
        >>> describe(Lexical()), describe(Lexical(k1=1.2))
        ('Lexical()', 'Lexical(k1=1.2)')
    """
    defaults = _defaults(type(thing))
    changed = {
        name: value
        for name, value in arguments(thing).items()
        if type(value) is not type(defaults[name]) or value != defaults[name]
    }
    return f"{type(thing).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"


def require_texts(pairs: Sequence[tuple[str, str]], *, where: str) -> None:
    """Refuses what no scorer can read, before any model runs.

    Raises:
        FrameError: A query or text is no string; the text says which.
    """
    for position, (query, text) in enumerate(pairs):
        for name, value in (("query", query), ("text", text)):
            if not isinstance(value, str):
                raise FrameError(
                    f"a {name} that is a string is needed",
                    f"{value!r} in pair {position}",
                    where=where,
                    hint="Fill or drop the rows without one before they are scored.",
                )
