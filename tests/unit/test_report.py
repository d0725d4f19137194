"""The HTML report: what it says of a run whose numbers are known by hand, and that nothing in it can act."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from searchops import recorder, stats
from searchops.errors import DataError, FrameError
from searchops.recorder import ScoredPassage, config_hash
from searchops.records import Event
from searchops.report import render, write_report
from searchops.report.intervals import SEED, intervals

STAGES = ("retrieve k=3", "rerank k=2", "extract k=2")
VOID = {"meta", "input", "br", "rect"}


class Page(HTMLParser):
    """A page's elements, the text of its tables and of all the rest."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.inside: list[int] = []
        self.raw = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.put(" " if tag not in ("bdi", "a") else "")
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.raw = tag
        if tag == "script":
            self.scripts.append("")
        if tag == "table":
            self.tables.append([])
            self.inside.append(len(self.tables) - 1)
        if tag == "tr" and self.inside:
            self.tables[self.inside[-1]].append([])
        if tag in ("td", "th"):
            self.tables[self.inside[-1]][-1].append("")

    def handle_endtag(self, tag):
        if tag == self.raw:
            self.raw = ""
        if tag == "table":
            self.inside.pop()

    def handle_data(self, data):
        if self.raw == "script":
            self.scripts[-1] += data
        elif not self.raw:
            self.put(data)

    def put(self, data):
        if not self.raw:
            self.text.append(data)
            if self.inside and self.tables[self.inside[-1]] and self.tables[self.inside[-1]][-1]:
                self.tables[self.inside[-1]][-1][-1] += data

    @property
    def words(self) -> str:
        return " ".join("".join(self.text).split())

    def table(self, *head: str) -> list[list[str]]:
        """Rows of the first table whose first header cells are these."""
        for rows in self.tables:
            if rows and [cell.strip() for cell in rows[0][: len(head)]] == list(head):
                return [[" ".join(cell.split()) for cell in row] for row in rows[1:]]
        raise AssertionError(f"no table headed {head} among {[rows[0] for rows in self.tables if rows]}")

    def has_table(self, *head: str) -> bool:
        return any(rows and [cell.strip() for cell in rows[0][: len(head)]] == list(head) for rows in self.tables)


def note_task(run, qid, query, retrieved, reranked, scored, kept, *, pipeline=0, error=None):
    """Three stages of one task, as a pipeline would have noted them."""
    def event(place, label, parent, n_in, n_out, failed=None):
        name = f"{label.title()}()"
        return Event(qid, query, pipeline, str(place), label, label.split()[0], name, config_hash(name), parent,
                     n_in, n_out, 0.001, error=failed)  # fmt: skip

    def documents(docnos):
        return [{"docno": d, "rank": rank, "score": -float(rank)} for rank, d in enumerate(docnos)]

    first = run.add(event(0, STAGES[0], -1, 1, len(retrieved)), documents(retrieved))
    if error:
        run.add(event(1, STAGES[1], first, len(retrieved), 0, error), [])
        return
    second = run.add(event(1, STAGES[1], first, len(retrieved), len(reranked)), documents(reranked))
    rows = [{"docno": d, "passage_id": f"{d}%p{n}", "start": 10 * n, "end": 10 * n + 10, "rank": rank, "score": 1.0}
            for rank, (d, n) in enumerate(kept)]  # fmt: skip
    passages = [ScoredPassage(d, n, 10 * n, 10 * n + 10, score) for d, n, score in scored]
    run.add(event(2, STAGES[2], second, len(reranked), len(rows)), rows, scored=passages)


def note_two_tasks(run, pipeline=0):
    """Task 1: one label delivered, one lost at extract. Task 2: one lost at rerank, one never retrieved."""
    run.pipeline_number(["First() >> Rerank() >> Extract()", "Second() >> Rerank() >> Extract()"][pipeline])
    note_task(run, "1", "who sang it", ["a", "b", "c"], ["b", "a"],
              [("a", 0, 0.9), ("a", 1, 0.2), ("b", 0, 0.5), ("b", 1, 0.8), ("b", 2, 0.1)],
              [("b", 1), ("a", 0)], pipeline=pipeline)  # fmt: skip
    note_task(run, "2", "who wrote it", ["a", "d", "e"], ["a", "e"],
              [("a", 0, 0.9), ("e", 0, 0.9)], [("a", 0), ("e", 0)], pipeline=pipeline)  # fmt: skip


EVIDENCE = pd.DataFrame(
    [("1", "a", 0, 10, "sung by A"), ("1", "b", 20, 30, "third of b"),
     ("2", "d", 0, 10, "d has it"), ("2", "z", 0, 5, "z has it")],
    columns=["qid", "docno", "start", "end", "text"],
)  # fmt: skip
TOPICS = pd.DataFrame({"qid": ["1", "2"], "query": ["who sang it?", "who wrote it?"], "answer": ["Ann", "Bob"]})
MEASURES = pd.DataFrame(
    [("1", "nDCG@10", 0.5), ("2", "nDCG@10", 1.0), ("1", "AP", 0.25), ("2", "AP", None), ("1", "Delivered", 0.5),
     ("2", "Delivered", 0.0)], columns=["qid", "measure", "value"],
)  # fmt: skip


@pytest.fixture
def run():
    with recorder.record(None, collection="songs", spec="version: 1", seeds={"rng": 7}) as run:
        note_two_tasks(run)
    return run.run()


@pytest.fixture
def page(run):
    return Page(render(run, EVIDENCE, TOPICS, MEASURES))


def test_the_funnel_tells_rows_and_labels_in_and_out_and_lost_at_each_stage(page):
    rows = page.table("stage", "tasks", "rows in", "rows out", "ms", "labels in")
    assert [[row[0], row[2], row[3], *row[5:]] for row in rows] == [
        ["retrieve k=3", "1.0", "3.0", "4", "3", "1"],
        ["rerank k=2", "3.0", "2.0", "3", "2", "1"],
        ["extract k=2", "2.0", "2.0", "2", "1", "1"],
    ]


def test_the_pictures_say_the_same_numbers_to_those_who_do_not_see_them(page):
    told = [attrs["aria-label"] for tag, attrs in page.tags if tag == "svg" and attrs.get("role") == "img"]
    assert told[0].startswith("Funnel. 1. retrieve k=3: 4 → 3 labels, 1 → 3 rows a task; 2. rerank k=2: 3 → 2 labels")
    assert told[1] == "Losses by stage (labels). not retrieved: 1; rerank k=2: 1; extract k=2: 1"
    assert told[2] == "Tasks by delivery (tasks). none delivered: 1; some delivered: 1; all delivered: 0"


def test_a_query_row_counts_its_labels_and_names_the_stages_that_lost_them(page):
    first, second = [row for row in page.table("qid", "query") if len(row) > 5]
    assert [first[0], *first[2:]] == ["1", "2", "2", "2", "1", "extract k=2", "0.500", "0.250"]
    assert [second[0], *second[2:]] == ["2", "2", "1", "0", "0", "rerank k=2, not retrieved", "1.000", "–"]
    assert first[1].startswith("who sang it? Answer: Ann")


def test_a_label_is_followed_through_the_stages_with_its_ranks_and_its_place_among_the_scored(page):
    ways = [rows for rows in page.tables if [cell.strip() for cell in rows[0]] == list(STAGES)]
    assert [cell.strip() for cell in ways[0][2]] == ["0", "1", "1"]
    assert ways[0][1][0].split() == "sung by A a:0-10 · delivered".split()
    assert [cell.strip() for cell in ways[0][4]] == ["1", "0", "lost, scored 3 of 3"]
    assert ways[0][3][0].split() == "third of b b:20-30 · lost at extract k=2".split()
    assert [cell.strip() for cell in ways[1][2]] == ["1", "lost", "–"]
    assert [cell.strip() for cell in ways[1][4]] == ["–", "–", "–"]
    assert ways[1][3][0].split() == "z has it z:0-5 · not retrieved".split()


def test_measures_show_mean_interval_tasks_and_tasks_without_a_value(page):
    rows = {row[0]: row[1:] for row in page.table("measure", "mean")}
    low, high = stats.mean_interval([0.5, 1.0], np.random.default_rng(SEED))[1:3]
    assert rows["nDCG@10"] == ["0.750", f"[{low:.3f}, {high:.3f}]", "2", "0"]
    # One task alone has no spread: an interval of no width would claim certainty.
    assert rows["AP"] == ["0.250", "–", "1", "1"]


def test_many_intervals_at_once_are_those_of_mean_interval_one_by_one():
    rng = np.random.default_rng(5)
    values = {name: rng.random(30) for name in "abc"}
    values["b"][:7] = np.nan
    values["d"] = np.full(30, np.nan)
    found = intervals(values)
    for name in "abc":
        assert found[name] == pytest.approx(stats.mean_interval(values[name], np.random.default_rng(SEED)))
    assert found["d"].tasks == 0
    assert np.isnan(found["d"].mean)


def test_without_measures_the_evidence_measures_come_from_the_record_and_the_page_says_so(run):
    page = Page(render(run, EVIDENCE, TOPICS, None))
    rows = {row[0]: row[1] for row in page.table("measure", "mean")}
    assert (rows["Retrieved"], rows["Available"], rows["Delivered"]) == ("0.750", "0.500", "0.250")
    assert "computed from the record" in page.words


def test_without_evidence_and_topics_rows_remain_and_the_page_says_what_is_not_known(run):
    page = Page(render(run, None, None, None))
    assert [row[:3] for row in page.table("qid", "query", "rows out")] == [
        ["1", "who sang it", "2"], ["2", "who wrote it", "2"]]  # fmt: skip
    assert page.table("stage", "tasks", "rows in", "rows out", "ms")
    assert not page.has_table("measure", "mean")
    for words in ("No evidence labels", "No topics", "nothing was measured"):
        assert words in page.words


def test_labels_of_other_tasks_only_are_said_to_be_so(run):
    page = Page(render(run, EVIDENCE.assign(qid="9"), TOPICS, MEASURES))
    assert "None of the evidence labels belongs to a task of this run" in page.words


def test_a_task_without_labels_shows_dashes_and_not_zeros(run):
    page = Page(render(run, EVIDENCE[EVIDENCE["qid"] == "1"], TOPICS, MEASURES))
    second = [row for row in page.table("qid", "query") if row[0] == "2"][0]
    assert second[2:7] == ["–", "–", "–", "–", ""]
    assert "1 task without labels left out" in page.words


def test_when_all_arrives_the_page_says_that_no_label_was_lost(run):
    assert "No label was lost" in Page(render(run, EVIDENCE[:1], TOPICS, MEASURES)).words


def test_document_labels_work_like_spans(run):
    page = Page(render(run, pd.DataFrame({"qid": ["1", "2"], "docno": ["c", "a"]}), TOPICS, None))
    first, second = [row for row in page.table("qid", "query") if len(row) > 5]
    assert (first[6], second[5]) == ("rerank k=2", "1")


def test_labels_of_an_unknown_shape_are_an_error_and_no_empty_page(run):
    with pytest.raises(FrameError, match="evidence labels need"):
        render(run, pd.DataFrame({"wrong": [1]}), TOPICS, MEASURES)


def test_a_part_of_a_label_is_told_as_a_share(run):
    wide = pd.DataFrame({"qid": ["1"], "docno": ["a"], "start": [0], "end": [20], "text": ["two passages"]})
    page = Page(render(run, wide, TOPICS, None))
    # Extract kept the first of the two passages: half of the span, too little to count as delivered.
    assert page.table(*STAGES)[1] == ["0", "1", "lost, 50% kept, scored 1 of 2"]
    run.meta["overlap"] = 0.5
    assert Page(render(run, wide, TOPICS, None)).table(*STAGES)[1] == ["0", "1", "1 (50% of it)"]


@pytest.mark.parametrize(("status", "words"), [
    ("failed", "This run failed"), ("interrupted", "This run was interrupted"),
    ("running", "has not finished"), ("odd", "How this run ended is not known (status: odd)"),
])  # fmt: skip
def test_a_run_that_did_not_finish_says_so_on_top_with_its_error(run, status, words):
    run.meta.update(status=status, error="ValueError: <no> luck")
    page = Page(render(run, EVIDENCE, TOPICS, MEASURES))
    banner = page.words.split("searchops report")[2]
    assert words in page.words
    assert "ValueError: <no> luck" in page.words
    assert page.words.index(words) < page.words.index("Collection")
    assert banner


def test_a_finished_run_has_no_banner(page):
    assert not [attrs for _, attrs in page.tags if attrs.get("role") == "alert"]


def test_the_header_says_what_was_run_with_which_versions_and_settings(page):
    for words in ("Collection songs", "retrieve k=3 >> rerank k=2 >> extract k=2", "2 tasks, 4 evidence labels", "pandas",
                  "version: 1", '"rng": 7', "Status finished"):  # fmt: skip
        assert words in page.words


def test_errors_of_stages_are_listed_with_their_tasks():
    with recorder.record(None) as run:
        note_task(run, "1", "q", ["a"], [], [], [], error="ToolError: the reranker is <gone>")
        for n in range(60):
            note_task(run, f"x{n}", "q", ["a"], [], [], [], error="again")
    page = Page(render(run.run(), EVIDENCE, None, None))
    assert "Errors of stages: 61" in page.words
    assert "11 more errors not shown" in page.words
    assert page.table("qid", "stage", "error")[0] == ["1", "rerank k=2", "ToolError: the reranker is <gone>"]


def test_several_pipelines_are_compared_with_paired_differences_and_have_a_section_each():
    with recorder.record(None, names={"0": "first", "1": "second"}) as run:
        note_two_tasks(run, 0)
        note_two_tasks(run, 1)
    values = [(name, qid, "nDCG@10", value + place / 10)
              for place, name in enumerate(["first", "second"]) for qid, value in (("1", 0.5), ("2", 0.7))]  # fmt: skip
    values.append(("stranger", "1", "nDCG@10", 0.0))
    measures = pd.DataFrame(values, columns=["name", "qid", "measure", "value"])
    page = Page(render(run.run(), EVIDENCE, TOPICS, measures))
    row = page.table("measure", "first", "second")[0]
    low, high = stats.mean_interval([0.5, 0.7], np.random.default_rng(SEED))[1:3]
    assert row[1] == f"0.600 [{low:.3f}, {high:.3f}]"
    assert row[2].endswith("Δ +0.100 [0.100, 0.100] ★")
    assert [attrs["id"] for tag, attrs in page.tags if tag == "section" and "id" in attrs] == ["p0", "p1"]
    assert [attrs["href"] for tag, attrs in page.tags if tag == "a"][:3] == ["#main", "#p0", "#p1"]
    assert "Measures of 'stranger': no recorded pipeline has that name" in page.words


def test_more_than_four_pipelines_stand_below_each_other_and_past_sixteen_the_page_says_so():
    with recorder.record(None) as run:
        for number in range(18):
            run.pipeline_number(f"P{number}()")
            note_task(run, "1", "q", ["a"], ["a"], [("a", 0, 1.0)], [("a", 0)], pipeline=number)
    page = Page(render(run.run(), EVIDENCE, TOPICS, None))
    rows = page.table("pipeline", "Retrieved")
    assert [row[0] for row in rows][:2] == ["pipeline 0", "pipeline 1"]
    assert len(rows) == 16
    assert "2 of 18 pipelines have no section here" in page.words


def test_a_run_without_events_still_makes_a_page():
    with recorder.record(None) as run:
        pass
    page = Page(render(run.run(), EVIDENCE, TOPICS, None))
    assert "The record holds no stage events" in page.words
    assert "0 tasks of 2 topics" in page.words


HOSTILE = ["<script>alert(1)</script>", '"]]> --></title></style><img src=x onerror=alert(1)>', "\u202eright to left",
           "NUL\x00 and \x1b[31m", "lone \ud800 surrogate", "</details></table><h1>mine</h1>", "javascript:alert(1)",
           "&lt;b&gt; stays", "' onfocus='x"]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text_wherever_it_stands(text):
    with recorder.record(None, collection=text, names={"0": text, "1": "other"}, spec=text, title=text,
                         seeds={text: text}, error=text) as run:  # fmt: skip
        run.pipeline_number(text.encode("utf-8", "replace").decode())
        for pipeline in (0, 1):
            note_task(run, "1", text.encode("utf-8", "replace").decode(), ["a"], ["a"], [("a", 0, 1.0)], [("a", 0)],
                      pipeline=pipeline)  # fmt: skip
            note_task(run, "2", "q", ["a"], [], [], [], pipeline=pipeline,
                      error=text.encode("utf-8", "replace").decode())  # fmt: skip
    evidence = pd.DataFrame([("1", "a", 0, 10, text), ("1", "n" + text.replace("\ud800", "?"), 0, 10, text)],
                            columns=EVIDENCE.columns, dtype=object)  # fmt: skip
    topics = pd.DataFrame({"qid": ["1"], "query": [text], "answer": [text]}, dtype=object)
    measures = pd.DataFrame([("other", "1", text, 0.5)], columns=["name", *MEASURES.columns], dtype=object)
    html = render(run.run(), evidence, topics, measures)
    html.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", html)
    page = Page(html)
    names = {tag for tag, _ in page.tags}
    assert not names & {"img", "iframe", "link", "object", "form", "base"}
    assert (sum(tag == "script" for tag, _ in page.tags), sum(tag == "h1" for tag, _ in page.tags)) == (1, 1)
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]
    assert not [attrs for _, attrs in page.tags if "src" in attrs or not attrs.get("href", "#").startswith("#")]
    shown = re.sub("[\x00\x1b\ud800]", "\ufffd", text)
    assert page.words.count(" ".join(shown.split())) >= 6


def test_foreign_text_is_isolated_from_the_writing_direction_of_the_rest(run):
    html = render(run, EVIDENCE.assign(text="\u202eabc"), TOPICS.assign(query="\u05d0\u05d1"), MEASURES)
    assert "<bdi>\u202eabc</bdi>" in html
    assert "<bdi>\u05d0\u05d1</bdi>" in html


def test_five_megabytes_of_text_are_clipped_with_a_note(run):
    huge = "x" * 5_000_000
    html = render(run, EVIDENCE.assign(text=huge, docno=huge), TOPICS.assign(query=huge, answer=huge), MEASURES)
    assert len(html) < 100_000
    assert "… [clipped: 5,000,000 characters]" in html


def test_only_the_pages_own_script_and_style_may_run_and_nothing_is_loaded(run):
    html = render(run, EVIDENCE, TOPICS, MEASURES)
    page = Page(html)
    policy = [attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy"][0]
    digest = base64.b64encode(hashlib.sha256(page.scripts[0].encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy
    assert "http://" not in html
    assert "https://" not in html
    assert "url(" not in html.replace("url(#hatch)", "")


def test_no_id_stands_twice_and_every_header_cell_has_a_scope(page):
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert not [attrs for tag, attrs in page.tags if tag == "th" and "scope" not in attrs]


def large_run(tasks, labels):
    with recorder.record(None) as run:
        for n in range(tasks):
            docnos = [f"document-{n}-{i}" for i in range(labels)]
            note_task(run, f"q{n}", f"what is asked {n}? " * 5, docnos, docnos[: n % (labels + 1)],
                      [(d, 0, 1.0) for d in docnos[: n % (labels + 1)]],
                      [(d, 0) for d in docnos[: n % (labels + 1)]])  # fmt: skip
    evidence = pd.DataFrame([(f"q{n}", f"document-{n}-{i}", 0, 10, "some words of a label " * 9)
                             for n in range(tasks) for i in range(labels)], columns=EVIDENCE.columns)  # fmt: skip
    return run.run(), evidence


def test_a_thousand_queries_of_ten_labels_fit_in_two_megabytes_and_the_page_says_what_does_not():
    run, evidence = large_run(1000, 10)
    html = render(run, evidence, None, None)
    assert 1_500_000 < len(html.encode()) <= 2_000_000
    page = Page(html)
    rows = [row for row in page.table("qid", "query") if row[0].startswith("q")]
    assert len(rows) == 1000
    opened = set(re.findall(r"<tr><th scope=.row.><bdi>(q\d+)</bdi><td><details>", html))
    assert 0 < len(opened) < 1000
    assert f"{1000 - len(opened)} queries of 1,000 cannot be opened" in page.words
    lost = {row[0]: int(row[2]) - int(row[5]) for row in rows}
    assert max(n for qid, n in lost.items() if qid not in opened) <= min(lost[qid] for qid in opened)


def test_more_queries_than_there_is_room_for_are_left_out_and_counted():
    run, _ = large_run(5000, 1)
    topics = pd.DataFrame({"qid": [f"q{n}" for n in range(5000)], "query": "é" * 300})
    html = render(run, None, topics, None)
    assert len(html.encode()) <= 2_000_000
    page = Page(html)
    shown = len([row for row in page.table("qid", "query") if row[0].startswith("q")])
    assert f"{5000 - shown:,} queries of 5,000 have no row here" in page.words


def test_a_query_with_very_many_labels_shows_the_first_forty(run):
    many = pd.DataFrame([("1", "a", n, n + 1, "t") for n in range(50)], columns=EVIDENCE.columns)
    assert "10 more labels not shown" in Page(render(run, many, TOPICS, None)).words


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
