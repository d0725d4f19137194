"""Passages cut and packed so that a prompt holds them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Piece", "batches", "numbered", "pieces"]


class Piece(NamedTuple):
    """A passage, or a part of one that is too long; `passage` is its position in the list."""

    passage: int
    text: str


def pieces(passages: Sequence[str], limit: int) -> list[Piece]:
    """The passages, those whose JSON is longer than `limit` in parts that overlap by a tenth.

    Example:
        >>> [(piece.passage, len(piece.text)) for piece in pieces(["a" * 10, "b" * 300], 240)]
        [(0, 10), (1, 206), (1, 114)]
    """
    return [Piece(index, part) for index, text in enumerate(passages) for part in _parts(text, limit)]


def batches(pool: Sequence[Piece], room: int) -> list[list[Piece]]:
    """Neighbours packed together, each batch's JSON within `room` characters.

    Pieces of at most half the room pack at least two by two, so each round of winners is shorter.
    """
    packed: list[list[Piece]] = [[]]
    used = 0
    for piece in pool:
        size = _size(piece.text)
        if packed[-1] and used + size > room:
            packed.append([])
            used = 0
        packed[-1].append(piece)
        used += size
    return packed


def numbered(fields: Mapping[str, str], batch: Sequence[Piece]) -> str:
    """The user's message: fields and passages as JSON, so that no text can pose as another's number.

    Example:
        >>> numbered({"query": "q"}, [Piece(4, "one")])
        '{"query": "q", "passages": [{"passage": 1, "text": "one"}]}'
    """
    passages = [{"passage": number, "text": piece.text} for number, piece in enumerate(batch, start=1)]
    return json.dumps({**fields, "passages": passages}, ensure_ascii=False)


def _size(text: str) -> int:
    # The number may have seven digits; the comma and the blank between passages count too.
    shell: dict[str, Any] = {"passage": 1_000_000, "text": text}
    return len(json.dumps(shell, ensure_ascii=False)) + 2


def _parts(text: str, limit: int) -> list[str]:
    parts: list[str] = []
    start = 0
    while True:
        length = _fitting(text, start, limit)
        parts.append(text[start : start + length])
        if start + length >= len(text):
            return parts
        start += max(length - length // 10, 1)


def _fitting(text: str, start: int, limit: int) -> int:
    """How many characters from `start` fit; escapes make some characters longer than one."""
    low, high = 1, max(min(len(text) - start, limit), 1)
    while low < high:
        middle = (low + high + 1) // 2
        if _size(text[start : start + middle]) <= limit:
            low = middle
        else:
            high = middle - 1
    return low
