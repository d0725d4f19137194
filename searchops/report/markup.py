"""Text into HTML: every query, document and error on the page is a stranger's and goes through here."""

from __future__ import annotations

import html
import math
import re

# NUL and its kin are not allowed in HTML; lone surrogates cannot be written as UTF-8.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def escape(text: object, limit: int = 0) -> str:
    """Text that is only text in HTML, also inside a quoted attribute.

    Args:
        text: Anything; its `str` is shown.
        limit: Clip to that many characters and say how many there were; 0 clips nothing.

    Example:
        >>> escape('<b> & "c"')
        '&lt;b&gt; &amp; &quot;c&quot;'
        >>> escape("abcdef", limit=3)
        'abc… [clipped: 6 characters]'
    """
    plain = str(text)
    note = ""
    if limit and len(plain) > limit:
        note = f"… [clipped: {len(plain):,} characters]"
        plain = plain[:limit]
    return html.escape(_UNPRINTABLE.sub("\ufffd", plain)) + note


def foreign(text: object, limit: int = 0) -> str:
    """Escaped text that keeps its own writing direction to itself.

    Example:
        >>> foreign("a<b")
        '<bdi>a&lt;b</bdi>'
    """
    return f"<bdi>{escape(text, limit)}</bdi>"


def number(value: float) -> str:
    """A measure's value for reading; a missing one is a dash, never 0.

    Example:
        >>> number(0.61234), number(1610.95), number(float("nan")), number(-0.02)
        ('0.612', '1,611.0', '–', '−0.020')
    """
    if not math.isfinite(value):
        return "–"
    text = f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"
    return text.replace("-", "\u2212")


def counted(n: int, one: str, many: str = "") -> str:
    """A count with its noun.

    Example:
        >>> counted(1, "query", "queries"), counted(1200, "label")
        ('1 query', '1,200 labels')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def size(text: str) -> int:
    """Bytes the text takes in the file."""
    return len(text.encode("utf-8"))


def scrolling(name: str, table: str) -> str:
    """A wide table that scrolls inside the page, also by keyboard."""
    return f'<div class="scroll" role="region" aria-label="{escape(name, 120)}" tabindex="0">{table}</div>'
