"""Finding a quotation in a text whose line breaks and quote marks differ from the quotation's.

Evidence is kept as quotations, not as offsets, wherever the quoted text changes between releases.
"""

from __future__ import annotations

import re
from itertools import islice

__all__ = ["locate"]

_APOSTROPHES = "'’‘"
_QUOTE_MARKS = '"“”'


def locate(quote: str, text: str, occurrence: int = 1) -> tuple[int, int] | None:
    r"""The start and end of a quotation in a text, or None when it is not there.

    Runs of white space match any run of white space, a word may be broken behind its hyphen, and
    typographic quote marks match plain ones. Everything else matches exactly, case included.

    Args:
        quote: What to find.
        text: Where to find it.
        occurrence: Which of several, counted from 1.

    Example:
        >>> locate("don't re-use it", "Please  don’t re-\nuse\tit.")
        (8, 24)
        >>> locate("never", "Please don't.") is None
        True
    """
    words = quote.split()
    if not words or occurrence < 1:
        return None
    pattern = "".join(map(_character, " ".join(words))).removesuffix(r"\s*")
    found = next(islice(re.finditer(pattern, text), occurrence - 1, None), None)
    return None if found is None else found.span()


def _character(character: str) -> str:
    if character == " ":
        # As many as there are, also none: a break behind a hyphen has taken them already.
        return r"(?:(?<=-)\s*|\s+)"
    if character == "-":
        return r"-\s*"
    for alike in (_APOSTROPHES, _QUOTE_MARKS):
        if character in alike:
            return f"[{alike}]"
    return re.escape(character)
