"""Where sentences end, by rules over one compiled scan of the text.

The scan finds the places that could be an end (stops before white space, line breaks, CJK stops);
only those that are not certain are judged by the words on both sides. Abbreviations are English.
"""

from __future__ import annotations

import re

__all__ = ["sentence_starts"]

_SURE, _LINE, _WIDE = 1, 2, 3  # the groups of _CANDIDATE

# Characters are written as escapes where they look like others: \u2026 is the ellipsis; \u3002, \uff01,
# \uff1f and \uff61 are the CJK stops; \u2019, \u201d and \xbb close quotes, \u2018, \u201c and \xab open
# them; \u300d, \u300f, \u300b and \uff09 close CJK quotes and brackets.
_CANDIDATE = re.compile(
    r"""
    [.!?\u2026\n\u3002\uff01\uff1f\uff61]   # one class in front: the scan for it runs at full speed
    (?:
        # The frequent sure ends: a bracket, a year or a long word, a full stop, a capital.
        (?: (?<=[)%\]]\.) | (?<=[a-z,][ ]\d\d\d\d\.)
        |   (?<=[a-z]{5}\.) (?<!essrs\.)(?<!pprox\.)(?<!subsp\.)(?<!trans\.) )
        ([ ]+) (?=[A-Z])
    |   (?<=\n) (?![a-z][a-z]) (\s*)
    |   (?<=[\u3002\uff01\uff1f\uff61])
        ([\u3002\uff01\uff1f\uff61]*["'\u201d\u2019\u300d\u300f\u300b\uff09]*\s*)
    |   (?<=[.!?\u2026]) [.!?\u2026]* ["'\u201d\u2019\xbb)\]}]*
        (?:\s?\[\s?\d{1,3}\s?\])* \s+       # with footnotes [1]
    )
    """,
    re.VERBOSE,
)
_WORD_AFTER = re.compile(r"[\"'\u201c\u2018\xab(\[]*([^\W\d_]+)(\.?)")
_LIST_ITEM = re.compile(r"(?:[-*+\u2013\u2014\u2022\u2023\u25aa\u25e6]|\(?(?:\d{1,3}|[a-zA-Z])[.)]|#+)\s")
_OPENING = "([{<\"'\u201c\u2018\xab"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BEFORE_NAME = _words(
    "dr mr mrs ms messrs mme mlle prof st ste sts rev fr hon gen col maj capt cmdr cdr adm lt sgt cpl gov sen"
    " rep pres supt mt ft vs e.g i.e eg ie cf viz ca approx resp ssp subsp feat ed eds trans est"
    " lit dir prod aft bef née aka a.k.a gens msgr amb atty sec asst"
)
"""Abbreviations that stand before what they belong to: no sentence ends there."""

_BEFORE_NUMBER = _words("b c d fl r no nos nr vol vols fig figs eq eqs pp p pg ch sect art op ref refs tab pt")
"""Words that are abbreviations only where a number follows."""

_EITHER = _words(
    "jr sr inc ltd co corp bros etc al spp sp ave blvd rd dept univ dist assn jan feb mar apr jun jul aug sep"
    " sept oct nov dec phd ph.d s.d s.e a.m p.m am pm"
)
"""Abbreviations that may end a sentence: the next word decides."""

_ABBREVIATIONS = _BEFORE_NAME | _BEFORE_NUMBER | _EITHER

_STARTERS = _words(
    "the a an in on at it he she they we i you this that these those his her its their our there here"
    " as after before when while during although though however for from with by to if since because"
    " both one two many most some all among according following additionally moreover furthermore thus"
    " therefore then also but and or so such other another each several under over until between within"
    " despite where what who which how why results conclusions methods background objective furthermore"
    " currently originally today upon through throughout unlike like using based only once later"
)
"""Words that start a sentence far more often than they follow an abbreviation or initial."""


def sentence_starts(text: str) -> list[int]:
    """The offsets inside the text at which a new sentence starts (0 is not among them).

    The white space between two sentences belongs to the first.

    Example:
        >>> text = "In the U.S. Cavalry. See Fig. 3 (e.g. there)! Yes."
        >>> [text[start:] for start in sentence_starts(text)]
        ['See Fig. 3 (e.g. there)! Yes.', 'Yes.']
    """
    lower, length = text.islower(), len(text)
    return [
        match.end()
        for match in _CANDIDATE.finditer(text)
        if match.lastindex == _SURE or (match.end() < length and _ends(match, lower))
    ]


def _ends(match: re.Match[str], lower: bool) -> bool:
    """Whether a sentence ends at this candidate (`lower`: the whole text is in lower case)."""
    kind = match.lastindex
    if kind == _WIDE:
        return True
    text = match.string
    start, after = match.span()
    following = text[after]
    if "\n" in text[start:after] and _line_ends(text, text.find("\n", start), after):
        return True
    if kind == _LINE or following == ".":
        return False
    if following.islower() and not lower and not text[start - 1 : start].isspace():
        # In tokenized text (" . ") and text without capitals a small letter says nothing.
        return False
    if text[start] != "." or not text[start + 1].isspace():
        return True
    if text[max(0, start - 2) : start] == ". ":
        return False  # the last of a row of dots
    return _full_stop(text, start, after)


def _line_ends(text: str, newline: int, after: int) -> bool:
    """Whether a line break ends a sentence even without a full stop.

    Lines of 45 to 100 characters are taken for hard-wrapped prose, which goes on in the next line.
    """
    if after > newline + 1 and text.find("\n", newline + 1, after) >= 0:
        return True
    following = text[after : after + 2]
    if not following.isalpha() and _LIST_ITEM.match(text, after):
        return True
    length = newline - (text.rfind("\n", 0, newline) + 1)
    return not (45 <= length <= 100 or following[0].islower())


def _full_stop(text: str, dot: int, after: int) -> bool:
    """Whether a single full stop ends a sentence, by the words on its two sides."""
    before = text[max(0, dot - 24) : dot].rsplit(None, 1)
    word = before[-1].lstrip(_OPENING) if before else ""
    low = word.lower()
    if low not in _ABBREVIATIONS and word[-2:].isalpha() and len(word) > 1:
        return True
    if low in _BEFORE_NAME:
        return False
    if low in _BEFORE_NUMBER and text[after].isdigit():
        return False
    if word.isdigit():
        # "1. Introduction" at the start of a line numbers what follows.
        line = text[text.rfind("\n", 0, dot) + 1 : dot]
        return line.strip() != word
    initial = word[-1:].isalpha() and not word[-2:-1].isalpha() and word != "I"
    return not (initial or low in _EITHER) or _starts(text, after)


def _starts(text: str, after: int) -> bool:
    """Whether the word there would rather start a sentence than go on after an abbreviation."""
    found = _WORD_AFTER.match(text, after)
    if found is None or text[after] == "(":
        return False
    word, dot = found.groups()
    return (word.lower() in _STARTERS and not dot) or (len(word) > 3 and word.isupper())
