"""Labels followed through hand-made records; every expected value is worked out by hand."""

import pandas as pd
import pytest

from searchops.accounting import delivery, funnel, why
from searchops.errors import DataError, FrameError
from searchops.recorder import Recorder, ScoredPassage
from searchops.records import Event


def event(qid, stage, kind, *, parent=-1, n_in=1, n_out=1, pipeline=0, label=None, error=None):
    return Event(qid, "q", pipeline, stage, label or kind, kind, kind.title(), "0", parent, n_in, n_out, 0.0, error)


def docs(*docnos):
    return [{"docno": d, "rank": n, "score": 1.0 / (n + 1)} for n, d in enumerate(docnos)]


def passage(docno, n, start, end):
    return {"docno": docno, "passage_id": f"{docno}%p{n}", "start": start, "end": end, "rank": 0, "score": 1.0}


def scored(docno, *spans):
    return [ScoredPassage(docno, n, start, end, 0.5) for n, (start, end) in enumerate(spans)]


LABELS = pd.DataFrame(
    [
        {"qid": "1", "docno": "a", "start": 0, "end": 10, "text": "kept"},
        {"qid": "1", "docno": "a", "start": 10, "end": 20, "text": "not selected"},
        {"qid": "1", "docno": "b", "start": 0, "end": 5, "text": "filtered"},
        {"qid": "1", "docno": "c", "start": 0, "end": 5, "text": "reranked away"},
        {"qid": "1", "docno": "z", "start": 0, "end": 5, "text": "never retrieved"},
        {"qid": "untouched", "docno": "a", "start": 0, "end": 5, "text": "of another task"},
    ]
)


@pytest.fixture
def run():
    recorder = Recorder(None, "new", {})
    first = recorder.add(event("1", "0", "retrieve", n_out=4), docs("a", "b", "c", "d"))
    second = recorder.add(event("1", "1", "filter", parent=first), docs("a", "c", "d"))
    third = recorder.add(event("1", "2", "rerank", parent=second, label="rerank k=2"), docs("a", "d"))
    available = [*scored("a", (0, 10), (10, 20)), *scored("d", (0, 9))]
    recorder.add(
        event("1", "3", "extract", parent=third), [passage("a", 0, 0, 10), passage("d", 0, 0, 9)], scored=available
    )
    return recorder


def test_each_label_is_lost_in_one_place(run):
    table = delivery(run, LABELS).set_index("text")
    assert table["lost_at"].to_dict() == {
        "kept": "",
        "not selected": "extract",
        "filtered": "filter",
        "reranked away": "rerank k=2",
        "never retrieved": "not retrieved",
    }
    assert table["outcome"].to_dict() == {
        "kept": "immediate",
        "not selected": "never",
        "filtered": "unavailable",
        "reranked away": "unavailable",
        "never retrieved": "unavailable",
    }
    assert table["retrieved"].tolist() == [True, True, True, True, False]
    assert table["available"].tolist() == [True, True, False, False, False]
    assert table["delivered"].tolist() == [True, False, False, False, False]


def test_the_funnel_counts_labels_in_and_out_of_every_stage(run):
    table = funnel(run, LABELS)
    assert table[["labels_in", "labels_out", "lost"]].values.tolist() == [[5, 4, 1], [4, 3, 1], [3, 2, 1], [2, 1, 1]]
    assert table["label"].tolist() == ["retrieve", "filter", "rerank k=2", "extract"]


def test_a_stage_behind_the_last_extract_can_lose_a_selected_label():
    recorder = Recorder(None, "new", {})
    first = recorder.add(event("1", "0", "retrieve"), docs("a"))
    kept = [passage("a", 0, 0, 10)]
    second = recorder.add(event("1", "1", "extract", parent=first), kept, scored=scored("a", (0, 10)))
    recorder.add(event("1", "2", "filter", parent=second, n_out=0), [])
    row = delivery(recorder, LABELS.iloc[:1]).iloc[0]
    assert (row["selected"], row["delivered"], row["outcome"], row["lost_at"]) == (True, False, "never", "filter")


def test_a_label_selected_at_a_later_event_is_recovered():
    recorder = Recorder(None, "new", {})
    for kept in ([], [passage("a", 0, 0, 10)]):
        first = recorder.add(event("1", "0", "retrieve"), docs("a"))
        recorder.add(event("1", "1", "extract", parent=first), kept, scored=scored("a", (0, 10)))
    row = delivery(recorder, LABELS.iloc[:1]).iloc[0]
    assert (row["outcome"], row["delivered"]) == ("recovered", True)


def test_overlap_is_the_share_that_must_be_covered():
    recorder = Recorder(None, "new", {})
    first = recorder.add(event("1", "0", "retrieve"), docs("a"))
    kept = [passage("a", 0, 0, 8)]
    recorder.add(event("1", "1", "extract", parent=first), kept, scored=scored("a", (0, 8), (8, 20)))
    label = LABELS.iloc[:1]
    assert not delivery(recorder, label).loc[0, "delivered"]
    assert delivery(recorder, label, overlap=0.8).loc[0, "delivered"]
    with pytest.raises(FrameError, match="share above 0"):
        delivery(recorder, label, overlap=0.0)


def test_a_pipeline_without_an_extract_stage_delivers_no_passage():
    recorder = Recorder(None, "new", {})
    recorder.add(event("1", "0", "retrieve"), docs("a"))
    row = delivery(recorder, LABELS.iloc[:1]).iloc[0]
    assert (row["retrieved"], row["available"], row["delivered"], row["lost_at"]) == (
        True,
        False,
        False,
        "no extract stage",
    )


def test_a_fusion_that_drops_what_a_branch_found_is_where_it_was_lost():
    recorder = Recorder(None, "new", {})
    recorder.add(event("1", "0.0.0", "retrieve"), docs("a"))
    recorder.add(event("1", "0.1.0", "retrieve"), docs("b"))
    top = recorder.add(event("1", "0", "fuse", label="fuse k=1"), docs("b"))
    recorder.add(event("1", "1", "extract", parent=top), [passage("b", 0, 0, 5)], scored=scored("b", (0, 5)))
    table = delivery(recorder, LABELS).set_index("text")
    assert table.loc["kept", ["retrieved", "lost_at"]].tolist() == [True, "fuse k=1"]
    assert table.loc["never retrieved", "lost_at"] == "not retrieved"
    assert table.loc["filtered", "outcome"] == "immediate"


def test_why_tells_a_labels_whole_life(run):
    table = why(run, "1", "c:0-5")
    assert table[["label", "side"]].values.tolist() == [
        ["retrieve", "out"],
        ["filter", "out"],
        ["rerank k=2", "out"],
        ["extract", "out"],
    ]
    assert table["present"].tolist() == [1.0, 1.0, 0.0, 0.0]
    assert table["rank"].tolist()[:2] == [2, 1]
    inside = why(run, "1", "a:10-20")
    assert inside[inside["label"] == "extract"][["side", "present"]].values.tolist() == [["in", 1.0], ["out", 0.0]]


def test_why_refuses_a_task_that_the_run_does_not_have(run):
    with pytest.raises(FrameError, match="'9'.*It has: 1"):
        why(run, "9", "a")


def test_several_pipelines_need_to_be_told_apart():
    recorder = Recorder(None, "new", {})
    recorder.add(event("1", "0", "retrieve", pipeline=0), docs("a"))
    recorder.add(event("1", "0", "retrieve", pipeline=1), docs("b"))
    with pytest.raises(FrameError, match="number of one pipeline"):
        delivery(recorder, LABELS)
    assert delivery(recorder, LABELS, pipeline=1)["retrieved"].tolist() == [False, False, True, False, False]
    with pytest.raises(FrameError, match="It has: 0, 1"):
        delivery(recorder, LABELS, pipeline=5)


def test_an_empty_run_has_no_rows():
    assert delivery(Recorder(None, "new", {}), LABELS).empty


def test_a_path_without_a_run_is_a_clear_error(tmp_path):
    with pytest.raises(DataError, match=r"run's folder"):
        delivery(tmp_path / "nothing", LABELS)


def test_a_query_written_anew_has_no_labels_to_lose():
    recorder = Recorder(None, "new", {})
    written = recorder.add(event("1", "0", "rewrite"), [{"qid": "1", "query": "anew"}])
    first = recorder.add(event("1", "1", "retrieve", parent=written), docs("a", "b"))
    kept = [passage("a", 0, 0, 10)]
    recorder.add(event("1", "2", "extract", parent=first), kept, scored=scored("a", (0, 10), (10, 20)))
    table = funnel(recorder, LABELS)
    assert table[["labels_in", "labels_out", "lost"]].values.tolist() == [[5, 5, 0], [5, 3, 2], [3, 1, 2]]


def test_a_funnel_with_branches_stands_in_the_order_of_its_stages():
    recorder = Recorder(None, "new", {})
    recorder.add(event("1", "0.0.0", "retrieve"), docs("a"))
    recorder.add(event("1", "0.1.0", "retrieve"), docs("b"))
    top = recorder.add(event("1", "0", "fuse"), docs("a", "b"))
    recorder.add(event("1", "1", "dedupe", parent=top), docs("a", "b"))
    table = funnel(recorder, LABELS)
    assert table["stage"].tolist() == ["0", "0.0.0", "0.1.0", "1"]
    assert table["labels_out"].tolist() == [3, 2, 1, 3]


def test_runs_of_a_single_stage_are_runs_of_their_own():
    recorder = Recorder(None, "new", {})
    for kept in ([passage("a", 0, 0, 10)], []):
        recorder.add(event("1", "0", "extract"), kept, scored=scored("a", (0, 10), (10, 20)))
    table = delivery(recorder, LABELS).set_index("text")
    assert table.loc["kept", ["delivered", "outcome"]].tolist() == [True, "immediate"]


def test_a_label_among_the_rows_given_is_lost_at_the_first_stage_that_drops_it():
    recorder = Recorder(None, "new", {})
    first = recorder.add(event("1", "0", "filter"), docs("a"), read=docs("a", "b"))
    recorder.add(event("1", "1", "extract", parent=first), [], scored=scored("a", (0, 10)))
    table = delivery(recorder, LABELS).set_index("text")
    assert table["lost_at"].to_dict() == {
        "kept": "extract", "not selected": "extract", "filtered": "filter",
        "reranked away": "not retrieved", "never retrieved": "not retrieved",
    }  # fmt: skip
