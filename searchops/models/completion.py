"""The body of a chat completion, as any compatible endpoint sends it, read into a `Reply`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from searchops.errors import DataError
from searchops.models.protocol import Reply, ToolCall, Usage

__all__ = ["clip", "read_completion"]


def read_completion(text: str, *, where: str) -> tuple[Reply, bool]:
    """The reply in a body, and whether the provider counted its tokens.

    Raises:
        DataError: The body is no JSON, has no choices, or a part of it has another type.

    Example:
        >>> body = '{"choices": [{"message": {"content": "Ada"}, "finish_reason": "stop"}]}'
        >>> read_completion(body, where="model m")[0].content
        'Ada'
    """
    body = _body(text, where)
    choice = _first_choice(body, where)
    message = _mapping(choice.get("message"), "a message", where)
    usage = read_usage(body.get("usage"))
    reply = Reply(
        content=_text(message.get("content"), "content", where),
        tool_calls=_tool_calls(message.get("tool_calls"), where),
        finish_reason=_finish_reason(choice, where),
        usage=usage or Usage(0, 0),
        model=_text(body.get("model"), "model", where) or "",
        reasoning=_text(message.get("reasoning_content") or message.get("reasoning"), "reasoning", where),
        refusal=_text(message.get("refusal"), "refusal", where),
        details={key: value for key, value in body.items() if key not in ("choices", "usage", "model")},
    )
    return reply, usage is not None


def read_usage(data: Any) -> Usage | None:
    """What the provider counted; None where it counted nothing that can be used.

    Example:
        >>> read_usage({"prompt_tokens": 9, "completion_tokens": 4})
        Usage(input_tokens=9, output_tokens=4, cached_tokens=0, reasoning_tokens=0, source='provider')
    """
    if not isinstance(data, Mapping):
        return None
    read, written = _count(data.get("prompt_tokens")), _count(data.get("completion_tokens"))
    if read is None or written is None:
        return None
    cached = _nested_count(data, "prompt_tokens_details", "cached_tokens")
    return Usage(read, written, cached, _nested_count(data, "completion_tokens_details", "reasoning_tokens"))


def clip(text: str, n_characters: int = 300) -> str:
    """The beginning of a text, on one line, saying how much was left out.

    Example:
        >>> clip("a b c d e f", 5)
        'a b c [6 more characters]'
    """
    line = " ".join(text.split())
    left = len(line) - n_characters
    return line if left <= 0 else f"{line[:n_characters]} [{left} more characters]"


def _body(text: str, where: str) -> Mapping[str, Any]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        found = repr(clip(text)) if text else "an empty body"
        raise DataError("a reply in JSON is needed", found, where=where) from None
    body = _mapping(body, "a reply that is a JSON object", where)
    if body.get("error"):
        # Some gateways answer 200 and put the failure of the provider behind them into the body.
        raise DataError("a chat completion is needed", f"an error, {clip(str(body['error']))}", where=where)
    return body


def _first_choice(body: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        found = "an empty list" if choices == [] else f"{clip(repr(choices))}"
        raise DataError("a reply with choices is needed", found, where=where)
    return _mapping(choices[0], "a choice that is a JSON object", where)


def _finish_reason(choice: Mapping[str, Any], where: str) -> str:
    reason = choice.get("finish_reason")
    if not isinstance(reason, str) or not reason:
        raise DataError("a finish reason is needed", repr(reason), where=where, hint="The reply may be cut.")
    return reason


def _tool_calls(calls: Any, where: str) -> tuple[ToolCall, ...]:
    if calls is None:
        return ()
    if not isinstance(calls, list):
        raise DataError("tool calls in a list are needed", type(calls).__name__, where=where)
    return tuple(_tool_call(number, call, where) for number, call in enumerate(calls))


def _tool_call(number: int, call: Any, where: str) -> ToolCall:
    call = _mapping(call, "a tool call", where)
    function = _mapping(call.get("function"), "a function in a tool call", where)
    name = _text(function.get("name"), "the name of a tool call", where)
    if not name:
        raise DataError("a tool call names its function", repr(name), where=where)
    arguments = function.get("arguments")
    if isinstance(arguments, (Mapping, list)):
        arguments = json.dumps(arguments, ensure_ascii=False)
    # Some servers number no calls; within one reply the position tells them apart.
    call_id = _text(call.get("id"), "the id of a tool call", where) or f"call_{number}"
    return ToolCall(call_id, name, _text(arguments, "the arguments of a tool call", where) or "")


def _mapping(value: Any, needed: str, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DataError(f"{needed} is needed", clip(repr(value)), where=where)
    return value


def _text(value: Any, name: str, where: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise DataError(f"{name} that is text is needed", clip(repr(value)), where=where)
    return value


def _nested_count(data: Mapping[str, Any], group: str, name: str) -> int:
    details = data.get(group)
    return (_count(details.get(name)) or 0) if isinstance(details, Mapping) else 0


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
