"""What a chat model is: one method, and the plain values that go in and come out.

The shapes are those of the chat-completions protocol, so that a record, a request on the wire and an
object in memory differ in nothing. Every value survives `to_dict`, JSON and `from_dict` unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from searchops.errors import DataError, FrameError, did_you_mean, sentence

__all__ = ["ChatModel", "Exchange", "Message", "Reply", "Request", "Tool", "ToolCall", "Usage", "UsageSource"]

UsageSource: TypeAlias = Literal["provider", "tokenizer", "characters/4"]
"""Who counted the tokens."""

ROLES = ("system", "developer", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants called; `arguments` is its raw text, valid JSON or not.

    Example:
        >>> call = ToolCall("c1", "search", '{"query": "monty"}')
        >>> ToolCall.from_dict(call.to_dict()) == call
        True
    """

    id: str
    name: str
    arguments: str

    def to_dict(self) -> dict[str, Any]:
        """The call in the shape of the chat protocol."""
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolCall:
        """Reads what `to_dict` wrote.

        Raises:
            DataError: The shape is another one.
        """
        _only(data, ("id", "type", "function"), "tool call")
        function = _value(data, "function", Mapping, "tool call")
        _only(function, ("name", "arguments"), "tool call")
        name, arguments = (_value(function, key, str, "tool call") for key in ("name", "arguments"))
        return cls(_value(data, "id", str, "tool call"), name, arguments)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    Raises:
        FrameError: The role is unknown, or a tool's message does not say which call it answers.

    Example:
        >>> Message("user", "Who wrote it?").to_dict()
        {'role': 'user', 'content': 'Who wrote it?'}
    """

    role: str
    content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            hint = sentence(did_you_mean(self.role, ROLES))
            raise FrameError("a known role is needed", repr(self.role), where="Message", hint=hint)
        if self.role == "tool" and not self.tool_call_id:
            raise FrameError("a tool's message names its call", "no tool_call_id", where="Message")
        object.__setattr__(self, "tool_calls", tuple(self.tool_calls))

    def to_dict(self) -> dict[str, Any]:
        """The message in the shape of the chat protocol; fields that say nothing are left out."""
        data: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            data["tool_calls"] = [call.to_dict() for call in self.tool_calls]
        if self.tool_call_id is not None:
            data["tool_call_id"] = self.tool_call_id
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Message:
        """Reads what `to_dict` wrote.

        Raises:
            DataError: The shape is another one; fields that would be lost count as that.
        """
        _only(data, ("role", "content", "tool_calls", "tool_call_id"), "message")
        role = _value(data, "role", str, "message")
        content = _optional(data, "content", str, "message")
        calls = _optional(data, "tool_calls", list, "message") or []
        call_id = _optional(data, "tool_call_id", str, "message")
        try:
            return cls(role, content, tuple(ToolCall.from_dict(call) for call in calls), call_id)
        except FrameError as error:
            raise DataError(error.needed, error.found, where="message", hint=error.hint) from None


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a model may call; `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def to_dict(self) -> dict[str, Any]:
        """The tool in the shape of the chat protocol."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tool:
        """Reads what `to_dict` wrote.

        Raises:
            DataError: The shape is another one.
        """
        _only(data, ("type", "function"), "tool")
        function = _value(data, "function", Mapping, "tool")
        _only(function, ("name", "description", "parameters"), "tool")
        name, description = (_value(function, key, str, "tool") for key in ("name", "description"))
        return cls(name, description, dict(_value(function, "parameters", Mapping, "tool")))


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call. Cached tokens are part of the input, reasoning tokens of the output."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    source: UsageSource = "provider"

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Usage:
        """Reads what `to_dict` wrote.

        Raises:
            DataError: The shape is another one.
        """
        _only(data, _names(cls), "usage")
        for key in _names(cls)[:4]:
            _value(data, key, int, "usage")
        _value(data, "source", str, "usage")
        return cls(**data)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered.

    `finish_reason` is the provider's word (`stop`, `length`, `tool_calls`, `content_filter`, …): an answer
    that was cut or filtered is an outcome to act on, not an exception. `details` holds what else the
    provider said about the reply (its id, its fingerprint); `requests` counts the attempts it took.

    Example:
        >>> reply = Reply("It was Ada.", usage=Usage(9, 4))
        >>> reply.message()
        Message(role='assistant', content='It was Ada.', tool_calls=(), tool_call_id=None)
        >>> Reply.from_dict(reply.to_dict()) == reply
        True
    """

    content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    usage: Usage = Usage(0, 0, source="characters/4")
    model: str = ""
    seconds: float = 0.0
    cost_usd: float | None = None
    reasoning: str | None = None
    refusal: str | None = None
    requests: int = 1
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def message(self) -> Message:
        """The reply as the assistant's message of the conversation."""
        return Message("assistant", self.content, self.tool_calls)

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, as JSON holds them."""
        data = {name: getattr(self, name) for name in _names(Reply)}
        calls = [call.to_dict() for call in self.tool_calls]
        return {**data, "tool_calls": calls, "usage": self.usage.to_dict(), "details": dict(self.details)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Reply:
        """Reads what `to_dict` wrote.

        Raises:
            DataError: The shape is another one.
        """
        _only(data, _names(cls), "reply")
        calls = tuple(ToolCall.from_dict(call) for call in _value(data, "tool_calls", list, "reply"))
        usage = Usage.from_dict(_value(data, "usage", Mapping, "reply"))
        return cls(**{**data, "tool_calls": calls, "usage": usage})


@dataclass(frozen=True, slots=True)
class Request:
    """What a model was asked: the arguments of `ChatModel.complete`."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    seed: int | None = None

    def settings(self) -> dict[str, Any]:
        """The settings that were given, by name."""
        given = {name: getattr(self, name) for name in _names(Request)[2:]}
        return {name: value for name, value in given.items() if value is not None}

    def to_dict(self) -> dict[str, Any]:
        """Messages, tools and given settings, as JSON holds them."""
        messages = [message.to_dict() for message in self.messages]
        return {"messages": messages, "tools": [tool.to_dict() for tool in self.tools], **self.settings()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Request:
        """Reads what `to_dict` wrote.

        Raises:
            DataError: The shape is another one.
        """
        _only(data, _names(cls), "request")
        messages = tuple(Message.from_dict(m) for m in _value(data, "messages", list, "request"))
        tools = tuple(Tool.from_dict(t) for t in _optional(data, "tools", list, "request") or [])
        return cls(**{**data, "messages": messages, "tools": tools})


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and the reply it got: what a record holds and `ReplayModel` plays."""

    request: Request
    reply: Reply

    def to_dict(self) -> dict[str, Any]:
        """Both halves, as JSON holds them."""
        return {"request": self.request.to_dict(), "reply": self.reply.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Exchange:
        """Reads what `to_dict` wrote; other keys beside the two halves may stand there.

        Raises:
            DataError: A half is missing or has another shape.
        """
        request = Request.from_dict(_value(data, "request", Mapping, "exchange"))
        return cls(request, Reply.from_dict(_value(data, "reply", Mapping, "exchange")))


@runtime_checkable
class ChatModel(Protocol):
    """A model that answers a conversation. Safe to call from many threads at once."""

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
        """One reply to the conversation.

        Args:
            messages: The conversation so far.
            tools: What the model may call; none, and it can only write.
            temperature: Sampling temperature; None leaves it to the model.
            max_tokens: The most tokens it may write; None leaves it to the model.
            top_p: Nucleus sampling; None leaves it to the model.
            seed: Where the model takes one, for repeatable sampling.

        Raises:
            SpecError: The model is set up wrongly, so that no request can succeed.
            DataError: This request got no usable reply.
        """
        ...


def _names(cls: type[Any]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))


def _only(data: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    if not isinstance(data, Mapping):
        raise DataError("a JSON object is needed", type(data).__name__, where=where)
    unknown = [key for key in data if key not in known]
    if unknown:
        hint = sentence(did_you_mean(unknown[0], known))
        raise DataError("only known fields may stand here", repr(unknown[0]), where=where, hint=hint)


def _value(data: Mapping[str, Any], key: str, kind: type[Any], where: str) -> Any:
    value = data.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        found = type(value).__name__ if key in data else "no such field"
        raise DataError(f"{key!r} of type {kind.__name__} is needed", found, where=where)
    return value


def _optional(data: Mapping[str, Any], key: str, kind: type[Any], where: str) -> Any:
    return None if data.get(key) is None else _value(data, key, kind, where)
