"""The HTML report: what it says of a run whose numbers are known by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from searchops import recorder, stats
from searchops.errors import FrameError
from searchops.report import render
from searchops.report.intervals import SEED, intervals
from tests.report_pages import EVIDENCE, MEASURES, STAGES, TOPICS, Page, note_task, note_two_tasks, recorded_songs


@pytest.fixture
def run():
    return recorded_songs()


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
    assert " ".join(ways[0][1][0].split()) == "sung by A a:0-10 · delivered"
    assert [cell.strip() for cell in ways[0][4]] == ["1", "0", "lost, scored 3 of 3"]
    assert " ".join(ways[0][3][0].split()) == "third of b b:20-30 · lost at extract k=2"
    assert [cell.strip() for cell in ways[1][2]] == ["1", "lost", "–"]
    assert [cell.strip() for cell in ways[1][4]] == ["–", "–", "–"]
    assert " ".join(ways[1][3][0].split()) == "z has it z:0-5 · not retrieved"


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
    second = next(row for row in page.table("qid", "query") if row[0] == "2")
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
    assert words in page.words
    assert "ValueError: <no> luck" in page.words
    assert page.words.index(words) < page.words.index("Collection")


def test_a_finished_run_has_no_banner(page):
    assert not [attrs for _, attrs in page.tags if attrs.get("role") == "alert"]


def test_the_header_says_what_was_run_with_which_versions_and_settings(page):
    for words in ("Collection songs", "First() >> Rerank() >> Extract()", "2 tasks, 4 evidence labels",
                  "pandas", "version: 1", '"rng": 7', "Status finished"):  # fmt: skip
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
