"""The splitters: windows of sentences, windows of words, spans that are given.

White space belongs to the sentence or word before it, so that passages tile the text; the offsets
of a labelled sentence are then covered by the passage that holds it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import Any, TypeAlias

from searchops.errors import FrameError
from searchops.frames import Record, require
from searchops.splitting.sentence_ends import sentence_starts

__all__ = ["Given", "Sentences", "Splitter", "Words", "parse_passage_id", "passages"]

Span: TypeAlias = tuple[int, int]
"""Character offsets into a document's text: start, and end (exclusive)."""


class Splitter(ABC):
    """A way to cut documents. It is its constructor arguments: equality, hash and repr go by them."""

    @abstractmethod
    def spans(self, document: Record) -> list[Span]:
        """The spans of the passages, by start; together they cover all of the text.

        An empty text has no span.

        Raises:
            FrameError: The document has no text.
        """


@dataclass(frozen=True)
class Sentences(Splitter):
    """Windows of sentences.

    Sentence ends are found by rules: closing quotes and brackets stay with their sentence;
    abbreviations, initials and decimals do not end one; blank lines, list items and the lines of
    text that is not hard-wrapped do; so do the CJK full stops.

    Args:
        size: Sentences in a window.
        stride: Sentences from one window's start to the next; `size` if None (no overlap).
        max_chars: A longer sentence (a table, a text without punctuation) is cut at white space.

    Raises:
        FrameError: A number is below 1, or the stride is beyond the size (sentences would be lost).

    Example:
        >>> text = "Dr. Smith paid 3.50. She left."
        >>> [text[start:end] for start, end in Sentences().spans({"text": text})]
        ['Dr. Smith paid 3.50. ', 'She left.']
    """

    size: int = 1
    stride: int | None = None
    max_chars: int = 2000

    def __post_init__(self) -> None:
        """Refuses windows that would lose text."""
        _check_window("Sentences", self.size, self.stride)
        if self.max_chars < 1:
            raise FrameError("max_chars must be at least 1", str(self.max_chars), where="Sentences")

    def spans(self, document: Record) -> list[Span]:
        """The spans of the windows."""
        text = _text(document, "Sentences")
        tiles = _tiles_from(sentence_starts(text), len(text))
        if len(text) > self.max_chars:
            tiles = [piece for start, end in tiles for piece in _pieces(text, start, end, self.max_chars)]
        return _windows(tiles, self.size, self.stride or self.size)


@dataclass(frozen=True)
class Words(Splitter):
    """Windows of words, that is of stretches between white space.

    More than 100 characters without white space (a script that writes none, a data URL) count as
    several words, so no window grows without bound.

    Args:
        size: Words in a window.
        stride: Words from one window's start to the next; `size` if None (no overlap).

    Raises:
        FrameError: A number is below 1, or the stride is beyond the size (words would be lost).

    Example:
        >>> Words(size=2, stride=1).spans({"text": "one two three"})
        [(0, 8), (4, 13)]
    """

    size: int = 150
    stride: int | None = None

    def __post_init__(self) -> None:
        """Refuses windows that would lose text."""
        _check_window("Words", self.size, self.stride)

    def spans(self, document: Record) -> list[Span]:
        """The spans of the windows."""
        text = _text(document, "Words")
        stride = self.stride or self.size
        # One match takes a whole block of words: per-word matches would be several times slower.
        block = gcd(self.size, stride)
        starts = [match.start() for match in _blocks(block).finditer(text)]
        tiles = _tiles_from(starts[1:], len(text))
        return _windows(tiles, self.size // block, stride // block)


@dataclass(frozen=True)
class Given(Splitter):
    """Spans that are stored in the document, such as a data set's own sentences.

    What lies between two spans is given to the one before, what lies before the first to the first;
    empty spans are left out.

    Args:
        column: The document's column with (start, end) pairs, by start.
        otherwise: How to cut a document that has no such spans; if None it is an error.

    Example:
        >>> Given().spans({"docno": "d", "text": "One. Two.", "spans": [[0, 4], [5, 9]]})
        [(0, 5), (5, 9)]
    """

    column: str = "spans"
    otherwise: Splitter | None = None

    def spans(self, document: Record) -> list[Span]:
        """The stored spans, widened to cover the text.

        Raises:
            FrameError: There are none (and no `otherwise`), or they do not lie in the text in order.
        """
        text = _text(document, "Given")
        stored = document.get(self.column)
        if stored is None or isinstance(stored, float):
            if self.otherwise is not None:
                return self.otherwise.spans(document)
            raise FrameError(
                f"spans in the column {self.column!r} are needed",
                f"none for docno {document.get('docno')!r}",
                where="Given",
                hint=f"Give Given({self.column!r}, otherwise=Sentences()).",
            )
        pairs = [(int(start), int(end)) for start, end in stored if start != end]
        self._check(pairs, len(text), document.get("docno"))
        starts = [0, *(start for start, _ in pairs[1:])]
        next_starts = [*starts[1:], len(text)]
        ends = [end for _, end in pairs] or [len(text)]
        widened = zip(starts, map(max, ends, next_starts), strict=True)
        return [(start, end) for start, end in widened if start < end]

    def _check(self, pairs: list[Span], length: int, docno: Any) -> None:
        before = 0
        for start, end in pairs:
            if not before <= start < end <= length:
                raise FrameError(
                    f"spans by start within the text's {length:,} characters are needed",
                    f"({start}, {end}) after {before} for docno {docno!r}",
                    where=f"Given({self.column!r})",
                )
            before = start


def passages(document: Record, splitter: Splitter) -> list[Record]:
    """The passages of a document, in order: its columns, with the passage's id, offsets and text.

    Columns: D -> D + passage_id, start, end; text becomes the slice.

    Raises:
        FrameError: The document has no docno or no text.

    Example:
        >>> [(p["passage_id"], p["text"]) for p in passages({"docno": "d", "text": "One. Two."}, Sentences())]
        [('d%p0', 'One. '), ('d%p1', 'Two.')]
    """
    docno = require(document, "docno", where="passages")
    text = _text(document, "passages")
    return [
        {**document, "passage_id": f"{docno}%p{n}", "start": start, "end": end, "text": text[start:end]}
        for n, (start, end) in enumerate(splitter.spans(document))
    ]


def parse_passage_id(passage_id: str) -> tuple[str, int]:
    """The docno and the passage's number. The last `%p` counts: a docno may hold one itself.

    Raises:
        FrameError: It is no passage id.

    Example:
        >>> parse_passage_id("50%pure.html%p12")
        ('50%pure.html', 12)
    """
    docno, mark, number = passage_id.rpartition("%p")
    if not (docno and mark and number.isascii() and number.isdigit()):
        raise FrameError("a passage id such as 'docno%p0' is needed", repr(passage_id))
    return docno, int(number)


def _check_window(where: str, size: int, stride: int | None) -> None:
    if size < 1:
        raise FrameError("size must be at least 1", str(size), where=where)
    if stride is not None and not 1 <= stride <= size:
        raise FrameError(
            f"a stride from 1 to the size ({size}) is needed",
            str(stride),
            where=where,
            hint="A longer stride would leave text in no passage.",
        )


def _text(document: Record, where: str) -> str:
    text = require(document, "text", where=where)
    if not isinstance(text, str):
        raise FrameError("a document's text must be text", f"{text!r} for docno {document.get('docno')!r}", where=where)
    return text


def _windows(tiles: list[Span], size: int, stride: int) -> list[Span]:
    """Windows of tiles. The last one ends with the text, and may be shorter than the others."""
    if size == stride == 1:
        return tiles
    n_windows = -(-max(len(tiles) - size, 0) // stride) + 1 if tiles else 0
    firsts = range(0, n_windows * stride, stride)
    return [(tiles[first][0], tiles[min(first + size, len(tiles)) - 1][1]) for first in firsts]


def _tiles_from(cuts: list[int], length: int) -> list[Span]:
    return list(zip([0, *cuts], [*cuts, length], strict=True)) if length else []


def _pieces(text: str, start: int, end: int, max_chars: int) -> list[Span]:
    """A span in pieces of at most so many characters, cut behind white space where there is any."""
    pieces = []
    while end - start > max_chars:
        stop = start + max_chars
        words = text[start:stop].rsplit(None, 1)
        if len(words) == 2 and not text[stop - 1].isspace() and not text[stop].isspace():
            stop -= len(words[1])
        pieces.append((start, stop))
        start = stop
    return [*pieces, (start, end)]


@lru_cache(maxsize=64)
def _blocks(n_words: int) -> re.Pattern[str]:
    return re.compile(rf"(?:\S{{1,100}}\s*){{1,{n_words}}}")
