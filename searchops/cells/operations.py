"""The host's side of the primitives: what a cell asks for, checked and run on the host's own rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from searchops import recorder
from searchops.cells.limits import Limits
from searchops.cells.prelude import Fields
from searchops.cells.session import LimitTripped, Refused
from searchops.errors import BudgetExceeded, FrameError, SpecError, ToolError
from searchops.frames import Record
from searchops.substrate import Found, Marks, Substrate
from searchops.workspace import candidate_id

__all__ = ["Operations"]

_VALUES: Final = 100_000


class Operations:
    """Answers the calls of one cell.

    Attributes:
        calls: Calls answered so far.
        notices: What was capped, each said once.
        outputs: Rows by number that a recorded event put out together, to find the parent of a call.
    """

    def __init__(
        self,
        substrate: Substrate,
        fields: Fields,
        limits: Limits,
        functions: Mapping[str, Callable[..., Any]],
        decision: int,
        committed: Mapping[tuple[int, ...], int],
    ) -> None:
        self._substrate = substrate
        self._workspace = substrate.workspace
        self._fields = fields
        self._limits = limits
        self._functions = functions
        self._decision = decision
        self._committed = committed
        self.outputs: dict[tuple[int, ...], int] = {}
        self.calls = 0
        self.notices: list[str] = []

    def __call__(self, request: tuple[Any, ...]) -> Any:
        """Runs one call of the prelude: its name, then its arguments.

        Raises:
            Refused: The call cannot be answered; the text says why.
            LimitTripped: The cell made all its calls.
            BudgetExceeded: The call used up a budget of the run.
        """
        name, *arguments = request
        check_plain(arguments)
        if self.calls >= self._limits.calls:
            raise LimitTripped(f"a cell may make {self._limits.calls:,} calls; go on in the next cell")
        step, self.calls = self.calls, self.calls + 1
        try:
            with recorder.step(self._decision, step):
                if name in self._functions:
                    return self._functions[name](*arguments[0], **arguments[1])
                return _ANSWERS[name](self, *arguments)
        except BudgetExceeded:
            raise
        # What the cell did wrong is its observation; a damaged index is not, and ends the question.
        except (ToolError, SpecError, FrameError) as error:
            raise Refused(str(error)) from error

    def retrieve(self, query: Any, k: Any) -> list[list[Any]]:
        """Candidates, whole."""
        found = self._substrate.retrieve(query, k)
        return [self._fields.values(row, number) for row, number in self._taken(found)]

    def filter(self, numbers: Any, predicate: Any) -> list[int]:
        """Places of the candidates that stay."""
        given = self._given(numbers)
        if isinstance(predicate, list):
            predicate = Marks([flag is True for flag in predicate])
        kept = self._substrate.filter(given, predicate)
        places = _places(given.rows, kept.rows)
        self._note(kept, [numbers[place] for place in places])
        return places

    def rerank(self, numbers: Any, k: Any) -> list[list[Any]]:
        """Places of the candidates with their new values; the texts stay in the sandbox."""
        given = self._given(numbers)
        first: dict[str, int] = {}
        for place, row in enumerate(given.rows):
            first.setdefault(candidate_id(row), place)
        found = self._substrate.rerank(given, k)
        return [
            [first[candidate_id(row)], *self._fields.values(row, number, with_text=False)]
            for row, number in self._taken(found)
        ]

    def extract(self, numbers: Any, instruction: Any, k: Any, size: Any, schema: Any) -> list[list[Any]]:
        """Passages, whole."""
        found = self._substrate.extract(self._given(numbers), instruction, k, size=size, schema=schema)
        return [[None, *self._fields.values(row, number)] for row, number in self._taken(found)]

    def dedupe(self, lists: Any, key: Any) -> list[int]:
        """Places, in the lists put together, of the candidates that stay."""
        given = [self._given(numbers) for numbers in lists]
        found = self._substrate.dedupe(*given, key=key)
        numbers = [number for some in lists for number in some]
        places = _places([row for some in given for row in some.rows], found.rows)
        self._note(found, [numbers[place] for place in places])
        return places

    def _given(self, numbers: list[Any]) -> Found:
        rows = self._workspace.resolve(numbers)
        key = tuple(numbers)
        event = self.outputs.get(key, self._committed.get(key, -1))
        return Found(rows, event)

    def _taken(self, found: Found) -> list[tuple[Record, int]]:
        numbers = self._workspace.admit(found.rows)
        self._note(found, numbers)
        return list(zip(found.rows, numbers, strict=True))

    def _note(self, found: Found, numbers: list[int]) -> None:
        if found.event >= 0:
            self.outputs[tuple(numbers)] = found.event
        if found.notice and found.notice not in self.notices:
            self.notices.append(found.notice)


_ANSWERS: Final[dict[str, Callable[..., Any]]] = {
    "retrieve": Operations.retrieve,
    "filter": Operations.filter,
    "rerank": Operations.rerank,
    "extract": Operations.extract,
    "dedupe": Operations.dedupe,
}


def check_plain(request: Any) -> None:
    """Lets only plain and small values of a program through to the host's code.

    A number of 5,000 digits, for one, cannot even be put into an error's text.

    Raises:
        Refused: Something else is among them.
    """
    left, stack = _VALUES, [request]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack.extend([*value.keys(), *value.values()])
        elif isinstance(value, (list, tuple)):
            left -= len(value)
            if left < 0:
                raise Refused(f"at most {_VALUES:,} values may be given to a function")
            stack.extend(value)
        elif isinstance(value, int):
            if not -(2**63) <= value < 2**63:
                raise Refused("a number is too large to be given to a function")
        elif value is not None and not isinstance(value, (str, float)):
            raise Refused("texts, numbers, lists and dicts can be given to a function; other things cannot")


def _places(rows: list[Record], kept: list[Record]) -> list[int]:
    """Where the kept rows stood; they are the same objects, in the same order."""
    places, place = [], 0
    for row in kept:
        while rows[place] is not row:
            place += 1
        places.append(place)
        place += 1
    return places
