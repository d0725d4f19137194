"""The type check of a cell, before any retrieval is spent.

Only what is wrong for certain is refused: a name that is not there, a field that no candidate has, a
primitive called in a way it cannot be. Everything else a type checker may doubt is left to the run. The
checker (ty, inside Monty) never runs the cell: a name that cannot pass is put in front of it, so each check
ends with the diagnostics.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, NamedTuple

from searchops.cells.gate import PRIMITIVES, Program
from searchops.errors import ToolError
from searchops.workspace import Variable

if TYPE_CHECKING:
    import pydantic_monty as monty

_SENTINEL: Final = "_so_sentinel"
_LINE: Final = re.compile(r"main\.py:(\d+):\d+: error\[([\w-]+)\] (.*)")
_CALLS: Final = frozenset(
    {
        "invalid-argument-type",
        "missing-argument",
        "parameter-already-assigned",
        "too-many-positional-arguments",
        "unknown-argument",
    }
)
_OF_CANDIDATE: Final = re.compile(r"type `(?:list\[)?Candidate\]?` has no attribute")
# ty keeps what it learned of each text; a checker that has seen many is replaced.
_CHECKS_KEPT: Final = 500
_TIMEOUT_S: Final = 10.0


class Doubt(NamedTuple):
    """One thing that is wrong for certain."""

    line: int
    rule: str
    text: str


class Checker:
    """Checks cells against stubs; one at a time, safe from several threads.

    Example:
        >>> from searchops.cells.gate import examine
        >>> from searchops.cells.limits import Limits
        >>> from searchops.cells.prelude import Fields
        >>> checker = Checker(Fields.over(["docno", "text"]).stubs())
        >>> checker.check(examine("retrieve('a')[0].docnr", Limits()), {})[0].text
        'Object of type `Candidate` has no attribute `docnr`'
        >>> checker.close()
    """

    def __init__(self, stubs: str) -> None:
        self._stubs = stubs
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._session: monty.MontySession | None = None
        self._checks = 0

    def check(self, program: Program, variables: Mapping[str, Variable]) -> list[Doubt]:
        """What is wrong for certain, by line.

        Raises:
            ToolError: The checker could not read the program in its time.
        """
        known = [name for name in variables if name in program.used]
        header = "; ".join([_SENTINEL, *(f"{name} = {_stand_in(variables[name])}" for name in known)])
        with self._lock:
            report = self._report(f"{header}\n{program.source}\n")
        doubts = [Doubt(int(line) - 1, rule, text) for line, rule, text in _LINE.findall(report)]
        return [doubt for doubt in doubts if _certain(doubt)]

    def _report(self, text: str) -> str:
        import pydantic_monty as monty

        self._checks += 1
        if self._checks > _CHECKS_KEPT:
            self.close()
        try:
            if self._session is None:
                self._session = self._open()
            self._session.feed_run(text)
        except monty.MontyTypingError as error:
            return error.display()
        except monty.MontyError as error:
            self.close()
            raise ToolError(
                "a program that the type checker can read is needed",
                str(error).splitlines()[0][:200] if str(error) else "",
                hint="Make the cell simpler.",
            ) from None
        raise AssertionError("the sentinel passed the type check")

    def _open(self) -> monty.MontySession:
        import pydantic_monty as monty

        pool = self._stack.enter_context(monty.Monty(min_processes=1, max_processes=1, request_timeout=_TIMEOUT_S))
        return self._stack.enter_context(
            pool.checkout(type_check=True, type_check_stubs=self._stubs, type_check_format="concise")
        )

    def close(self) -> None:
        """Ends its worker; the next check starts another."""
        self._session, self._checks = None, 0
        stack, self._stack = self._stack, ExitStack()
        stack.close()


def _stand_in(variable: Variable) -> str:
    return "searchops_candidates()" if variable.kind == "list[Candidate]" else "searchops_any()"


def _certain(doubt: Doubt) -> bool:
    if _SENTINEL in doubt.text:
        return False
    if doubt.rule == "unresolved-reference":
        return True
    if doubt.rule == "unresolved-attribute":
        return _OF_CANDIDATE.search(doubt.text) is not None
    # What may be one of several types is for the run to tell.
    found = doubt.text.partition(", found ")[2]
    return doubt.rule in _CALLS and " | " not in found and any(f"`{name}`" in doubt.text for name in PRIMITIVES)


_checkers: dict[str, Checker] = {}
_checkers_lock = threading.Lock()
_CHECKERS_KEPT: Final = 4


def checker_for(stubs: str) -> Checker:
    """The checker of these stubs; those used last are kept."""
    with _checkers_lock:
        checker = _checkers.pop(stubs, None) or Checker(stubs)
        _checkers[stubs] = checker
        while len(_checkers) > _CHECKERS_KEPT:
            _checkers.pop(next(iter(_checkers))).close()
        return checker
