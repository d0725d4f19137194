"""How results are written for a model, and how such a text is read back.

A result is a line that says what it is, then one block an item. A block starts with the item's id in
brackets and its title; its text follows, two spaces in, so that no text can look like an id:

    2 passages for "deepest lake" (20 retrieved, 10 reranked)

    [lakes/1%p1] Lake Baikal
      It is the deepest lake on Earth.
    [lakes/2%p0] Lake Tanganyika
      Lake Tanganyika lies in Africa.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from searchops.agents.interface import Shown
from searchops.frames import Record
from searchops.splitting import parse_passage_id

__all__ = ["Item", "document_lines", "items_of", "passage_blocks", "shown_by", "shown_in", "squeezed"]

_HEAD: Final = re.compile(r"\[(.+?)\](?: (.*))?")
_LEAST: Final = 24  # characters of a passage that must stand in a text before they count as it


class Item(NamedTuple):
    """One item of an observation: its id, its title and its text ("" where only the id is shown)."""

    id: str
    title: str
    text: str


def passage_blocks(rows: Sequence[Record]) -> str:
    r"""Extracted passages: id, title, then the note.

    Example:
        >>> print(passage_blocks([{"passage_id": "d%p0", "title": "T", "note": "One.\nTwo."}]))
        [d%p0] T
          One.
          Two.
    """
    return "\n".join(f"{_head(row, str(row['passage_id']))}\n{_inset(str(row['note']))}" for row in rows)


def document_lines(rows: Sequence[Record]) -> str:
    """Candidates by id and title, a line each."""
    return "\n".join(_head(row, str(row.get("passage_id") or row["docno"])) for row in rows)


def items_of(text: str) -> list[Item]:
    r"""Reads the items of an observation of the search and tool interfaces.

    Example:
        >>> items_of("2 passages\n\n[d%p0] T\n  One.\n  Two.\n[e [x]%p1] \n  Three.")
        [Item(id='d%p0', title='T', text='One.\nTwo.'), Item(id='e [x]%p1', title='', text='Three.')]
    """
    return list(_items(text))


def _items(text: str) -> Iterator[Item]:
    head: tuple[str, str] | None = None
    lines: list[str] = []
    for line in [*text.split("\n"), "[]"]:
        if line.startswith("  "):
            lines.append(line[2:])
            continue
        if head is not None:
            yield Item(*head, "\n".join(lines))
        head, lines = _read_head(line), []


def _read_head(line: str) -> tuple[str, str] | None:
    """The id and title of a block's first line; an id may hold brackets, so a passage's number ends it."""
    found = re.match(r"\[(.+?%p\d+)\](?: (.*))?$", line) or _HEAD.fullmatch(line)
    return (found[1], found[2] or "") if found else None


def _head(row: Record, key: str) -> str:
    title = " ".join(str(row.get("title") or "").split())
    return f"[{key}] {title}"


def _inset(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.rstrip().splitlines()) or "  "


def squeezed(text: str) -> str:
    r"""A text for comparison: white space as single blanks, case folded.

    Example:
        >>> squeezed("The  NILE\n flows")
        'the nile flows'
    """
    return " ".join(text.split()).casefold()


def shown_by(rows: Sequence[Record]) -> tuple[Shown, ...]:
    """The source parts that the rendered notes of extracted rows show.

    A note that is the passage shows all of it, a clipped one what it still holds; a note in a scorer's own
    words shows its exact quote where that stands in the note.
    """
    parts = (_shown(row, squeezed(str(row["note"]))) for row in rows)
    return tuple(part for part in parts if part is not None)


def shown_in(rows: Sequence[Record], text: str) -> tuple[Shown, ...]:
    """The parts of known passages that stand in a text that a program wrote; each passage once."""
    told = squeezed(text)
    found: dict[str, Shown] = {}
    for key, row in {row["passage_id"]: row for row in rows if "passage_id" in row}.items():
        part = _shown(row, told)
        if part is not None:
            found[str(key)] = part
    return tuple(found.values())


def _shown(row: Record, told: str) -> Shown | None:
    text, quote = str(row["text"]), str(row.get("quote") or "")
    docno, number = parse_passage_id(str(row["passage_id"]))
    start = int(row["start"])
    length = _longest_start(text, told)
    if length:
        return Shown(docno, number, start, start + length)
    at = text.find(quote) if quote and quote != text else -1
    if at >= 0 and squeezed(quote) in told:
        return Shown(docno, number, start + at, start + at + len(quote))
    return None


def _longest_start(text: str, told: str) -> int:
    """How many characters of a passage, from its first, stand in a squeezed text."""
    head = squeezed(text[:_LEAST])
    if not head or head not in told:
        return 0
    if len(text) <= _LEAST or squeezed(text) in told:
        return len(text)
    low, high = _LEAST, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if squeezed(text[:middle]) in told else (low, middle)
    return len(text[:low].rstrip())
