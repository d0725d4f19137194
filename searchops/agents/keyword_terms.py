"""Names and telling words of a text, by rules: what the keyword policy makes its queries of.

The rules know the shape of English text (capitals, quotation marks, function words) and nothing of any
collection. They are the same whatever interface the text came through.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from searchops.scorers.statistics import Analyzer

__all__ = ["Name", "names", "stems", "words"]

_ANALYZER: Final = Analyzer(stopwords="none")
_WORD: Final = re.compile(r"[^\W_]+(?:['’.\-&/_]+[^\W_]+)*")
_QUOTED: Final = re.compile(r'["“]([^"“”\n]{2,80})["”]')
_CODE: Final = re.compile(r"[a-z0-9][._][a-z]|[a-z]_[a-z0-9]|[a-z][A-Z]")
_LONGEST: Final = 10  # words of a name
_QUOTED_WORDS: Final = 8
_SHORTEST: Final = 3  # letters of a telling word

_PARTICLES_TEXT = "al bin da de del della der des di du el ibn la le of the van von y"
_ABBREVIATED_TEXT = "dr jr mr mrs ms prof sr st"
_DATES_TEXT = (
    "january february march april may june july august september october november december "
    "monday tuesday wednesday thursday friday saturday sunday"
)
_FUNCTION_TEXT = (
    "a about above after again against all also although am among an and another any are as at be because been "
    "before being below between both but by can could did do does doing down during each either every few for from "
    "further had has have having he her here hers herself him himself his how however i if in into is it its itself "
    "just me more most much my neither no nor not now of off on once one only or other our out over own per same she "
    "should since so some such than that the their them then there these they this those through thus to too under "
    "until up upon us very was we were what when where whether which while who whom whose why will with within "
    "without would yes yet you your"
)
_PARTICLES, _ABBREVIATED, _DATES, _FUNCTION = (
    frozenset(text.split()) for text in (_PARTICLES_TEXT, _ABBREVIATED_TEXT, _DATES_TEXT, _FUNCTION_TEXT)
)


class Name(NamedTuple):
    """A name as it stands in a text.

    Attributes:
        text: Its words.
        strong: It has two words or more, was quoted, or is written as code is; a single capital can be chance.
    """

    text: str
    strong: bool


@lru_cache(maxsize=4096)
def names(text: str) -> tuple[Name, ...]:
    """The names of a text, each once, in order: capitalised sequences, quoted titles, identifiers.

    A capital at the start of a sentence says nothing: function words there are left out, and a single word
    counts only if it is capitalised elsewhere too.

    Example:
        >>> [name.text for name in names('In 1951 Curtis Bernhardt directed "Payment on Demand" for RKO.')]
        ['Curtis Bernhardt', 'Payment on Demand', 'RKO']
        >>> names("Directed by nobody.")
        ()
    """
    found: dict[str, tuple[int, Name]] = {}
    quoted = list(_quoted(text))
    rest = _masked(text, quoted)
    for start, name in sorted([*quoted, *_capitalised(rest), *_identifiers(rest)]):
        if stems(name.text):
            old = found.get(name.text.casefold())
            if old is None or name.strong > old[1].strong:
                found[name.text.casefold()] = (old[0] if old else start, name)
    return tuple(name for _, name in sorted(found.values()))


@lru_cache(maxsize=4096)
def words(text: str) -> Mapping[str, str]:
    """Telling words of a text: each stem with the word as it first stands there.

    Example:
        >>> dict(words("Which lake is the deepest of the lakes?"))
        {'lake': 'lake', 'deepest': 'deepest'}
    """
    found: dict[str, str] = {}
    for match in _WORD.finditer(text):
        word = match[0]
        if len(word) >= _SHORTEST and word.casefold() not in _FUNCTION:
            for stem in _stems_of(word):
                found.setdefault(stem, word)
    return MappingProxyType(found)


@lru_cache(maxsize=4096)
def stems(text: str) -> frozenset[str]:
    """The stems of a text's telling words.

    Example:
        >>> sorted(stems("The Libertines' bands"))
        ['band', 'libertin']
    """
    return frozenset(words(text))


@lru_cache(maxsize=65536)
def _stems_of(word: str) -> tuple[str, ...]:
    return tuple(stem for stem in _ANALYZER.tokens(word) if len(stem) > 1)


def _quoted(text: str) -> Iterator[tuple[int, Name]]:
    for match in _QUOTED.finditer(text):
        inner = match[1].strip(" ,.;")
        if any(c.isupper() for c in inner) and len(inner.split()) <= _QUOTED_WORDS:
            yield match.start(1) + match[1].index(inner), Name(inner, True)


def _masked(text: str, quoted: list[tuple[int, Name]]) -> str:
    """The text without what is quoted, at the same places: a title's words are no names of their own."""
    for start, name in quoted:
        text = text[:start] + '"' * len(name.text) + text[start + len(name.text) :]
    return text


def _identifiers(text: str) -> Iterator[tuple[int, Name]]:
    for match in _WORD.finditer(text):
        if _CODE.search(match[0]):
            yield match.start(), Name(match[0], True)


def _capitalised(text: str) -> Iterator[tuple[int, Name]]:
    inside = {word[0] for run, first in _runs(text) for word in run[first:]}
    for run, first in _runs(text):
        if first:
            run = _without_lead(run)
            if len(run) == 1 and run[0][0] not in inside and not _acronym(run[0][0]):
                continue
        if run and not all(word[0].casefold() in _DATES or word[0].isdigit() for word in run):
            n_words = sum(word[0] not in _PARTICLES for word in run)
            yield run[0].start(), Name(" ".join(text[run[0].start() : run[-1].end()].split()), n_words > 1)


def _runs(text: str) -> Iterator[tuple[list[re.Match[str]], bool]]:
    """Sequences of capitalised words, with whether a sentence begins there."""
    found = list(_WORD.finditer(text))
    place = 0
    while place < len(found):
        if not found[place][0][0].isupper():
            place += 1
            continue
        stop = last = place + 1
        while stop < len(found) and stop - place < _LONGEST and _adjoin(text, found[stop - 1], found[stop]):
            word = found[stop][0]
            stop += 1
            if word[0].isupper() or word.isdigit():
                last = stop
            elif word not in _PARTICLES or stop - last > 2:
                break
        yield found[place:last], _begins_sentence(text, found[place].start())
        place = last


def _without_lead(run: list[re.Match[str]]) -> list[re.Match[str]]:
    for place, word in enumerate(run):
        if word[0].casefold() not in _FUNCTION and not word[0].isdigit():
            return run[place:]
    return []


def _adjoin(text: str, one: re.Match[str], other: re.Match[str]) -> bool:
    """Whether nothing but a blank, or an abbreviation's full stop, stands between two words."""
    gap = text[one.end() : other.start()]
    if gap.startswith(".") and (len(one[0]) == 1 or one[0].casefold() in _ABBREVIATED):
        gap = gap[1:]
    return gap.isspace() and gap.count("\n") < 2


def _begins_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 4) : start].rstrip(" \t\"'“‘(")
    return start == 0 or not before or before[-1] in ".!?:;\n"


def _acronym(word: str) -> bool:
    return len(word) > 1 and word.isupper()
