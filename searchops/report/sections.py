"""The facts about one pipeline of a run that the page shows, all out of records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from searchops.accounting import NOT_RETRIEVED, Life, funnel, lives
from searchops.errors import SpecError
from searchops.labels import to_labels
from searchops.metrics import evidence_values, is_evidence, parse_measure
from searchops.records import Run
from searchops.report.paths import Step, paths

MAX_PATH_STAGES = 10


@dataclass(frozen=True)
class Query:
    """One task as a row of the page.

    Attributes:
        qid: The task.
        query: Its query.
        answer: Its answer, "" where topics give none.
        lives: Lives of its labels.
        steps: For each life, its steps through `Section.stages`.
        n_out: Rows at the pipeline's end.
    """

    qid: str
    query: str
    answer: str
    lives: list[Life]
    steps: list[list[Step]]
    n_out: int

    @property
    def lost(self) -> int:
        """How many labels did not arrive."""
        return sum(not life.delivered for life in self.lives)


@dataclass(frozen=True)
class Section:
    """One pipeline of the run.

    Attributes:
        number: Its number in the run.
        name: What the run calls it.
        text: Its repr.
        queries: Its tasks, in the record's order.
        labelled: Whether labels of its tasks are known.
        stages: Place and label of the stages that a label's way is told by.
        funnel: What `accounting.funnel` gives.
        errors: Events that failed.
        values: Measure to values per task, NaN where a task has none.
    """

    number: int
    name: str
    text: str
    queries: list[Query]
    labelled: bool
    stages: list[tuple[str, str]]
    funnel: pd.DataFrame
    errors: pd.DataFrame
    values: dict[str, dict[str, float]]

    @property
    def lives(self) -> list[Life]:
        """Lives of all labels."""
        return [life for query in self.queries for life in query.lives]

    def losses(self) -> dict[str, int]:
        """Labels lost by stage, in the order of the stages."""
        found = Counter(life.lost_at for life in self.lives if not life.delivered)
        order = [NOT_RETRIEVED, *dict.fromkeys(map(str, self.funnel["label"]))]
        return {name: found[name] for name in dict.fromkeys([*order, *found]) if found[name]}

    def fates(self) -> dict[str, int]:
        """Tasks by how many of their labels were delivered: none, some, all."""
        labelled = [query for query in self.queries if query.lives]
        none = sum(query.lost == len(query.lives) for query in labelled)
        whole = sum(query.lost == 0 for query in labelled)
        return {"none": none, "partial": len(labelled) - none - whole, "complete": whole}

    def column(self, measure: str) -> NDArray[np.float64]:
        """A measure's values in the order of the tasks; NaN where a task has none."""
        values = self.values.get(measure, {})
        qids = dict.fromkeys([*(query.qid for query in self.queries), *values])
        return np.array([values.get(qid, np.nan) for qid in qids], dtype=np.float64)


def retrieval_measures(names: list[str]) -> list[str]:
    """Those measures that are not about evidence."""
    return [name for name in names if not _about_evidence(name)]


def _about_evidence(name: str) -> bool:
    try:
        return is_evidence(parse_measure(name))
    except SpecError:
        return False


def pipelines(run: Run) -> dict[int, tuple[str, str]]:
    """Name and repr of each pipeline of a run, by its number."""
    numbers = {int(n): str(text) for text, n in run.meta.get("pipelines", {}).items()}
    for n in sorted(set(run.events["pipeline"].tolist())):
        numbers.setdefault(int(n), "")
    names = run.meta.get("names", {})
    only = len(numbers) == 1
    return {n: (str(names.get(str(n)) or ("pipeline" if only else f"pipeline {n}")), text)
            for n, text in sorted(numbers.items())}  # fmt: skip


def section(
    run: Run,
    number: int,
    evidence: pd.DataFrame | None,
    topics: pd.DataFrame | None,
    measures: pd.DataFrame | None,
) -> Section:
    """Gathers one pipeline's facts.

    Raises:
        FrameError: The labels have none of the known shapes.
    """
    name, text = pipelines(run)[number]
    values = _own(measures, {name, text, str(number)}, only=len(pipelines(run)) == 1)
    run = _narrowed(run, number, evidence)
    events = run.events
    if events.empty:
        return Section(number, name, text, [], False, [], _no_funnel(), events, values)
    overlap = _overlap(run.meta)
    found = [] if evidence is None else lives(run, evidence, overlap=overlap, pipeline=number)
    table = funnel(run, evidence if found else None, overlap=overlap, pipeline=number, found=found)
    stages = _told(table)
    steps = paths(run, events, found, [stage for stage, _ in stages])
    if not values and found and evidence is not None:
        own = evidence_values(run, evidence, overlap=overlap, pipeline=number)
        values = _by_measure(own)
    text = text or " >> ".join(label for stage, label in zip(table["stage"], table["label"], strict=True)
                               if "." not in stage)  # fmt: skip
    errors = events[events["error"].notna()]
    return Section(number, name, text, _queries(events, topics, found, steps), bool(found), stages, table,
                   errors, values)  # fmt: skip


def _narrowed(run: Run, number: int, evidence: pd.DataFrame | None) -> Run:
    """The same run with one pipeline's events and, of its candidates, those in labelled documents only.

    Most candidate rows of a run are about neither, and each look at a pipeline would pass over them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    events = run.event_table.filter(pc.equal(run.event_table.column("pipeline"), number))
    docnos = [] if evidence is None else sorted({label.docno for label in to_labels(evidence)})
    rows = run.candidate_table
    about = pc.is_in(rows.column("docno").cast(pa.string()), value_set=pa.array(docnos, pa.string()))
    own = pc.is_in(rows.column("event"), value_set=events.column("event").combine_chunks())
    return Run(events, rows.filter(pc.and_(about, own)), run.meta, run.path)


def _queries(
    events: pd.DataFrame, topics: pd.DataFrame | None, found: list[Life], steps: list[list[Step]]
) -> list[Query]:
    lives_of: dict[str, tuple[list[Life], list[list[Step]]]] = {}
    for life, way in zip(found, steps, strict=True):
        mine = lives_of.setdefault(life.label.qid, ([], []))
        mine[0].append(life)
        mine[1].append(way)
    top = events[~events["stage"].astype(str).str.contains(".", regex=False)]
    n_out = {str(qid): int(n) for qid, n in zip(top["qid"], top["n_out"], strict=True)}
    asked = {str(qid): str(text) for qid, text in zip(events["qid"][::-1], events["query"][::-1], strict=True)}
    given, answers = _texts(topics, "query"), _texts(topics, "answer")
    return [
        Query(qid, given.get(qid, asked[qid]), answers.get(qid, ""), *lives_of.get(qid, ([], [])), n_out.get(qid, 0))
        for qid in map(str, events["qid"].drop_duplicates())
    ]


def _texts(topics: pd.DataFrame | None, column: str) -> dict[str, str]:
    if topics is None or column not in topics.columns or "qid" not in topics.columns:
        return {}
    pairs = zip(topics["qid"], topics[column], strict=True)
    return {str(qid): str(text) for qid, text in pairs if text is not None and text == text}


def _own(measures: pd.DataFrame | None, names: set[str], *, only: bool) -> dict[str, dict[str, float]]:
    """The values under one of a pipeline's names; those under none belong to a run's only pipeline."""
    if measures is None or measures.empty:
        return {}
    given = measures["name"] if "name" in measures.columns else pd.Series(None, index=measures.index, dtype=object)
    return _by_measure(measures[given.isin(list(names)) | (given.isna() & only)])


def _by_measure(measures: pd.DataFrame) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for qid, measure, value in zip(measures["qid"], measures["measure"], measures["value"], strict=True):
        found.setdefault(str(measure), {})[str(qid)] = float("nan") if value is None else float(value)
    return found


def _told(table: pd.DataFrame) -> list[tuple[str, str]]:
    """The stages by which a label's way is told: all, or where they are many those of the pipeline itself."""
    stages = [(str(stage), str(label)) for stage, label in zip(table["stage"], table["label"], strict=True)]
    if len(stages) > MAX_PATH_STAGES:
        stages = [item for item in stages if "." not in item[0]]
    return stages[:MAX_PATH_STAGES]


def _no_funnel() -> pd.DataFrame:
    return pd.DataFrame(columns=["stage", "label", "kind", "tasks", "n_in", "n_out", "seconds"])


def _overlap(meta: Mapping[str, Any]) -> float:
    value = meta.get("overlap", 1.0)
    return float(value) if isinstance(value, int | float) and 0 < value <= 1 else 1.0
