"""The table of tasks: a row each, which opens into the task's labels and their way through the stages.

The page has a size limit. Rows come first, in the record's order; what room is left goes to the
labels of the tasks that lost most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from searchops.accounting import RECOVERED, Life
from searchops.report.markup import counted, escape, foreign, number, size
from searchops.report.paths import Step
from searchops.report.sections import Query, Section, retrieval_measures

TEXT_LIMIT, QUERY_LIMIT, NAME_LIMIT = 240, 300, 120
MAX_LABELS, MAX_COLUMNS, MAX_VALUES = 40, 3, 12
# What the row's own counts say already.
_COUNTED = {"Retrieved", "Available", "Delivered", "Delivered/Available", "CompleteDelivery", "PartialDelivery",
            "NoDelivery"}  # fmt: skip
_OPENING = len("<details><summary></summary></details>")


@dataclass(frozen=True)
class QueryTable:
    """The table, and what of it did not fit.

    Attributes:
        html: The table.
        left_out: Sentences on what is missing; empty where nothing is.
    """

    html: str
    left_out: list[str]


def query_table(section: Section, budget: int) -> QueryTable:
    """The table of a pipeline's tasks in at most about `budget` bytes."""
    columns = retrieval_measures(list(section.values))[:MAX_COLUMNS]
    queries = section.queries
    shown, room = 0, budget
    for query in queries:
        room -= size(_row(section, query, columns, ""))
        if room < 0 and shown:
            break
        shown += 1
    details = _details(section, queries[:shown], room)
    rows = [_row(section, query, columns, details.get(query.qid, "")) for query in queries[:shown]]
    caption = f"Queries of {escape(section.name, NAME_LIMIT)}"
    table = (f'<table class="sort queries"><caption>{caption}</caption><thead><tr>{_head(section, columns)}'
             f"</thead><tbody>{''.join(rows)}</tbody></table>")  # fmt: skip
    return QueryTable(table, _left_out(section, shown, details))


def _details(section: Section, queries: Sequence[Query], room: int) -> dict[str, str]:
    """What each row opens into, as far as there is room, most labels lost first."""
    found: dict[str, str] = {}
    for query in sorted(queries, key=lambda query: -query.lost):
        detail = _detail(section, query)
        taken = size(detail) + _OPENING
        if detail and taken <= room:
            room -= taken
            found[query.qid] = detail
    return found


def _left_out(section: Section, shown: int, details: dict[str, str]) -> list[str]:
    notes = []
    if shown < len(section.queries):
        notes.append(f"{section.name}: {counted(len(section.queries) - shown, 'query', 'queries')} of "
                     f"{len(section.queries):,} have no row here (the page's size limit).")  # fmt: skip
    closed = sum(bool(query.lives) and query.qid not in details for query in section.queries[:shown])
    if closed:
        notes.append(f"{section.name}: {counted(closed, 'query', 'queries')} of {shown:,} cannot be opened into their "
                     "labels here (the page's size limit); those that lost most can.")  # fmt: skip
    return notes


def _head(section: Section, columns: Sequence[str]) -> str:
    names = ["qid", "query"]
    names += ["labels", "retrieved", "available", "delivered", "lost at"] if section.labelled else ["rows out"]
    marks = {"qid": ' class="id"', "query": ' class="q"', "lost at": ' class="l"'}
    return "".join(f'<th scope="col"{marks.get(name, "")}>{escape(name, NAME_LIMIT)}' for name in [*names, *columns])


def _row(section: Section, query: Query, columns: Sequence[str], detail: str) -> str:
    text = foreign(query.query, QUERY_LIMIT)
    asked = f"<details><summary>{text}</summary>{detail}</details>" if detail else text
    cells = [f'<th scope="row">{foreign(query.qid, NAME_LIMIT)}', f"<td>{asked}"]
    if section.labelled:
        counts = [len(query.lives), sum(life.retrieved for life in query.lives),
                  sum(life.available for life in query.lives), len(query.lives) - query.lost]  # fmt: skip
        # A task without labels has no counts; zeros would read as losses.
        names = ["labels", "retrieved", "available", "delivered"]
        cells += [f'<td data-n="{name}">{n if query.lives else "–"}' for name, n in zip(names, counts, strict=True)]
        cells.append(f'<td class="x">{_losses(query)}')
    else:
        cells.append(f'<td data-n="rows out">{query.n_out}')
    for column in columns:
        value = number(section.values[column].get(query.qid, float("nan")))
        cells.append(f'<td data-n="{escape(column, NAME_LIMIT)}">{value}')
    return f"<tr>{''.join(cells)}\n"


def _losses(query: Query) -> str:
    places = Counter(life.lost_at for life in query.lives if not life.delivered)
    return ", ".join(escape(name, NAME_LIMIT) + (f" ×{n}" if n > 1 else "") for name, n in places.items())


def _detail(section: Section, query: Query) -> str:
    """The labels of one task, each with its way through the stages."""
    parts = []
    if query.answer:
        parts.append(f"<p>Answer: {foreign(query.answer, TEXT_LIMIT)}")
    told = {*_COUNTED, *retrieval_measures(list(section.values))[:MAX_COLUMNS]}
    values = [f"{escape(name, NAME_LIMIT)} {number(of[query.qid])}"
              for name, of in section.values.items() if name not in told and query.qid in of][:MAX_VALUES]  # fmt: skip
    if values:
        parts.append(f"<p class=faint>{' · '.join(values)}")
    if query.lives:
        head = "".join(f"<th scope=col>{escape(label, NAME_LIMIT)}" for _, label in section.stages)
        rows = [_label_row(section, life, steps) for life, steps in zip(query.lives, query.steps, strict=True)]
        more = len(rows) - MAX_LABELS
        parts.append(f"<div class=scroll tabindex=0><table class=way><thead><tr>{head}</thead>"
                     f"{''.join(rows[:MAX_LABELS])}</table></div>")  # fmt: skip
        if more > 0:
            parts.append(f"<p>{counted(more, 'more label')} not shown.")
    return "".join(parts)


def _label_row(section: Section, life: Life, steps: Sequence[Step]) -> str:
    text = f"{foreign(life.label.text, TEXT_LIMIT)} " if life.label.text else ""
    cells, lost = [], False
    for (_, name), step in zip(section.stages, steps, strict=True):
        here = not lost and not life.delivered and name == life.lost_at and step.present < 1.0
        lost = lost or here
        cells.append(f"<td class=x>lost{_scored(step)}" if here else f"<td>{_standing(step)}")
    fate = _fate(life, {label for _, label in section.stages})
    mark = "" if life.delivered else " class=x"
    place = foreign(_clipped_place(life))
    return (f"<tbody><tr><th colspan={len(cells)} scope=rowgroup>{text}<code>{place}</code> · "
            f"<span{mark}>{escape(fate, NAME_LIMIT)}</span><tr>{''.join(cells)}\n")  # fmt: skip


def _fate(life: Life, stages: set[str]) -> str:
    if life.delivered:
        return "delivered, not at once" if life.outcome == RECOVERED else "delivered"
    return f"lost at {life.lost_at}" if life.lost_at in stages else life.lost_at


def _clipped_place(life: Life) -> str:
    docno, place = life.label.docno, str(life.label)
    return place if len(docno) <= NAME_LIMIT else docno[:NAME_LIMIT] + "…" + place[len(docno) :]


def _standing(step: Step) -> str:
    if not step.ran:
        return "did not run"
    if step.present <= 0:
        return "–"
    rank = "kept" if step.rank is None else str(step.rank)
    return rank if step.present >= 1.0 - 1e-9 else f"{rank} ({step.present:.0%} of it)"


def _scored(step: Step) -> str:
    kept = f", {step.present:.0%} kept" if step.present else ""
    return f"{kept}, scored {step.place} of {step.scored}" if step.place else kept
