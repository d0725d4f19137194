"""The messages of one question, the calls of the model, and their lines in the record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from searchops.agents.budget import Budget
from searchops.agents.usage import Spent
from searchops.models.protocol import ChatModel, Message, Reply, Request, Tool
from searchops.models.tokens import estimated_usage

__all__ = ["Conversation"]


class Conversation:
    """Asks the model and notes every exchange; a request is noted by what is new in it.

    Attributes:
        messages: The conversation so far.
        lines: The exchanges as the record holds them (see `records.trajectories`).
        spent: Tokens and money.
    """

    def __init__(self, model: ChatModel, budget: Budget, system: str, question: str) -> None:
        self.model = model
        self.budget = budget
        self.messages = [Message("system", system), Message("user", question)]
        self.lines: list[dict[str, Any]] = []
        self.spent = Spent()
        self._told = 0

    def ask(self, tools: Sequence[Tool], decision: int, attempt: int) -> Reply:
        """The model's next reply; it becomes part of the conversation when `answer` adds it.

        Raises:
            DataError: The model gave no usable reply; the record holds no line of it.
            SpecError: The model is set up wrongly.
        """
        line = {"kind": "decision", "decision": decision, "attempt": attempt}
        reply = self._complete(self.messages, tools, line, self._told)
        self._told = len(self.messages)
        return reply

    def ask_apart(self, messages: Sequence[Message], decision: int) -> Reply:
        """A reply to messages of their own, with no tools: the finalizer's.

        Raises:
            DataError, SpecError: As `ask`.
        """
        return self._complete(messages, (), {"kind": "finalizer", "decision": decision, "attempt": 0}, 0)

    def answer(self, reply: Reply, messages: Sequence[Message]) -> None:
        """Adds a reply and what is said to it."""
        self.messages.append(reply.message())
        self.messages.extend(messages)

    def _complete(self, messages: Sequence[Message], tools: Sequence[Tool], line: dict[str, Any], told: int) -> Reply:
        settings: dict[str, Any] = {"temperature": self.budget.temperature, "max_tokens": self.budget.max_tokens}
        request = Request(tuple(messages), tuple(tools), **settings)
        reply = self.model.complete(request.messages, tools=request.tools, **settings)
        usage = reply.usage if reply.usage.total_tokens else estimated_usage(request, reply)
        self.spent.add(reply, usage, decision=line["kind"] == "decision")
        written = request.to_dict()
        if told:
            written = {"messages": written["messages"][told:]}
        recorded = replace(reply, usage=usage)
        self.lines.append({**line, "continues": told, "request": written, "reply": recorded.to_dict()})
        return reply
