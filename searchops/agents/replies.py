"""A model's reply read as what it does: act, finish, or neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from searchops.agents.arguments import read_arguments
from searchops.agents.interface import Action
from searchops.agents.schemas import FINISH_HINT
from searchops.errors import ToolError, did_you_mean, sentence
from searchops.models.protocol import Reply, Tool, ToolCall

__all__ = ["Reading", "read_reply", "with_ids"]

_FILTERED: Final = "content_filter"


@dataclass(frozen=True)
class Reading:
    """What a reply comes to.

    Attributes:
        calls: For each tool call of the reply, its action, or the text of what is wrong with it.
        answer: The text of a reply that finishes.
        problem: Why the reply is malformed as a whole; "" where it is not.
        stop: The stop reason if it is malformed and nothing may be asked again.
    """

    calls: tuple[Action | str, ...] = ()
    answer: str | None = None
    problem: str = ""
    stop: str = "repair_exhausted"


def read_reply(reply: Reply, tools: Sequence[Tool]) -> Reading:
    """Reads a reply. One with tool calls is malformed only if none of them can be run.

    Example:
        >>> read_reply(Reply("It was Ada."), ()).answer
        'It was Ada.'
        >>> read_reply(Reply(""), ()).stop
        'no_action'
    """
    if reply.tool_calls:
        calls = tuple(_action(call, tools) for call in reply.tool_calls)
        problems = [call for call in calls if isinstance(call, str)]
        return Reading(calls, problem="; ".join(problems) if len(problems) == len(calls) else "")
    if reply.refusal or reply.finish_reason == _FILTERED:
        return Reading(problem="the reply was refused or filtered", stop="filtered")
    text = (reply.content or "").strip()
    if not text:
        return Reading(problem=f"The reply holds neither a tool call nor a text. {FINISH_HINT}", stop="no_action")
    if reply.finish_reason == "length":
        return Reading(problem="The reply was cut before its end. Write a shorter one: a tool call, or the answer.")
    return Reading(answer=text)


def with_ids(reply: Reply, decision: int) -> Reply:
    """The reply with an id of its own for every tool call; some servers send none, or the same twice.

    Example:
        >>> nameless = Reply(tool_calls=(ToolCall("", "a", ""), ToolCall("", "a", "")))
        >>> [call.id for call in with_ids(nameless, 3).tool_calls]
        ['call-3-0', 'call-3-1']
    """
    ids = [call.id for call in reply.tool_calls]
    if all(ids) and len(set(ids)) == len(ids):
        return reply
    calls = tuple(replace(call, id=f"call-{decision}-{n}") for n, call in enumerate(reply.tool_calls))
    return replace(reply, tool_calls=calls)


def _action(call: ToolCall, tools: Sequence[Tool]) -> Action | str:
    by_name = {tool.name: tool for tool in tools}
    try:
        if call.name not in by_name:
            hint = sentence(did_you_mean(call.name, by_name))
            raise ToolError(f"there is no tool {call.name[:60]!r}", hint=hint)
        return Action(call.id, call.name, read_arguments(by_name[call.name], call.arguments))
    except ToolError as error:
        return str(error)
