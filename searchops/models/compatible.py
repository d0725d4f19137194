"""Chat models behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import inspect
import json
import os
import random
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from searchops.errors import DataError, SearchopsError, SpecError
from searchops.models.completion import clip, read_completion
from searchops.models.pricing import Prices
from searchops.models.protocol import Message, Reply, Request, Tool
from searchops.models.retry import Backoff, is_transient, retry_after_s
from searchops.models.tokens import estimated_usage

__all__ = ["OpenAIModel"]

# What no request mends: the key, its rights, the address or the name of the model is wrong.
_SETUP_STATUSES = (401, 403, 404)
# A key this long stands in no text by chance, so it may be blotted out of replies too.
_N_KEY_CHARACTERS = 16


class _Failure(NamedTuple):
    text: str
    status: int | None = None
    transient: bool = False
    asked_s: float | None = None


class OpenAIModel:
    """A model of any endpoint that speaks the chat-completions protocol.

    The key is read from the environment when it is first needed and stands in no attribute, repr, pickle,
    error or reply. Retried are timeouts, lost connections, 408, 409, 429 and 5xx, and what Retry-After
    asks for is honoured; other refusals are not asked again.

    Args:
        model: The endpoint's name of the model.
        base_url: Of the endpoint, with its `/v1`; None means OpenAI's own (or OPENAI_BASE_URL).
        api_key_env: The environment variable with the key; None for an endpoint that takes none.
        timeout_s: The longest silence of the endpoint within one request.
        max_retries: Further attempts after the first.
        backoff_s: The mean first wait between attempts; each further one is twice as long.
        max_wait_s: The longest wait; a Retry-After beyond it ends the call.
        max_concurrency: Requests in flight at one time, over all threads that share this object.
        prices: US dollars per million tokens (`input`, `output`, `cached`); None, and no cost is given.
        tokenizer: Counts the tokens where the endpoint does not (see `count_tokens`).
        temperature: Where a call gives none.
        top_p: Where a call gives none.
        tokens_field: The request's field for `max_tokens`; None takes `max_completion_tokens` for OpenAI's
            own endpoint, and `max_tokens`, which older servers know, for others.
        omit: Fields never sent, for models that refuse them (`temperature`, `seed`, …).
        extra: Further fields of the request body (`reasoning_effort`, `response_format`, …).

    Raises:
        SpecError: A setting cannot be right.

    Example:
        >>> OpenAIModel("qwen3", "http://127.0.0.1:8000/v1", api_key_env=None, max_retries=1)
        OpenAIModel('qwen3', base_url='http://127.0.0.1:8000/v1', api_key_env=None, max_retries=1)
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        *,
        api_key_env: str | None = "OPENAI_API_KEY",
        timeout_s: float = 120.0,
        max_retries: int = 4,
        backoff_s: float = 0.5,
        max_wait_s: float = 60.0,
        max_concurrency: int = 8,
        prices: Prices | Mapping[str, Any] | None = None,
        tokenizer: str | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        tokens_field: str | None = None,
        omit: Sequence[str] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.base_url = base_url
        self.api_key_env = api_key_env
        self.timeout_s = timeout_s
        self.max_retries = max_retries
        self.backoff_s = backoff_s
        self.max_wait_s = max_wait_s
        self.max_concurrency = max_concurrency
        self.prices = Prices.of(prices)
        self.tokenizer = tokenizer
        self.temperature = temperature
        self.top_p = top_p
        self.tokens_field = tokens_field
        self.omit = tuple(omit)
        self.extra = dict(extra) if extra else None
        self._check()
        self._start()

    def _check(self) -> None:
        checks = (
            ("model", isinstance(self.model, str) and self.model.strip(), "a name"),
            ("timeout_s", self.timeout_s > 0, "more than 0 seconds"),
            ("max_retries", self.max_retries >= 0, "at least 0"),
            ("backoff_s", self.backoff_s >= 0, "at least 0 seconds"),
            ("max_wait_s", self.max_wait_s >= 0, "at least 0 seconds"),
            ("max_concurrency", self.max_concurrency >= 1, "at least 1"),
        )
        for name, fine, needed in checks:
            if not fine:
                raise SpecError(f"{needed} is needed", repr(getattr(self, name)), where=f"OpenAIModel.{name}")
        if self.base_url is not None:
            _check_url(self.base_url)

    def _start(self) -> None:
        self._client: Any = None
        self._client_lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(self.max_concurrency)
        self._rng = random.Random()

    def _arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in inspect.signature(OpenAIModel).parameters}

    def __repr__(self) -> str:
        defaults = inspect.signature(OpenAIModel).parameters
        given = {k: v for k, v in self._arguments().items() if k != "model" and v != defaults[k].default}
        return f"OpenAIModel({', '.join([repr(self.model), *(f'{k}={v!r}' for k, v in given.items())])})"

    def __eq__(self, other: object) -> bool:
        return self._arguments() == other._arguments() if isinstance(other, OpenAIModel) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.model, self.base_url, self.api_key_env))

    def __reduce__(self) -> tuple[Any, ...]:
        # The client holds the key, and neither it nor a semaphore belongs into another process.
        return _rebuild, (self._arguments(),)

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
        """One reply of the endpoint.

        Raises:
            SpecError: No key, no `openai` package, or the endpoint refuses the key or knows no such model.
            DataError: No reply after all attempts, a refused request, or a reply that cannot be read.
        """
        temperature = self.temperature if temperature is None else temperature
        top_p = self.top_p if top_p is None else top_p
        request = Request(tuple(messages), tuple(tools), temperature, max_tokens, top_p, seed)
        client, key = self._connected()
        started = time.perf_counter()
        text, n_requests = self._asked(client, self._body(request), key)
        seconds = time.perf_counter() - started
        if len(key) >= _N_KEY_CHARACTERS:
            text = text.replace(key, "[key]")
        reply, counted = read_completion(text, where=self._where)
        usage = reply.usage if counted else estimated_usage(request, reply, self.tokenizer)
        cost = self.prices.cost_usd(usage) if self.prices else None
        name = reply.model or self.model
        return replace(reply, usage=usage, cost_usd=cost, model=name, seconds=seconds, requests=n_requests)

    @property
    def _where(self) -> str:
        return f"model {self.model}"

    def _body(self, request: Request) -> dict[str, Any]:
        body = {"model": self.model, **request.to_dict(), **(self.extra or {})}
        if not body["tools"]:
            del body["tools"]
        if "max_tokens" in body:
            body[self._tokens_field()] = body.pop("max_tokens")
        return {name: value for name, value in body.items() if name not in self.omit}

    def _tokens_field(self) -> str:
        if self.tokens_field:
            return self.tokens_field
        url = self.base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        own = urlsplit(url).hostname == "api.openai.com"
        return "max_completion_tokens" if own else "max_tokens"

    def _connected(self) -> tuple[Any, str]:
        with self._client_lock:
            key = self._key()
            if self._client is None or self._client.api_key != key:
                # The retries are ours, so that they are counted, bounded and the same everywhere.
                self._client = _openai().OpenAI(
                    api_key=key, base_url=self.base_url, timeout=self.timeout_s, max_retries=0
                )
            return self._client, key

    def _key(self) -> str:
        if self.api_key_env is None:
            return "none"
        key = os.environ.get(self.api_key_env, "").strip()
        if not key or not key.isascii() or not key.isprintable():
            found = "none" if not key else "one with characters that no header carries"
            hint = f"Set it (export {self.api_key_env}=…); an endpoint that takes no key wants api_key_env=None."
            needed = f"a key in the environment variable {self.api_key_env} is needed"
            raise SpecError(needed, found, where=self._where, hint=hint)
        return key

    def _asked(self, client: Any, body: Mapping[str, Any], key: str) -> tuple[str, int]:
        backoff = Backoff(self.backoff_s, self.max_wait_s)
        n_requests = 0
        while True:
            with self._slots:
                answer = _posted(client, body)
            n_requests += 1
            if isinstance(answer, str):
                return answer, n_requests
            wait_s = backoff.wait_s(n_requests - 1, answer.asked_s, self._rng)
            if not answer.transient or n_requests > self.max_retries or wait_s is None:
                # Raised out here, so that no traceback carries the client's error and its headers.
                raise self._error(answer, n_requests, key)
            time.sleep(wait_s)

    def _error(self, failure: _Failure, n_requests: int, key: str) -> SearchopsError:
        found = failure.text.replace(key, "[key]") if self.api_key_env else failure.text
        found += "" if n_requests == 1 else f", after {n_requests} requests"
        if failure.status in _SETUP_STATUSES:
            hint = f"Check model, base_url and {self.api_key_env or 'whether it wants a key (api_key_env)'}."
            needed = "an endpoint that accepts the request is needed"
            return SpecError(needed, found, where=self._where, hint=hint)
        hint = ""
        if failure.asked_s is not None and failure.asked_s > self.max_wait_s:
            hint = f"It asks for a wait of {failure.asked_s:.0f} s; max_wait_s allows {self.max_wait_s:g}."
        return DataError("a reply is needed", found, where=self._where, hint=hint)


def _rebuild(arguments: Mapping[str, Any]) -> OpenAIModel:
    return OpenAIModel(**arguments)


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    where = "OpenAIModel.base_url"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        hint = "Give it like http://127.0.0.1:8000/v1."
        raise SpecError("a base_url of http or https is needed", repr(url), where=where, hint=hint)
    if parts.username or parts.password:
        hint = "A key belongs into the environment (api_key_env), never into an address."
        raise SpecError("a base_url without a password is needed", where=where, hint=hint)


def _openai() -> Any:
    try:
        import openai
    except ImportError:
        hint = 'Install it: pip install "searchops[llm]"'
        raise SpecError("the package openai is needed", "none", where="OpenAIModel", hint=hint) from None
    return openai


def _posted(client: Any, body: Mapping[str, Any]) -> str | _Failure:
    """The body of the response, or why there is none. Ctrl-C passes through."""
    openai = _openai()
    try:
        # Read as plain JSON: the package's own types would fill in and rename what is wrong.
        rest = {name: value for name, value in body.items() if name not in ("model", "messages")}
        create = client.chat.completions.with_raw_response.create
        response = create(model=body["model"], messages=body["messages"], extra_body=rest)
        return str(response.text)
    except openai.APIStatusError as error:
        return _refused(error)
    except openai.APIConnectionError as error:
        return _Failure(_connection_text(error), transient=True)
    except (UnicodeError, TypeError, ValueError) as error:
        return _Failure(f"a request that cannot be sent as JSON ({type(error).__name__}: {clip(str(error))})")


def _refused(error: Any) -> _Failure:
    status = int(error.status_code)
    details = error.body if isinstance(error.body, Mapping) else {}
    code = details.get("code") or details.get("type")
    whole = error.body if isinstance(error.body, str) else json.dumps(error.body)
    message = details.get("message") or whole
    text = f"HTTP {status}: {clip(str(message))}" + (f" ({clip(str(code), 60)})" if code else "")
    asked_s = retry_after_s(error.response.headers, time.time())
    return _Failure(text, status, is_transient(status, str(code)), asked_s)


def _connection_text(error: Any) -> str:
    cause = error.__cause__
    inner = f" ({type(cause).__name__}: {clip(str(cause))})" if cause is not None else ""
    return f"{error.message.rstrip('.').lower()}{inner}"
