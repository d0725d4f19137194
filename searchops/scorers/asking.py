"""Asking a chat model for one JSON object, with one repair."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from searchops.errors import ToolError
from searchops.models.protocol import ChatModel, Message, Reply

__all__ = ["asked", "json_object"]

_N_SHOWN_CHARACTERS = 600


def asked(
    model: ChatModel,
    messages: Sequence[Message],
    what_is_wrong: Callable[[Mapping[str, Any]], str | None],
    *,
    max_tokens: int,
) -> tuple[dict[str, Any], list[Reply]]:
    """The JSON object a model answers with, and the replies it took.

    Args:
        model: Asked at temperature 0.
        messages: The question.
        what_is_wrong: Says why an object will not do; None where it does.
        max_tokens: The most tokens of a reply.

    Raises:
        ToolError: The second reply would not do either.
    """
    reply = model.complete(messages, temperature=0.0, max_tokens=max_tokens)
    answer, reason = _read(reply, what_is_wrong)
    if answer is not None:
        return answer, [reply]
    repair = f"That cannot be used: {reason[:_N_SHOWN_CHARACTERS]}. Answer again with the JSON object alone."
    shown = (reply.content or "")[:_N_SHOWN_CHARACTERS] or "(no text)"
    second = model.complete(
        [*messages, Message("assistant", shown), Message("user", repair)],
        temperature=0.0,
        max_tokens=max_tokens,
    )
    answer, reason = _read(second, what_is_wrong)
    if answer is not None:
        return answer, [reply, second]
    found = f"two that cannot: {reason}; the last began {(second.content or '')[:120]!r}"
    raise ToolError("a reply that can be used is needed", found, where=f"Chat, model {second.model}")


def json_object(text: str) -> dict[str, Any] | None:
    """The first JSON object in a text, whatever stands around it; thinking aloud is passed over.

    Example:
        >>> json_object('<think>{"a": 0}</think> Here: ```json {"a": 1} ```')
        {'a': 1}
        >>> json_object("no object") is None
        True
    """
    return next(_objects(text.rpartition("</think>")[2]), None)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        with suppress(ValueError, RecursionError):
            # What starts with a brace is an object.
            yield decoder.raw_decode(text, start)[0]
        start = text.find("{", start + 1)


def _read(reply: Reply, what_is_wrong: Callable[[Mapping[str, Any]], str | None]) -> tuple[dict[str, Any] | None, str]:
    answer = json_object(reply.content or "")
    if answer is None:
        ended = {"length": "it was cut at max_tokens", "content_filter": "it was filtered"}
        return None, ended.get(reply.finish_reason, "there is no JSON object in it")
    reason = what_is_wrong(answer)
    return (answer, "") if reason is None else (None, reason)
