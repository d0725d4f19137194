"""so.Experiment: pt.Experiment with evidence measures beside its own."""

import ir_measures
import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import AP, RR, NumRet, P, R, nDCG

from searchops import recorder
from searchops.errors import FrameError, SpecError
from searchops.experiments.comparison import Experiment
from searchops.metrics import Available, Delivered, DeliveredCharacters, EvidenceRecall, Retrieved, evidence_values
from searchops.primitives import Extract, Filter, Rerank, Retrieve
from searchops.scorers.lexical import Lexical
from searchops.stats import paired_difference

MEASURES = [nDCG @ 5, AP, P @ 1, R @ 3, RR, NumRet]
NAMES = ["plain", "dropped", "foreign"]


@pytest.fixture
def systems(tiny_index):
    first = Retrieve(tiny_index, k=6)
    upper = pt.apply.query(lambda row: row["query"].upper())
    return [
        first >> Extract(Lexical()),
        first >> Filter("year != 2010") >> Rerank(Lexical(), k=2) >> Extract(Lexical()),
        upper >> first >> Rerank(Lexical(), k=4) >> Extract(Lexical(), k=4, per_document=2),
    ]


@pytest.fixture
def data(tiny_collection):
    return tiny_collection.topics, tiny_collection.qrels


@pytest.fixture
def evidence(tiny_collection):
    return tiny_collection.evidence


def by_record(system, topics, evidence, measures):
    """Evidence measures from a run recorded apart."""
    with recorder.record() as run:
        system(topics)
    return evidence_values(run, evidence, measures)


def test_retrieval_measures_are_pyterriers(systems, data):
    ours = Experiment(systems, *data, MEASURES, names=NAMES)
    theirs = pt.Experiment(systems[:2], *data, MEASURES, names=NAMES[:2])
    assert list(ours.columns) == ["name", *map(str, MEASURES)]
    assert ours["name"].tolist() == NAMES
    theirs = theirs.rename(columns=str)
    assert ours.iloc[:2][list(theirs.columns)[1:]].to_numpy() == pytest.approx(
        theirs.iloc[:, 1:].to_numpy(dtype=float), abs=1e-12
    )
    assert len(set(ours["AP"])) > 1


def test_evidence_measures_are_those_of_a_record_and_stand_where_they_were_asked(systems, data, evidence):
    topics, qrels = data
    asked = [Delivered, nDCG @ 5, EvidenceRecall(stage="extract"), AP, Delivered / Available, DeliveredCharacters]
    table = Experiment(systems, topics, qrels, asked, evidence=evidence, names=NAMES).set_index("name")
    assert list(table.columns) == list(map(str, asked))
    for name, system in zip(NAMES[:2], systems, strict=False):
        values = by_record(system, topics, evidence, asked)
        means = values.groupby("measure")["value"].mean()
        for measure in means.index:
            assert table.loc[name, measure] == pytest.approx(means[measure], abs=1e-12)
    # By hand: "dropped" filters out the document of the first topic's labels (two of four).
    assert table.loc["dropped", "EvidenceRecall(stage='extract')"] <= 0.5


def test_a_plain_composition_with_a_foreign_first_stage_is_accounted_for(systems, data, evidence):
    table = Experiment(systems, *data, [Retrieved, EvidenceRecall(stage="1"), AP], evidence=evidence, names=NAMES)
    assert table.set_index("name").loc["foreign", "EvidenceRecall(stage='1')"] == 1.0  # retrieve is its stage 1


def test_evidence_measures_alone_need_no_qrels(systems, data, evidence):
    topics, qrels = data
    alone = Experiment(systems, topics, None, ["Delivered", Retrieved], evidence=evidence, names=NAMES)
    beside = Experiment(systems, topics, qrels, ["Delivered", Retrieved, AP], evidence=evidence, names=NAMES)
    pd.testing.assert_frame_equal(alone, beside.drop(columns="AP"))


def test_values_of_every_task(systems, data, evidence):
    topics, qrels = data
    table = Experiment(systems, topics, qrels, [nDCG @ 5, Delivered], evidence=evidence, names=NAMES, perquery=True)
    assert list(table.columns) == ["name", "qid", "measure", "value"]
    assert table.groupby(["name", "measure"]).size().to_dict() == {
        (name, m): 2 for name in NAMES for m in ("nDCG@5", "Delivered")
    }
    values = table.set_index(["name", "measure", "qid"])["value"]
    run = systems[1](topics).drop_duplicates(["qid", "docno"])
    for found in ir_measures.iter_calc([nDCG @ 5], pt.model.to_ir_measures(qrels), pt.model.to_ir_measures(run)):
        assert values["dropped", "nDCG@5", found.query_id] == pytest.approx(found.value, abs=1e-12)
    for row in by_record(systems[1], topics, evidence, [Delivered]).itertuples():
        assert values["dropped", "Delivered", row.qid] == row.value


def test_a_baseline_adds_paired_differences_with_intervals_for_every_measure(systems, data, evidence):
    asked = [AP, Delivered]
    options = {"evidence": evidence, "names": NAMES}
    table = Experiment(systems, *data, asked, baseline="plain", **options).set_index("name")
    per_query = Experiment(systems, *data, asked, perquery=True, **options)
    wide = per_query.pivot(index="qid", columns=["measure", "name"], values="value")
    for measure in ("AP", "Delivered"):
        for name in NAMES[1:]:
            diff = paired_difference(wide[measure, name], wide[measure, "plain"], np.random.default_rng(3))
            row = table.loc[name]
            assert row[f"{measure} diff"] == pytest.approx(diff.mean, abs=1e-12)
            assert row[f"{measure} diff"] == pytest.approx(row[measure] - table.loc["plain", measure], abs=1e-12)
            assert (row[f"{measure} diff low"], row[f"{measure} diff high"]) == pytest.approx(diff[1:3], abs=0.05)
        assert table.loc["plain"].filter(like=f"{measure} diff").isna().all()
    by_index = Experiment(systems, *data, asked, baseline=0, **options).set_index("name")
    pd.testing.assert_frame_equal(by_index, table)


def test_a_baseline_keeps_pyterriers_own_tests_and_corrections(systems, data, evidence):
    options = {"names": NAMES[:2], "baseline": 0, "correction": "bonferroni", "test": "wilcoxon"}
    ours = Experiment(systems[:2], *data, [AP, Delivered], evidence=evidence, **options)
    theirs = pt.Experiment(systems[:2], *data, [AP], **options)
    for column in ("AP +", "AP -", "AP p-value", "AP reject", "AP p-value corrected"):
        assert ours[column].tolist()[1] == theirs[column].tolist()[1]
    assert list(ours.columns)[-3:] == ["Delivered diff", "Delivered diff low", "Delivered diff high"]


def test_the_interval_follows_level_and_rng(systems, data, evidence):
    def high(**options):
        table = Experiment(
            systems[:2], *data, [AP], names=NAMES[:2], baseline=1, evidence=evidence, **options
        ).set_index("name")
        return table.loc["plain", "AP diff low"], table.loc["plain", "AP diff high"]

    assert high() == high(rng=np.random.default_rng(0))
    low, up = high(level=0.1)
    assert high()[0] <= low <= up <= high()[1]


def test_the_time_a_task_takes_is_measured_beside_anything(systems, data, evidence):
    for asked in (["mrt", AP], [Delivered, "mrt"], [AP, "mrt", Delivered]):
        table = Experiment(systems, *data, asked, names=NAMES, evidence=evidence)
        assert (table["mrt"] > 0).all()
        assert set(table.columns) == {"name", *map(str, asked)}


def test_decimals_are_those_asked_for_means_and_values(systems, data, evidence):
    options = {"evidence": evidence, "names": NAMES}
    exact = Experiment(systems, *data, [nDCG @ 5, Delivered], **options)
    assert Experiment(systems, *data, [nDCG @ 5, Delivered], round=1, **options)["nDCG@5"].tolist() == [
        round(value, 1) for value in exact["nDCG@5"]
    ]
    by_name = Experiment(systems, *data, [nDCG @ 5, Delivered], round={"nDCG@5": 2}, **options)
    assert by_name["nDCG@5"].tolist() == [round(value, 2) for value in exact["nDCG@5"]]
    assert by_name["Delivered"].tolist() == exact["Delivered"].tolist()
    values = Experiment(systems, *data, [nDCG @ 5], round=1, perquery=True, **options)["value"]
    assert values.tolist() == [round(value, 1) for value in values]


@pytest.mark.parametrize("options", [{"batch_size": 1}, {"filter_by_qrels": True}, {"precompute_prefix": True}])
def test_pyterriers_other_options_change_no_number(options, systems, data, evidence):
    asked = [AP, Delivered, Retrieved]
    plain = Experiment(systems, *data, asked, evidence=evidence, names=NAMES)
    pd.testing.assert_frame_equal(Experiment(systems, *data, asked, evidence=evidence, names=NAMES, **options), plain)


def test_tasks_that_were_not_asked_count_in_no_evidence_measure(systems, data, evidence):
    topics, qrels = data
    table = Experiment(systems, topics.iloc[:1], qrels, [Retrieved, AP], evidence=evidence, perquery=True)
    assert set(table["qid"]) == {"1"}


def test_results_are_saved_and_reusing_them_accounts_for_no_evidence(systems, data, evidence, tmp_path):
    options = {"names": NAMES, "save_dir": str(tmp_path)}
    first = Experiment(systems, *data, [AP], **options)
    assert (tmp_path / "plain.res.gz").exists()
    again = Experiment(systems, *data, [AP], save_mode="reuse", **options)
    pd.testing.assert_frame_equal(first, again)
    tested = Experiment(systems, *data, [AP], save_mode="reuse", baseline=0, **options)
    fresh = Experiment(systems, *data, [AP], names=NAMES, baseline=0)
    pd.testing.assert_frame_equal(tested, fresh)
    with pytest.raises(FrameError, match="pipelines that run are needed.*saved results of 'plain'"):
        Experiment(systems, *data, [AP, Delivered], evidence=evidence, save_mode="reuse", **options)


def test_systems_may_be_named_by_a_mapping(systems, data):
    table = Experiment(dict(zip("abc", systems, strict=True)), *data, [AP], baseline="c")
    assert table["name"].tolist() == ["a", "b", "c"]
    assert table["AP diff"].isna().tolist() == [False, False, True]


def test_without_names_a_system_is_called_what_it_is(systems, data):
    assert Experiment(systems[:1], *data, [AP])["name"].tolist() == [repr(systems[0])]


def test_a_pipeline_that_fails_fails_the_experiment(systems, data, evidence):
    broken = systems[0] >> pt.apply.generic(lambda frame: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Experiment([systems[0], broken], *data, [AP, Delivered], evidence=evidence)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"eval_metrics": []}, FrameError, "at least one measure"),
        ({"eval_metrics": ["mrt"]}, FrameError, "at least one measure"),
        ({"eval_metrics": ["Deliverd"]}, SpecError, "mean 'Delivered'"),
        ({"eval_metrics": [EvidenceRecall]}, SpecError, "EvidenceRecall needs stage"),
        ({"eval_metrics": [EvidenceRecall(stage="dedupe")]}, SpecError, "stage of the pipeline is needed"),
        ({"evidence": None}, FrameError, "evidence= is needed by Delivered"),
        ({"qrels": None}, FrameError, "qrels are needed by AP"),
        ({"names": ["a", "b"]}, FrameError, "3 systems, names"),
        ({"names": ["a", "a", "b"]}, FrameError, "one name of its own"),
        ({"retr_systems": []}, FrameError, "0 systems"),
        ({"retr_systems": ["bm25"], "names": ["x"]}, FrameError, "systems that are transformers"),
        ({"baseline": 3}, FrameError, "a baseline among the systems is needed; found 3"),
        ({"baseline": -1}, FrameError, "found -1"),
        ({"baseline": "plan"}, FrameError, "found 'plan'. Names: plain, dropped, foreign"),
        ({"plan": "tree"}, FrameError, "Leave plan at 'linear'"),
        ({"dataframe": False}, FrameError, "options that leave a frame"),
        ({"highlight": "bold"}, FrameError, "options that leave a frame"),
        ({"correction": "holm"}, ValueError, "no baseline was specified"),
    ],
)
def test_what_cannot_be_measured_is_refused(changed, error, message, systems, data, evidence):
    topics, qrels = data
    arguments = {
        "retr_systems": systems, "topics": topics, "qrels": qrels, "eval_metrics": [AP, Delivered],
        "evidence": evidence, "names": NAMES, **changed,
    }  # fmt: skip
    with pytest.raises(error) as caught:
        Experiment(**arguments)
    assert message in str(caught.value)


def test_whole_trees_of_pipelines_may_run_where_no_evidence_is_asked(systems, data):
    tree = Experiment(systems, *data, [AP], names=NAMES, plan="tree", verbose=False)
    pd.testing.assert_frame_equal(tree, Experiment(systems, *data, [AP], names=NAMES))
