"""What an agent interface is to the loop: tools, and what a call of one gives back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from searchops.frames import Record
from searchops.models.protocol import Tool
from searchops.substrate import Substrate

__all__ = ["Action", "Interface", "Observation", "Shown"]


class Action(NamedTuple):
    """A well-formed tool call.

    Attributes:
        id: The call's id in the model's reply.
        name: The tool.
        arguments: Checked against the tool's schema.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]


class Shown(NamedTuple):
    """A part of a document whose text stands in an observation."""

    docno: str
    passage: int | None
    start: int
    end: int


@dataclass(frozen=True)
class Observation:
    """What the model is told of one call.

    Attributes:
        text: All of it.
        shown: The parts of documents whose text stands in it.
        referenced: Ids of documents and passages that stand in it.
        failed: Whether the call failed; the text says why.
        status: How a cell ended; "" for other calls.
    """

    text: str
    shown: tuple[Shown, ...] = ()
    referenced: tuple[str, ...] = ()
    failed: bool = False
    status: str = ""


class Interface:
    """One question's side of the loop: it runs actions on a substrate.

    Subclasses give `tools` and `call`. A new object is made for every question.

    Attributes:
        tools: What the model may call.
        unit: What an event of evidence accounting is: one "call", or a whole "decision".
    """

    tools: ClassVar[tuple[Tool, ...]] = ()
    unit: ClassVar[str] = "call"

    def __init__(self, substrate: Substrate) -> None:
        self.substrate = substrate
        self.workspace = substrate.workspace

    def refusals(self, actions: Sequence[Action]) -> list[str | None]:
        """For each action of a turn, why it is not run, or None."""
        return [None] * len(actions)

    def call(self, action: Action, decision: int) -> Observation:
        """Runs one action.

        Raises:
            ToolError, SpecError: The call cannot be run as it is; the model is told and goes on.
        """
        raise NotImplementedError(f"{type(self).__name__} runs no actions")

    def state(self) -> str:
        """What the model is told of the workspace behind a turn; "" for nothing."""
        return ""

    def close(self) -> None:
        """Gives back what the interface holds."""


def ids_of(rows: Sequence[Record]) -> tuple[str, ...]:
    """Ids of documents and passages of the rows, each once, in order."""
    found: dict[str, None] = {}
    for row in rows:
        found[str(row["docno"])] = None
        if "passage_id" in row:
            found[str(row["passage_id"])] = None
    return tuple(found)
