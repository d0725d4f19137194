"""A cell from its text to its observation: gate, type check, run, show, commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Any, NamedTuple, Self

from searchops.cells import errors
from searchops.cells.checking import checker_for
from searchops.cells.gate import OUTPUT, RESERVED, Program, examine
from searchops.cells.limits import Limits
from searchops.cells.operations import Operations
from searchops.cells.prelude import Fields
from searchops.cells.session import LimitTripped, Session
from searchops.errors import ToolError
from searchops.substrate import Substrate
from searchops.workspace import Costs, Variable, Workspace

__all__ = ["CellFunction", "CellResult", "CellRunner"]

_HINTS = {
    "assignment": "The cell ends with an assignment, so nothing is shown. End it with an expression, such as the "
    "variable's name, to see a value.",
    "statement": "The cell ends with a statement, so nothing is shown. End it with an expression to see a value.",
}


@dataclass(frozen=True)
class CellFunction:
    """A function of the host that cells may call beside the primitives, such as `grep`.

    Attributes:
        name: Its name in a cell.
        call: What runs on the host, with plain values; a SearchopsError becomes an error in the cell.
        stub: Its signature for the type check: `def grep(pattern: str) -> str: ...`.
    """

    name: str
    call: Callable[..., Any]
    stub: str


class _Shown(NamedTuple):
    text: str
    is_none: bool


class _Failed(Exception):  # noqa: N818 - it carries a failure to where the transaction ends
    def __init__(self, failure: errors.Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


class _Printed:
    """Takes what is printed, up to a limit that it announces."""

    def __init__(self, room: int) -> None:
        self._room = self._left = room
        self._parts: list[str] = []
        self._lost = 0

    def __call__(self, _stream: str, text: str) -> None:
        if self._left > 0:
            self._parts.append(text[: self._left])
        self._lost += max(len(text) - max(self._left, 0), 0)
        self._left -= len(text)

    @property
    def text(self) -> str:
        """What was printed, without its last line end."""
        text = "".join(self._parts).rstrip("\n")
        if self._lost:
            text += f"\n[print cut here by the safety limit of {self._room:,} characters; {self._lost:,} not shown]"
        return text


def _join(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


@dataclass(frozen=True)
class CellResult:
    """What came of one cell.

    Attributes:
        status: "ok"; "rejected" before it ran, "error" while it ran, "limit" where it went over one.
        observation: All that the agent is shown.
        printed: What the cell printed.
        hint: What would have shown more, or "".
        error: Why it failed, or "".
        costs: What it cost, whether or not it succeeded.
        variables: Names that are new or of another size.
        retained: Ids of all candidates the workspace holds after it.
        calls: Primitive calls it made.
    """

    status: str
    observation: str
    printed: str = ""
    hint: str = ""
    error: str = ""
    costs: Costs = field(default_factory=Costs)
    variables: Mapping[str, Variable] = field(default_factory=dict)
    retained: tuple[str, ...] = ()
    calls: int = 0

    @property
    def ok(self) -> bool:
        """Whether it succeeded and was committed."""
        return self.status == "ok"

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """Ids of retained candidates that stand in the observation; the others were kept but not shown."""
        text = self.observation
        return tuple(key for key in self.retained if key in text and _stands_in(key, text))


def _stands_in(key: str, text: str) -> bool:
    return re.search(rf"(?<![\w%]){re.escape(key)}(?![\w%])", text) is not None


class CellRunner:
    """Runs the cells of one question; variables persist between cells that succeed.

    A cell that fails in any way leaves variables, candidates and evidence as they were; what it
    retrieved stays counted and remembered, so that a repaired cell does not pay for it twice.

    Args:
        substrate: The search side of the question, with its workspace.
        limits: Of each cell.
        functions: Further functions of the host.

    Source: PSA, 3 and A.2.
    """

    def __init__(
        self, substrate: Substrate, limits: Limits | None = None, functions: Sequence[CellFunction] = ()
    ) -> None:
        self.substrate = substrate
        self.workspace: Workspace = substrate.workspace
        self.limits = limits or Limits()
        self.fields = Fields.over(substrate.engine.columns)
        self._functions = {function.name: function.call for function in functions}
        self._outputs: dict[tuple[int, ...], int] = {}
        self._reserved = RESERVED | self._functions.keys()
        wrappers = "".join(
            f"def {name}(*args, **kwargs):\n    return _so_call('{name}', args, kwargs)\n" for name in self._functions
        )
        first, second = self.fields.prelude()
        self._session = Session((first, second + wrappers), self.limits)
        self._stubs = self.fields.stubs([function.stub for function in functions])

    def run(self, code: str, decision: int = -1) -> CellResult:
        """Runs one cell.

        Args:
            code: The program.
            decision: Number of the agent's decision, for the record; calls are numbered from 0.

        Raises:
            BudgetExceeded: A primitive used up a budget; nothing is committed.
        """
        before, old = self.workspace.costs, dict(self.workspace.variables)
        operations = Operations(self.substrate, self.fields, self.limits, self._functions, decision, self._outputs)
        printed = _Printed(self.limits.printed_chars)
        try:
            with self.workspace.transaction():
                program = self._admit(code)
                shown = self._execute(program, operations, printed)
        except _Failed as failed:
            return self._failed(failed.failure, printed.text, before, operations)
        except BaseException:
            self._session.roll_back()
            raise
        self._outputs.update(operations.outputs)
        hint = self._hint(program, shown, printed)
        text = _join(printed.text, shown.text, *operations.notices, hint)
        changed = {name: held for name, held in self.workspace.variables.items() if old.get(name) != held}
        return CellResult(
            "ok",
            text,
            printed.text,
            hint,
            "",
            self.workspace.costs - before,
            changed,
            self._retained(),
            operations.calls,
        )

    def _admit(self, code: str) -> Program:
        try:
            program = examine(code, self.limits, self._reserved)
            doubts = checker_for(self._stubs).check(program, self.workspace.variables)
        except ToolError as error:
            raise _Failed(errors.Failure("rejected", f"{error}\nNothing was run.")) from None
        if doubts:
            raise _Failed(errors.of_doubts(doubts, self._around()))
        return program

    def _execute(self, program: Program, operations: Operations, printed: _Printed) -> _Shown:
        import pydantic_monty as monty

        ended = False
        try:
            self._session.run(program.runnable, operations, printed)
            ended = True
            shown = self._report(program, operations)
            self._session.commit()
        except LimitTripped as error:
            raise _Failed(errors.Failure("limit", f"{error}.")) from None
        except monty.MontyError as error:
            raise _Failed(errors.of_error(error, self._around(), showing=ended)) from None
        return shown

    def _report(self, program: Program, operations: Operations) -> _Shown:
        """Shows the final expression, measures the variables; all inside the sandbox."""
        known = [name for name in self.workspace.variables if name not in program.bound]
        lines = [f"_so_named = [{', '.join(f'({name!r}, {name})' for name in known)}]"]
        for name in program.bound:
            lines.append(f"try:\n    _so_named.append(({name!r}, {name}))\nexcept NameError:\n    pass")
        room = self.limits.observation_chars
        lines.append(f"_so_result = _so_report({OUTPUT}, {room}, _so_named)\n{OUTPUT} = _so_named = None\n_so_result")
        text, beyond, is_none, measured = self._session.run("\n".join(lines), operations)
        if len(measured) > self.limits.variables:
            raise LimitTripped(
                f"a workspace may hold {self.limits.variables:,} variables and would hold {len(measured):,}; keep them "
                "in one dict"
            )
        sizes = {name: Variable(kind, size) for name, kind, size in measured}
        new = [name for name in program.bound if name in sizes]
        order = [*(name for name in self.workspace.variables if name not in new), *new]
        self.workspace.variables = {name: sizes[name] for name in order}
        if beyond > 0:
            text += f"\n[cut here by the safety limit of {room:,} characters; {beyond:,} or more are not shown]"
        return _Shown("" if is_none else text, is_none)

    def _failed(self, failure: errors.Failure, printed: str, before: Costs, operations: Operations) -> CellResult:
        if failure.status != "rejected":
            self._session.roll_back()
        text = f"{failure.status}: {failure.text}"
        kept = "Variables are as they were before the cell."
        if (self.workspace.costs - before).retrieval_requests:
            kept += " What it retrieved is remembered: the same retrieve costs nothing."
        return CellResult(
            failure.status,
            _join(printed, text, kept),
            printed,
            error=failure.text,
            costs=self.workspace.costs - before,
            retained=self._retained(),
            calls=operations.calls,
        )

    def _hint(self, program: Program, shown: _Shown, printed: _Printed) -> str:
        if program.ends_in != "expression":
            return _HINTS[program.ends_in]
        if shown.is_none and not printed.text:
            return "The final expression is None, so nothing is shown."
        return ""

    def _retained(self) -> tuple[str, ...]:
        return tuple(self.workspace.candidates)

    def _around(self) -> errors.Surroundings:
        return errors.Surroundings(self.fields, self.workspace.variables, self.limits)

    def close(self) -> None:
        """Gives the worker process back; the state is kept, and another cell may follow."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
