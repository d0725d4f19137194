"""Exports: BrowseComp-Plus run files, cells, TREC runs."""

from __future__ import annotations

import json
import re

import pytest

import searchops as so
from searchops.agents import Budget, ProgramAgent, QueryAgent, ToolAgent
from searchops.agents.keyword import KeywordPolicy
from searchops.errors import DataError, SpecError
from searchops.exports import export
from searchops.exports.lines import safe_name
from searchops.models import Reply, ScriptedModel, ToolCall
from searchops.records import Run
from searchops.trec import read_run

AGENTS = (QueryAgent, ToolAgent, ProgramAgent)


@pytest.fixture
def run_of(tiny_collection, tiny_index, tmp_path):
    """Records agents over the tiny collection, with its labels beside the record as `searchops run` puts them."""

    def make(*agents, topics=tiny_collection.topics, labels=True):
        folder = tmp_path / "run"
        with so.record(folder) as run:
            ran = agents or [kind(KeywordPolicy(), tiny_index) for kind in AGENTS]
            run.meta["names"] = {
                str(n): type(agent).__name__.removesuffix("Agent").lower() for n, agent in enumerate(ran)
            }
            for agent in ran:
                agent(topics)
        if labels:
            text = tiny_collection.evidence.to_json(orient="records", lines=True)
            (folder / "evidence.jsonl").write_text(text, encoding="utf-8")
        return folder

    return make


def scripted(index, *replies, **settings):
    return QueryAgent(ScriptedModel(replies), index, **settings)


def search(query):
    return ToolCall("c", "search", json.dumps({"query": query}))


def told(folder, name="query", qid="1"):
    return json.loads((folder / name / f"run_{qid}.json").read_text(encoding="utf-8"))


# -- BrowseComp-Plus -----------------------------------------------------------------------------


def evaluated(file, positives):
    """What evaluate_with_openai.py takes out of a run file before it asks the judge, in its own steps."""
    data = json.loads(file.read_text(encoding="utf-8"))
    response = ""
    if len(data["result"]) > 0 and data["result"][-1]["type"] == "output_text":
        response = data["result"][-1]["output"]
    cited = set(re.findall(r"\[(\d+)\]", response))
    for match in re.findall(r"\[([^\[\]]*?)\]", response):
        cited.update(re.findall(r"\d+", match))
    retrieved = set(data.get("retrieved_docids", []))
    return {
        "query_id": data["query_id"],
        "completed": data["status"] == "completed",
        "recall": len(retrieved & set(positives)) / len(positives),
        "response": response,
        "cited": cited,
        "calls": data.get("tool_call_counts", {}),
        "model": (data.get("metadata", {}) or {}).get("model"),
    }


def test_run_files_are_one_a_question_and_agent_and_hold_what_the_evaluation_reads(run_of, tmp_path):
    files = export(run_of(), "browsecomp-plus", tmp_path / "out")
    assert sorted(str(f.relative_to(tmp_path / "out")) for f in files) == [
        f"{name}/run_{qid}.json" for name in ("program", "query", "tool") for qid in ("1", "2")
    ]
    for file in files:
        found = evaluated(file, ["lakes/1"] if file.stem == "run_1" else ["cities/1"])
        assert found["completed"]
        assert found["recall"] == 1.0
        assert found["model"] == "keyword"
        assert found["response"].startswith("Explanation: No answer.")


def test_tool_calls_are_counted_and_come_before_the_answer_in_their_order(run_of, tmp_path):
    export(run_of(), "browsecomp-plus", tmp_path)
    data = told(tmp_path, "tool")
    kinds = [item["type"] for item in data["result"]]
    assert kinds == ["tool_call"] * (len(kinds) - 1) + ["output_text"]
    names = [item["tool_name"] for item in data["result"][:-1]]
    assert names[:3] == ["retrieve", "rerank", "extract"]
    assert data["tool_call_counts"] == {name: names.count(name) for name in dict.fromkeys(names)}
    assert json.loads(data["result"][0]["arguments"])["query"] == "deepest lake Siberia"
    assert "lakes/1" in data["result"][0]["output"]


def test_passages_are_cited_as_their_documents_because_every_number_counts_as_an_id(tiny_index, run_of, tmp_path):
    model = [search("deepest lake"), "Baikal. See [lakes/1%p1] and [rivers%p1%p0], not [unknown%p7]."]
    export(run_of(scripted(tiny_index, *model, *model)), "browsecomp-plus", tmp_path)
    text = told(tmp_path)["result"][-1]["output"]
    assert text == (
        "Explanation: Baikal. See [lakes/1] and [rivers%p1%p0], not [unknown%p7].\n"
        "Exact Answer: Baikal\nConfidence: not stated"
    )


def test_a_document_whose_id_looks_like_a_passage_stays_one(tiny_index, run_of, tmp_path):
    model = [search("Nile Cairo river"), "[rivers%p1%p1]"]
    export(run_of(scripted(tiny_index, *model, *model)), "browsecomp-plus", tmp_path)
    data = told(tmp_path)
    assert "rivers%p1" in data["retrieved_docids"]
    assert "rivers" not in data["retrieved_docids"]
    assert "[rivers%p1]" in data["result"][-1]["output"]


def test_an_answer_in_the_benchmarks_own_form_stays_as_it_is(tiny_index, run_of, tmp_path):
    answer = "Explanation: it says so [1]\nExact Answer: Baikal\nConfidence: 90%"
    export(run_of(scripted(tiny_index, answer, answer)), "browsecomp-plus", tmp_path)
    assert told(tmp_path)["result"] == [{"type": "output_text", "tool_name": None, "arguments": None, "output": answer}]


def test_thoughts_are_kept_beside_the_calls(tiny_index, run_of, tmp_path):
    first = Reply("I look.", (search("lake"),), "tool_calls", reasoning="Lakes are deep.")
    export(run_of(scripted(tiny_index, first, "A.", first, "A.")), "browsecomp-plus", tmp_path)
    assert [(item["type"], item["output"]) for item in told(tmp_path)["result"][:2]] == [
        ("reasoning", ["Lakes are deep."]),
        ("reasoning", ["I look."]),
    ]


def test_a_question_without_an_answer_is_incomplete_and_has_no_output_text(tiny_index, run_of, tmp_path):
    agent = scripted(tiny_index, "", DataError("down"), budget=Budget(repairs=0))
    export(run_of(agent), "browsecomp-plus", tmp_path)
    for qid in ("1", "2"):
        data = told(tmp_path, qid=qid)
        assert (data["status"], data["result"], data["retrieved_docids"]) == ("incomplete", [], [])
    assert "down" in told(tmp_path, qid="2")["metadata"]["error"]


def test_malformed_arguments_are_kept_as_they_came(tiny_index, run_of, tmp_path):
    both = [ToolCall("a", "search", "{oops"), ToolCall("b", "search", '{"query": "lake"}')]
    export(run_of(scripted(tiny_index, both, "A.", both, "A.")), "browsecomp-plus", tmp_path)
    first = told(tmp_path)["result"][0]
    assert first["arguments"] == "{oops"
    assert first["output"].startswith("error")


def test_ids_that_no_file_can_be_named_by_are_encoded(tiny_index, tiny_collection, run_of, tmp_path):
    topics = tiny_collection.topics.head(1).assign(qid="a/b c")
    files = export(run_of(scripted(tiny_index, "A."), topics=topics), "browsecomp-plus", tmp_path)
    assert files == [tmp_path / "query" / "run_a%2Fb%20c.json"]
    assert len({safe_name(text) for text in ("a b", "a%20b", "a_b", "a/b")}) == 4


# -- cells ---------------------------------------------------------------------------------------


def cells(folder):
    return [json.loads(line) for line in (folder / "cells.jsonl").read_text(encoding="utf-8").splitlines()]


def test_every_successful_cell_is_a_line_with_what_came_of_it(tiny_index, run_of, tmp_path):
    codes = ["x = retrieve('deepest lake')", "1 / 0", "[c.note for c in extract(rerank(x))]"]
    replies = [ToolCall("c", "run_program", json.dumps({"code": code})) for code in codes]
    agent = ProgramAgent(ScriptedModel([*replies, "Baikal.", "None."]), tiny_index)
    export(run_of(agent), "cells", tmp_path)
    first, second = cells(tmp_path)
    assert [first["code"], second["code"]] == [codes[0], codes[2]]
    assert [first["decision"], second["decision"]] == [0, 2]
    assert (first["qid"], first["question"], first["agent"]) == ("1", "deepest lake Siberia", "program")
    assert first["costs"]["retrieval_requests"] == 1
    assert second["costs"]["retrieval_requests"] == 0
    assert first["workspace_before"] == ""
    assert "x: list[Candidate]" in second["workspace_before"]
    assert "It is the deepest lake on Earth." in second["observation"]
    assert second["end"] == {"stop_reason": "answered", "decisions": 4, "qanswer": "Baikal."}


def test_a_cell_names_the_labels_that_it_was_the_first_to_show(tiny_index, tiny_collection, run_of, tmp_path):
    show = "'It is the deepest lake on Earth.' if retrieve('lake') else ''"
    replies = [ToolCall("c", "run_program", json.dumps({"code": show}))] * 2
    agent = ProgramAgent(ScriptedModel([*replies, "A."]), tiny_index)
    export(run_of(agent, topics=tiny_collection.topics.head(1)), "cells", tmp_path)
    assert [cell["delivered"] for cell in cells(tmp_path)] == [["lakes/1:29-61"], []]


def test_without_labels_nothing_is_said_of_delivery(tiny_index, run_of, tmp_path):
    export(run_of(ProgramAgent(KeywordPolicy(), tiny_index), labels=False), "cells", tmp_path)
    assert {cell["delivered"] for cell in cells(tmp_path)} == {None}


def test_labels_of_whole_documents_and_passages_are_written_as_why_takes_them(tiny_index, run_of, tmp_path):
    folder = run_of(ProgramAgent(KeywordPolicy(), tiny_index), labels=False)
    (folder / "evidence.jsonl").write_text('{"qid": "1", "passage_id": "lakes/1%p1"}\n', encoding="utf-8")
    export(folder, "cells", tmp_path)
    assert [label for cell in cells(tmp_path) for label in cell["delivered"]] == ["lakes/1%p1"]
    (folder / "evidence.jsonl").write_text('{"qid": "1", "docno": "seals"}\n', encoding="utf-8")
    export(folder, "cells", tmp_path)
    assert {label for cell in cells(tmp_path) for label in cell["delivered"]} <= {"seals"}
    (folder / "evidence.jsonl").write_text("", encoding="utf-8")
    export(folder, "cells", tmp_path)
    assert all(cell["delivered"] == [] for cell in cells(tmp_path))


def test_a_run_without_cells_is_refused(tiny_index, run_of, tmp_path):
    with pytest.raises(DataError, match="program cells"):
        export(run_of(QueryAgent(KeywordPolicy(), tiny_index)), "cells", tmp_path)


def test_a_damaged_label_is_named_by_file_and_row(tiny_index, run_of, tmp_path):
    folder = run_of(ProgramAgent(KeywordPolicy(), tiny_index))
    with (folder / "evidence.jsonl").open("a", encoding="utf-8") as stream:
        stream.write("\n{oops\n")
    with pytest.raises(DataError, match=r"evidence\.jsonl:6"):
        export(folder, "cells", tmp_path)


# -- TREC ----------------------------------------------------------------------------------------


def test_agents_and_pipelines_are_written_as_trec_runs(tiny_index, tiny_collection, tmp_path):
    agent = QueryAgent(KeywordPolicy(), tiny_index)
    pipeline = so.Retrieve(tiny_index, k=5) >> so.Rerank(so.Lexical(), k=3)
    with so.record(tmp_path / "run"):
        out = pipeline(tiny_collection.topics)
        agent(tiny_collection.topics)
    files = export(tmp_path / "run", "trec")
    assert [file.name for file in files] == ["pipeline-0.trec", "pipeline-1.trec"]
    assert files[0].parent == tmp_path / "run" / "exports" / "trec"
    ranking = read_run(files[0])
    expected = out.sort_values(["qid", "rank"])[["qid", "docno"]]
    assert ranking[["qid", "docno"]].values.tolist() == [[q, d.replace(" ", "%20")] for q, d in expected.values]
    assert {"lakes/1"} <= set(read_run(files[1])["docno"])


def test_results_without_scores_are_no_trec_run(tiny_index, tiny_collection, tmp_path):
    pipeline = so.Retrieve(tiny_index) | so.Retrieve(tiny_index, k=2)
    with so.record(tmp_path / "run"):
        (pipeline >> so.Dedupe())(tiny_collection.topics)
    with pytest.raises(DataError, match="results with scores"):
        export(tmp_path / "run", "trec", tmp_path)


def test_a_run_with_no_result_is_refused_by_every_format(tmp_path):
    with so.record(tmp_path / "run"):
        pass
    for to in ("browsecomp-plus", "cells", "trec"):
        with pytest.raises(DataError):
            export(tmp_path / "run", to)


# -- what can be wrong ---------------------------------------------------------------------------


def test_an_unknown_format_is_named_with_the_nearest():
    with pytest.raises(SpecError, match="browsecomp-plus"):
        export("nowhere", "browsecomp")


def test_a_folder_that_is_no_run_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"run\.json"):
        export(tmp_path, "trec")


def damage(folder, change):
    """Changes the first decision that made calls; rows behind it stay where they are."""
    file = folder / "decisions.jsonl"
    lines = file.read_bytes().split(b"\n")
    data = json.loads(lines[0])
    change(data)
    new = json.dumps(data, ensure_ascii=False).encode()
    assert len(new) <= len(lines[0])
    file.write_bytes(b"\n".join([new.ljust(len(lines[0])), *lines[1:]]))


@pytest.mark.parametrize(
    ("change", "needed"),
    [
        (lambda data: data.update(qid=7), "'qid' of type str"),
        (lambda data: data["calls"][0].pop("observation"), "'observation' of type str"),
        (lambda data: data["calls"][0].pop("name"), "'name' of type str"),
        (lambda data: data.update(calls=["x"]), "objects in 'calls'"),
        (lambda data: data.update(calls=0), "'calls' of type list"),
    ],
)
@pytest.mark.parametrize("to", ["browsecomp-plus", "cells"])
def test_a_damaged_line_is_named_by_file_and_row(tiny_index, run_of, tmp_path, change, needed, to):
    folder = run_of(ProgramAgent(KeywordPolicy(), tiny_index), labels=False)
    damage(folder, change)
    with pytest.raises(DataError, match=needed) as caught:
        export(folder, to, tmp_path)
    assert caught.value.where.startswith(f"{folder / 'decisions.jsonl'}:1")


def test_a_folder_that_cannot_be_written_is_an_error(tiny_index, run_of, tmp_path):
    folder = run_of()
    (tmp_path / "file").write_text("in the way")
    for to in ("browsecomp-plus", "cells", "trec"):
        with pytest.raises(DataError, match="can be written"):
            export(folder, to, tmp_path / "file")


def test_an_export_reads_a_run_of_elsewhere(shared_data, tmp_path):
    from searchops.trajectories import react_run, read_react

    log = shared_data("agent_traces") / "reflexion_hotpotqa_ReAct_base_100_questions_5_trials.txt"
    collection = so.load(shared_data("hotpotqa"))
    react_run([told for told in read_react(log) if told.trial == 1], collection, tmp_path / "run")
    files = export(tmp_path / "run", "browsecomp-plus")
    assert len(files) == 100
    found = [evaluated(file, ["x"]) for file in files]
    searches = Run.open(tmp_path / "run").events["kind"].eq("retrieve").sum()
    assert sum(item["calls"].get("Search", 0) for item in found) == searches == 260
    assert sum(item["completed"] for item in found) == 90  # 34 right and 56 wrong answers
