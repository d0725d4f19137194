"""A model that says what it was told to say: for tests, examples and dry runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from searchops.errors import DataError
from searchops.models.protocol import Message, Reply, Request, Tool, ToolCall
from searchops.models.tokens import estimated_usage

__all__ = ["ScriptedModel"]

Line: TypeAlias = "Reply | str | ToolCall | Sequence[ToolCall] | BaseException"


class ScriptedModel:
    """Answers with given replies, in order, and keeps what it was asked.

    A reply is a `Reply`, a text, one tool call or several, or an exception to raise. Replies that count no
    tokens are counted as characters / 4.

    Args:
        replies: The replies, or a function of the request that gives one.

    Example:
        >>> model = ScriptedModel(["Ada Lovelace", ToolCall("c1", "search", "{}")])
        >>> model.complete([Message("user", "Who?")]).content
        'Ada Lovelace'
        >>> model.complete([Message("user", "And then?")]).finish_reason
        'tool_calls'
        >>> [request.messages[0].content for request in model.requests]
        ['Who?', 'And then?']
    """

    def __init__(self, replies: Iterable[Line] | Callable[[Request], Line]) -> None:
        self.replies = replies if callable(replies) else list(replies)
        self.requests: list[Request] = []
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return "ScriptedModel(a function)" if callable(self.replies) else f"ScriptedModel({self.replies!r})"

    def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        temperature: float | None = None,
        max_tokens: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> Reply:
        """The next reply of the script.

        Raises:
            DataError: The script has no reply left.
        """
        request = Request(tuple(messages), tuple(tools), temperature, max_tokens, top_p, seed)
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
        line = self.replies(request) if callable(self.replies) else self._line(number)
        if isinstance(line, BaseException):
            raise line
        return _spoken(line, request)

    def _line(self, number: int) -> Line:
        assert not callable(self.replies)
        if number > len(self.replies):
            found = f"{len(self.replies)} in the script"
            raise DataError(f"a reply to request {number} is needed", found, where="ScriptedModel")
        return self.replies[number - 1]


def _spoken(line: Reply | str | ToolCall | Sequence[ToolCall], request: Request) -> Reply:
    if isinstance(line, str):
        reply = Reply(line)
    elif isinstance(line, Reply):
        reply = line
    else:
        calls = (line,) if isinstance(line, ToolCall) else tuple(line)
        reply = Reply(tool_calls=calls, finish_reason="tool_calls")
    if reply.usage.total_tokens == 0:
        reply = replace(reply, usage=estimated_usage(request, reply))
    return replace(reply, model=reply.model or "scripted")
