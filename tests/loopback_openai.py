"""An OpenAI-compatible server on the loopback interface, for tests.

It speaks the documented shape of `/v1/chat/completions` and `/v1/models`, refuses requests that do not
have it, and does on demand what real endpoints do on bad days. It counts and keeps what it was asked.

    with LoopbackOpenAI([calls(("search", '{"query": "ada"}')), says("Ada")]) as server:
        model = OpenAIModel("loopback-1", server.url, ...)
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, TypeAlias

MODEL = "loopback-1"


@dataclass(frozen=True)
class Answer:
    """What the server sends back.

    Args:
        body: Sent as JSON, or as it is where it is text.
        status: HTTP status.
        headers: Further headers.
        delay_s: Waits this long before it answers.
        cut_at: Closes the connection after so many characters of the body.
    """

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    cut_at: int | None = None


@dataclass(frozen=True)
class Asked:
    """A request that came in."""

    path: str
    headers: dict[str, str]
    body: Any
    at: float


Script: TypeAlias = "Iterable[Answer] | Callable[[dict[str, Any]], Answer]"


def completion(message: Mapping[str, Any], finish_reason: str = "stop", **fields: Any) -> dict[str, Any]:
    """The body of a chat completion as documented; a field given as None is left out."""
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
    body = {
        "id": "chatcmpl-loopback",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": MODEL,
        "choices": [choice],
        "usage": usage(12, 5),
        "system_fingerprint": "fp_loopback",
        **fields,
    }
    return {name: value for name, value in body.items() if value is not None}


def usage(read: int, written: int, cached: int = 0, reasoning: int = 0) -> dict[str, Any]:
    """The usage block as documented."""
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": reasoning, "audio_tokens": 0},
    }


def says(text: str | None, finish_reason: str = "stop", *, delay_s: float = 0.0, **fields: Any) -> Answer:
    """An answer in words."""
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
    return Answer(completion(message, finish_reason, **fields), delay_s=delay_s)


def calls(*functions: tuple[str, str], **fields: Any) -> Answer:
    """One or more tool calls, arguments as raw text."""
    tool_calls = [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(functions, start=1)
    ]
    message = {"role": "assistant", "content": None, "refusal": None, "tool_calls": tool_calls}
    return Answer(completion(message, "tool_calls", **fields))


def fails(status: int, message: str = "It failed.", code: str | None = None, **headers: str) -> Answer:
    """An error as documented; headers as `retry_after="2"`."""
    error = {"message": message, "type": "loopback_error", "param": None, "code": code}
    sent = {name.replace("_", "-").title(): value for name, value in headers.items()}
    return Answer({"error": error}, status, sent)


def limited(retry_after: str) -> Answer:
    """429 with Retry-After: seconds, or an HTTP date."""
    return fails(429, "Rate limit reached.", "rate_limit_exceeded", retry_after=retry_after)


def cut(after: int = 40) -> Answer:
    """A completion whose connection closes in the middle of the body."""
    whole = says("a text that never comes to its end")
    return Answer(whole.body, cut_at=after)


def garbage(text: str = '{"choices": [{"mess') -> Answer:
    """200 with a body that is not the JSON it says it is."""
    return Answer(text)


def no_choices() -> Answer:
    """A completion with an empty list of choices."""
    return Answer({**completion({}), "choices": []})


def filtered() -> Answer:
    """A completion that the provider's content filter emptied."""
    return says("", "content_filter")


class LoopbackOpenAI:
    """The server; `script` gives the answers in order (then `says("ok")`), or from the request's body.

    Args:
        script: Answers in order, or a function of the request's body.
        key: The only key it accepts; None accepts any.
        delay_s: Waits this long before every answer.
    """

    def __init__(self, script: Script = (), *, key: str | None = None, delay_s: float = 0.0) -> None:
        self._answers = script if callable(script) else list(script)
        self.key = key
        self.delay_s = delay_s
        self.requests: list[Asked] = []
        self.max_in_flight = 0
        self._in_flight = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.loopback = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def n_requests(self) -> int:
        return len(self.requests)

    @property
    def bodies(self) -> list[Any]:
        """The bodies of the requests, in order of arrival."""
        return [asked.body for asked in self.requests]

    def __enter__(self) -> LoopbackOpenAI:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, asked: Asked) -> Answer:
        """What to send; called by the handler, in its thread."""
        with self._lock:
            number = len(self.requests)
            self.requests.append(asked)
            self._in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self._in_flight)
        if self.key is not None and asked.headers.get("authorization") != f"Bearer {self.key}":
            return fails(401, f"Incorrect API key: {asked.headers.get('authorization')}", "invalid_api_key")
        if callable(self._answers):
            found = self._answers(asked.body)
        else:
            found = self._answers[number] if number < len(self._answers) else says("ok")
        self._closing.wait(self.delay_s + found.delay_s)
        return found

    def answered(self) -> None:
        """An answer is about to leave."""
        with self._lock:
            self._in_flight -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    loopback: LoopbackOpenAI

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of the server."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Without this, each answer's body waits for the acknowledgement of its headers (40 ms).
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *args: Any) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        if self.path != "/v1/models":
            return self._send(fails(404, f"No such path: {self.path}"))
        entry = {"id": MODEL, "object": "model", "created": 1_700_000_000, "owned_by": "loopback"}
        return self._send(Answer({"object": "list", "data": [entry]}))

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/v1/chat/completions":
            return self._send(fails(404, f"No such path: {self.path}"))
        body = json.loads(text)
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.loopback.answer(Asked(self.path, headers, body, time.time()))
        # Out of flight before the body leaves: once the client has it, it may send the next request.
        self.server.loopback.answered()
        wrong = what_is_wrong(body)
        return self._send(fails(400, wrong, "invalid_request_error") if wrong else answer)

    def _send(self, answer: Answer) -> None:
        text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body, ensure_ascii=False)
        payload = text.encode()
        self.send_response(answer.status)
        for name, value in {"Content-Type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload[: answer.cut_at])
        if answer.cut_at is not None:
            self.close_connection = True


def what_is_wrong(body: Any) -> str | None:
    """Why a request is not of the documented shape; None where it is."""
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        return "'model' is required"
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        return "'messages' is required and not empty"
    for number, tool in enumerate(body.get("tools", [])):
        if tool.get("type") != "function" or not isinstance(tool.get("function", {}).get("name"), str):
            return f"'tools[{number}]' must be a function with a name"
    return _wrong_messages(body["messages"]) or _wrong_settings(body)


def _wrong_messages(messages: list[Any]) -> str | None:
    open_calls: set[str] = set()
    for number, message in enumerate(messages):
        role = message.get("role")
        if role not in ("system", "developer", "user", "assistant", "tool"):
            return f"'messages[{number}].role' is unknown"
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                return f"'messages[{number}]' answers no tool call"
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            return f"tool calls without an answer before 'messages[{number}]': {sorted(open_calls)}"
        if role != "assistant" and not isinstance(message.get("content"), str):
            return f"'messages[{number}].content' is required"
        open_calls |= {call["id"] for call in message.get("tool_calls", [])}
    return f"tool calls without an answer: {sorted(open_calls)}" if open_calls else None


def _wrong_settings(body: Mapping[str, Any]) -> str | None:
    for name, low, high in (("temperature", 0, 2), ("top_p", 0, 1), ("max_tokens", 1, 10**9)):
        value = body.get(name)
        if value is not None and not (isinstance(value, (int, float)) and low <= value <= high):
            return f"'{name}' must be a number from {low} to {high}"
    return None
