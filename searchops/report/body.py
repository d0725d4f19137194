"""The comparison of a run's pipelines and the section of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchops.report.charts import Bar, bars, funnel_chart
from searchops.report.intervals import intervals
from searchops.report.markup import counted, escape, foreign, number, scrolling, size
from searchops.report.queries import query_table
from searchops.report.sections import Section
from searchops.stats import Interval

MAX_MEASURES, MAX_ERRORS, MAX_STAGES = 40, 50, 40
_NAME, _BESIDE = 120, 4


@dataclass(frozen=True)
class Body:
    """A pipeline's section, and sentences on what of it did not fit."""

    html: str
    left_out: list[str]


def left_out(notes: Sequence[str]) -> str:
    """What this page lacks, said before anything is read from it."""
    items = "".join(f"<li>{escape(note, 500)}" for note in notes)
    return f'<section class="notes"><h2>What is missing here</h2><ul>{items}</ul></section>' if notes else ""


def comparison(sections: Sequence[Section]) -> str:
    """Pipelines beside each other, with paired differences from the first; nothing for a single one."""
    names = list(dict.fromkeys(name for section in sections for name in section.values))[:MAX_MEASURES]
    if len(sections) < 2 or not names:
        return ""
    qids = list(dict.fromkeys(query.qid for section in sections for query in section.queries))
    qids += sorted({qid for section in sections for of in section.values.values() for qid in of} - set(qids))
    values = {(place, name): _values(section, name, qids) for place, section in enumerate(sections) for name in names}
    first = {(place, name, "diff"): array - values[0, name] for (place, name), array in values.items() if place}
    found: dict[Any, Interval] = intervals({**values, **first})
    systems = [f'<a href="#p{section.number}">{foreign(section.name, _NAME)}</a>' for section in sections]
    cells = [[_cell(found[place, name], found.get((place, name, "diff"))) for name in names]
             for place in range(len(sections))]  # fmt: skip
    table = _crossed(systems, [escape(name, _NAME) for name in names], cells)
    return (f"<section><h2>Comparison</h2><p>Mean over tasks with its 95% bootstrap interval; Δ is the mean difference "
            f"from {foreign(sections[0].name, _NAME)} over the tasks that have both values, "
            f"★ where its interval leaves out 0.</p>{scrolling('Comparison', table)}</section>")  # fmt: skip


def _crossed(systems: Sequence[str], names: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """A table of systems by measures; a few systems stand side by side, many below each other."""
    rows, columns, corner = systems, names, "pipeline"
    if len(systems) <= _BESIDE:
        rows, columns, corner = names, systems, "measure"
        cells = list(zip(*cells, strict=True))
    lines = "".join(f'<tr><th scope="row">{row}<td>{"<td>".join(line)}' for row, line in zip(rows, cells, strict=True))
    sort = ' class="sort"' if rows is systems else ""
    return f"<table{sort}><thead><tr>{_heads((corner, *columns))}</thead><tbody>{lines}</tbody></table>"


def _heads(names: Sequence[str]) -> str:
    return "".join(f'<th scope="col">{name}' for name in names)


def _values(section: Section, name: str, qids: Sequence[str]) -> NDArray[np.float64]:
    of = section.values.get(name, {})
    return np.array([of.get(qid, np.nan) for qid in qids], dtype=np.float64)


def _cell(value: Interval, difference: Interval | None) -> str:
    text = f"{number(value.mean)} <small>{_range(value)}</small>"
    if difference is None or not difference.tasks:
        return text
    sign = "+" if difference.mean > 0 else ""
    star = " ★" if difference.tasks > 1 and (difference.low > 0 or difference.high < 0) else ""
    return f"{text}<br><small>Δ {sign}{number(difference.mean)} {_range(difference)}{star}</small>"


def _range(value: Interval) -> str:
    # One task has no spread to resample; an interval without width would claim certainty.
    return f"[{number(value.low)}, {number(value.high)}]" if value.tasks > 1 else ""


def pipeline_section(section: Section, budget: int, *, many: bool) -> Body:
    """One pipeline: measures, funnel, losses, tasks, errors, in at most about `budget` bytes."""
    parts = [_measures(section), _funnel(section), _losses(section)]
    errors = _errors(section)
    heading = ""
    if many:
        heading = f"<h2>{foreign(section.name, _NAME)}</h2><p><code>{foreign(section.text, 2000)}</code></p>"
    if not section.queries:
        parts.append("<p>No stage of this pipeline ran to its end.</p>")
        return Body(_wrapped(section, heading, [*parts, errors]), [])
    used = size(heading + errors + "".join(parts))
    table = query_table(section, max(budget - used, 0))
    closed = "" if many else " open"
    parts.append(f"<h3>Queries</h3>{_legend(section)}<details class=block{closed}><summary>"
                 f"{counted(len(section.queries), 'query', 'queries')}</summary>{table.html}</details>")  # fmt: skip
    return Body(_wrapped(section, heading, [*parts[:3], errors, *parts[3:]]), table.left_out)


def _wrapped(section: Section, heading: str, parts: Sequence[str]) -> str:
    return f'<section id="p{section.number}">{heading}{"".join(parts)}</section>'


def _measures(section: Section) -> str:
    names = list(section.values)[:MAX_MEASURES]
    if not names:
        return ""
    columns = {name: section.column(name) for name in names}
    found = intervals(columns)
    rows = []
    for name in names:
        value, n = found[name], len(columns[name])
        rows.append(f'<tr><th scope="row">{escape(name, _NAME)}<td>{number(value.mean)}<td>{_range(value) or "–"}'
                    f"<td>{value.tasks:,}<td>{n - value.tasks:,}")  # fmt: skip
    more = len(section.values) - len(names)
    note = f"<p>{counted(more, 'more measure')} not shown.</p>" if more else ""
    head = ("measure", "mean", "95% interval", "tasks", "without a value")
    table = f'<table class="sort"><thead><tr>{_heads(head)}</thead><tbody>{"".join(rows)}</tbody></table>'
    return f"<h3>Measures</h3>{scrolling('Measures', table)}{note}"


def _funnel(section: Section) -> str:
    if section.funnel.empty:
        return ""
    table = section.funnel.head(MAX_STAGES)
    head = ["stage", "tasks", "rows in", "rows out", "ms"]
    head += ["labels in", "labels out", "lost"] if section.labelled else []
    rows = []
    for row in table.to_dict("records"):
        cells = [f"{row['tasks']:,}", f"{row['n_in']:,.1f}", f"{row['n_out']:,.1f}", f"{row['seconds'] * 1000:,.2f}"]
        cells += [f"{row[name]:,}" for name in ("labels_in", "labels_out", "lost")] if section.labelled else []
        rows.append(f'<tr><th scope="row">{foreign(row["label"], _NAME)}<td>{"<td>".join(cells)}')
    more = len(section.funnel) - len(table)
    note = f"<p>{counted(more, 'more stage')} not shown.</p>" if more else ""
    note += "<p class=faint>Rows and milliseconds are means a task; labels are counts over all tasks.</p>"
    html = f"<table><thead><tr>{_heads(head)}</thead><tbody>{''.join(rows)}</tbody></table>"
    key = ('<p class="key"><span class="kept"></span> labels put out <span class="lost"></span> labels lost here '
           '<span class="rows"></span> rows put out</p>') if section.labelled else ""  # fmt: skip
    return (f'<h3>Delivery funnel</h3>{key}<div class="pair wide">{funnel_chart(table)}<div>{scrolling("Funnel", html)}'
            f"{note}</div></div>")  # fmt: skip


def _losses(section: Section) -> str:
    if not section.labelled:
        return ""
    lost = [Bar(name, n, "lost") for name, n in section.losses().items()]
    fates = section.fates()
    kinds = {"none": "lost", "partial": "some", "complete": "kept"}
    names = {"none": "none delivered", "partial": "some delivered", "complete": "all delivered"}
    shares = [Bar(names[name], n, kinds[name]) for name, n in fates.items()]
    unlabelled = sum(not query.lives for query in section.queries)
    note = f"<p class=faint>{counted(unlabelled, 'task')} without labels left out.</p>" if unlabelled else ""
    n_labels = len(section.lives)
    told = f"{counted(sum(bar.value for bar in lost), 'label')} of {n_labels:,} lost"
    left = bars("Losses by stage", lost, "labels") if lost else "<p>No label was lost.</p>"
    return (f'<div class="pair"><div><h3>Where labels were lost</h3><p class=faint>{told}</p>{left}</div>'
            f"<div><h3>Tasks by share of labels delivered</h3><p class=faint>"
            f"{counted(sum(fates.values()), 'task')} with labels</p>"
            f"{bars('Tasks by delivery', shares, 'tasks')}{note}</div></div>")  # fmt: skip


def _errors(section: Section) -> str:
    if section.errors.empty:
        return ""
    shown = section.errors.head(MAX_ERRORS)
    rows = "".join(f'<tr><th scope="row">{foreign(qid, _NAME)}<td>{foreign(label, _NAME)}<td>{foreign(error, 400)}'
                   for qid, label, error in zip(shown["qid"], shown["label"], shown["error"], strict=True))  # fmt: skip
    more = len(section.errors) - len(shown)
    note = f"<p>{counted(more, 'more error')} not shown.</p>" if more else ""
    head = _heads(("qid", "stage", "error"))
    table = f'<table class="sort errors"><thead><tr>{head}</thead><tbody>{rows}</tbody></table>'
    return f"<h3>Errors of stages: {len(section.errors):,}</h3>{scrolling('Errors', table)}{note}"


def _legend(section: Section) -> str:
    if not section.labelled:
        return ""
    return ("<p>Open a query to see each of its labels and its rank (from 0, as recorded) in what each stage put out; "
            "– where it is not in there. “lost, scored 4 of 12”: its best passage came 4th of the 12 passages of its "
            "document that the stage scored. <i>Available</i> labels were scored by an extract stage; <i>delivered</i> "
            "ones were still there at the end. "
            "<code>searchops why DIR QID DOCNO:START-END</code> tells one label’s whole life.</p>")  # fmt: skip
