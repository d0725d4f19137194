"""What the command prints: tables of at most 100 columns, or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

WIDTH = 100
EVIDENCE_SHOWN = 10


def print_result(result: Any, report_file: Path, *, quiet: bool) -> None:
    """Measures and funnel of each pipeline of a run, its failures, and where its files are."""
    from searchops.accounting import funnel
    from searchops.records import Run

    if not quiet:
        for note in result.collection.notes:
            print(f"note: {note}", file=sys.stderr)
        if result.reused:
            print("note: this run was complete already; --replace runs it again", file=sys.stderr)
    means = result.means()
    for name in result.names:
        mine = means[means["name"] == name]
        rows = [
            [
                row["measure"],
                decimal(row["mean"]),
                f"{decimal(row['low'])} – {decimal(row['high'])}",
                str(row["tasks"]),
                str(row["missing"] or ""),
            ]
            for row in mine.to_dict("records")
        ]
        print_table(f"{name}: measures", ["measure", "mean", "95 % interval", "tasks", "no value"], rows)
    read = Run.open(result.folder)
    for name, number in result.names.items():
        table = funnel(read, result.collection.evidence, pipeline=number)
        print_table(f"{name}: what each stage kept", *_funnel_rows(table))
    for (name, qid), text in list(result.failed.items())[:10]:
        print(f"failed: {name}, {qid}: {text}", file=sys.stderr)
    if len(result.failed) > 10:
        print(f"failed: {len(result.failed) - 10} more", file=sys.stderr)
    print(f"record  {result.folder}\nreport  {report_file}")


def print_asked(asked: Any) -> None:
    """What an agent came to: its answer or its evidence, and what it cost."""
    answer = asked.answer
    if asked.is_answer:
        print(answer["qanswer"] or f"no answer: {answer['error'] or answer['stop_reason']}")
    else:
        print("Evidence, not an answer: no model was named, so words were searched for by rules.")
    print()
    for item in asked.evidence[:EVIDENCE_SHOWN]:
        print(f"[{item['passage_id']}] {item['title']}\n  " + " ".join(item["note"].split()))
    if len(asked.evidence) > EVIDENCE_SHOWN:
        print(f"and {len(asked.evidence) - EVIDENCE_SHOWN} more passages (--json shows all)")
    costs = ("decisions", "retrieval_requests", "extract_calls", "total_tokens")
    print("\n" + ", ".join(f"{whole(answer[name])} {name.replace('_', ' ')}" for name in costs))


def _funnel_rows(table: Any) -> tuple[list[str], list[list[str]]]:
    heads = ["", "stage", "rows in", "rows out", "ms a task"]
    labelled = "labels_in" in table.columns
    rows = []
    for row in table.to_dict("records"):
        cells = [
            row["stage"],
            row["label"],
            f"{row['n_in']:.1f}",
            f"{row['n_out']:.1f}",
            f"{row['seconds'] * 1000:.2f}",
        ]
        if labelled:
            cells += [str(row["labels_in"]), str(row["labels_out"]), str(row["lost"] or "")]
        rows.append(cells)
    return heads + (["labels in", "labels out", "lost"] if labelled else []), rows


def print_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """One table, as wide as the terminal but at most 100 columns."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place < 2 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    wide = Console().width if sys.stdout.isatty() else WIDTH
    console = Console(width=min(wide, WIDTH), markup=False, highlight=False, emoji=False)
    console.print(table)
    console.print()


def print_json(value: Any) -> None:
    """A value as JSON."""
    print(json.dumps(value, indent=1, ensure_ascii=False, default=str))


def records(frame: Any) -> list[dict[str, Any]]:
    """Rows as plain values: NaN becomes null, which JSON has."""
    return [
        {name: None if value != value else value for name, value in row.items()} for row in frame.to_dict("records")
    ]


def failed(result: Any) -> list[dict[str, str]]:
    """The failed tasks of a run, for JSON."""
    return [{"name": name, "qid": qid, "error": text} for (name, qid), text in result.failed.items()]


def decimal(value: Any) -> str:
    """A measure's value; a dash where there is none."""
    if value is None or value != value:
        return "–"
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:,.0f}"


def whole(value: Any) -> str:
    """A count or rank; a dash where there is none."""
    return "–" if value is None or value != value else str(int(value))


def verdict(table: Any) -> str:
    """One sentence on what became of a passage."""
    lost_at = table.attrs.get("lost_at")
    if lost_at is not None:
        return f"Lost: {lost_at}." if lost_at else "An observation showed it."
    alive = [row for row in table.to_dict("records") if row["side"] == "out" and "." not in row["stage"]]
    kept = [row for row in alive if row["present"] >= 1.0]
    if not kept:
        return "It never came out of any stage whole."
    after = alive[alive.index(kept[-1]) + 1 :]
    return f"Dropped by {after[0]['label']}." if after else "It is there at the end."
