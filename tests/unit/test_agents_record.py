"""Questions in a record: whole or not at all, whatever moment a crash comes at."""

from __future__ import annotations

import json

import pytest

from searchops import recorder
from searchops.errors import DataError
from searchops.models import ReplayModel, read_exchanges
from searchops.recorder import record
from searchops.records import Event, Run
from searchops.records.trajectories import whole_requests


def event(qid, kind="retrieve", stage="0", parent=-1, n_out=1):
    return Event(qid, "q", 0, stage, kind, kind, kind, "0", parent, 1, n_out, 0.0, None, 0, 0)


def rows(*docnos):
    return [{"docno": d, "rank": n, "score": 1.0} for n, d in enumerate(docnos)]


def exchange(text="q"):
    return {"request": {"messages": [{"role": "user", "content": text}], "tools": []}, "reply": {"content": "a"}}


def answer(run, qid, *, n_events=2, n_lines=2):
    """Records one question with events that stand behind one another."""
    with recorder.apart() as part:
        part.add(event(qid), rows(f"{qid}-a", f"{qid}-b"))
        for number in range(1, n_events):
            part.add(event(qid, "rerank", str(number), parent=number - 1), rows(f"{qid}-a"))
        lines = [{"qid": qid, "pipeline": 0, "kind": "decision", "decision": n, **exchange()} for n in range(n_lines)]
        part.complete(lines, {"qid": qid, "pipeline": 0, "unit": "call", "qanswer": f"{qid}!", "ledger": [qid]})


def contents(folder):
    run = Run.open(folder)
    told = [{k: v for k, v in line.items() if k not in ("part", "decisions_end")} for line in run.iter_answers()]
    return told, list(run.iter_decisions()), run.events.to_csv(), run.candidates.to_csv()


@pytest.mark.parametrize("path", [None, "run"])
def test_events_of_questions_are_numbered_behind_one_another_and_keep_their_parents(path, tmp_path):
    with record(None if path is None else tmp_path / path) as run:
        run.add(event("0"), rows("x"))
        answer(run, "1", n_events=3)
        run.add(event("9"), rows("y"))
        answer(run, "2")
    read = run.run()
    assert read.events["event"].tolist() == list(range(7))
    assert read.events["parent"].tolist() == [-1, -1, 1, 2, -1, -1, 5]
    docno_of = read.candidates.groupby("event")["docno"].first().astype(str).to_dict()
    assert docno_of == {0: "x", 1: "1-a", 2: "1-a", 3: "1-a", 4: "y", 5: "2-a", 6: "2-a"}
    assert read.answers["qanswer"].tolist() == ["1!", "2!"]
    assert [line["ledger"] for line in read.iter_answers()] == [["1"], ["2"]]
    assert [line["qid"] for line in read.iter_decisions()] == ["1", "1", "2", "2"]


def test_a_question_that_fails_leaves_no_trace(tmp_path):
    with record(tmp_path / "run") as run:
        with pytest.raises(OSError, match="gone"), recorder.apart() as part:
            part.add(event("1"), rows("a"))
            raise OSError("gone")
        with recorder.apart() as part:
            part.add(event("2"), rows("b"))
        answer(run, "3")
    assert set(Run.open(tmp_path / "run").events["qid"]) == {"3"}
    assert not list((tmp_path / "run").glob("*.part"))


def test_where_nothing_is_recorded_a_question_is_not_either():
    with recorder.apart() as part:
        assert part is None


def kill_before_the_answer(folder):
    file = folder / "answers.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]))


def kill_within_the_answer(folder):
    file = folder / "answers.jsonl"
    file.write_bytes(file.read_bytes()[:-9])


def kill_within_the_decisions(folder):
    kill_before_the_answer(folder)
    file = folder / "decisions.jsonl"
    file.write_bytes(file.read_bytes()[:-40])


def kill_before_the_decisions(folder):
    kill_before_the_answer(folder)
    file = folder / "decisions.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-2]))


def kill_before_the_events(folder):
    kill_before_the_decisions(folder)
    sorted((folder / "events").glob("*.parquet"))[-1].unlink()


KILLS = [kill_before_the_answer, kill_within_the_answer, kill_within_the_decisions, kill_before_the_decisions,
         kill_before_the_events]  # fmt: skip


@pytest.mark.parametrize("kill", KILLS)
@pytest.mark.parametrize("n_before", [0, 2])
def test_a_crash_at_any_write_loses_that_question_alone_and_going_on_makes_the_record_whole(kill, n_before, tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    qids = [str(n) for n in range(n_before + 1)]
    for folder in (whole, broken):
        with record(folder) as run:
            for qid in qids:
                answer(run, qid)
    kill(broken)
    left = Run.open(broken)
    assert set(left.events["qid"]) == set(qids[:-1])
    assert [line["qid"] for line in left.iter_answers()] == qids[:-1]
    assert {line["qid"] for line in left.iter_decisions()} == set(qids[:-1])
    with record(broken, mode="resume") as run:
        assert set(run.answered(0)) == set(qids[:-1])
        answer(run, qids[-1])
    assert contents(broken) == contents(whole)


def test_replacing_a_run_removes_its_answers(tmp_path):
    with record(tmp_path / "run") as run:
        answer(run, "1")
    with record(tmp_path / "run", mode="replace") as run:
        assert run.answered(0) == {}
    assert Run.open(tmp_path / "run").answers.empty


def test_answers_are_known_without_their_ledgers_and_by_agent():
    with record() as run:
        answer(run, "1")
        assert run.answered(0)["1"]["qanswer"] == "1!"
        assert "ledger" not in run.answered(0)["1"]
        assert run.answered(1) == {}


def test_a_damaged_answer_is_named_by_its_line(tmp_path):
    with record(tmp_path / "run") as run:
        answer(run, "1")
        answer(run, "2")
    file = tmp_path / "run" / "answers.jsonl"
    for damage in (b"{", b"[]"):
        file.write_bytes(damage + b"\n" + file.read_bytes().split(b"\n", 1)[1])
        with pytest.raises(DataError, match=r"answers\.jsonl:1"):
            list(Run.open(tmp_path / "run").iter_answers())


def test_text_that_is_no_unicode_survives(tmp_path):
    with record(tmp_path / "run"), recorder.apart() as part:
        part.complete([], {"qid": "1", "pipeline": 0, "unit": "call", "qanswer": "a\ud800b", "ledger": []})
    assert next(Run.open(tmp_path / "run").iter_answers())["qanswer"] == "a\ud800b"


def test_a_disk_that_cannot_be_written_is_an_error_and_the_question_does_not_count(tmp_path):
    with record(tmp_path / "run") as run:
        answer(run, "1")
        (tmp_path / "run" / "answers.jsonl").rename(tmp_path / "answers")
        (tmp_path / "run" / "answers.jsonl").mkdir()
        with pytest.raises(DataError, match="room and leave to write"):
            answer(run, "2", n_lines=5)
        (tmp_path / "run" / "answers.jsonl").rmdir()
        (tmp_path / "answers").rename(tmp_path / "run" / "answers.jsonl")
        answer(run, "3")
    read = Run.open(tmp_path / "run")
    assert [line["qid"] for line in read.iter_answers()] == ["1", "3"]
    assert [line["qid"] for line in read.iter_decisions()] == ["1", "1", "3", "3"]
    assert list(read.events["qid"].unique()) == ["1", "3"]


def test_lines_that_go_on_from_one_another_are_put_together_per_question(tmp_path):
    def line(qid, continues, *contents):
        messages = [{"role": "user", "content": text} for text in contents]
        settings = {} if continues else {"tools": [], "temperature": 0.0, "max_tokens": 7}
        reply = {"content": "a"}
        return {"qid": qid, "pipeline": 0, "kind": "decision", "continues": continues,
                "request": {"messages": messages, **settings}, "reply": reply}  # fmt: skip

    lines = [line("1", 0, "a"), line("2", 0, "x"), line("1", 1, "b", "c"), line("1", 3, "d"), line("2", 1, "y")]
    lines[1]["kind"] = "decision"
    whole = list(whole_requests(lines))
    told = [[m["content"] for m in each["request"]["messages"]] for each in whole]
    assert told == [["a"], ["x"], ["a", "b", "c"], ["a", "b", "c", "d"], ["x", "y"]]
    assert all(each["request"]["max_tokens"] == 7 for each in whole)
    file = tmp_path / "decisions.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in lines))
    with pytest.raises(DataError, match="finish_reason|reply|usage"):
        read_exchanges(file)  # a reply needs all its fields
    with pytest.raises(DataError, match="the exchange that a line goes on from"):
        list(whole_requests([line("3", 1, "a")]))
    assert ReplayModel([]).remaining == 0
