"""pt.Experiment with evidence measures beside nDCG, recall and friends."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
from ir_measures import Measure

from searchops.errors import FrameError
from searchops.metrics import evidence_values, is_evidence, parse_measure
from searchops.pipeline import normalise
from searchops.recorder import Recorder, record_into
from searchops.stats import mean_interval, paired_difference

NAN = float("nan")
RANKING = ("qid", "query", "docno", "score", "rank")
TESTS = ("test", "correction", "correction_alpha", "filter_by_qrels", "filter_by_topics")


class Recorded(pt.Transformer):
    """A system that notes into its own record whatever it is asked to run.

    Args:
        system: The system.
        keeps: Whether it keeps its rankings, to be measured again.
    """

    def __init__(self, system: pt.Transformer, *, keeps: bool = False) -> None:
        self.system = normalise(system)
        self.keeps = keeps
        self.kept: list[pd.DataFrame] = []
        self.recorder = Recorder(None, "new", {})
        self.milliseconds = 0.0
        self.tasks: set[Any] = set()

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The system's own result."""
        start = time.perf_counter()
        with record_into(self.recorder):
            out: pd.DataFrame = self.system.transform(inp)
        self.milliseconds += 1000 * (time.perf_counter() - start)
        self.tasks.update(inp["qid"])
        if self.keeps:
            self.kept.append(out[[name for name in RANKING if name in out.columns]])
        return out

    def transform_inputs(self) -> Any:
        """The system's inputs."""
        return pt.inspect.transformer_inputs(self.system)

    def transform_outputs(self, input_columns: list[str]) -> Any:
        """The system's outputs."""
        return pt.inspect.transformer_outputs(self.system, input_columns)

    def __repr__(self) -> str:
        return repr(self.system)


def Experiment(  # noqa: N802 - named as in PyTerrier
    retr_systems: Sequence[pt.Transformer] | Mapping[str, pt.Transformer],
    topics: pd.DataFrame,
    qrels: pd.DataFrame | None,
    eval_metrics: Sequence[str | Measure],
    *,
    evidence: pd.DataFrame | None = None,
    names: Sequence[str] | None = None,
    perquery: bool = False,
    baseline: int | str | None = None,
    round: int | Mapping[str, int] | None = None,  # noqa: A002 - named as in PyTerrier
    overlap: float = 1.0,
    level: float = 0.95,
    rng: np.random.Generator | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Runs pipelines over topics and compares them, in retrieval quality and evidence delivery.

    `pt.Experiment` does the running and the retrieval measures, with all its options. Evidence
    measures come from a record that each system writes while it runs.

    Columns: name, then a column a measure (`mrt`: milliseconds a task). With a baseline also
        pt.Experiment's columns for each retrieval measure (`M +`, `M -`, `M p-value`, corrections), and
        for every measure `M diff`, `M diff low`, `M diff high`: the mean paired difference from the
        baseline with its bootstrap interval. With perquery: name, qid, measure, value.
    Rows: one a system, or one a system, task and measure.

    Args:
        retr_systems: Pipelines, or names to pipelines.
        topics: Q frame.
        qrels: Judgements; None if only evidence measures are asked for.
        eval_metrics: Measures of ir_measures, trec_eval names, and evidence measures.
        evidence: Evidence labels, needed by evidence measures.
        names: One a system.
        perquery: Rows a task instead of means.
        baseline: Index or name of the system that the others are compared with.
        round: Decimals of the means (or values a task), for all measures or by measure.
        overlap: Share of a labelled span that must be covered.
        level: Of the intervals.
        rng: Randomness of the bootstrap; seeded with 0 if not given.
        options: Whatever else `pt.Experiment` takes (batch_size, filter_by_qrels, save_dir, test,
            correction, …), but for what makes no frame (dataframe=False, highlight).

    Raises:
        FrameError: Evidence or qrels are missing for a measure, or the options exclude each other.
        SpecError: There is no such measure.

    Source: PyTerrier, pt.Experiment; PSA, A.3 (20,000 paired replicates).

    Example:
        >>> topics = pd.DataFrame({"qid": ["1"], "query": ["deepest lake"]})
        >>> qrels = pd.DataFrame({"qid": ["1"], "docno": ["d2"], "label": [1]})
        >>> found = pd.DataFrame({"qid": ["1", "1"], "docno": ["d1", "d2"], "score": [2.0, 1.0], "rank": [0, 1]})
        >>> Experiment([pt.Transformer.from_df(found)], topics, qrels, ["AP", "P@1"], names=["fixed"])
            name   AP  P@1
        0  fixed  0.5  0.0
    """
    labels, systems = _named(retr_systems, names)
    topics, qrels, evidence = (_text_qids(frame) for frame in (topics, qrels, evidence))
    measures = [parse_measure(measure) for measure in eval_metrics if measure != "mrt"]
    base = _baseline(baseline, labels)
    _check(measures, qrels, evidence, options)
    recorded = [Recorded(system, keeps=base is not None) for system in systems]
    values, means = _retrieval(recorded, labels, topics, qrels, measures, base, options)
    wanted = [measure for measure in measures if is_evidence(measure)]
    if wanted and evidence is not None:
        found = _evidence(recorded, labels, evidence, wanted, overlap)
        values = pd.concat([frame for frame in (values, *found) if len(frame)] or [values], ignore_index=True)
    if perquery:
        return values.assign(value=_rounded(values["value"], values["measure"], round))
    table = _means(values, labels, measures, means, base, level, rng or np.random.default_rng(0))
    if "mrt" in eval_metrics:
        table["mrt"] = [system.milliseconds / len(system.tasks) if system.tasks else NAN for system in recorded]
    for name in {*map(repr, measures), "mrt"} & set(table.columns):
        table[name] = _rounded(table[name], pd.Series(name, index=table.index), round)
    return table


def _text_qids(frame: Any) -> Any:
    """The frame with its qids as text, the one form in which topics, qrels and labels meet."""
    if frame is None or "qid" not in frame.columns:
        return frame
    return frame.assign(qid=[qid if isinstance(qid, str) else str(qid) for qid in frame["qid"]])


def _retrieval(
    recorded: Sequence[Recorded],
    labels: Sequence[str],
    topics: pd.DataFrame,
    qrels: pd.DataFrame | None,
    measures: Sequence[Measure],
    base: int | None,
    options: dict[str, Any],
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Runs the systems; retrieval measures a task, and pt.Experiment's own table of means."""
    plain = list(dict.fromkeys(measure for measure in measures if not is_evidence(measure)))
    if not plain:
        for system in recorded:
            system.transform(topics)
        return pd.DataFrame(columns=["name", "qid", "measure", "value"]), None
    assert qrels is not None
    means, per_query = pt.Experiment(
        list(recorded),
        topics,
        qrels,
        plain,
        names=list(labels),
        perquery="both",
        **{name: value for name, value in options.items() if base is None or name not in TESTS[:3]},
    )
    if base is not None:
        # pt.Experiment tests against a baseline or gives the values of every task, not both: its tests
        # read the rankings that are there by now, or the files they were saved in.
        ran: list[Any] = [pd.concat(system.kept) if system.tasks else system for system in recorded]
        tests = {name: options[name] for name in TESTS if name in options}
        if not all(system.tasks for system in recorded):
            tests.update({name: options[name] for name in ("save_dir", "save_mode", "save_format") if name in options})
        means = pt.Experiment(ran, topics, qrels, plain, names=list(labels), baseline=base, validate="ignore", **tests)
    # Measures go by their printed form here, whatever key pt.Experiment has for them.
    per_query = per_query.assign(measure=per_query["measure"].astype(str))
    return per_query[["name", "qid", "measure", "value"]], means.rename(columns=str)


def _evidence(
    recorded: Sequence[Recorded],
    labels: Sequence[str],
    evidence: pd.DataFrame,
    measures: Sequence[Measure],
    overlap: float,
) -> list[pd.DataFrame]:
    frames = []
    for name, system in zip(labels, recorded, strict=True):
        if not system.tasks:
            raise FrameError(
                "pipelines that run are needed to account for evidence",
                f"saved results of {name!r}",
                where="Experiment",
                hint="Leave out save_mode='reuse'.",
            )
        frame = evidence_values(system.recorder, evidence, measures, overlap=overlap)
        frame.insert(0, "name", name)
        frames.append(frame)
    return frames


def _means(
    values: pd.DataFrame,
    labels: Sequence[str],
    measures: Sequence[Measure],
    means: pd.DataFrame | None,
    base: int | None,
    level: float,
    rng: np.random.Generator,
) -> pd.DataFrame:
    names = list(dict.fromkeys(repr(measure) for measure in measures))
    wide = values.pivot_table(index="qid", columns=["measure", "name"], values="value", dropna=False, sort=False)
    rows = []
    for place, label in enumerate(labels):
        row: dict[str, Any] = {"name": label}
        for name in names:
            column = wide.get((name, label))
            if means is not None and name in means.columns:
                row[name] = float(means.loc[place, name])  # PyTerrier's own mean (or sum, for counts)
                row.update({more: means.loc[place, more] for more in means.columns if more.startswith(f"{name} ")})
            else:
                row[name] = NAN if column is None else float(column.mean())
            if base is not None and place != base and column is not None:
                diff = paired_difference(column, wide[(name, labels[base])], rng, level=level)
                row.update({f"{name} diff": diff.mean, f"{name} diff low": diff.low, f"{name} diff high": diff.high})
        rows.append(row)
    return pd.DataFrame(rows)


def _rounded(
    values: pd.Series[float], measures: pd.Series[str], decimals: int | Mapping[str, int] | None
) -> pd.Series[float]:
    """The values, each rounded as its measure asks."""
    if decimals is None:
        return values
    if isinstance(decimals, int):
        return values.round(decimals)
    by_name = {str(measure): n for measure, n in decimals.items()}
    rounded = [
        round(value, by_name[measure]) if measure in by_name else value
        for value, measure in zip(values, measures, strict=True)
    ]
    return pd.Series(rounded, index=values.index)


def intervals(values: pd.DataFrame, rng: np.random.Generator, *, level: float = 0.95) -> pd.DataFrame:
    """Means with bootstrap intervals of a per-query table.

    Columns: name, measure, mean, low, high, tasks (with a value), missing (tasks without one).

    Example:
        >>> frame = pd.DataFrame({"name": "a", "qid": ["1", "2"], "measure": "Delivered", "value": [1.0, None]})
        >>> intervals(frame, np.random.default_rng(0))[["mean", "tasks", "missing"]].to_dict("records")
        [{'mean': 1.0, 'tasks': 1, 'missing': 1}]
    """
    rows = []
    for (name, measure), group in values.groupby(["name", "measure"], sort=False):
        found = mean_interval(group["value"], rng, level=level)
        rows.append(
            {
                "name": name,
                "measure": measure,
                "mean": found.mean,
                "low": found.low,
                "high": found.high,
                "tasks": found.tasks,
                "missing": len(group) - found.tasks,
            }
        )
    return pd.DataFrame(rows, columns=["name", "measure", "mean", "low", "high", "tasks", "missing"])


def _named(
    systems: Sequence[pt.Transformer] | Mapping[str, pt.Transformer], names: Sequence[str] | None
) -> tuple[list[str], list[pt.Transformer]]:
    if isinstance(systems, Mapping):
        labels, found = list(systems), list(systems.values())
    else:
        found = list(systems)
        labels = list(names) if names is not None else [repr(normalise(system)) for system in found]
    if not found or len(labels) != len(found) or len(set(labels)) != len(labels):
        raise FrameError(
            "one name of its own a system is needed", f"{len(found)} systems, names {labels}", where="Experiment"
        )
    wrong = [system for system in found if not isinstance(system, pt.Transformer)]
    if wrong:
        raise FrameError("systems that are transformers are needed", repr(wrong[0])[:80], where="Experiment")
    return labels, found


def _baseline(baseline: int | str | None, labels: Sequence[str]) -> int | None:
    if baseline is None:
        return None
    if isinstance(baseline, str) and baseline in labels:
        return list(labels).index(baseline)
    if isinstance(baseline, int) and 0 <= baseline < len(labels):
        return baseline
    raise FrameError(
        "a baseline among the systems is needed", repr(baseline), where="Experiment", hint="Names: " + ", ".join(labels)
    )


def _check(
    measures: Sequence[Measure], qrels: pd.DataFrame | None, evidence: pd.DataFrame | None, options: dict[str, Any]
) -> None:
    where = "Experiment"
    if not measures:
        raise FrameError("at least one measure is needed", "none", where=where)
    if options.get("dataframe") is False or options.get("highlight") is not None:
        raise FrameError("options that leave a frame are needed", "dataframe=False or highlight", where=where)
    need_evidence = [repr(measure) for measure in measures if is_evidence(measure)]
    need_qrels = [repr(measure) for measure in measures if not is_evidence(measure)]
    if need_evidence and evidence is None:
        raise FrameError("evidence= is needed by " + ", ".join(need_evidence), "none", where=where)
    if need_qrels and qrels is None:
        raise FrameError("qrels are needed by " + ", ".join(need_qrels), "none", where=where)
    if need_evidence and options.get("plan") == "tree":
        raise FrameError(
            "whole pipelines are needed to account for evidence",
            "plan='tree'",
            where=where,
            hint="Leave plan at 'linear'.",
        )
