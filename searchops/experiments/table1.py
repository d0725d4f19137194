"""Agents compared as the paper's Table 1 does: differences from the Query-based Agent in parentheses.

Shares (success, recalls) are given in per cent with differences in percentage points; what a question costs is
given as a mean with its relative change. Intervals are paired over the questions. What has no value has none:
a policy that gives no answer has no success. Source: PSA, Table 1 and A.3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from searchops.errors import DataError, SpecError, did_you_mean, sentence
from searchops.experiments.results import MEASURES_FILE, read_values
from searchops.records import read_meta
from searchops.stats import bootstrap_means, mean_interval

__all__ = ["COLUMNS", "Column", "Table1", "table1"]

BASELINE: Final = "query"
TITLES: Final = {"query": "Query-based Agent", "tool": "Tool-based Agent", "program": "Program Agent (PSA)"}


class Column(NamedTuple):
    """One measure of the table.

    Attributes:
        measure: Its name in a run's measures.
        title: The column's head.
        share: A share of 1, shown in per cent; else a cost, shown as a mean.
    """

    measure: str
    title: str
    share: bool


COLUMNS: Final = (
    Column("success", "Success", True),
    Column("Available", "Ev. available", True),
    Column("Delivered", "Ev. delivered", True),
    Column("Delivered/Available", "Del./avail.", True),
    Column("R@100", "Doc. recall", True),
    Column("final_step_tokens", "Final-step tokens", False),
    Column("decisions", "Decisions", False),
    Column("retrieval_requests", "Requests", False),
    Column("rerank_pairs", "Rerank pairs", False),
    Column("extract_calls", "Extract calls", False),
    Column("observation_chars", "Obs. characters", False),
)
"""The columns, in order. `R@100` of an agent counts the documents its evidence is from."""


@dataclass(frozen=True)
class Table1:
    """The table, as numbers and as text.

    Attributes:
        frame: One row a collection, agent and measure: mean, low, high, tasks, missing, then change,
            change_low, change_high from the baseline (differences of shares, relative changes of costs;
            NaN for the baseline itself), pairs (questions with both values).
        baseline: The agent that the others are compared with.
    """

    frame: pd.DataFrame
    baseline: str

    def markdown(self) -> str:
        """The table in Markdown: a block a collection, the best value of each column in bold."""
        blocks = []
        for collection, rows in self.frame.groupby("collection", sort=False):
            tasks = int(rows["questions"].max())
            blocks.append(f"**{collection}** ({tasks} questions)\n\n" + "\n".join(_block(rows, self.baseline)))
        return "\n\n".join([*blocks, _LEGEND])


_LEGEND: Final = (
    "Parentheses: change from the baseline, in percentage points for shares (given in %), relative for costs (means "
    "a question). Brackets: paired 95 % bootstrap interval. Bold: the best value. –: no value. A number behind / "
    "counts the questions without a value."
)


def table1(
    runs: Iterable[str | PathLike[str]],
    *,
    baseline: str = BASELINE,
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Table1:
    """Makes the table of one or more finished runs of agents, a block for each.

    Args:
        runs: Folders of runs, one a collection, each with the same agents.
        baseline: The agent the others are compared with.
        level: Of the intervals.
        rng: Randomness of the bootstrap; seeded with 0 if not given.

    Raises:
        DataError: A folder holds no finished run.
        SpecError: A run has no agent of the baseline's name.
    """
    rng = rng or np.random.default_rng(0)
    rows: list[dict[str, object]] = []
    for folder in map(Path, runs):
        values = _values(folder)
        agents = list(dict.fromkeys(values["name"]))
        if baseline not in agents:
            hint = sentence(did_you_mean(baseline, agents))
            raise SpecError("a baseline among the run's agents is needed", repr(baseline), where=str(folder), hint=hint)
        collection = str(read_meta(folder).get("collection", folder.name))
        wide = values.pivot_table(index="qid", columns=["name", "measure"], values="value", dropna=False, sort=False)
        for agent in agents:
            rows += [{"collection": collection, **_row(wide, agent, c, baseline, level, rng)} for c in COLUMNS]
    if not rows:
        raise SpecError("at least one run is needed", "none", where="table1")
    return Table1(pd.DataFrame(rows), baseline)


def _values(folder: Path) -> pd.DataFrame:
    read_meta(folder)
    if not (folder / MEASURES_FILE).is_file():
        raise DataError(
            f"a finished run (with {MEASURES_FILE}) is needed",
            "none",
            where=str(folder),
            hint="Run it to its end: searchops run FILE.yaml --out DIR.",
        )
    return read_values(folder)


def _row(
    wide: pd.DataFrame, agent: str, column: Column, baseline: str, level: float, rng: np.random.Generator
) -> dict[str, object]:
    mine, theirs = (
        wide[(name, column.measure)].to_numpy(dtype=np.float64)
        if (name, column.measure) in wide.columns
        else np.full(len(wide), np.nan)
        for name in (agent, baseline)
    )
    mean = mean_interval(mine, rng, level=level)
    both = ~np.isnan(mine) & ~np.isnan(theirs)
    change = (math.nan,) * 3
    if agent != baseline and both.any():
        change = _change(np.column_stack([mine[both], theirs[both]]), column.share, level, rng)
    return {
        "agent": agent,
        "measure": column.measure,
        "mean": mean.mean,
        "low": mean.low,
        "high": mean.high,
        "tasks": mean.tasks,
        "missing": len(wide) - mean.tasks,
        "questions": len(wide),
        **dict(zip(("change", "change_low", "change_high"), change, strict=True)),
        "pairs": int(both.sum()),
    }


def _change(pairs: np.ndarray, share: bool, level: float, rng: np.random.Generator) -> tuple[float, float, float]:
    """The difference of two means, or the ratio of one to the other less 1, with its paired interval."""
    means = bootstrap_means(pairs, rng)
    whole = pairs.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        replicates = means[:, 0] - means[:, 1] if share else means[:, 0] / means[:, 1] - 1
        found = whole[0] - whole[1] if share else whole[0] / whole[1] - 1
    if not np.isfinite(replicates).all():
        return math.nan, math.nan, math.nan  # nothing can be a per cent of nothing
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    return float(found), float(low), float(high)


# -- text ----------------------------------------------------------------------------------------


def _block(rows: pd.DataFrame, baseline: str) -> list[str]:
    """Agents as rows and measures as columns; then the same with the intervals of the changes."""
    agents = list(dict.fromkeys(rows["agent"]))
    cells = {(row["agent"], row["measure"]): row for row in rows.to_dict("records")}
    best = {c: _best([cells[agent, c.measure]["mean"] for agent in agents], c.share) for c in COLUMNS}
    head = ["| Method | " + " | ".join(c.title for c in COLUMNS) + " |", "|---|" + "---:|" * len(COLUMNS)]
    means = [
        [_mean(cells[agent, c.measure], c, bold=place in best[c]) for c in COLUMNS]
        for place, agent in enumerate(agents)
    ]
    others = [agent for agent in agents if agent != baseline]
    changes = [[_interval(cells[agent, c.measure], c) for c in COLUMNS] for agent in others]
    return [
        *head,
        *_lines(agents, means),
        "",
        f"Changes from {TITLES.get(baseline, baseline)}, with paired intervals:",
        "",
        *head,
        *_lines(others, changes),
    ]


def _lines(agents: Sequence[str], texts: Sequence[Sequence[str]]) -> list[str]:
    return [
        f"| {TITLES.get(agent, agent)} | " + " | ".join(cells) + " |"
        for agent, cells in zip(agents, texts, strict=True)
    ]


def _best(means: Sequence[float], share: bool) -> set[int]:
    known = [mean for mean in means if not math.isnan(mean)]
    if not known:
        return set()
    best = max(known) if share else min(known)
    return {place for place, mean in enumerate(means) if mean == best}


def _mean(row: dict[str, float], column: Column, *, bold: bool) -> str:
    if math.isnan(row["mean"]):
        return "–"
    text = _number(row["mean"], column)
    text = f"**{text}**" if bold else text
    if row["missing"]:
        text += f" /{int(row['missing'])}"
    if math.isnan(row["change"]):
        return text
    change = 100 * row["change"]
    if column.share:
        return f"{text} ({change:+.1f})"
    return f"{text} ({'↓' if change < 0 else '↑'}{abs(change):.1f}%)"


def _interval(row: dict[str, float], column: Column) -> str:
    if math.isnan(row["change"]):
        return "–"
    change, low, high = (100 * row[name] for name in ("change", "change_low", "change_high"))
    unit = "" if column.share else "%"
    return f"{change:+.1f}{unit} [{low:+.1f}, {high:+.1f}]"


def _number(mean: float, column: Column) -> str:
    if column.share:
        return f"{100 * mean:.1f}"
    return f"{mean / 1000:.1f}K" if mean >= 1000 else f"{mean:.1f}"
