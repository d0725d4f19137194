"""Runs in progress: checkpoints, resuming, crashes, full disks."""

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from searchops import recorder as recording
from searchops.errors import DataError
from searchops.recorder import record, record_into
from searchops.records import Event, Run


def event(qid="1", stage="0"):
    return Event(qid, "q", 0, stage, "retrieve k=1", "retrieve", "R", "0", -1, 1, 1, 0.0)


ROWS = [{"docno": "a b/ü%p1", "score": 1.5, "rank": 0}]


def test_a_run_is_on_disk_after_its_block(tmp_path):
    with record(tmp_path / "run", seed=7) as run:
        run.add(event(), ROWS)
    read = Run.open(tmp_path / "run")
    assert read.meta["status"] == "finished"
    assert read.meta["seed"] == 7
    assert read.events["qid"].tolist() == ["1"]
    row = read.candidates.iloc[0]
    assert (row["docno"], row["score"], row["rank"], row["side"]) == ("a b/ü%p1", 1.5, 0, "out")


def test_a_failed_block_keeps_what_it_recorded_and_says_so(tmp_path):
    with pytest.raises(ZeroDivisionError), record(tmp_path / "run") as run:
        run.add(event(), ROWS)
        raise ZeroDivisionError("boom")
    read = Run.open(tmp_path / "run")
    assert (read.meta["status"], read.meta["error"]) == ("failed", "ZeroDivisionError: boom")
    assert len(read.events) == 1


def test_ctrl_c_is_an_interrupted_run(tmp_path):
    with pytest.raises(KeyboardInterrupt), record(tmp_path / "run") as run:
        run.add(event(), ROWS)
        raise KeyboardInterrupt
    assert Run.open(tmp_path / "run").meta["status"] == "interrupted"


def test_an_existing_run_is_not_overwritten_unasked(tmp_path):
    with record(tmp_path / "run") as run:
        run.add(event(), ROWS)
    with pytest.raises(DataError, match="mode='resume' or mode='replace'"), record(tmp_path / "run"):
        raise AssertionError("the block must not run")
    assert len(Run.open(tmp_path / "run").events) == 1


def test_replace_leaves_nothing_of_the_old_run(tmp_path):
    for qid in ("old", "new"):
        with record(tmp_path / "run", mode="replace") as run:
            run.add(event(qid), ROWS)
    assert Run.open(tmp_path / "run").events["qid"].tolist() == ["new"]


def test_a_folder_that_is_no_run_is_never_touched(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    for mode in ("new", "replace", "resume"):
        with pytest.raises(DataError), record(tmp_path, mode=mode):
            raise AssertionError("the block must not run")
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_resume_goes_on_behind_the_last_event(tmp_path):
    with record(tmp_path / "run") as run:
        run.add(event("1"), ROWS)
    with record(tmp_path / "run", mode="resume") as run:
        run.add(event("2"), ROWS)
    read = Run.open(tmp_path / "run")
    assert read.events["event"].tolist() == [0, 1]
    assert read.candidates["event"].tolist() == [0, 1]


def test_a_whole_batch_is_recorded_or_nothing_of_it(tmp_path):
    with record(tmp_path / "run") as run:
        with run.whole():
            run.add(event("1"), ROWS)
        with pytest.raises(ZeroDivisionError), run.whole():
            run.add(event("2"), ROWS)
            raise ZeroDivisionError
        with run.whole():
            run.add(event("3"), ROWS)
    read = Run.open(tmp_path / "run")
    assert read.events["qid"].tolist() == ["1", "3"]
    assert read.events["event"].tolist() == read.candidates["event"].tolist() == [0, 1]


def test_a_full_disk_is_a_clear_error_and_keeps_earlier_checkpoints(tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    write = pq.write_table
    full = False

    def write_table(*args, **kwargs):
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(*args, **kwargs)

    monkeypatch.setattr(pq, "write_table", write_table)
    with pytest.raises(DataError, match="No space left"), record(tmp_path / "run") as run:
        run.add(event("1"), ROWS)
        run.checkpoint()
        full = True
        run.add(event("2"), ROWS)
        run.checkpoint()
    assert Run.open(tmp_path / "run").events["qid"].tolist() == ["1"]


def test_sigkill_loses_only_what_was_not_checkpointed(tmp_path):
    script = textwrap.dedent(
        """
        import sys, os, signal
        from searchops.recorder import record
        from searchops.records import Event
        rows = [{"docno": "d", "score": 1.0, "rank": 0}]
        with record(sys.argv[1]) as run:
            for n in range(1000):
                with run.whole():
                    for stage in "01":
                        run.add(Event(str(n), "q", 0, stage, "s", "retrieve", "R", "0", -1, 1, 1, 0.0), rows)
                print(n, flush=True)
        """
    )
    for lines in (1, 7, 23):
        path = tmp_path / f"run{lines}"
        child = subprocess.Popen(
            [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True, cwd=recording_root()
        )
        printed = [child.stdout.readline() for _ in range(lines)]
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        events = Run.open(path).events
        done = events["qid"].drop_duplicates().tolist()
        assert done == [str(n) for n in range(len(done))]
        assert len(done) >= int(printed[-1]) + 1
        assert (events.groupby("qid").size() == 2).all()


def recording_root():
    return os.path.dirname(os.path.dirname(os.path.dirname(recording.__file__)))


def test_a_damaged_checkpoint_names_its_file(tmp_path):
    with record(tmp_path / "run") as run:
        run.add(event(), ROWS)
    file = tmp_path / "run" / "candidates" / "000000.parquet"
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(DataError, match=r"candidates.000000\.parquet.*damaged"):
        Run.open(tmp_path / "run")
    file.unlink()
    with pytest.raises(DataError, match=r"000000\.parquet"):
        Run.open(tmp_path / "run")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 99}', "\x00"])
def test_a_damaged_run_file_is_a_clear_error(tmp_path, text):
    with record(tmp_path / "run"):
        pass
    (tmp_path / "run" / "run.json").write_text(text)
    with pytest.raises(DataError, match=r"run\.json"):
        Run.open(tmp_path / "run")


def test_no_stage_is_recorded_outside_the_block():
    assert recording.current() is None
    with record() as run:
        assert recording.current() is run
        with record() as inner:
            assert recording.current() is inner
        assert recording.current() is run
    assert recording.current() is None


def test_events_carry_the_decision_and_call_of_the_agent():
    with record() as run, record_into(run), recording.step(3, 1):
        assert recording.current_step() == (3, 1)
    assert recording.current_step() == (-1, -1)


def test_run_json_says_what_the_run_was_made_with(tmp_path):
    with record(tmp_path / "run"):
        pass
    meta = json.loads((tmp_path / "run" / "run.json").read_text())
    assert meta["versions"]["pyterrier"]
    assert meta["python"].startswith("3.")
    assert meta["started"] <= meta["ended"]


def test_reprs_say_what_there_is():
    with record() as run:
        run.add(event(), ROWS)
        assert repr(run) == "<Recorder memory: 1 events>"
        assert repr(run.run()) == "<Run memory: 1 events, 1 candidate rows>"
        assert "&lt;Run" in run._repr_html_()
