"""Agents run from files and from the command line; killed and resumed; over a real client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from searchops.agents import Budget, QueryAgent
from searchops.errors import DataError
from searchops.experiments.agent_runs import RESOURCES
from searchops.experiments.running import run_spec
from searchops.models import OpenAIModel
from searchops.recorder import record
from searchops.records import Run
from searchops.report import write_report
from searchops.spec import read_spec
from tests import loopback_openai as loopback

REPO = Path(__file__).parents[2]


# -- killed and resumed ------------------------------------------------------------------------


def killed_run(folder, kind, n_parallel, n_kills, seed=0):
    command = [sys.executable, "-m", "tests.killed_run", str(folder), kind, *map(str, (n_parallel, n_kills, seed))]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def contents(folder):
    """All that a run says of its questions, whatever order they came in, but for how long things took."""
    run = Run.open(folder)
    timed = ("seconds", "search_seconds", "part", "decisions_end")
    answers = {line["qid"]: {k: v for k, v in line.items() if k not in timed} for line in run.iter_answers()}
    assert len(answers) == len(run.answers)
    decisions = {}
    for line in run.iter_decisions():
        for call in line.get("calls", ()):
            call["costs"].pop("seconds")
        decisions.setdefault(line["qid"], []).append(line)
    columns = ["qid", "decision", "call", "kind", "label", "n_in", "n_out", "cache", "error"]
    joined = run.candidates.merge(run.events[["event", *columns]], on="event")
    rows = joined.drop(columns="event").astype(str)
    events = run.events[columns].astype(str)
    return answers, decisions, _sorted(events), _sorted(rows)


def _sorted(frame):
    return frame.sort_values(list(frame.columns), ignore_index=True).to_csv()


@pytest.mark.parametrize(("kind", "n_parallel"), [("query", 1), ("tool", 3), ("program", 1)])
def test_a_run_killed_twenty_times_loses_doubles_and_changes_no_question(kind, n_parallel, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert killed_run(whole, kind, n_parallel, 0) == []
    n_kills = 20
    moments = killed_run(killed, kind, n_parallel, n_kills, seed=n_parallel)
    assert len(moments) == n_kills
    assert any(0 < n < 40 for n in moments)
    assert contents(killed) == contents(whole)
    assert len(Run.open(killed).answers) == 40


# -- files and the command line ----------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tiny_collection, tmp_path_factory):
    """The tiny collection as a folder."""
    folder = tmp_path_factory.mktemp("tiny")
    for name, frame in (("corpus", tiny_collection.documents), ("topics", tiny_collection.topics),
                        ("evidence", tiny_collection.evidence)):  # fmt: skip
        frame.to_json(folder / f"{name}.jsonl", orient="records", lines=True, force_ascii=False)
    lines = [
        f"{row.qid} 0 {row.docno} {row.label}\n" for row in tiny_collection.qrels.itertuples() if " " not in row.docno
    ]
    (folder / "qrels.txt").write_text("".join(lines), encoding="utf-8")
    return folder


def file(folder, **more):
    keys = {"agent": "[query, tool, program]", "model": "keyword", **more}
    return "\n".join(["version: 1", f"collection: {folder}", *(f"{key}: {value}" for key, value in keys.items())])


def test_a_file_of_agents_runs_measures_and_goes_on(folder, tmp_path):
    text = file(
        folder, budget="{decisions: 30}", measures="[R@100, Retrieved, Available, Delivered, Delivered/Available]"
    )
    spec = read_spec(text, source="agents.yaml")
    result = run_spec(spec, tmp_path / "run")
    assert list(result.names) == ["query", "tool", "program"]
    values = result.values.set_index(["name", "measure", "qid"])["value"]
    asked = {"R@100", "Retrieved", "Available", "Delivered", "Delivered/Available", *RESOURCES}
    assert set(result.values["measure"]) == asked
    for name in result.names:
        assert values[name, "Delivered", "1"] == 1.0
        assert values[name, "R@100", "1"] == 1.0
        assert values[name, "decisions", "1"] >= 2
    assert values["tool", "decisions", "1"] > values["program", "decisions", "1"]
    assert not result.failed
    assert (tmp_path / "run" / "run-0-query.trec").read_text().startswith("1 Q0 ")
    assert run_spec(spec, tmp_path / "run").reused
    page = write_report(tmp_path / "run").read_text(encoding="utf-8")
    assert "observation" in page
    with pytest.raises(DataError, match="a folder for this run"):
        run_spec(read_spec(file(folder, budget="{decisions: 5}"), source="agents.yaml"), tmp_path / "run")


def test_agents_of_a_list_may_have_settings_of_their_own_and_names(folder, tmp_path):
    agents = "[{query: {budget: {decisions: 1}}}, {query: {n_parallel: 2, where: lang == 'en'}}]"
    spec = read_spec(file(folder, agent=agents, names="[one, all]", measures="[Delivered]"), source="a.yaml")
    result = run_spec(spec, tmp_path / "run")
    answers = Run.open(tmp_path / "run").answers.set_index(["pipeline", "qid"])
    assert set(answers.loc[result.names["one"], "decisions"]) == {1}
    assert set(answers.loc[result.names["one"], "stop_reason"]) == {"budget"}
    assert set(answers.loc[result.names["all"], "stop_reason"]) == {"answered"}


def test_a_model_that_gives_no_reply_is_an_outcome_in_every_mean(folder, tmp_path):
    def line(body):
        asked = json.dumps(body["messages"])
        if "Nile" in asked.split("user")[1][:100]:
            return loopback.no_choices()
        return loopback.says("done") if "tool_call_id" in asked else loopback.calls(("search", '{"query": "Baikal"}'))

    with loopback.LoopbackOpenAI(line) as server:
        model = f"{{openai: {{model: {loopback.MODEL}, base_url: '{server.url}', api_key_env: null}}}}"
        text = file(folder, agent="query", model=model, measures="[Delivered]")
        result = run_spec(read_spec(text, source="a.yaml"), tmp_path / "run")
    answers = Run.open(tmp_path / "run").answers.set_index("qid")
    assert answers["stop_reason"].to_dict() == {"1": "answered", "2": "model_error"}
    means = result.means().set_index("measure")
    assert means.loc["Delivered", "tasks"] == 2
    assert means.loc["decisions", "mean"] == 1.5
    assert means.loc["final_step_tokens", "missing"] == 1
    assert not result.failed


def test_a_question_that_breaks_costs_no_other_and_is_tried_again(folder, tmp_path, tiny_index):
    from searchops.experiments.agent_runs import broken_questions, run_agent
    from searchops.frames import Group
    from searchops.models import ScriptedModel

    class Tearing:
        columns = tiny_index.columns
        torn = True

        def __repr__(self):
            return "Tearing()"

        def __len__(self):
            return len(tiny_index)

        def search(self, query, k):
            if self.torn and "broken" in query:
                raise OSError("a torn file")
            return tiny_index.search(query, k)

        def search_many(self, queries, k):
            return [self.search(query, k) for query in queries]

        def fetch(self, docnos):
            return tiny_index.fetch(docnos)

        def statistics(self, analyzer):
            return tiny_index.statistics(analyzer)

    def line(request):
        from tests.agent_scripts import call

        asked = request.messages[1].content
        return "done" if len(request.messages) > 2 else [call("search", query=asked)]

    groups = [Group(qid, query, [{"qid": qid, "query": query}])
              for qid, query in (("1", "lake"), ("2", "broken"), ("3", "river"))]  # fmt: skip
    index, model = Tearing(), ScriptedModel(line)
    for torn, known in ((True, ["1", "3"]), (False, ["1", "3", "2"])):
        index.torn = torn
        with record(tmp_path / "run", mode="new" if torn else "resume") as run:
            run_agent(run, QueryAgent(model, index), "query", groups, None)
        read = Run.open(tmp_path / "run")
        assert read.answers["qid"].tolist() == known
        assert list(broken_questions(read).values()) == (["OSError: a torn file"] if torn else [])
    index.torn = True
    with record() as run, pytest.raises(OSError, match="a torn file"):
        run_agent(run, QueryAgent(model, index), "query", groups[1:2], None)


def test_parallel_tool_calls_and_usage_come_through_a_real_client(tiny_index):
    script = [
        loopback.calls(
            ("search", '{"query": "Baikal seal"}'), ("search", '{"query": "Nile"}'), usage=loopback.usage(90, 9, 40)
        ),
        loopback.calls(("search", '{"query": ')),
        loopback.limited("0"),
        loopback.says("In Lake Baikal.", usage=loopback.usage(200, 20, 100, 5)),
    ]
    with loopback.LoopbackOpenAI(script) as server:
        model = OpenAIModel(loopback.MODEL, server.url, api_key_env=None, backoff_s=0.01)
        with record() as run:
            outcome = QueryAgent(model, tiny_index, budget=Budget(decisions=5)).ask("Where does the Baikal seal live?")
    assert (outcome.answer, outcome.stop_reason, outcome.decisions, outcome.repairs) == (
        "In Lake Baikal.",
        "answered",
        2,
        1,
    )
    assert outcome.spent.final_step_tokens == 220
    assert outcome.spent.cached_tokens == 140
    assert outcome.spent.source == "provider"
    assert run.run().events["call"].tolist() == [0, 0, 0, 1, 1, 1]


def command(*arguments, cache):
    environment = {**os.environ, "SEARCHOPS_CACHE": str(cache), "PYTHONPATH": str(REPO)}
    code = "from searchops.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True,
                          env=environment, timeout=300, check=False)  # fmt: skip


def test_ask_gives_evidence_without_a_model_and_says_that_it_is_no_answer(folder, tmp_path):
    out = tmp_path / "run"
    done = command("ask", "Where does the Baikal seal live?", "--agent", "program", "--collection", folder,
                   "--out", out, cache=tmp_path / "cache")  # fmt: skip
    why = command("why", out, "1", "seals:0-43", cache=tmp_path / "cache")
    assert "observation" in why.stdout
    assert "An observation showed it." in why.stdout
    assert done.returncode == 0, done.stderr
    assert "Evidence, not an answer" in done.stdout
    assert "The Baikal seal lives only in Lake Baikal." in done.stdout
    assert Run.open(out).answers["stop_reason"].tolist() == ["answered"]
    wrong = command("ask", "Where?", "--agent", "programme", "--collection", folder, cache=tmp_path / "cache")
    assert wrong.returncode == 2
    assert wrong.stderr.strip() == "unknown agent 'programme'; did you mean 'program'?"


def test_ask_puts_what_the_answer_names_first(folder, monkeypatch):
    from searchops.experiments.asking import ask

    def line(body):
        asked = json.dumps(body["messages"])
        if "tool_call_id" in asked:
            return loopback.says("In Lake Baikal, see [cities/2%p0].")
        return loopback.calls(("search", '{"query": "Baikal seal lake"}'))

    with loopback.LoopbackOpenAI(line) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "loopback")
        asked = ask("Where?", "query", str(folder), model=loopback.MODEL, base_url=server.url, decisions=3)
    assert asked.is_answer
    assert asked.answer["qanswer"].startswith("In Lake Baikal")
    assert asked.evidence[0]["passage_id"] == "cities/2%p0"
    assert len(asked.evidence) > 1
