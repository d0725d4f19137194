"""Labels followed through the questions of agents; every expected value is worked out by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from searchops import recorder
from searchops.accounting import delivery, funnel, lives, shown_parts, why
from searchops.metrics import evidence_values
from searchops.recorder import ScoredPassage, record
from searchops.records import Event

TEXT = "0123456789abcdefghijklmnopqrst"  # of document a


def label(start, end, docno="a", text=None, qid="1"):
    return {"qid": qid, "docno": docno, "start": start, "end": end, "text": TEXT[start:end] if text is None else text}


def scored(docno, *spans):
    return [ScoredPassage(docno, n, start, end, 0.5) for n, (start, end) in enumerate(spans)]


def passage(docno, n, start, end):
    return {"docno": docno, "passage_id": f"{docno}%p{n}", "start": start, "end": end, "rank": 0, "score": 1.0}


class Question:
    """One question of an agent, made by hand, call by call."""

    def __init__(self, part, qid, unit):
        self.part, self.qid, self.unit = part, qid, unit
        self.lines = []

    def stage(self, kind, decision, call, rows, *, parent=-1, scored=(), read=()):
        place = str(["retrieve", "filter", "rerank", "extract", "dedupe"].index(kind))
        event = Event(self.qid, "q", 0, place, f"{kind} k=9", kind, kind, "0", parent, 1, len(rows), 0.0, None,
                      decision, call)  # fmt: skip
        return self.part.add(event, rows, scored=scored, read=read)

    def observe(self, decision, call, text="", shown=(), referenced=()):
        note = {"call": call, "name": "t", "observation": text, "shown": list(shown), "referenced": list(referenced)}
        self.lines.append({"qid": self.qid, "pipeline": 0, "kind": "decision", "decision": decision, "calls": [note]})

    def end(self):
        self.part.complete(self.lines, {"qid": self.qid, "pipeline": 0, "unit": self.unit, "ledger": []})


def docs(*docnos):
    return [{"docno": d, "rank": n, "score": 1.0} for n, d in enumerate(docnos)]


def recorded(play, unit="call"):
    with record() as run:
        run.pipeline_number("agent")
        with recorder.apart() as part:
            question = Question(part, "1", unit)
            play(question)
            question.end()
    return run


def one(run, *labels, **settings):
    return delivery(run, pd.DataFrame(list(labels)), **settings)


def search(question, decision, call, kept, shown, spans=((0, 10), (10, 20), (20, 30))):
    """A search of the query interface that scores all of document a and keeps one passage of it."""
    first = question.stage("retrieve", decision, call, docs("a", "b"))
    n, (start, end) = kept, spans[kept]
    question.stage("extract", decision, call, [passage("a", n, start, end)], parent=first, scored=scored("a", *spans))
    question.observe(decision, call, "…", shown, ["a", f"a%p{kept}"])


def test_delivered_at_once_later_or_never_by_decision_and_call():
    def play(question):
        search(question, 0, 0, 0, [["a", 0, 0, 10]])
        search(question, 0, 1, 1, [["a", 1, 10, 20]])

    table = one(recorded(play), label(0, 10), label(10, 20), label(20, 30))
    assert table["outcome"].tolist() == ["immediate", "recovered", "never"]
    assert table["delivered_at"].tolist()[:2] == [0, 0]
    assert pd.isna(table["delivered_at"][2])
    assert table["lost_at"].tolist() == ["", "", "extract k=9"]
    assert table["referenced"].tolist() == [False, False, True]


def test_what_extraction_kept_and_no_observation_showed_is_lost_at_the_observation():
    def play(question):
        search(question, 0, 0, 0, [])

    table = one(recorded(play), label(0, 10))
    assert table[["available", "selected", "delivered"]].values.tolist() == [[True, True, False]]
    assert table["lost_at"].tolist() == ["observation"]
    assert table["referenced"].tolist() == [True]
    assert table["outcome"].tolist() == ["never"]


def test_a_clipped_note_delivers_what_it_still_contains():
    def play(question):
        search(question, 0, 0, 0, [["a", 0, 0, 7]])

    run = recorded(play)
    assert one(run, label(0, 7), label(0, 10))["delivered"].tolist() == [True, False]
    assert one(run, label(0, 10), overlap=0.7)["delivered"].tolist() == [True]
    passages = pd.DataFrame([{"qid": "1", "passage_id": "a%p0"}])
    assert delivery(run, passages)["delivered"].tolist() == [False]
    assert delivery(run, passages, overlap=0.7)["delivered"].tolist() == [True]
    assert delivery(run, pd.DataFrame([{"qid": "1", "docno": "a"}]))["delivered"].tolist() == [True]


def test_a_label_over_two_passages_is_delivered_by_the_observation_that_completes_it():
    def play(question):
        search(question, 0, 0, 0, [["a", 0, 0, 10]])
        search(question, 3, 0, 1, [["a", 1, 10, 20]])

    table = one(recorded(play), label(5, 15))
    assert table[["outcome", "delivered_at"]].values.tolist() == [["recovered", 3]]


def test_a_whole_cell_is_one_event_however_many_calls_it_makes():
    def play(question):
        for call, kept in enumerate((0, 1)):
            first = question.stage("retrieve", 0, 2 * call, docs("a"))
            spans = ((0, 10), (10, 20))
            question.stage("extract", 0, 2 * call + 1, [passage("a", kept, *spans[kept])], parent=first,
                           scored=scored("a", *spans))  # fmt: skip
        question.observe(0, 0, "…", [["a", 1, 10, 20]])

    assert one(recorded(play, "decision"), label(10, 20))["outcome"].tolist() == ["immediate"]


def test_a_program_s_own_string_delivers_a_label_whose_text_stands_in_it():
    def play(question):
        question.stage("retrieve", 0, 0, docs("a", "b"))
        question.observe(0, 0, "found:\n  KLMNO  pqrst\n and more", [], ["a"])

    wanted = label(20, 30, text="klmno\npqrst")
    run = recorded(play, "decision")
    table = one(run, wanted, label(0, 10))
    assert table["delivered"].tolist() == [True, False]
    assert table["available"].tolist() == [False, False]
    assert table["outcome"].tolist() == ["unavailable", "unavailable"]
    assert table["lost_at"].tolist() == ["", "not extracted"]
    # In the other interfaces an observation repeats the query: its words are no evidence.
    assert one(recorded(play), wanted)["delivered"].tolist() == [False]
    values = evidence_values(run, pd.DataFrame([wanted]), ["Delivered", "Delivered/Available"])
    assert values["value"].tolist()[0] == 1.0
    assert pd.isna(values["value"][1])


def test_a_label_is_lost_at_the_furthest_stage_that_dropped_it():
    def play(question):
        first = question.stage("retrieve", 0, 0, docs("a", "b", "c"))
        second = question.stage("filter", 0, 1, docs("a", "c"), parent=first)
        question.stage("rerank", 1, 0, docs("a"), parent=second)
        question.stage("retrieve", 2, 0, docs("d"))
        question.observe(2, 0, "…", [], ["d%p3"])

    table = one(recorded(play), *(label(0, 5, docno) for docno in "abcdz"))
    assert table["lost_at"].tolist() == ["not extracted", "filter k=9", "rerank k=9", "not extracted", "not retrieved"]
    assert table["referenced"].tolist() == [False, False, False, True, False]


def test_a_question_that_ended_without_a_search_keeps_its_labels():
    run = recorded(lambda question: None)
    table = one(run, label(0, 5), label(0, 5, qid="other"))
    assert table["lost_at"].tolist() == ["not retrieved"]
    values = evidence_values(run, pd.DataFrame([label(0, 5)]), ["Delivered", "Retrieved", "DeliveredCharacters"])
    assert values["value"].tolist() == [0.0, 0.0, 0.0]


def test_the_funnel_ends_with_what_the_observations_showed():
    def play(question):
        search(question, 0, 0, 0, [])
        search(question, 1, 0, 1, [["a", 1, 10, 20]])

    run = recorded(play)
    evidence = pd.DataFrame([label(0, 10), label(10, 20), label(20, 30), label(0, 3, "z")])
    table = funnel(run, evidence).set_index("label")
    assert table.loc["retrieve k=9", ["labels_in", "labels_out"]].tolist() == [4, 3]
    assert table.loc["extract k=9", ["labels_in", "labels_out", "lost"]].tolist() == [3, 2, 1]
    assert table.loc["observation", ["labels_in", "labels_out", "lost"]].tolist() == [2, 1, 1]
    assert table.loc["observation", ["n_in", "n_out"]].tolist() == [2.0, 1.0]
    assert "observation" not in set(funnel(run)["label"])


def test_delivered_characters_are_those_the_observations_showed():
    def play(question):
        search(question, 0, 0, 0, [["a", 0, 0, 10], ["b", 0, 3, 8]])

    run = recorded(play)
    (frame,) = shown_parts(run.run())["1"]
    assert frame.values.tolist() == [["a", 0, 10], ["b", 3, 8]]
    values = evidence_values(run, pd.DataFrame([label(0, 10)]), ["DeliveredCharacters"])
    assert values["value"].tolist() == [15.0]


@pytest.mark.parametrize("unit", ["call", "decision"])
def test_a_label_s_way_tells_calls_and_observations_and_where_it_was_lost(unit):
    def play(question):
        question.stage("retrieve", 0, 0, docs("x"))
        search(question, 1, 0, 0, [["a", 0, 0, 10]])

    run = recorded(play, unit)
    shown = why(run, "1", "a:0-10")
    place = "1/0" if unit == "call" else "1"
    assert shown[["stage", "label", "side", "present"]].values.tolist() == [
        ["1/0", "retrieve k=9", "out", 1.0],
        ["1/0", "extract k=9", "in", 1.0],
        ["1/0", "extract k=9", "out", 1.0],
        [place, "observation", "out", 1.0],
    ]
    assert shown.attrs["lost_at"] == ""
    lost = why(run, "1", "a:10-20")
    assert lost["present"].tolist() == [1.0, 1.0, 0.0, 0.0]
    assert lost.attrs["lost_at"] == "extract k=9"


@pytest.mark.parametrize("unit", ["call", "decision"])
def test_a_label_without_text_or_span_is_its_document(unit):
    def play(question):
        search(question, 0, 0, 0, [["a", 0, 0, 10]])

    (life,) = lives(recorded(play, unit), pd.DataFrame([{"qid": "1", "docno": "a"}]))
    assert (life.delivered, life.outcome, life.delivered_at) == (True, "immediate", 0)
