"""A pipeline file run over half of the questions: settings are chosen on one half, reported on the other."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from searchops import cli
from searchops.datasets import load
from searchops.errors import DataError, SpecError
from searchops.experiments.running import run_spec
from searchops.records import read_meta
from searchops.spec import read_spec

N_TASKS = 7
PIPELINE = """\
pipeline:
  - retrieve: 2
  - extract: {scorer: lexical, k: 1}
measures: [RR, Retrieved, Delivered, DeliveredCharacters]
"""


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def data(tmp_path):
    """Seven questions; the even ones can be answered by the sentence that shares their words."""
    folder = tmp_path / "data"
    folder.mkdir()
    texts = {f"d{n}": f"Town number{n} has a harbour. Its mayor is name{n}." for n in range(N_TASKS)}
    asked = {f"q{n}": f"mayor name{n}" if n % 2 == 0 else f"harbour town number{n}" for n in range(N_TASKS)}
    write_lines(folder / "corpus.jsonl", [{"docno": docno, "text": text} for docno, text in texts.items()])
    write_lines(folder / "topics.jsonl", [{"qid": qid, "query": query} for qid, query in asked.items()])
    (folder / "qrels.txt").write_text("".join(f"q{n} 0 d{n} 1\n" for n in range(N_TASKS)))
    labels = []
    for n, text in enumerate(texts.values()):
        quote = f"Its mayor is name{n}."
        start = text.index(quote)
        labels.append({"qid": f"q{n}", "docno": f"d{n}", "start": start, "end": start + len(quote), "text": quote})
    write_lines(folder / "evidence.jsonl", labels)
    return folder


@pytest.fixture
def file(data, tmp_path, monkeypatch):
    monkeypatch.setenv("SEARCHOPS_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "p.yaml"
    file.write_text(f"version: 1\ncollection: {json.dumps(str(data))}\nindex: lucene\n{PIPELINE}", encoding="utf-8")
    return file


def values(result):
    return {(row.qid, row.measure): row.value for row in result.values.itertuples()}


def test_the_halves_have_the_values_of_the_whole_run_and_share_no_question(file, tmp_path):
    spec = read_spec(file)
    whole = values(run_spec(spec, tmp_path / "whole"))
    halves = [values(run_spec(spec, tmp_path / f"half{half}", half=half)) for half in (1, 2)]
    assert not halves[0].keys() & halves[1].keys()
    assert halves[0] | halves[1] == whole
    assert {whole[f"q{n}", "Delivered"] for n in range(0, N_TASKS, 2)} == {1.0}
    assert {whole[f"q{n}", "Delivered"] for n in range(1, N_TASKS, 2)} == {0.0}


@pytest.mark.parametrize("half", [1, 2])
def test_a_half_is_the_collections_own_half_at_seed_0(half, file, data, tmp_path):
    result = run_spec(read_spec(file), tmp_path / "out", half=half)
    expected = set(load(data).halves(seed=0)[half - 1].topics["qid"])
    assert set(result.values["qid"]) == expected
    assert len(expected) == {1: 4, 2: 3}[half]
    topics = [json.loads(line) for line in (tmp_path / "out" / "topics.jsonl").read_text().splitlines()]
    labels = [json.loads(line) for line in (tmp_path / "out" / "evidence.jsonl").read_text().splitlines()]
    assert {row["qid"] for row in topics} == {row["qid"] for row in labels} == expected


def test_the_same_half_goes_on_and_another_is_refused(file, tmp_path):
    spec, out = read_spec(file), tmp_path / "out"
    run_spec(spec, out, half=2)
    assert read_meta(out)["half"] == 2
    assert run_spec(spec, out, half=2).reused
    for other in (1, None):
        with pytest.raises(DataError, match="topics_hash, half"):
            run_spec(spec, out, half=other)
    assert read_meta(out)["half"] == 2


def test_both_halves_search_one_index(file, tmp_path):
    for half in (1, 2):
        run_spec(read_spec(file), tmp_path / f"half{half}", half=half)
    assert len(list((tmp_path / "cache" / "indexes").glob("lucene-*"))) == 1


@pytest.mark.parametrize("half", [0, 3, -1])
def test_there_are_two_halves(half, file, tmp_path):
    with pytest.raises(SpecError, match="half must be 1 or 2"):
        run_spec(read_spec(file), tmp_path / "out", half=half)
    assert not (tmp_path / "out").exists()


def test_one_question_has_no_halves(file, data, tmp_path):
    write_lines(data / "topics.jsonl", [{"qid": "q0", "query": "mayor"}])
    with pytest.raises(DataError, match="two questions or more are needed for halves"):
        run_spec(read_spec(file), tmp_path / "out", half=1)


def test_the_command_line_takes_a_half(file, tmp_path, monkeypatch, capsys):
    out: Path = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["searchops", "run", str(file), "--half", "2", "--out", str(out), "--json"])
    with pytest.raises(SystemExit) as done:
        cli.main()
    assert done.value.code == 0
    told = json.loads(capsys.readouterr().out)
    assert {row["measure"]: row["tasks"] for row in told["means"]}["Delivered"] == 3
    assert read_meta(out)["half"] == 2


def test_a_half_that_is_none_is_a_wrong_argument(file, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["searchops", "run", str(file), "--half", "3"])
    with pytest.raises(SystemExit) as done:
        cli.main()
    assert done.value.code == 2
    told = capsys.readouterr().err
    assert "'--half'" in told
    assert len(told.splitlines()) == 1
