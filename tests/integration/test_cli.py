"""The command line, as a person and as a script meet it."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest

from searchops import cli, registry
from searchops.records import Run
from tests.conftest import REPO
from tests.shelf import Gate, Shelf

ENTRY = "from searchops.cli import main; main()"
N_TASKS = 110
FILE = """\
version: 1
vars: {{k: 3}}
collection: {collection}
index: {index}
pipeline:
  - retrieve: {{k: "${{vars.k}}"}}
{middle}  - extract: {{scorer: {{lexical: {{statistics: candidates}}}}, k: 3}}
measures: [nDCG@5, Retrieved, Available, Delivered, Delivered/Available]
"""


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A collection, a file over Lucene and one that needs no JVM."""
    folder = tmp_path_factory.mktemp("cli")
    data = folder / "data"
    data.mkdir()
    texts = {f"d{n}": f"Subject {n} is called thing{n}. Its colour is c{n}." for n in range(N_TASKS)}
    write_lines(data / "corpus.jsonl", [{"docno": d, "title": d, "text": t} for d, t in texts.items()])
    write_lines(
        data / "topics.jsonl", [{"qid": f"q{n}", "query": f"thing{n}. colour thing{n}"} for n in range(N_TASKS)]
    )
    (data / "qrels.txt").write_text("".join(f"q{n} 0 d{n} 1\n" for n in range(N_TASKS)))
    quotes = {n: f"Subject {n} is called thing{n}." for n in range(N_TASKS)}
    labels = [{"qid": f"q{n}", "docno": f"d{n}", "start": 0, "end": len(q), "text": q} for n, q in quotes.items()]
    write_lines(data / "evidence.jsonl", labels)
    (folder / "real.yaml").write_text(FILE.format(collection=data, index="lucene", middle=""))
    (folder / "watched.yaml").write_text(FILE.format(collection=data, index="shelf", middle="  - gate\n"))
    return folder


def command(*arguments, cwd, **environment):
    """The command's words and environment, with the engine and stage of tests.shelf where it is watched."""
    entry = ["-m", "tests.shelf"] if "SEARCHOPS_TEST_NOTES" in environment else ["-c", ENTRY]
    words = [sys.executable, *entry, *map(str, arguments)]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SEARCHOPS_TEST", "COV_"))}
    return {"args": words, "cwd": cwd, "env": {**env, "PYTHONPATH": str(REPO), "COLUMNS": "300", **environment}}


def run(*arguments, cwd):
    return subprocess.run(**command(*arguments, cwd=cwd), capture_output=True, text=True, timeout=120)


def wait_for(condition, process=None, seconds=60.0):
    """Polls until something is there; it must come."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        assert process is None or process.poll() is None, "the command ended first"
        time.sleep(0.005)


@pytest.fixture(scope="module")
def first(place):
    """The first run over Lucene, its output piped."""
    return run("run", "real.yaml", "--out", "runs/real", cwd=place)


@pytest.fixture
def here(capsys, monkeypatch, place):
    """Runs the command in this process: (exit code, stdout, stderr)."""
    monkeypatch.chdir(place)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["searchops", *map(str, arguments)])
        with pytest.raises(SystemExit) as done:
            cli.main()
        out, err = capsys.readouterr()
        return done.value.code, out, err

    return call


# -- run, and what it prints -------------------------------------------------------------------


def test_a_run_prints_measures_and_the_funnel_and_says_where_the_record_is(first, place):
    assert first.returncode == 0, first.stderr
    assert first.stderr == ""
    line = next(line for line in first.stdout.splitlines() if line.startswith("Delivered "))
    assert line.split()[:2] == ["Delivered", "1.0000"]
    assert str(N_TASKS) in line.split()
    assert re.search(r"^0 +retrieve k=3 .* 110 +110 *$", first.stdout, re.MULTILINE)
    assert "record  runs/real" in first.stdout
    assert (place / "runs/real/report.html").read_text().startswith("<!doctype html>") or (
        place / "runs/real/report.html"
    ).stat().st_size > 5_000
    assert Run.open(place / "runs/real").meta["status"] == "finished"


def test_piped_output_has_no_control_characters_and_at_most_100_columns(first):
    text = first.stdout + first.stderr
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)
    assert max(map(len, text.splitlines())) <= 100


def test_the_same_command_shows_the_same_numbers_and_runs_nothing(first, here, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    code, out, err = here("run", "real.yaml", "--out", "runs/real")
    assert (code, out) == (0, first.stdout)
    assert err == "note: this run was complete already; --replace runs it again\n"


def test_json_parses_and_agrees_with_the_record(first, here, place):
    code, out, err = here("run", "real.yaml", "--out", "runs/real", "--json", "--quiet")
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert told["folder"] == "runs/real"
    assert told["reused"] is True
    assert told["failed"] == []
    per_query = json.loads((place / "runs/real/measures.json").read_text())["per_query"]
    for row in told["means"]:
        values = [found["value"] for found in per_query if found["measure"] == row["measure"]]
        assert row["mean"] == pytest.approx(sum(values) / len(values))
        assert row["tasks"] == N_TASKS


def test_quiet_keeps_the_tables_and_drops_the_notes(first, here):
    code, out, err = here("run", "real.yaml", "--out", "runs/real", "--quiet")
    assert (code, err) == (0, "")
    assert "Delivered/Available" in out


def test_a_reader_that_leaves_early_is_no_error(first, place):
    process = subprocess.Popen(
        **command("schema", cwd=place), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.readline()
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 0
    assert error == ""


# -- the other commands ------------------------------------------------------------------------


def test_why_tells_a_passages_life(first, here):
    code, out, err = here("why", "runs/real", "q7", "d7:0-28")
    assert (code, err) == (0, "")
    assert [line.split()[1] for line in out.splitlines() if re.match(r"\d ", line)] == [
        "retrieve",
        "extract",
        "extract",
    ]
    assert out.rstrip().endswith("It is there at the end.")
    code, out, _ = here("why", "runs/real", "q7", "d7:28-45", "--json")
    rows = json.loads(out)
    assert [(row["label"], row["side"], row["present"]) for row in rows] == [
        ("retrieve k=3", "out", 1.0), ("extract k=3", "in", 1.0), ("extract k=3", "out", 0.0),
    ]  # fmt: skip
    assert here("why", "runs/real", "q7", "d7:28-45")[1].rstrip().endswith("Dropped by extract k=3.")
    assert "never came out" in here("why", "runs/real", "q7", "nowhere")[1]


def test_report_writes_one_file_where_it_is_told_to(first, here, place):
    code, out, err = here("report", "runs/real", "--out", "page.html")
    assert (code, out, err) == (0, "page.html\n", "")
    assert "q7" in (place / "page.html").read_text()


def test_validate_checks_every_file_and_names_every_problem(here, place):
    (place / "wrong.yaml").write_text("version: 1\ncollection: pydocs\nindex: lucene\npipeline:\n  - rerank: {kk: 2}\n")
    (place / "measure.yaml").write_text("version: 1\nmeasures: [Deliverd]\npipeline: [retrieve: 3]\nindex: lucene\n")
    code, out, err = here("validate", "real.yaml", "wrong.yaml", "measure.yaml", "gone.yaml")
    assert code == 2
    assert out == "real.yaml: fine (1 pipeline)\n"
    assert re.search(r"^wrong\.yaml:5:\d+: .*'kk'", err, re.MULTILINE)
    assert re.search(r"^measure\.yaml:2:12: .*Did you mean 'Delivered'", err, re.MULTILINE)
    assert "gone.yaml: a pipeline file is needed; found none" in err
    assert here("validate", "real.yaml", "--set", "vars.k=9")[0] == 0


def test_schema_prints_the_json_schema_of_pipeline_files(here):
    from searchops.spec import json_schema

    code, out, err = here("schema")
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads(json.dumps(json_schema()))


def test_version_is_the_packages(here):
    import searchops

    assert here("--version")[1].split() == ["searchops", searchops.__version__]


# -- what is wrong is said in a line -----------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "gone.yaml"], "gone.yaml: a pipeline file is needed; found none"),
        (["run", "data"], "data: a pipeline file is needed; found a folder"),
        (["run", "real.yaml", "--set", "vars.kk=2"], "did you mean 'vars.k'"),
        (["run", "real.yaml", "--set", "vars.k=0"], "k must be a whole number of at least 1"),
        (["run", "real.yaml", "--set", "k"], "k"),
        (["run", "real.yaml", "--sett", "vars.k=2"], "No such option: --sett"),
        (["run"], "Missing argument 'FILE'"),
        (["run", "a.yaml", "b.yaml"], "unexpected extra argument(s) (b.yaml)"),
        (["rum", "real.yaml"], "No such command 'rum'"),
        (["why", "runs/gone", "q1", "d1"], "runs/gone: a run's folder (with run.json) is needed; found nothing"),
        (["why", "data", "q1", "d1"], "data: a run's folder (with run.json) is needed; found a folder without it"),
        (["why", "runs/real", "q999", "d1"], "why: a qid of the run is needed; found 'q999'"),
        (["why", "runs/real", "q1", "d1", "--pipeline", "x"], "--pipeline: a pipeline of the run is needed; found 'x'"),
        (["why", "runs/real", "q1", "d1", "--pipeline", "7"], "a pipeline of the run is needed; found 7"),
        (["report", "real.yaml"], "real.yaml"),
        (["run", "real.yaml", "--out", "data"], "data: a run's folder (with run.json) is needed"),
        (["run", "real.yaml", "--out", "real.yaml"], "real.yaml"),
        (["run", "real.yaml", "--out", "runs/real", "--set", "vars.k=2"], "runs/real: a folder for this run is needed"),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_file_or_argument_is_one_line_and_exit_2(arguments, told, first, here):
    code, out, err = here(*arguments)
    assert (code, out) == (2, "")
    assert told in err
    assert len(err.splitlines()) == 1
    assert "Traceback" not in err


def test_no_command_shows_the_help(here):
    code, out, err = here()
    assert code in (0, 2)
    assert all(name in out + err for name in ("run", "validate", "schema", "why", "report"))


# -- runs that stop ----------------------------------------------------------------------------


@pytest.fixture
def watched(here, monkeypatch):
    """The command in this process, with the engine and stage of tests.shelf."""
    monkeypatch.setitem(registry._tables["engine"].targets, "shelf", Shelf)
    monkeypatch.setitem(registry._tables["stage"].targets, "gate", Gate)
    return here


@pytest.fixture
def undisturbed(watched, place):
    """measures.json of a run that nothing stopped."""
    code, _, err = watched("run", "watched.yaml", "--out", "runs/undisturbed", "--quiet")
    assert (code, err) == (0, "")
    return (place / "runs/undisturbed/measures.json").read_bytes()


def check_whole(place, name, undisturbed):
    """Every task is there once, and the numbers are those of the run that nothing stopped."""
    events = Run.open(place / "runs" / name).events
    assert events.groupby("qid").size().eq(3).all()
    assert events["qid"].nunique() == N_TASKS
    assert (place / "runs" / name / "measures.json").read_bytes() == undisturbed


def test_ctrl_c_ends_with_130_and_the_same_command_goes_on_with_no_task_lost_or_doubled(
    place, undisturbed, watched, monkeypatch
):
    notes = place / "notes"
    arguments = ("run", "watched.yaml", "--out", "runs/stopped")
    monkeypatch.setenv("SEARCHOPS_TEST_NOTES", str(notes))
    process = subprocess.Popen(
        **command(*arguments, cwd=place, SEARCHOPS_TEST_NOTES=str(notes), SEARCHOPS_TEST_WAIT_AT="3"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: notes.exists() and len(notes.read_text().splitlines()) == 3, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err) == ("", "interrupted; the same command goes on where it stopped\n")
    stopped = Run.open(place / "runs/stopped")
    assert stopped.meta["status"] == "interrupted"
    assert stopped.events["qid"].nunique() == 64
    code, _, err = watched(*arguments)
    assert (code, err) == (0, "")
    batches = [set(line.split()) for line in notes.read_text().splitlines()]
    assert batches[3] == batches[2]  # the one that was stopped
    assert len(batches[0] | batches[1]) + sum(map(len, batches[3:])) == N_TASKS
    check_whole(place, "stopped", undisturbed)


KILLER = """
import os, signal, sys, time
from pathlib import Path
from tests.shelf import register_both
import searchops.cli, searchops.experiments.running, searchops.report, searchops.spec

register_both()
notes = Path(os.environ["SEARCHOPS_TEST_NOTES"])
for delay in map(float, sys.argv[1:]):
    before = len(notes.read_text().splitlines()) if notes.exists() else 0
    child = os.fork()
    if child == 0:
        sys.argv = ["searchops", "run", "watched.yaml", "--out", "runs/killed", "--quiet"]
        searchops.cli.main()
    while not notes.exists() or len(notes.read_text().splitlines()) == before:
        if os.waitpid(child, os.WNOHANG)[0]:
            sys.exit("it ended before it could be killed")
        time.sleep(0.0005)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_kills_at_random_moments_change_no_number(place, undisturbed, watched):
    rng = random.Random(20)
    delays = [str(rng.uniform(0, 0.02)) for _ in range(5)]
    words = command(cwd=place, SEARCHOPS_TEST_NOTES=str(place / "kills"))
    words["args"] = [sys.executable, "-c", KILLER, *delays]
    killed = subprocess.run(**words, capture_output=True, text=True, timeout=120)
    assert killed.stdout.split() == ["-9"] * 5, killed.stderr
    code, _, err = watched("run", "watched.yaml", "--out", "runs/killed", "--quiet")
    assert (code, err) == (0, "")
    check_whole(place, "killed", undisturbed)


def test_a_run_with_failed_tasks_exits_1_and_the_same_command_tries_them_again(watched, monkeypatch):
    arguments = ("run", "watched.yaml", "--out", "runs/failing", "--set", "vars.k=1")
    monkeypatch.setenv("SEARCHOPS_TEST_FAIL_ON", "thing3. thing5. thing9.")
    code, out, _ = watched(*arguments, "--json")
    told = json.loads(out)
    assert code == 1
    assert [row["qid"] for row in told["failed"]] == ["q3", "q5", "q9"]
    assert {row["tasks"] for row in told["means"]} == {N_TASKS - 3}
    code, out, err = watched(*arguments)
    assert code == 1
    assert "Delivered/Available" in out
    assert len(re.findall(r"^failed: watched, q\d+: ValueError: cannot stand", err, re.MULTILINE)) == 3
    monkeypatch.delenv("SEARCHOPS_TEST_FAIL_ON")
    code, out, _ = watched(*arguments, "--json")
    assert (code, json.loads(out)["failed"]) == (0, [])
    assert {row["tasks"] for row in json.loads(out)["means"]} == {N_TASKS}


def test_a_pipeline_that_fails_for_every_task_fails_with_its_own_error(watched, place, monkeypatch):
    monkeypatch.setenv("SEARCHOPS_TEST_FAIL_ON", "e")
    monkeypatch.setattr(sys, "argv", ["searchops", "run", "watched.yaml", "--out", "runs/bad"])
    with pytest.raises(ValueError, match="cannot stand"):
        cli.main()
    assert json.loads((place / "runs/bad/run.json").read_text())["status"] == "failed"
