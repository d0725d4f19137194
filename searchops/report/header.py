"""The top of the page: whether the run ended well, and what was run on what."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd

from searchops.records import Run
from searchops.report.markup import counted, escape, foreign
from searchops.report.sections import Section

_SHOWN = {"format", "status", "started", "ended", "resumed", "error", "versions", "python", "git_commit",
          "pipelines", "names", "collection", "spec", "title"}  # fmt: skip
_LIMIT, _SPEC_LIMIT = 300, 20_000


def title(run: Run) -> str:
    """The page's title: the run's own, its folder's name, or its collection."""
    own = run.meta.get("title")
    name = str(own) if own else run.path.name if run.path else str(run.meta.get("collection", "a run in memory"))
    return f"{name} · searchops report"


def status_banner(run: Run) -> str:
    """What a reader must know first, if the run did not end as it should."""
    status, error = str(run.meta.get("status", "unknown")), run.meta.get("error")
    why = f"<p><code>{foreign(error, 2000)}</code>" if error else ""
    told = {
        "finished": "",
        "failed": "This run failed. What follows is what was recorded until then.",
        "interrupted": "This run was interrupted. What follows is what was recorded until then.",
        "running": "This run has not finished: it is still running, or it was killed. What follows is what was "
                   "recorded until now.",
    }.get(status, f"How this run ended is not known (status: {status}).")  # fmt: skip
    return f'<div class="banner" role="alert"><strong>{escape(told, 500)}</strong>{why}</div>' if told else ""


def header(run: Run, sections: Sequence[Section], topics: pd.DataFrame | None) -> str:
    """Title and the facts of the run."""
    facts = [(name, value) for name, value in _facts(run, sections, topics) if value]
    rows = "".join(f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in facts)
    name = title(run).removesuffix(" · searchops report")
    return (f"<header><p class=faint>searchops report</p><h1>{foreign(name, _LIMIT)}</h1><dl>{rows}</dl>"
            f"{_spec(run)}{_rest(run)}{_contents(sections)}</header>")  # fmt: skip


def _facts(run: Run, sections: Sequence[Section], topics: pd.DataFrame | None) -> list[tuple[str, str]]:
    meta = run.meta
    done = len({query.qid for section in sections for query in section.queries})
    tasks = counted(done, "task")
    if topics is not None and len(topics) > done:
        tasks += f" of {len(topics):,} topics"
    labels = len({life.label for section in sections for life in section.lives})
    what = f"{counted(len(sections), 'pipeline')}, below" if sections else ""
    if len(sections) == 1:
        what = f"<code>{foreign(sections[0].text, 2000)}</code>"
    versions = [f"{name} {number}" for name, number in meta.get("versions", {}).items()]
    if meta.get("python"):
        versions.insert(0, f"Python {meta['python']}")
    return [
        ("Collection", foreign(_text(meta["collection"]), _LIMIT) if meta.get("collection") else ""),
        ("Pipeline", what),
        ("Tasks", tasks + (f", {counted(labels, 'evidence label')}" if labels else "")),
        ("Status", escape(meta.get("status", "unknown"), _LIMIT)),
        ("Started", _time(meta.get("started"))),
        ("Resumed", _time(meta.get("resumed"))),
        ("Ended", _time(meta.get("ended"))),
        ("Versions", escape(", ".join(versions), 1000)),
        ("Git commit", f"<code>{escape(meta['git_commit'], 60)}</code>" if meta.get("git_commit") else ""),
        ("Record", f"<code>{foreign(run.path, _LIMIT)}</code>" if run.path else ""),
    ]


def _time(value: Any) -> str:
    return escape(str(value).replace("T", " ").replace("+00:00", " UTC"), 60) if value else ""


def _spec(run: Run) -> str:
    spec = run.meta.get("spec")
    return f"<details><summary>Spec</summary><pre>{escape(_text(spec), _SPEC_LIMIT)}</pre></details>" if spec else ""


def _rest(run: Run) -> str:
    """Everything else in run.json: data hashes, seeds and what the run's author put there."""
    rest = {name: value for name, value in run.meta.items() if name not in _SHOWN and value not in (None, "", {}, [])}
    rows = "".join(f'<tr><th scope="row">{foreign(name, 80)}<td>{foreign(_text(value), 1000)}'
                   for name, value in list(rest.items())[:40])  # fmt: skip
    return f"<details><summary>Data hashes, seeds and settings</summary><table>{rows}</table></details>" if rows else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1, default=str)


def _contents(sections: Sequence[Section]) -> str:
    if len(sections) < 2:
        return ""
    links = "".join(f'<li><a href="#p{section.number}">{foreign(section.name, 120)}</a>' for section in sections)
    return f'<nav aria-label="Pipelines"><ul>{links}</ul></nav>'
