"""Pictures as SVG text. Colours come from the page's style sheet, so light and dark follow the reader.

Lost is hatched as well as orange: no picture needs colour to be read. Drawn for a narrow screen
(400 units) and scaled up a little on a wide one, so that its text stays legible on both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from searchops.report.markup import escape

WIDTH = 400
_LABEL = 46


class Bar(NamedTuple):
    """One horizontal bar: its name, its length and which colour (`kept`, `lost`, `some`)."""

    name: str
    value: int
    kind: str


def bars(title: str, items: Sequence[Bar], unit: str) -> str:
    """Horizontal bars, each under its name and with its count and share of the sum.

    Example:
        >>> bars("Losses", [Bar("dedupe", 2, "kept")], "labels").count("<rect")
        2
    """
    total = sum(item.value for item in items)
    longest = max((item.value for item in items), default=0) or 1
    parts = []
    for place, item in enumerate(items):
        top = place * 42
        share = f" ({item.value / total:.0%})" if total else ""
        parts.append(_line(top + 14, item.name, f"{item.value:,}{share}"))
        parts.append(_rect(0, top + 21, WIDTH, 12, "none"))
        parts.append(_rect(0, top + 21, WIDTH * item.value / longest, 12, item.kind))
    told = "; ".join(f"{item.name}: {item.value:,}" for item in items)
    return _svg(f"{title} ({unit}). {told}", len(items) * 42, parts)


def funnel_chart(table: pd.DataFrame) -> str:
    """A pipeline's funnel: per stage, labels kept and lost (if known) and rows put out a task.

    Args:
        table: What `accounting.funnel` gives.
    """
    labelled = "labels_out" in table.columns
    height = 76 if labelled else 54
    n_labels = max([1, *table["labels_in"]]) if labelled else 1
    n_rows = max([1.0, *table["n_in"], *table["n_out"]])
    parts, told = [], []
    for place, row in enumerate(table.to_dict("records")):
        top, name = place * height, f"{place + 1}. {row['label']}"
        rows = f"{_short(row['n_in'])} → {_short(row['n_out'])} rows a task"
        if labelled:
            lost = f"{row['labels_in']:,} → {row['labels_out']:,} labels"
            parts.append(_line(top + 14, name, lost))
            kept = WIDTH * row["labels_out"] / n_labels
            parts.append(_rect(0, top + 21, WIDTH, 16, "none"))
            parts.append(_rect(0, top + 21, kept, 16, "kept"))
            parts.append(_rect(kept, top + 21, WIDTH * max(row["lost"], 0) / n_labels, 16, "lost"))
            parts.append(_rect(0, top + 41, 180 * row["n_out"] / n_rows, 6, "rows"))
            parts.append(f'<text class="faint" x="{WIDTH}" y="{top + 52}" text-anchor="end">{rows}</text>')
            told.append(f"{name}: {lost}, {rows}")
        else:
            parts.append(_line(top + 14, name, rows))
            parts.append(_rect(0, top + 21, WIDTH * row["n_out"] / n_rows, 16, "rows"))
            told.append(f"{name}: {rows}")
    return _svg("Funnel. " + "; ".join(told), len(table) * height, parts)


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value - round(value)) < 0.05 else f"{value:,.1f}"


def _line(y: float, name: str, value: str) -> str:
    shown = name if len(name) <= _LABEL - len(value) else name[: _LABEL - 1 - len(value)] + "…"
    return (f'<text x="0" y="{y:g}">{escape(shown)}</text>'
            f'<text x="{WIDTH}" y="{y:g}" text-anchor="end">{escape(value)}</text>')  # fmt: skip


def _rect(x: float, y: float, width: float, height: float, kind: str) -> str:
    rect = f'<rect class="{kind}" x="{x:.1f}" y="{y:g}" width="{width:.1f}" height="{height:g}"/>'
    hatch = rect.replace('class="lost"', 'fill="url(#hatch)"') if kind == "lost" and width > 0 else ""
    return rect + hatch


def _svg(told: str, height: float, parts: Sequence[str]) -> str:
    return (f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(told, 2000)}">'
            f"{''.join(parts)}</svg>")  # fmt: skip


# One pattern for the whole page: an id may stand in a page only once.
HATCH = ('<svg class="defs" aria-hidden="true" width="0" height="0"><defs><pattern id="hatch" width="6" height="6" '
         'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="line" width="2" height="6"/>'
         "</pattern></defs></svg>")  # fmt: skip
