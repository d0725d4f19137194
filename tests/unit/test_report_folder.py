"""The HTML report of a run's folder: what it reads, where it writes, what it refuses."""

from __future__ import annotations

import json

import pytest

from searchops import recorder
from searchops.errors import DataError
from searchops.report import write_report
from tests.report_pages import EVIDENCE, Page, note_two_tasks


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "run"
    with recorder.record(path, collection="songs") as run:
        note_two_tasks(run)
    lines = [json.dumps(row) for row in EVIDENCE.to_dict("records")]
    (path / "evidence.jsonl").write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    (path / "topics.jsonl").write_text('{"qid": 1, "query": "sep\u2028arated", "answer": null}\n', encoding="utf-8")
    rows = [["1", "AP", 0.5], ["2", "AP", None]]
    (path / "measures.json").write_text(json.dumps({"per_query": rows}), encoding="utf-8")
    return path


def test_a_runs_folder_becomes_one_file_beside_its_record(folder):
    target = write_report(folder)
    assert target == folder / "report.html"
    page = Page(target.read_text(encoding="utf-8"))
    assert page.table("measure", "mean")[0] == ["AP", "0.500", "–", "1", "1"]
    assert "sep" in page.table("qid", "query")[0][1]
    assert "What is missing here" not in page.words
    assert [file.name for file in folder.iterdir() if file.suffix == ".part"] == []


def test_the_report_goes_where_it_is_asked_to_and_twice_it_is_the_same(folder, tmp_path):
    first = write_report(folder, tmp_path / "new" / "a.html").read_bytes()
    assert first == write_report(folder, tmp_path / "b.html").read_bytes()


@pytest.mark.parametrize("rows", [
    [{"name": "pipeline", "qid": "1", "measure": "AP", "value": 0.5}, {"qid": "2", "measure": "AP", "value": None}],
    {"per_query": [["pipeline", "1", "AP", 0.5], ["0", "2", "AP", None]]},
])  # fmt: skip
def test_measures_may_name_their_pipelines(folder, rows):
    (folder / "measures.json").write_text(json.dumps(rows), encoding="utf-8")
    page = Page(write_report(folder).read_text(encoding="utf-8"))
    assert page.table("measure", "mean")[0] == ["AP", "0.500", "–", "1", "1"]


@pytest.mark.parametrize(("name", "text"), [
    ("measures.json", "{"), ("measures.json", '{"other": []}'), ("measures.json", '[["1", "AP"]]'),
    ("evidence.jsonl", '{"qid": "1"\n'), ("topics.jsonl", "[1]\n"),
])  # fmt: skip
def test_a_damaged_file_is_named_in_the_error(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        write_report(folder)
    assert name in caught.value.where


def test_a_file_that_is_not_utf8_is_named_in_the_error(folder):
    (folder / "topics.jsonl").write_bytes(b'{"qid": "\xff"}')
    with pytest.raises(DataError, match=r"topics\.jsonl.*UTF-8"):
        write_report(folder)


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"run\.json"):
        write_report(tmp_path)


def test_a_place_that_cannot_be_written_is_an_error_of_that_place(folder, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="can be written"):
        write_report(folder, tmp_path / "file" / "report.html")


def test_values_without_a_name_belong_to_none_of_several_pipelines(folder):
    meta = json.loads((folder / "run.json").read_text())
    meta["pipelines"]["Never() >> Ran()"] = 1
    (folder / "run.json").write_text(json.dumps(meta))
    page = Page(write_report(folder).read_text(encoding="utf-8"))
    assert "2 values of measures: not said of which pipeline" in page.words
    assert "AP" not in [row[0] for row in page.table("measure", "mean")]


def test_a_pipeline_that_recorded_nothing_says_that_no_stage_ran(folder):
    meta = json.loads((folder / "run.json").read_text())
    meta["pipelines"]["Never() >> Ran()"] = 1
    (folder / "run.json").write_text(json.dumps(meta))
    page = Page(write_report(folder).read_text(encoding="utf-8"))
    assert "Never() >> Ran() No stage of this pipeline ran to its end" in page.words
