"""Cuts a text that is longer than a model reads into windows that together hold every character."""

from __future__ import annotations

from typing import Any

__all__ = ["readable", "token_count", "token_windows", "window_spans"]


def readable(text: str) -> str:
    """The text, with half surrogate pairs as "?" (a tokenizer refuses them); offsets stay."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def token_count(tokenizer: Any, text: str) -> int:
    """How many tokens a text has, without the special ones around it."""
    return len(tokenizer(readable(text), add_special_tokens=False, truncation=False, verbose=False)["input_ids"])


def token_windows(tokenizer: Any, text: str, limit: int) -> list[str]:
    """Pieces of the text, each of at most `limit` tokens; one piece where the text fits.

    Neighbours share an eighth of a window, so that what stands at a border is whole in one of them.
    A cut falls before a word where there is one.
    """
    text = readable(text)
    return [text[start:end] for start, end in window_spans(tokenizer, text, limit)]


def window_spans(tokenizer: Any, text: str, limit: int) -> list[tuple[int, int]]:
    """Where the windows of a readable text start and end: in order, every character in at least one."""
    whole = [(0, len(text))]
    if len(text.encode()) <= limit:  # no tokenizer makes more tokens than bytes
        return whole
    starts = _token_starts(tokenizer, text)
    if len(starts) <= limit:
        return whole
    starts[0] = 0  # what no token holds, such as blanks, goes with a neighbour
    starts.append(len(text))
    spans, first, size = [], 0, limit
    while True:
        last = min(first + size, len(starts) - 1)
        if last < len(starts) - 1:
            last = _before_word(text, starts, first, last)
        span = (starts[first], starts[last])
        if size > 1 and token_count(tokenizer, text[slice(*span)]) > limit:
            size = size * 7 // 8  # cut off from its neighbours, a text may have a few tokens more
            continue
        spans.append(span)
        if last == len(starts) - 1:
            return spans
        first, size = max(_before_word(text, starts, first, last - size // 8), first + 1), limit


def _token_starts(tokenizer: Any, text: str) -> list[int]:
    encoded = tokenizer(text, add_special_tokens=False, truncation=False, return_offsets_mapping=True, verbose=False)
    return [int(start) for start, _ in encoded["offset_mapping"]]


def _before_word(text: str, starts: list[int], first: int, last: int) -> int:
    """The nearest place at or before `last`, in the window's second half, where a word begins."""
    for place in range(last, first + (last - first) // 2, -1):
        start = starts[place]
        if text[start : start + 1].isspace() or text[start - 1 : start].isspace():
            return place
    return last
