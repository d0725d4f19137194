"""Collections: what they refuse, what they mend and say, and what selecting keeps."""

from __future__ import annotations

import pandas as pd
import pytest

from searchops.corpus import Collection, misplaced_evidence
from searchops.errors import DataError


def _documents(**columns: list[object]) -> pd.DataFrame:
    return pd.DataFrame({"docno": ["d1", "d2"], "title": ["A", "B"], "text": ["one", "two"], **columns})


def _full() -> Collection:
    return Collection(
        "full",
        _documents(year=[2019, 2020]),
        topics=pd.DataFrame({"qid": [1, 2, 3], "query": ["a", "b", "c"], "answer": ["x", "y", "z"]}),
        qrels=pd.DataFrame({"qid": [1, 2], "docno": ["d1", "d2"], "label": [1, 0]}),
        evidence=pd.DataFrame({"qid": [1], "docno": ["d1"], "start": [0], "end": [3], "text": ["one"]}),
    )


def test_integer_ids_become_text_once_at_the_border() -> None:
    c = Collection(
        "c",
        pd.DataFrame({"docno": [10, 11], "text": ["x", "y"]}),
        topics=pd.DataFrame({"qid": [7.0], "query": ["q"]}),
        qrels=pd.DataFrame({"qid": [7], "docno": [10], "label": ["2"]}),
    )
    assert c.documents["docno"].tolist() == ["10", "11"]
    assert c.topics is not None
    assert c.topics["qid"].tolist() == ["7"]
    assert c.qrels is not None
    assert c.qrels.to_dict("records") == [{"qid": "7", "docno": "10", "label": 2}]
    assert c.notes == ()


def test_the_frames_that_were_given_are_not_changed() -> None:
    documents = pd.DataFrame({"docno": [1], "text": [None]}, index=[5])
    before = documents.copy()
    c = Collection("c", documents)
    pd.testing.assert_frame_equal(documents, before)
    assert c.documents.index.tolist() == [0]


def test_a_missing_text_becomes_empty_and_is_said() -> None:
    c = Collection("c", pd.DataFrame({"docno": ["a", "b", "c"], "text": ["x", None, float("nan")]}))
    assert c.documents["text"].tolist() == ["x", "", ""]
    assert c.documents["title"].tolist() == ["", "", ""]
    assert c.notes == ("2 of 3 documents have no text",)


def test_doubled_docnos_are_refused_by_name() -> None:
    docnos = ["b", "a", "b", "a", "c", "c", "d", "d", "e"]
    with pytest.raises(DataError, match="4 duplicates: 'a', 'b', 'c' and 1 more"):
        Collection("c", pd.DataFrame({"docno": docnos, "text": "x"}))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"id": ["a"], "text": ["x"]}, "'docno' is needed; found columns id, text"),
        ({"docno": ["a"], "txt": ["x"]}, "did you mean 'txt'"),
        ({"docno": [None], "text": ["x"]}, "docno that is text or a whole number"),
        ({"docno": [1.5], "text": ["x"]}, "found 1.5 in row 0"),
        ({"docno": ["a", ""], "text": ["x", "y"]}, "not empty is needed; found '' in row 1"),
        ({"docno": ["a"], "text": [3]}, "text must be text; found 3 for 'a'"),
        ({"docno": ["a"], "title": [["t"]], "text": ["x"]}, "title must be text"),
    ],
)
def test_malformed_documents_are_refused_with_what_is_needed(frame: dict[str, list[object]], message: str) -> None:
    with pytest.raises(DataError) as caught:
        Collection("c", pd.DataFrame(frame))
    assert message.lower() in str(caught.value).lower()


def test_half_a_character_is_refused_because_no_index_could_store_it() -> None:
    documents = pd.DataFrame({"docno": ["a"], "text": pd.Series(["x\ud800"], dtype="object")})
    with pytest.raises(DataError, match="lone surrogates in 'a'"):
        Collection("c", documents)


@pytest.mark.parametrize(
    ("part", "frame", "message"),
    [
        ("topics", {"qid": ["1", "1"], "query": ["a", "b"]}, "every qid once"),
        ("topics", {"qid": ["1"], "query": [None]}, "none for '1'"),
        ("topics", {"qid": ["1"]}, "'query' is needed"),
        ("qrels", {"qid": ["1", "1"], "docno": ["d", "d"], "label": [0, 1]}, "pair of qid and docno once"),
        ("qrels", {"qid": ["1"], "docno": ["d"], "label": [0.5]}, "label must be a whole number; found 0.5"),
        ("qrels", {"qid": ["1"], "docno": ["d"], "label": ["high"]}, "label must be a whole number"),
        ("evidence", {"docno": ["d"]}, "'qid' is needed"),
        ("evidence", {"qid": ["1"], "text": ["x"]}, "'docno' is needed"),
        ("evidence", {"qid": ["1"], "docno": ["d"], "start": [0]}, "'end' is needed"),
        ("evidence", {"qid": ["1"], "docno": ["d"], "start": [3], "end": [3]}, "start 3, end 3"),
        ("evidence", {"qid": ["1"], "docno": ["d"], "start": [-1], "end": [3]}, "start -1, end 3"),
        (
            "evidence",
            {"qid": ["1"], "docno": ["d"], "start": [1], "end": [None]},
            "end must be a whole number",
        ),
    ],
)
def test_malformed_labels_and_topics_are_refused(part: str, frame: dict[str, list[object]], message: str) -> None:
    with pytest.raises(DataError) as caught:
        Collection("c", _documents(), **{part: pd.DataFrame(frame)})
    assert message in str(caught.value)


def test_labels_may_be_spans_passages_or_whole_documents() -> None:
    passages = Collection("c", _documents(), evidence=pd.DataFrame({"qid": [1], "passage_id": ["d1%p0"]}))
    assert passages.evidence is not None
    assert passages.evidence.to_dict("records") == [{"qid": "1", "passage_id": "d1%p0"}]
    mixed = pd.DataFrame({"qid": ["1", "1"], "docno": ["d1", "d2"], "start": [0, None], "end": [2.0, None]})
    evidence = Collection("c", _documents(), evidence=mixed).evidence
    assert evidence is not None
    assert evidence["start"].tolist() == [0, None]
    assert "one"[evidence["start"][0] : evidence["end"][0]] == "on"


def test_labels_of_documents_or_questions_that_are_not_there_are_said() -> None:
    c = Collection(
        "c",
        _documents(),
        topics=pd.DataFrame({"qid": ["1"], "query": ["q"]}),
        qrels=pd.DataFrame({"qid": ["1", "9"], "docno": ["gone", "d1"], "label": [1, 1]}),
    )
    assert c.notes == (
        "qrels: 1 document not in the collection: 'gone'",
        "qrels: 1 question without a topic: '9'",
    )


def test_the_repr_is_one_line_with_the_counts() -> None:
    c = _full()
    assert repr(c) == "Collection('full': 2 documents, 3 topics, 2 qrels, 1 evidence label)"
    assert len(c) == 2


def test_the_data_hash_follows_content_and_order_but_not_column_order() -> None:
    base = Collection("a", _documents(year=[2019, 2020], tags=[["x"], ["y"]]))
    columns = ["tags", "text", "year", "docno", "title"]
    shuffled = Collection("b", _documents(year=[2019, 2020], tags=[["x"], ["y"]])[columns])
    assert base.data_hash == shuffled.data_hash
    others = [
        Collection("a", base.documents.iloc[::-1]),
        Collection("a", base.documents.assign(year=[2019, 2021])),
        Collection("a", base.documents.assign(text=["one", "two."])),
        Collection("a", base.documents.drop(columns="year")),
        Collection("a", base.documents.assign(title=["Ao", "ne"], text=["", "two"])),
    ]
    assert len({base.data_hash, *(other.data_hash for other in others)}) == len(others) + 1


def test_the_data_hash_takes_dates_arrays_and_sets() -> None:
    dates = pd.to_datetime(["2020-01-01", "2020-01-02"])
    c = Collection("c", _documents(when=list(dates), tags=[{"b", "a"}, set()], spans=[dates.to_numpy(), None]))
    again = Collection("c", _documents(when=list(dates), tags=[{"a", "b"}, set()], spans=[dates.to_numpy(), None]))
    assert c.data_hash == again.data_hash
    assert len(c.data_hash) == 64


def test_selecting_questions_restricts_topics_qrels_and_evidence_and_keeps_documents() -> None:
    c = _full()
    data_hash = c.data_hash
    picked = c.select({"2", "1"})
    assert picked.topics is not None
    assert picked.qrels is not None
    assert picked.evidence is not None
    assert picked.topics["qid"].tolist() == ["1", "2"]
    assert picked.topics.index.tolist() == [0, 1]
    assert c.select(["2"]).qrels.to_dict("records") == [{"qid": "2", "docno": "d2", "label": 0}]  # type: ignore[union-attr]
    assert c.select(["2"]).evidence.empty  # type: ignore[union-attr]
    pd.testing.assert_frame_equal(picked.documents, c.documents)
    assert picked.data_hash == data_hash == _full().select(["3"]).data_hash


def test_selecting_an_unknown_question_or_without_topics_is_refused() -> None:
    with pytest.raises(DataError, match=r"a qid of the collection is needed; found '33'\. Did you mean '3'\?"):
        _full().select(["1", "33"])
    with pytest.raises(DataError, match="a collection with topics is needed"):
        Collection("c", _documents()).select(["1"])


def test_halves_share_no_question_lose_none_and_depend_on_the_seed() -> None:
    qids = [f"q{i}" for i in range(101)]
    topics = pd.DataFrame({"qid": qids, "query": "x"})
    c = Collection("c", _documents(), topics=topics)
    choose, report = c.halves(1)
    assert choose.topics is not None
    assert report.topics is not None
    first, second = set(choose.topics["qid"]), set(report.topics["qid"])
    assert first | second == set(qids)
    assert not first & second
    assert (len(first), len(second)) == (51, 50)
    mixed = Collection("c", _documents(), topics=topics.iloc[::-1]).halves(1)[0]
    assert mixed.topics is not None
    assert set(mixed.topics["qid"]) == first
    other = c.halves(2)[0]
    assert other.topics is not None
    assert set(other.topics["qid"]) != first


def test_one_question_has_no_halves() -> None:
    with pytest.raises(DataError, match="two questions or more"):
        _full().select(["1"]).halves(0)


def test_misplaced_labels_are_found_and_those_that_cannot_be_judged_are_not() -> None:
    documents = pd.DataFrame({"docno": ["d"], "text": ["Zoë née X"]})
    rows = [
        ("d", 0, 3, "Zoë"),
        ("d", 1, 4, "Zoë"),
        ("d", 5, 8, "née"),
        ("gone", 0, 3, "Zoë"),
        ("d", None, None, None),
        ("d", 0, 9, None),
        ("d", 0, 10, None),
    ]
    evidence = pd.DataFrame(rows, columns=["docno", "start", "end", "text"])
    assert misplaced_evidence(evidence, documents) == [1, 2, 6]
    assert misplaced_evidence(evidence.drop(columns="text"), documents) == [6]
    assert misplaced_evidence(evidence[["docno"]], documents) == []
