"""Regular expressions from authors that nobody trusts: bounded to compile and to run.

The `regex` module can stop a search in time, which `re` cannot; but it cannot stop a compilation, nor
the tables it builds for a long literal. So what makes those slow is refused beforehand: long patterns, large
repeat counts, recursion (which fills memory) and verbose mode (in which counts can be hidden).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import regex

from searchops.errors import FrameError, SpecError
from searchops.predicates.columns import Table, clip

MAX_PATTERN: Final = 256
MAX_REPEAT: Final = 1000
MAX_REPEATS: Final = 10_000
TEXT_TIMEOUT_S: Final = 0.25
_RECURSION = regex.compile(r"\(\?(?:R|[+-]?\d|&|P>)")
_VERBOSE = regex.compile(r"\(\?[a-zA-Z0-9]*x")
_PARTS = regex.compile(r"\\.|\{([^{}]*)\}|\(\?[^()\[\]{}\\:=!]{0,20}", regex.DOTALL)


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """The compiled pattern.

    Raises:
        SpecError: It is invalid, or would be too expensive; the text says why.

    Example:
        >>> bool(compiled("^py").search("python"))
        True
    """
    _refuse_expensive(pattern)
    try:
        return regex.compile(pattern, cache_pattern=False)
    except Exception as error:  # the module raises its own error, ValueError, RecursionError, OverflowError …
        reason = str(error) if isinstance(error, (regex.error, ValueError)) else type(error).__name__
        raise _bad(pattern, "a valid regular expression", reason) from None


def found_in(pattern: str, text: str, table: Table, where: int) -> bool:
    """Whether the pattern is found in the text of a record, within the time that is left.

    Raises:
        FrameError: The time is over; the text names the pattern and the record.
    """
    left = table.seconds_left()
    if left <= 0:
        raise _too_slow(pattern, f"more than {table.timeout_s:g} s over {len(table.records)} records")
    try:
        return compiled(pattern).search(text, timeout=min(left, TEXT_TIMEOUT_S)) is not None
    except TimeoutError:
        pass
    except (MemoryError, RuntimeError, regex.error) as error:
        raise _too_slow(pattern, f"{type(error).__name__} on record {where}") from None
    docno = table.records[where].get("docno")
    name = f"record {where}" if docno is None else f"docno {clip(repr(docno))}"
    raise _too_slow(pattern, f"no answer within {min(left, TEXT_TIMEOUT_S):.2g} s on {name}")


def _too_slow(pattern: str, found: str) -> FrameError:
    return FrameError(
        f"the pattern {clip(repr(pattern))} must be quick",
        found,
        where="filter",
        hint="Avoid repeats inside repeats such as (a+)+, or use contains.",
    )


def _refuse_expensive(pattern: str) -> None:
    if len(pattern) > MAX_PATTERN:
        raise _bad(pattern, f"a pattern of at most {MAX_PATTERN} characters", f"{len(pattern):,} characters")
    least = 1
    for part in _PARTS.finditer(pattern):
        if _RECURSION.match(part[0]):
            raise _bad(pattern, "a pattern without recursion", part[0])
        if _VERBOSE.match(part[0]):
            raise _bad(pattern, "a pattern without verbose mode", part[0])
        counts = [_count(digits) for digits in regex.findall(r"\d+", part[1] or "")]
        if any(count > MAX_REPEAT for count in counts):
            raise _bad(pattern, f"repeat counts of at most {MAX_REPEAT:,}", clip(part[0]))
        least *= max(1, counts[0]) if counts else 1
    if least > MAX_REPEATS:
        raise _bad(pattern, f"repeat counts whose product is at most {MAX_REPEATS:,}", f"{least:,}")


def _count(digits: str) -> int:
    return int(digits) if len(digits) < 10 else MAX_REPEAT + 1


def _bad(pattern: str, needed: str, found: str) -> SpecError:
    return SpecError(f"matches needs {needed}", found, where="filter", hint=f"The pattern is {clip(repr(pattern))}.")
