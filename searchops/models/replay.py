"""A model that plays a record again and refuses what the record does not hold."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from typing import Any

from searchops.errors import DataError
from searchops.models.protocol import Exchange, Message, Reply, Request, Tool
from searchops.records import whole_requests

__all__ = ["ReplayModel", "read_exchanges"]

N_DIFF_LINES = 24
N_LINE_CHARACTERS = 200
_NOTHING = object()


class ReplayModel:
    """Gives recorded replies to exactly the recorded requests.

    Messages, tools and settings must be those of the record. The first difference ends the replay with a
    text that shows where it is: a replay that went on would measure something that never happened.

    Args:
        record: Exchanges, or a JSONL file whose lines hold a `request` and a `reply` (or a folder with
            such a `decisions.jsonl`).
        in_order: Whether requests must come in the order of the record. Questions that run side by side
            need False: then each request takes the first unused exchange that equals it.

    Raises:
        DataError: The record is missing or damaged.

    Example:
        >>> asked = Request((Message("user", "Who?"),))
        >>> model = ReplayModel([Exchange(asked, Reply("Ada"))])
        >>> model.complete([Message("user", "Who?")]).content
        'Ada'
        >>> model.remaining
        0
    """

    def __init__(self, record: str | Path | Sequence[Exchange | Mapping[str, Any]], *, in_order: bool = True) -> None:
        self.record = record
        self.in_order = in_order
        if isinstance(record, (str, Path)):
            self._exchanges = read_exchanges(record)
        else:
            self._exchanges = [e if isinstance(e, Exchange) else Exchange.from_dict(e) for e in record]
        self._unused: dict[str, deque[int]] = {}
        for position, exchange in enumerate(self._exchanges):
            self._unused.setdefault(_key(exchange.request), deque()).append(position)
        self._n_used = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        path = isinstance(self.record, (str, Path))
        shown = repr(str(self.record)) if path else f"{len(self._exchanges)} exchanges"
        return f"ReplayModel({shown}, in_order={self.in_order})"

    @property
    def remaining(self) -> int:
        """How many recorded exchanges were not asked for yet."""
        return len(self._exchanges) - self._n_used

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
        """The recorded reply.

        Raises:
            DataError: The request is not the recorded one, or the record is at its end.
        """
        request = Request(tuple(messages), tuple(tools), temperature, max_tokens, top_p, seed)
        with self._lock:
            positions = self._unused.get(_key(request))
            if not positions or (self.in_order and positions[0] != self._n_used):
                raise self._refusal(request)
            self._n_used += 1
            return self._exchanges[positions.popleft()].reply

    def _refusal(self, request: Request) -> DataError:
        where = f"ReplayModel, request {self._n_used + 1}"
        if self.remaining == 0:
            return DataError("a request of the record is needed", "the record at its end", where=where)
        positions = [self._n_used] if self.in_order else sorted(p for ps in self._unused.values() for p in ps)
        recorded = [self._exchanges[position].request for position in positions]
        nearest = max(recorded, key=lambda other: _n_common(request, other))
        old, new = nearest.to_dict(), request.to_dict()
        path, old, new = next(_differences(old, new), ("the JSON text", old, new))
        hint = f"The first difference is at {path}:\n{_diff(old, new)}"
        return DataError("the recorded request is needed", "another one", where=where, hint=hint)


def read_exchanges(path: str | Path) -> list[Exchange]:
    """The exchanges of a JSONL file, or of the `decisions.jsonl` in a folder; what a line shares is put in.

    Raises:
        DataError: The file is missing, or a line of it is no exchange (the text names the line).
    """
    file = Path(path)
    file = file / "decisions.jsonl" if file.is_dir() else file
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError("a readable record is needed", str(error), where=str(file)) from error
    places = [f"{file}:{n}" for n, line in enumerate(lines, start=1) if line.strip()]
    data = whole_requests(_data(line, f"{file}:{n}") for n, line in enumerate(lines, start=1) if line.strip())
    return [_exchange(each, where) for each, where in zip(data, places, strict=True)]


def _data(line: str, where: str) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except ValueError as error:
        raise DataError("a line of JSON is needed", str(error), where=where) from None
    if not isinstance(data, dict):
        raise DataError("a JSON object is needed", type(data).__name__, where=where)
    return data


def _exchange(data: dict[str, Any], where: str) -> Exchange:
    try:
        return Exchange.from_dict(data)
    except DataError as error:
        raise DataError(error.needed, error.found, where=f"{where}: {error.where}", hint=error.hint) from None


def _key(request: Request) -> str:
    data = request.to_dict()
    # A temperature of 0 and one of 0.0 are one setting, though JSON writes them differently.
    floats = {name: float(data[name]) for name in ("temperature", "top_p") if name in data}
    return sha256(json.dumps({**data, **floats}, sort_keys=True).encode()).hexdigest()


def _n_common(one: Request, other: Request) -> int:
    pairs = list(zip(one.messages, other.messages, strict=False))
    return next((n for n, (a, b) in enumerate(pairs) if a != b), len(pairs))


def _differences(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            inner = f"{path}.{key}" if path else str(key)
            yield from _differences(old.get(key, _NOTHING), new.get(key, _NOTHING), inner)
    elif isinstance(old, list) and isinstance(new, list):
        for position in range(max(len(old), len(new))):
            before, after = (side[position] if position < len(side) else _NOTHING for side in (old, new))
            yield from _differences(before, after, f"{path}[{position}]")
    elif old != new:
        yield path, old, new


def _diff(old: Any, new: Any) -> str:
    lines = list(unified_diff(_lines(old), _lines(new), "recorded", "asked", lineterm="", n=1))
    shown = [line[:N_LINE_CHARACTERS] for line in lines[:N_DIFF_LINES]]
    left = len(lines) - len(shown)
    return "\n".join([*shown, f"[{left} more lines]"] if left else shown)


def _lines(value: Any) -> list[str]:
    if value is _NOTHING:
        return []
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)).split("\n")
