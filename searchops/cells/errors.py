"""What an agent is told of a cell that failed: the line, what went wrong, and what there is instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from searchops.cells.checking import Doubt
from searchops.cells.gate import MODULES, PRIMITIVES, guess
from searchops.cells.limits import Limits
from searchops.cells.prelude import Fields
from searchops.workspace import Variable

_SHOWN: Final = 40
_MESSAGE_CHARS: Final = 600
_PRELUDE_FILES: Final = frozenset({"<python-input-0>", "<python-input-1>"})
_ATTRIBUTE: Final = re.compile(r"has no attribute [`'](\w+)[`']")
_NAME: Final = re.compile(r"[Nn]ame [`'](\w+)[`']")
_SKIPPED_PART: Final = re.compile(r"<python-input-\d+>")


class Failure(NamedTuple):
    """Why a cell left nothing behind."""

    status: str
    text: str


class Surroundings(NamedTuple):
    """What an error may name."""

    fields: Fields
    variables: Mapping[str, Variable]
    limits: Limits


def of_doubts(doubts: Iterable[Doubt], around: Surroundings) -> Failure:
    """The failure of a cell that the type check refused."""
    lines = [f"line {doubt.line}: {doubt.text.rstrip('.')}.{_advice(doubt.text, around)}" for doubt in doubts]
    return Failure("rejected", "\n".join(lines[:5]) + "\nNothing was run.")


def of_error(error: Any, around: Surroundings, *, showing: bool = False) -> Failure:
    """The failure of a cell that raised or went over a limit of the sandbox.

    Args:
        error: A MontyError.
        around: What the text may name.
        showing: Whether the cell itself had ended and its value was being shown.
    """
    limits = around.limits
    summary = _summary(error)
    kind = summary.partition(":")[0]
    place = "the final expression cannot be shown: " if showing else _place(error)
    if kind == "TimeoutError" or getattr(error, "timed_out", False):
        return Failure(
            "limit",
            f"{place}the cell computed longer than {limits.seconds:g} s. Look at fewer candidates or less text.",
        )
    if kind == "MemoryError" or "memory limit" in summary:
        return Failure("limit", f"{place}the cell needed more than {limits.memory_mb} MB. Keep ids instead of texts.")
    if kind == "RecursionError":
        return Failure("limit", f"{place}functions called each other more than {limits.recursion} deep. Use a loop.")
    if hasattr(error, "exit_status"):
        return Failure("limit", "the sandbox's process ended while it ran the cell. Do it in another way.")
    if not summary:
        summary = type(error).__name__
    return Failure("error", f"{place}{summary[:_MESSAGE_CHARS]}{_stop(summary)}{_advice(summary, around)}")


def _summary(error: Any) -> str:
    display = getattr(error, "display", None)
    text = display("type-msg") if display is not None else str(error)
    return _SKIPPED_PART.sub("the cell", text).strip()


def _stop(text: str) -> str:
    return "" if text.endswith((".", "?", "!")) else "."


def _place(error: Any) -> str:
    """The last line of the agent's own that the error passed through."""
    frames = error.traceback() if hasattr(error, "traceback") else []
    own = [frame for frame in frames if frame.filename not in _PRELUDE_FILES]
    if not own:
        return ""
    frame = own[-1]
    source = (frame.source_line or "").strip().replace("_so_output = ", "")
    quoted = f" ({source[:80]})" if source and "\n" not in source else ""
    return f"line {frame.line}{quoted}: "


def _advice(text: str, around: Surroundings) -> str:
    found = _ATTRIBUTE.search(text)
    if "Candidate" in text and found:
        return f"{guess(found[1], list(around.fields.names))} {_fields(around)}"
    if text.startswith("KeyError"):
        key = text.partition(":")[2].strip().strip("'\"")
        return f"{guess(key, list(around.fields.names))} {_fields(around)}"
    found = _NAME.search(text)
    if found and ("not defined" in text or "not found" in text):
        return f"{guess(found[1], [*around.variables, *PRIMITIVES])} {_variables(around)}"
    if text.startswith("ModuleNotFoundError"):
        return f" These import: {', '.join(MODULES)}."
    if "NoneType" in text:
        return " A field is None where a candidate has no value: passage fields are filled by extract."
    return ""


def _fields(around: Surroundings) -> str:
    return f"A candidate has: {', '.join(around.fields.names)}."


def _variables(around: Surroundings) -> str:
    names = [name if len(name) <= _SHOWN else f"{name[: _SHOWN - 1]}…" for name in around.variables]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    shown = ", ".join(names[-_SHOWN:]) or "none yet"
    return f"Variables: {shown}{more}; functions: {', '.join(PRIMITIVES)}."
