"""Evidence measures on hand-made records, and their names."""

import math

import ir_measures
import pandas as pd
import pytest
from ir_measures import AP, P, R, nDCG
from ir_measures.measures import registry

from searchops.errors import FrameError, SpecError
from searchops.metrics import (
    FUNNEL,
    Available,
    CompleteDelivery,
    Delivered,
    DeliveredCharacters,
    DeliveredOfAvailable,
    EvidenceRecall,
    NoDelivery,
    PartialDelivery,
    Retrieved,
    evidence_values,
    is_evidence,
    parse_measure,
)
from searchops.recorder import Recorder, ScoredPassage
from searchops.records import Event

EVIDENCE = [
    Retrieved, Available, Delivered, DeliveredOfAvailable, CompleteDelivery, PartialDelivery, NoDelivery,
    DeliveredCharacters,
]  # fmt: skip


def event(qid, stage, kind, *, parent=-1, n_out=1, pipeline=0, label=None, error=None):
    return Event(qid, "q", pipeline, stage, label or kind, kind, kind.title(), "0", parent, 1, n_out, 0.0, error)


def docs(*docnos):
    return [{"docno": d, "rank": n, "score": 1.0 / (n + 1)} for n, d in enumerate(docnos)]


def passage(docno, n, start, end):
    return {"docno": docno, "passage_id": f"{docno}%p{n}", "start": start, "end": end, "rank": 0, "score": 1.0}


def scored(*passages):
    return [ScoredPassage(p["docno"], int(p["passage_id"][-1]), p["start"], p["end"], 0.5) for p in passages]


def label(qid, docno, start, end):
    return {"qid": qid, "docno": docno, "start": start, "end": end}


A0, A1, B0, C0 = (passage(*p) for p in (("a", 0, 0, 10), ("a", 1, 10, 25), ("b", 0, 0, 7), ("c", 0, 0, 4)))


def funnel(recorder, qid, retrieved, reranked, available, selected, pipeline=0):
    """One task through retrieve, rerank k=2 and extract."""
    first = recorder.add(event(qid, "0", "retrieve", pipeline=pipeline), docs(*retrieved))
    second = recorder.add(event(qid, "1", "rerank", parent=first, label="rerank k=2"), docs(*reranked))
    recorder.add(event(qid, "2", "extract", parent=second, n_out=len(selected)), selected, scored=scored(*available))


@pytest.fixture
def run():
    """Four tasks: partly, wholly and never delivered, and one whose labels were never available."""
    recorder = Recorder(None, "new", {})
    funnel(recorder, "part", "abcd", "ab", [A0, A1, B0], [A0, B0])
    funnel(recorder, "whole", "ab", "ab", [A0, A1, B0], [A1, B0])
    funnel(recorder, "none", "ab", "ab", [A0, A1, B0], [A0])
    funnel(recorder, "unseen", "cd", "c", [C0], [C0])
    return recorder


LABELS = pd.DataFrame(
    [
        label("part", "a", 0, 10),  # delivered
        label("part", "a", 12, 20),  # available, not selected
        label("part", "c", 0, 4),  # lost at rerank
        label("part", "z", 0, 4),  # never retrieved
        label("whole", "a", 10, 25),
        label("whole", "b", 2, 5),
        label("none", "a", 10, 25),
        label("none", "b", 0, 7),
        label("unseen", "d", 0, 4),
        label("not run", "a", 0, 10),
    ]
)
BY_HAND = {
    Retrieved: {"part": 3 / 4, "whole": 1.0, "none": 1.0, "unseen": 1.0},
    Available: {"part": 2 / 4, "whole": 1.0, "none": 1.0, "unseen": 0.0},
    Delivered: {"part": 1 / 4, "whole": 1.0, "none": 0.0, "unseen": 0.0},
    DeliveredOfAvailable: {"part": 1 / 2, "whole": 1.0, "none": 0.0, "unseen": math.nan},
    CompleteDelivery: {"part": 0.0, "whole": 1.0, "none": 0.0, "unseen": 0.0},
    PartialDelivery: {"part": 1.0, "whole": 0.0, "none": 0.0, "unseen": 0.0},
    NoDelivery: {"part": 0.0, "whole": 0.0, "none": 1.0, "unseen": 1.0},
    DeliveredCharacters: {"part": 17.0, "whole": 22.0, "none": 10.0, "unseen": 4.0},
    EvidenceRecall(stage="retrieve"): {"part": 3 / 4, "whole": 1.0, "none": 1.0, "unseen": 1.0},
    EvidenceRecall(stage="rerank k=2"): {"part": 2 / 4, "whole": 1.0, "none": 1.0, "unseen": 0.0},
    EvidenceRecall(stage="extract"): {"part": 1 / 4, "whole": 1.0, "none": 0.0, "unseen": 0.0},
}


def values_of(run, measures, **options):
    table = evidence_values(run, LABELS, measures, **options)
    return {m: table[table["measure"] == str(m)].set_index("qid")["value"].to_dict() for m in measures}


@pytest.mark.parametrize("measure", BY_HAND, ids=str)
def test_a_measure_has_the_value_worked_out_by_hand(measure, run):
    assert values_of(run, [measure])[measure] == pytest.approx(BY_HAND[measure], nan_ok=True)


def test_all_measures_at_once_are_the_measures_one_by_one(run):
    together = values_of(run, list(BY_HAND))
    for measure, expected in BY_HAND.items():
        assert together[measure] == pytest.approx(expected, nan_ok=True)


def test_the_kinds_of_delivery_share_out_the_tasks(run):
    table = evidence_values(run, LABELS, [CompleteDelivery, PartialDelivery, NoDelivery])
    assert table.groupby("qid")["value"].sum().tolist() == [1.0] * 4


def test_the_funnel_is_what_is_measured_unasked_and_other_measures_are_passed_over(run):
    assert evidence_values(run, LABELS)["measure"].drop_duplicates().tolist() == [str(m) for m in FUNNEL]
    assert evidence_values(run, LABELS, ["nDCG@10", "Delivered"])["measure"].unique().tolist() == ["Delivered"]


def test_tasks_without_labels_and_labels_without_a_task_have_no_row(run):
    labels = LABELS[LABELS["qid"].isin(["part", "not run"])]
    assert evidence_values(run, labels, [Delivered])["qid"].tolist() == ["part"]
    assert evidence_values(run, labels[labels["qid"] == "not run"], [EvidenceRecall(stage="rerank")]).empty
    assert list(evidence_values(run, labels.iloc[:0]).columns) == ["qid", "measure", "value"]


def test_a_task_where_nothing_was_available_has_no_share_delivered_of_it(run):
    found = values_of(run, [DeliveredOfAvailable])[DeliveredOfAvailable]
    assert [qid for qid, value in found.items() if math.isnan(value)] == ["unseen"]


def test_a_pipeline_that_reads_no_passages_delivers_none_and_loses_none():
    recorder = Recorder(None, "new", {})
    first = recorder.add(event("whole", "0", "retrieve"), docs("a"))
    recorder.add(event("whole", "1", "rerank", parent=first), docs("a"))
    at_rerank = EvidenceRecall(stage="rerank")
    found = {measure: tasks["whole"] for measure, tasks in values_of(recorder, [*EVIDENCE, at_rerank]).items()}
    assert {measure for measure, value in found.items() if not math.isnan(value)} == {Retrieved, at_rerank}
    assert found[Retrieved] == found[at_rerank] == 0.5


# -- recall at a named stage -------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["rerank", "rerank k=2", "1"])
def test_a_stage_is_named_by_kind_label_or_place(stage, run):
    measure = EvidenceRecall(stage=stage)
    assert values_of(run, [measure])[measure] == pytest.approx(BY_HAND[EvidenceRecall(stage="rerank k=2")])


def test_a_kind_that_several_stages_have_counts_what_any_of_them_put_out():
    recorder = Recorder(None, "new", {})
    recorder.add(event("part", "0.0.0", "retrieve"), docs("a"))
    recorder.add(event("part", "0.1.0", "retrieve"), docs("c"))
    recorder.add(event("part", "0", "fuse"), docs("c"))
    measures = [EvidenceRecall(stage=name) for name in ("retrieve", "0.0.0", "fuse")]
    assert [v["part"] for v in values_of(recorder, measures).values()] == [3 / 4, 2 / 4, 1 / 4]


@pytest.mark.parametrize(("stage", "hint"), [("rerankk", "Did you mean 'rerank'"), ("", "Known: 0, 1, 2, extract")])
def test_an_unknown_stage_is_an_error_with_the_stages_there_are(stage, hint, run):
    with pytest.raises(SpecError, match=f"a stage of the pipeline is needed; found '{stage}'. {hint}"):
        evidence_values(run, LABELS, [EvidenceRecall(stage=stage)])


def test_a_stage_that_one_task_failed_before_is_still_a_stage(run):
    first = run.add(event("late", "0", "retrieve"), docs("a"))
    run.add(event("late", "1", "rerank", parent=first, label="rerank k=2", n_out=0, error="boom"), [])
    labels = pd.concat([LABELS, pd.DataFrame([label("late", "a", 0, 10)])])
    table = evidence_values(run, labels, [EvidenceRecall(stage="extract")]).set_index("qid")
    assert table.loc["late", "value"] == 0.0
    assert table.loc["whole", "value"] == 1.0


def test_overlap_counts_for_every_measure_alike():
    recorder = Recorder(None, "new", {})
    half = passage("a", 0, 0, 5)
    funnel(recorder, "part", "a", "a", [half], [half])
    labels = LABELS.iloc[:1]
    measures = [Available, Delivered, EvidenceRecall(stage="extract")]
    assert evidence_values(recorder, labels, measures)["value"].tolist() == [0.0, 0.0, 0.0]
    assert evidence_values(recorder, labels, measures, overlap=0.5)["value"].tolist() == [1.0, 1.0, 1.0]
    assert evidence_values(recorder, labels, measures, overlap=0.51)["value"].tolist() == [0.0, 0.0, 0.0]


def test_of_several_pipelines_one_must_be_named():
    recorder = Recorder(None, "new", {})
    funnel(recorder, "whole", "ab", "ab", [A1, B0], [A1, B0], pipeline=0)
    recorder.add(event("whole", "0", "retrieve", pipeline=1), docs("a"))
    with pytest.raises(FrameError, match="number of one pipeline"):
        evidence_values(recorder, LABELS)
    second = evidence_values(recorder, LABELS, [Retrieved, DeliveredCharacters], pipeline=1)
    # No stage of it reads passages, so there is no number of delivered characters, not one of 0.
    assert second["value"].iloc[0] == 0.5
    assert pd.isna(second["value"].iloc[1])
    with pytest.raises(SpecError, match="found 'extract'"):
        evidence_values(recorder, LABELS, [EvidenceRecall(stage="extract")], pipeline=1)


# -- their names -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "measure",
    [*EVIDENCE, EvidenceRecall(stage="rerank k=10"), EvidenceRecall(stage='it\'s "so"'), nDCG @ 10, AP(rel=2) @ 100],
    ids=str,
)
def test_a_measure_is_parsed_as_it_prints(measure):
    assert parse_measure(str(measure)) == measure
    assert parse_measure(f"  {measure!r} ") == measure
    assert parse_measure(measure) is measure
    assert str(parse_measure(str(measure))) == str(measure)


def test_every_measure_of_ir_measures_that_needs_no_parameter_is_parsed_as_it_prints():
    parsed = 0
    for measure in registry.values():
        if not any(info.required for info in measure.SUPPORTED_PARAMS.values()):
            assert parse_measure(repr(measure)) == measure
            parsed += 1
    assert parsed > 25


@pytest.mark.parametrize(
    ("name", "measure"),
    [("map", AP), ("ndcg_cut_10", nDCG @ 10), ("P_5", P @ 5), ("recall_100", R @ 100), ("recip_rank", ir_measures.RR)],
)
def test_names_of_trec_eval_are_understood(name, measure):
    assert parse_measure(name) == measure


def test_delivered_over_available_is_one_measure_however_it_is_written():
    assert Delivered / Available is DeliveredOfAvailable
    assert str(Delivered / Available) == "Delivered/Available"
    for text in ("Delivered/Available", "Delivered / Available", " Delivered /Available"):
        assert parse_measure(text) is DeliveredOfAvailable
    for left, right in ((Delivered, Retrieved), (Available, Delivered), (Retrieved, Available), (Delivered, AP)):
        with pytest.raises(TypeError, match="unsupported operand"):
            left / right


def test_measures_compare_and_hash_by_what_they_are():
    assert EvidenceRecall(stage="a") == EvidenceRecall(stage="a")
    assert EvidenceRecall(stage="a") != EvidenceRecall(stage="b")
    assert len({Delivered, parse_measure("Delivered"), Available}) == 2
    assert [is_evidence(m) for m in (Delivered, EvidenceRecall(stage="x"), nDCG @ 10, "Delivered")] == [
        True, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Deliverd", "found 'Deliverd'. Did you mean 'Delivered'?"),
        ("delivered", "Did you mean 'Delivered'?"),
        ("nDGC@10", "Did you mean 'nDCG'?"),
        ("zzz", "Known: AP, "),
        ("", "found ''"),
        ("nDCG@", "invalid syntax"),
        ("nDCG@x", "values must be str, float, int"),
        ("nDCG@10; AP", "multiple expressions"),
        ("Delivered/Retrieved", "unexpected expression"),
        ("__import__('os').system('true')", "args must be named"),
        ("Delivered@5", "parameters of Delivered are needed (none)"),
        ("EvidenceRecall", "EvidenceRecall needs stage. Write EvidenceRecall(stage=…)."),
        ("EvidenceRecall(stage=3)", "invalid param stage=3"),
        ("EvidenceRecall(stag='x')", "EvidenceRecall needs stage"),
        ("P", "P needs cutoff. Write P@…."),
        ("ndcg_cut", "which stands for nDCG@5, nDCG@10, nDCG@15, nDCG@20, …"),
        (5, "found 5. Give its name, as text."),
        (None, "found None"),
        (EvidenceRecall, "EvidenceRecall needs stage"),
        (Delivered(depth=3), "unsupported params"),
    ],
)
def test_what_is_no_measure_is_refused_with_what_to_write(text, message):
    with pytest.raises(SpecError) as caught:
        parse_measure(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith("measures: ")
