"""The page itself: what was run on top, then the comparison, then a section a pipeline.

It is readable without JavaScript, which only sorts and filters. A content security policy lets no
script run but the page's own (named by its hash) and nothing be loaded.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from pathlib import Path

import pandas as pd

from searchops.errors import DataError
from searchops.recorder import write_text
from searchops.records import Run
from searchops.report.body import comparison, left_out, pipeline_section
from searchops.report.charts import HATCH
from searchops.report.folder import read_pieces
from searchops.report.header import header, status_banner, title
from searchops.report.markup import counted, escape, size
from searchops.report.sections import pipelines, section

MAX_BYTES = 2_000_000
MAX_SECTIONS = 16
_FIXED_BYTES = 40_000


def write_report(run_folder: str | Path, out: str | Path | None = None) -> Path:
    """Writes the report of a run's folder; returns where.

    Args:
        run_folder: The folder of a run.
        out: The file to write; default `report.html` in the run's folder.

    Effects: Writes that one file.

    Raises:
        DataError: There is no run, one of its files is damaged, or the page cannot be written.
        FrameError: The evidence labels have none of the known shapes.
    """
    pieces = read_pieces(run_folder)
    page = render(pieces.run, pieces.evidence, pieces.topics, pieces.measures)
    target = Path(out) if out is not None else Path(run_folder) / "report.html"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_text(target, page)
    except OSError as error:
        raise DataError("a file that can be written is needed", str(error), where=str(target)) from error
    return target


def render(
    run: Run,
    evidence: pd.DataFrame | None,
    topics: pd.DataFrame | None,
    measures: pd.DataFrame | None,
) -> str:
    """The report of a run as one HTML text of at most 2 MB for any usual run.

    Args:
        run: The run.
        evidence: Labels: qid, docno, start, end, text; None if the collection has none.
        topics: qid, query and perhaps answer; None shows the queries that were recorded.
        measures: qid, measure, value and, for several pipelines, name; None computes the funnel's
            measures from the record where there are labels.

    Raises:
        FrameError: The evidence labels have none of the known shapes.
    """
    numbers = list(pipelines(run))
    sections = [section(run, number, evidence, topics, measures) for number in numbers[:MAX_SECTIONS]]
    notes = _missing(run, evidence, topics, measures, any(item.labelled for item in sections))
    if len(numbers) > len(sections):
        notes.append(f"{len(numbers) - len(sections)} of {len(numbers)} pipelines have no section here (the first "
                     f"{MAX_SECTIONS} do).")  # fmt: skip
    notes += _unmatched(measures, pipelines(run))
    top = header(run, sections, topics)
    table = comparison(sections)
    room = MAX_BYTES - _FIXED_BYTES - size(top) - size(table)
    bodies = [pipeline_section(item, room // len(sections), many=len(sections) > 1) for item in sections]
    for body in bodies:
        notes += body.left_out
    main = "".join([status_banner(run), top, left_out(notes), table, *(body.html for body in bodies)])
    return _document(title(run), main)


def _missing(
    run: Run, evidence: pd.DataFrame | None, topics: pd.DataFrame | None, measures: pd.DataFrame | None, labelled: bool
) -> list[str]:
    notes = []
    if not run.event_table.num_rows:
        notes.append("The record holds no stage events: no stage ran to its end.")
    if evidence is None:
        notes.append("No evidence labels: what was delivered and where labels were lost is not known.")
    elif not labelled and run.event_table.num_rows:
        notes.append("None of the evidence labels belongs to a task of this run.")
    if topics is None:
        notes.append("No topics: the queries shown are those that the record holds, and answers are not known.")
    if measures is None:
        notes.append("No measures.json" + (": the evidence measures shown were computed from the record."
                                           if labelled else ": nothing was measured."))  # fmt: skip
    return notes


def _unmatched(measures: pd.DataFrame | None, known: dict[int, tuple[str, str]]) -> list[str]:
    """Values under a name that no recorded pipeline has, or under none of several, have no section to stand in."""
    if measures is None or measures.empty:
        return []
    given = measures["name"] if "name" in measures.columns else pd.Series(None, index=measures.index, dtype=object)
    nameless = f"{counted(int(given.isna().sum()), 'value')} of measures: not said of which pipeline."
    notes = [nameless] if len(known) > 1 and given.isna().any() else []
    names = {text for number, pair in known.items() for text in (*pair, str(number))}
    strangers = [name for name in dict.fromkeys(given.dropna().astype(str)) if name not in names]
    return notes + [f"Measures of {name!r}: no recorded pipeline has that name." for name in strangers[:MAX_SECTIONS]]


def _document(name: str, main: str) -> str:
    folder = files("searchops.report")
    style = (folder / "page.css").read_text(encoding="utf-8")
    script = (folder / "page.js").read_text(encoding="utf-8")
    policy = (f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
              "base-uri 'none'; form-action 'none'")  # fmt: skip
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(name, 200)}</title>'
        f'<style>{style}</style></head><body><a class="skip" href="#main">To the content</a>{HATCH}'
        f'<main id="main">{main}</main><script>{script}</script></body></html>\n'
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
