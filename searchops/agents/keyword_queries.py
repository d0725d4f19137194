"""What the keyword policy asks next: the same rules whatever interface the passages came through.

It sees the question, the queries asked so far and the passages shown for them; nothing else. A passage is
*tied* to the question if it shares two telling words with it (or the only one), or if it holds the new words
of the query that found it and one word of the question. Only tied passages give new queries, and a search
that shows no new one was in vain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from searchops.agents.keyword_terms import names, stems, words
from searchops.agents.observations import Item

__all__ = ["Round", "next_queries", "sources"]

_QUESTION_CHARS: Final = 1000
_TIES: Final = 2  # words of the question that a passage must share
_OPEN_WORDS: Final = 3  # words of the question that go along with a name
_RARE_WORDS: Final = 3
_RARE_LETTERS: Final = 5
_TIER: Final = 1000  # between kinds of leads; within a kind the words shared with the question decide
_ASKED_FOR, _NEW_NAME, _READ_NAME, _ONE_CAPITAL, _RARE = (n * _TIER for n in (4, 3, 2, 1, 0))


@dataclass
class Round:
    """Queries asked together, and the passages that were shown for them."""

    queries: list[str]
    shown: list[Item] = field(default_factory=list)


class _Lead(NamedTuple):
    """A query to come: the stems that are new in it, its text and how much speaks for it."""

    key: frozenset[str]
    query: str
    weight: int


def next_queries(question: str, rounds: Sequence[Round], *, queries: int, parallel: int, patience: int) -> list[str]:
    """The next queries, the most promising first; none if nothing new comes or all were asked.

    Args:
        question: The question.
        rounds: What was asked and shown so far.
        queries: The most queries in all.
        parallel: The most queries now.
        patience: How many rounds in vain end the search.

    Example:
        >>> next_queries("Who wrote Emma?", [], queries=12, parallel=2, patience=2)
        ['Who wrote Emma?']
        >>> shown = Item("d1%p0", "Emma", "Emma is a novel that Jane Austen wrote.")
        >>> rounds = [Round(["Who wrote Emma?"], [shown])]
        >>> next_queries("Who wrote Emma?", rounds, queries=12, parallel=1, patience=2)
        ['Jane Austen']
    """
    if not rounds:
        return [" ".join(question.split())[:_QUESTION_CHARS]]
    n_left = queries - sum(len(round_.queries) for round_ in rounds)
    if n_left <= 0 or _in_vain(question, rounds) >= patience:
        return []
    asked = [stems(query) for round_ in rounds[1:] for query in round_.queries]
    chosen: list[_Lead] = []
    for lead in _ranked(_leads(question, rounds)):
        taken = [*asked, *(stems(other.query) for other in chosen)]
        if not any(lead.key <= old for old in taken):
            chosen.append(lead)
        if len(chosen) == min(parallel, n_left):
            break
    return [lead.query for lead in chosen]


def sources(question: str, rounds: Sequence[Round]) -> list[Item]:
    """What was shown, each passage once, the most related to the question first."""
    found = {item.id: item for round_ in rounds for item in round_.shown}
    return sorted(found.values(), key=lambda item: -_overlap(question, item))


def _leads(question: str, rounds: Sequence[Round]) -> Iterator[_Lead]:
    """All leads: what the question names and no title shows, new names, names read about, the rest.

    A single capital of the question (a name, or only "American") waits behind the new names.
    """
    shown = list({item.id: item for round_ in rounds for item in round_.shown}.values())
    for name in names(question):
        about = _about(name.text, shown)
        tier = _READ_NAME if about else _ASKED_FOR if name.strong else _NEW_NAME
        yield _lead_of(name.text, question, about, tier)
    counts = Counter(stem for item in shown for stem in _stems_in(item))
    for _, item in _tied(question, rounds):
        shared = len(stems(question) & _stems_in(item))
        for name in names(item.text):
            if not stems(name.text) <= stems(question):
                tier = _ONE_CAPITAL if not name.strong else _READ_NAME if _about(name.text, shown) else _NEW_NAME
                yield _lead_of(name.text, question, [item], tier + shared)
        rare = _rare_words(question, item, counts)
        if rare:
            yield _lead_of(rare, question, [item], _RARE + shared)


def _lead_of(text: str, question: str, known: Sequence[Item], weight: int) -> _Lead:
    """A query of new words and the first words of the question that are still open.

    Open are words that are no part of the question's strong names and do not stand in the passages known about
    the new words: those of a name's own document, or the one that gave it.
    """
    key = stems(text)
    named = (stems(name.text) for name in names(question) if name.strong)
    closed = key.union(*named, *map(_stems_in, known))
    left = [word for stem, word in words(question).items() if stem not in closed]
    return _Lead(key, " ".join([text, *left[:_OPEN_WORDS]]), weight)


def _about(text: str, shown: Sequence[Item]) -> list[Item]:
    """The passages of documents that a name is the title of, or part of the title."""
    key = stems(text)
    return [item for item in shown if key <= stems(item.title)]


def _rare_words(question: str, item: Item, counts: Mapping[str, int]) -> str:
    """Up to three words that stand in this passage alone and in no name; "" if there are none."""
    known = stems(question).union(*(stems(name.text) for name in names(item.text)))
    rare = [
        word
        for stem, word in words(item.text).items()
        if word.islower() and len(word) >= _RARE_LETTERS and stem not in known
        and counts[stem] == 1
    ]  # fmt: skip
    return " ".join(rare[:_RARE_WORDS])


def _ranked(leads: Iterator[_Lead]) -> list[_Lead]:
    """The best lead of each key, the weightiest first, then in order of appearance."""
    best: dict[frozenset[str], _Lead] = {}
    for lead in leads:
        known = best.get(lead.key)
        if known is None or lead.weight > known.weight:
            best[lead.key] = lead
    return sorted(best.values(), key=lambda lead: -lead.weight)


def _in_vain(question: str, rounds: Sequence[Round]) -> int:
    """How many of the last rounds in a row showed no new tied passage."""
    useful = {place for place, _ in _tied(question, rounds)}
    return next((n for n in range(len(rounds)) if len(rounds) - 1 - n in useful), len(rounds))


def _tied(question: str, rounds: Sequence[Round]) -> Iterator[tuple[int, Item]]:
    """Tied passages in order, each where it was first shown."""
    seen: set[str] = set()
    asked = stems(question)
    for place, round_ in enumerate(rounds):
        new = [stems(query) - asked for query in round_.queries]
        for item in round_.shown:
            there = _stems_in(item)
            n_shared = len(asked & there)
            found = n_shared and any(key and key <= there for key in new)
            if item.id not in seen and (n_shared >= min(_TIES, len(asked)) or found):
                yield place, item
            seen.add(item.id)


def _overlap(question: str, item: Item) -> int:
    return len(stems(question) & _stems_in(item))


@lru_cache(maxsize=4096)
def _stems_in(item: Item) -> frozenset[str]:
    return stems(item.title) | stems(item.text)
