"""Every error of searchops, named by who can act on it.

The text always reads *where: what is needed; what was found. What to do.* and its parts stay
attributes, so that a command line, a notebook and an agent can each show what suits them.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "BudgetExceeded",
    "DataError",
    "FrameError",
    "SearchopsError",
    "SpecError",
    "ToolError",
    "did_you_mean",
    "sentence",
]


class SearchopsError(Exception):
    """The root of the tree; catch it to catch all that searchops raises on purpose.

    Args:
        needed: What is needed here.
        found: What was found instead.
        where: File, line, stage or argument the error is about.
        hint: What to do about it.

    Example:
        >>> str(SearchopsError("k must be at least 1", "0", where="Retrieve", hint="Give k=20."))
        'Retrieve: k must be at least 1; found 0. Give k=20.'
    """

    def __init__(self, needed: str, found: str = "", *, where: str = "", hint: str = "") -> None:
        self.needed = needed
        self.found = found
        self.where = where
        self.hint = hint
        super().__init__(self._text())

    def _text(self) -> str:
        head = f"{self.where}: " if self.where else ""
        middle = f"; found {self.found}" if self.found else ""
        stop = "" if not self.hint or (head + self.needed + middle).endswith((".", "?")) else "."
        tail = f"{stop} {self.hint}" if self.hint else ""
        return f"{head}{self.needed}{middle}{tail}"

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive Exception's own pickling (process pools need it).
        return (_rebuild, (type(self), self.needed, self.found, self.where, self.hint))


def _rebuild(cls: type[SearchopsError], needed: str, found: str, where: str, hint: str) -> SearchopsError:
    return cls(needed, found, where=where, hint=hint)


class SpecError(SearchopsError):
    """A pipeline file, text form or command-line argument is wrong: its author can mend it."""


class FrameError(SearchopsError):
    """A stage got a frame or argument it cannot work on: the pipeline's author can mend it."""


class DataError(SearchopsError):
    """A file, index or record is missing, malformed or damaged: whoever made it can mend it."""


class ToolError(SearchopsError):
    """A tool call of an agent failed; the agent sees it as an observation and the run goes on."""


class BudgetExceeded(SearchopsError):  # noqa: N818 - it ends a run, it is not a mistake
    """A budget is used up: the run ends, is recorded and is scored with what it has."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest known name as a question, or the names there are; nothing where none is known.

    Example:
        >>> did_you_mean("batch_sise", ["k", "batch_size"])
        "did you mean 'batch_size'?"
        >>> did_you_mean("zzz", ["k", "batch_size"])
        'known: batch_size, k'
    """
    names = sorted(map(str, known))
    if not names:
        return ""
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else "known: " + ", ".join(names)


def sentence(text: str) -> str:
    """The text with a capital first letter; `str.capitalize` would lower the others.

    Example:
        >>> sentence("did you mean 'sourceQuery'?")
        "Did you mean 'sourceQuery'?"
    """
    return text[:1].upper() + text[1:]
