"""The call that answers when all decisions are used: the question and what extraction kept, no tools."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from searchops.models.protocol import Message
from searchops.primitives.extract import clip
from searchops.workspace import Evidence

__all__ = ["final_messages"]

_WINDOW_CHARS: Final = 2000
_RESERVED: Final = 80


def final_messages(question: str, ledger: Sequence[Evidence], system: str, limit: int) -> list[Message]:
    """System and user message, together at most `limit` characters.

    The source windows of the ledger are taken round-robin over the extract calls, so that each one is
    heard; what does not fit is counted in the text.

    Args:
        question: The question.
        ledger: What extraction kept.
        system: The finalizer's prompt.
        limit: The most characters of both messages.

    Source: PSA, A.2.

    Example:
        >>> len(final_messages("Who?", [], "Answer.", 2000))
        2
    """
    system = clip(system, limit // 2)
    asked = "Question: " + clip(question, (limit - len(system)) // 2)
    left = limit - len(system) - len(asked) - _RESERVED
    blocks: list[str] = []
    windows = _in_turns(ledger)
    for place, item in enumerate(windows):
        block = f"[{item.passage_id}] {item.title}\n{clip(item.text, _WINDOW_CHARS)}"
        if len(block) + 2 > left:
            blocks.append(f"({len(windows) - place} more passages are left out for lack of room)")
            break
        blocks.append(block)
        left -= len(block) + 2
    evidence = "\n\n".join(blocks) if blocks else "(no evidence was extracted)"
    return [Message("system", system), Message("user", f"{asked}\n\nEvidence:\n\n{evidence}")]


def _in_turns(ledger: Sequence[Evidence]) -> list[Evidence]:
    """The windows, each passage once: the first of every extract call, then the second of each, …"""
    calls: dict[tuple[str, str], list[Evidence]] = {}
    for item in ledger:
        calls.setdefault((item.query, item.instruction), []).append(item)
    found: dict[str, Evidence] = {}
    for row in zip_longest(*calls.values()):
        for item in row:
            if item is not None:
                found.setdefault(item.passage_id, item)
    return list(found.values())
