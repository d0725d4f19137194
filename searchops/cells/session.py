"""The sandbox of one question: a Monty session that can go back to its last committed state.

Monty runs each session in a worker process of its own. A session that failed in any way is thrown away;
the next cell then begins in a fresh one, brought to the last commit. Limits that trip cannot be caught
by the program. Source: pydantic-monty 1.4 (sessions, limits, dump and load).

Saving a state costs milliseconds where it holds hundreds of candidates, and most cells succeed. So a state
is saved every few programs only; the programs since then are kept with the host's answers and run again
where a state has to be restored. Clock and random numbers are the session's own, so that they repeat.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from searchops.cells.limits import Limits

if TYPE_CHECKING:
    import pydantic_monty as monty

CALL: Final = "_so_call"
# Reads of unknown names and refused system calls in one cell; a program that loops over them is stopped.
_SUSPENSIONS: Final = 10_000
_WORKERS: Final = 256
_WAIT_S: Final = 60.0
# What running again may take at most, before a state is saved.
_AGAIN_PROGRAMS: Final = 20
_AGAIN_S: Final = 0.05

Call = Callable[[tuple[Any, ...]], Any]
Print = Callable[[Any, str], None]


class Refused(Exception):  # noqa: N818 - it becomes an error inside the cell, where it may be caught
    """What the host refuses a program; the program gets it as a ValueError."""


class LimitTripped(Exception):  # noqa: N818 - it ends a cell, which is no mistake of the host
    """A cell went over a limit that the host counts."""


class _Pool:
    """The worker processes of this process, started at first use and ended at exit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = -1
        self._pool: monty.Monty | None = None

    def get(self) -> monty.Monty:
        with self._lock:
            # A forked child must not talk to its parent's workers.
            if self._pool is None or self._owner != os.getpid():
                import pydantic_monty as monty

                pool = monty.Monty(
                    min_processes=1, max_processes=_WORKERS, checkout_timeout=_WAIT_S, request_timeout=_WAIT_S
                )
                self._pool, self._owner = pool.__enter__(), os.getpid()
                atexit.register(self._close, pool, self._owner)
            return self._pool

    def _close(self, pool: monty.Monty, owner: int) -> None:
        if owner == os.getpid():
            pool.__exit__(None, None, None)


workers = _Pool()


def _unheard(_stream: str, _text: str) -> None:
    """Takes what is printed where nobody reads it."""


class Session:
    """Runs programs one after the other on one state.

    Args:
        prelude: Programs that a new state begins with.
        limits: Of each cell.

    Example:
        >>> session = Session((), Limits())
        >>> session.run("a = 20", lambda args: None)
        >>> session.commit()
        >>> session.run("a = a + 1; a", lambda args: None)
        21
        >>> session.roll_back()
        >>> session.run("a", lambda args: None)
        20
        >>> session.close()
    """

    def __init__(self, prelude: tuple[str, ...], limits: Limits) -> None:
        self._prelude = prelude
        self._limits = limits
        self._born = datetime.now(UTC)
        self._state: bytes | None = None
        self._since: list[_Ran] = []
        self._pending: list[_Ran] = []
        self._live: monty.MontySession | None = None
        self._stack = ExitStack()

    def run(self, code: str, answer: Call, write: Print = _unheard) -> Any:
        """Runs one program; returns the value of its final expression.

        Args:
            code: The program.
            answer: Answers what the prelude asks the host; `Refused` becomes an error in the program,
                anything else it raises ends the program and comes out here.
            write: Takes what is printed.

        Raises:
            MontyError: The program failed or went over a limit of the sandbox.
            LimitTripped: It went over a limit that the host counts.
        """
        session = self._session()
        ran = _Ran(code)
        start = time.perf_counter()
        value = _drive(session.feed_start(code, print_callback=write), ran.listening(answer))
        ran.seconds += time.perf_counter() - start
        self._pending.append(ran)
        return value

    def _session(self) -> monty.MontySession:
        if self._live is None:
            limits: monty.ResourceLimits = {
                "max_feed_duration_secs": self._limits.seconds,
                "max_memory": self._limits.memory_mb * 2**20,
                "max_recursion_depth": self._limits.recursion,
                "max_suspensions": 2**31,
            }
            policy: monty.OSPolicy = {"sleep": "zero", "datetime": self._born, "random_start": {"seed": 0}}
            live = self._stack.enter_context(workers.get().checkout(limits=limits, os_policy=policy))
            if self._state is not None:
                live.load_session(self._state)
            else:
                for text in self._prelude:
                    live.feed_run(text)
            for ran in self._since:
                _drive(live.feed_start(ran.code, print_callback=_unheard), ran.repeating())
            self._live = live
        return self._live

    def commit(self) -> None:
        """What the programs did so far stays."""
        self._since += self._pending
        self._pending = []
        if len(self._since) > _AGAIN_PROGRAMS or sum(ran.seconds for ran in self._since) > _AGAIN_S:
            self._state = self._session().dump()
            self._since = []

    def roll_back(self) -> None:
        """The state is that of the last commit, in a fresh session."""
        self.close()

    def close(self) -> None:
        """Gives the worker back; the last commit is kept and the session can go on."""
        self._live, self._pending = None, []
        stack, self._stack = self._stack, ExitStack()
        stack.close()


@dataclass
class _Ran:
    """A program that ran, with what the host answered it, in order."""

    code: str
    answers: list[Any] = field(default_factory=list)
    seconds: float = 0.0

    def listening(self, answer: Call) -> Call:
        """The same answers, noted; the host's time is not the program's."""

        def noted(request: tuple[Any, ...]) -> Any:
            start = time.perf_counter()
            try:
                value = answer(request)
            except Refused as error:
                value = error
            finally:
                self.seconds -= time.perf_counter() - start
            self.answers.append(value)
            return _given(value)

        return noted

    def repeating(self) -> Call:
        """The noted answers once more."""
        answers = iter(self.answers)
        return lambda _request: _given(next(answers))


def _given(value: Any) -> Any:
    if isinstance(value, Refused):
        raise value
    return value


def _drive(step: Any, answer: Call) -> Any:
    import pydantic_monty as monty

    for _ in range(_SUSPENSIONS):
        if isinstance(step, monty.MontyComplete):
            return step.output
        if isinstance(step, monty.FunctionSnapshot):
            step = step.resume_not_handled() if step.is_os_function else _call(step, answer)
        else:
            step = step.resume()  # a name that is not there
    raise LimitTripped(f"a cell may ask {_SUSPENSIONS:,} times for unknown names and refused system calls")


def _call(step: monty.FunctionSnapshot, answer: Call) -> Any:
    if step.function_name != CALL:
        return step.resume({"exc_type": "NameError", "message": f"name {str(step.function_name)!r} is not defined"})
    try:
        request = step.args
    except (ValueError, OverflowError) as error:  # a number of 5,000 digits
        return step.resume({"exc_type": "ValueError", "message": f"an argument cannot be taken: {error}"})
    try:
        value = answer(request)
    except Refused as error:
        return step.resume({"exc_type": "ValueError", "message": str(error)})
    return step.resume({"return_value": value})
