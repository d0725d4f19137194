"""The table of agents: the paper's own figures through it, its intervals against scipy's, and a real run."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from searchops.errors import DataError, SpecError
from searchops.experiments.table1 import COLUMNS, table1

AGENTS = ("query", "tool", "program")


@pytest.fixture
def run_with(tmp_path):
    """A folder as a finished run of agents leaves it: values by (agent, measure), one a question."""

    def make(values, name="run", collection="questions"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "run.json").write_text(json.dumps({"format": 1, "collection": collection}), encoding="utf-8")
        rows = [
            {"name": agent, "qid": str(qid), "measure": measure, "value": value}
            for (agent, measure), column in values.items()
            for qid, value in enumerate(column)
        ]
        (folder / "measures.json").write_text(json.dumps({"per_query": rows}), encoding="utf-8")
        return folder

    return make


def row(table, agent, measure):
    frame = table.frame
    found = frame[(frame["agent"] == agent) & (frame["measure"] == measure)]
    assert len(found) == 1
    return found.iloc[0]


def shares(right, total=300):
    """Successes that make up a published share."""
    return [1.0] * right + [0.0] * (total - right)


def test_the_papers_figures_come_out_as_the_paper_prints_them(run_with):
    """Source: PSA, 4.2 (ii): Qwen3.8-Flash on InfoSeek-Eval (300 questions), success from 72.67 % to 82.00 %,
    final-step tokens from 93.9K to 23.5K."""
    values = {
        ("query", "success"): shares(218),
        ("program", "success"): shares(246),
        ("query", "final_step_tokens"): [93_900.0] * 300,
        ("program", "final_step_tokens"): [23_500.0] * 300,
    }
    table = table1([run_with(values)])
    assert round(100 * row(table, "query", "success")["mean"], 2) == 72.67
    assert round(100 * row(table, "program", "success")["mean"], 2) == 82.00
    assert round(100 * row(table, "program", "success")["change"], 2) == 9.33
    text = table.markdown()
    assert "**23.5K** (↓75.0%)" in text
    assert "93.9K" in text
    assert "**82.0** (+9.3)" in text


def test_relative_changes_are_taken_before_rounding(run_with):
    values = {("query", "final_step_tokens"): [1049.0], ("tool", "final_step_tokens"): [1051.0]}
    text = table1([run_with(values)]).markdown()
    assert "**1.0K**" in text
    assert "1.1K (↑0.2%)" in text


@pytest.mark.parametrize("measure", ["Delivered", "final_step_tokens"])
def test_intervals_agree_with_scipys_paired_bootstrap(run_with, measure):
    rng = np.random.default_rng(7)
    one = rng.integers(0, 2, 80).astype(float) if measure == "Delivered" else rng.normal(5000, 900, 80)
    two = np.clip(one + rng.choice([0, 0, 1], 80), 0, 1) if measure == "Delivered" else one * rng.normal(0.7, 0.2, 80)
    found = row(
        table1([run_with({("query", measure): one.tolist(), ("tool", measure): two.tolist()})]), "tool", measure
    )

    def change(mine, theirs, axis):
        mine, theirs = mine.mean(axis=axis), theirs.mean(axis=axis)
        return mine - theirs if measure == "Delivered" else mine / theirs - 1

    expected = scipy_stats.bootstrap(
        (two, one), change, paired=True, method="percentile", n_resamples=20_000, vectorized=True,
        random_state=np.random.default_rng(1),
    ).confidence_interval  # fmt: skip
    assert found["change"] == pytest.approx(change(two[None], one[None], 1)[0])
    width = expected.high - expected.low
    assert found["change_low"] == pytest.approx(expected.low, abs=0.05 * width)
    assert found["change_high"] == pytest.approx(expected.high, abs=0.05 * width)


def test_questions_without_a_value_are_counted_and_left_out_of_the_pairs(run_with):
    values = {("query", "Delivered"): [0.0, 1.0, None, 1.0], ("tool", "Delivered"): [1.0, None, 0.5, 1.0]}
    table = table1([run_with(values)])
    found = row(table, "tool", "Delivered")
    assert (found["tasks"], found["missing"], found["pairs"]) == (3, 1, 2)
    assert found["mean"] == pytest.approx(2.5 / 3)
    assert found["change"] == pytest.approx(0.5)
    assert "83.3** /1 (+50.0)" in table.markdown()


def test_what_has_no_value_is_shown_as_none_and_never_as_a_number(run_with):
    table = table1([run_with({(agent, "decisions"): [1.0, 2.0] for agent in AGENTS})])
    success = row(table, "tool", "success")
    assert math.isnan(success["mean"])
    assert (success["tasks"], success["missing"]) == (0, 2)
    assert "| Query-based Agent | – |" in table.markdown()


def test_nothing_can_be_a_per_cent_of_nothing(run_with):
    values = {("query", "rerank_pairs"): [0.0, 0.0], ("tool", "rerank_pairs"): [3.0, 1.0]}
    table = table1([run_with(values)])
    assert math.isnan(row(table, "tool", "rerank_pairs")["change"])
    assert "| 2.0 |" in table.markdown()


def test_the_best_of_a_cost_is_the_lowest_and_of_a_share_the_highest_and_equals_share_it(run_with):
    values = {
        ("query", "decisions"): [4.0], ("tool", "decisions"): [4.0], ("program", "decisions"): [9.0],
        ("query", "R@100"): [0.25], ("tool", "R@100"): [0.5], ("program", "R@100"): [0.75],
    }  # fmt: skip
    lines = table1([run_with(values)]).markdown().splitlines()
    query, tool, program = (next(line for line in lines if line.startswith(f"| {name}")) for name in ("Qu", "To", "Pr"))
    assert "**4.0**" in query
    assert "**4.0** (↑0.0%)" in tool
    assert "| 9.0 (↑125.0%)" in program
    assert "**75.0** (+50.0)" in program
    assert "50.0 (+25.0)" in tool


def test_several_collections_make_a_block_each(run_with):
    values = {(agent, "decisions"): [1.0] for agent in AGENTS}
    table = table1([run_with(values, "a", "hotpotqa"), run_with(values, "b", "2wiki")])
    assert len(table.frame) == 2 * len(AGENTS) * len(COLUMNS)
    text = table.markdown()
    assert text.index("**hotpotqa** (1 questions)") < text.index("**2wiki** (1 questions)")


def test_any_agent_can_be_the_baseline_and_a_missing_one_is_named(run_with):
    folder = run_with({(agent, "decisions"): [1.0] for agent in AGENTS})
    table = table1([folder], baseline="tool")
    assert math.isnan(row(table, "tool", "decisions")["change"])
    assert row(table, "query", "decisions")["change"] == 0.0
    with pytest.raises(SpecError, match="Did you mean 'query'"):
        table1([folder], baseline="querry")


def test_runs_that_are_none_or_unfinished_are_refused(tmp_path, run_with):
    with pytest.raises(DataError, match=r"run\.json"):
        table1([tmp_path])
    folder = run_with({("query", "decisions"): [1.0]})
    (folder / "measures.json").unlink()
    with pytest.raises(DataError, match="a finished run"):
        table1([folder])
    with pytest.raises(SpecError, match="at least one run"):
        table1([])


def test_the_three_interfaces_run_over_real_questions_with_the_keyword_policy(shared_data, tmp_path):
    """Sixteen questions of HotpotQA by one file: every measure has a value, but the success of a policy that
    gives no answer."""
    from searchops.experiments.running import run_spec
    from searchops.spec import read_spec

    small = tmp_path / "small"
    small.mkdir()
    whole = shared_data("hotpotqa")
    topics = (whole / "topics.jsonl").read_text(encoding="utf-8").splitlines()[:16]
    qids = {json.loads(line)["qid"] for line in topics}
    (small / "topics.jsonl").write_text("\n".join(topics) + "\n", encoding="utf-8")
    (small / "corpus.jsonl").write_bytes((whole / "corpus.jsonl").read_bytes())
    evidence = (whole / "evidence.jsonl").read_text(encoding="utf-8").splitlines()
    (small / "evidence.jsonl").write_text(
        "".join(line + "\n" for line in evidence if json.loads(line)["qid"] in qids), encoding="utf-8"
    )
    qrels = (whole / "qrels.txt").read_text(encoding="utf-8").splitlines()
    (small / "qrels.txt").write_text(
        "".join(f"{line}\n" for line in qrels if line.split()[0] in qids), encoding="utf-8"
    )
    file = tmp_path / "agents.yaml"
    file.write_text(
        f"version: 1\ncollection: {small}\nindex: lucene\nagent: [query, tool, program]\nmodel: keyword\n"
        "measures: [R@100, Available, Delivered, Delivered/Available]\n",
        encoding="utf-8",
    )
    result = run_spec(read_spec(file), tmp_path / "run")
    assert not result.failed
    table = table1([result.folder])
    for column in COLUMNS[1:]:
        means = [row(table, agent, column.measure)["mean"] for agent in AGENTS]
        assert not any(map(math.isnan, means)), column
        if column.share:
            assert all(0 < mean <= 1 for mean in means)
    assert math.isnan(row(table, "program", "success")["mean"])
    decisions = {agent: row(table, agent, "decisions")["mean"] for agent in AGENTS}
    assert decisions["tool"] > 2 * max(decisions["query"], decisions["program"])
    asked = [row(table, agent, "retrieval_requests")["mean"] for agent in AGENTS]
    assert max(asked) <= 12
