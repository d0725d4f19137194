"""The HTML report under hostile and oversized text: nothing in it can act, and it stays within its size."""

from __future__ import annotations

import base64
import hashlib
import re

import pandas as pd
import pytest

from searchops import recorder
from searchops.report import render
from tests.report_pages import EVIDENCE, MEASURES, TOPICS, Page, note_task, recorded_songs


@pytest.fixture
def run():
    return recorded_songs()


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
    policy = next(attrs["content"] for tag, attrs in page.tags if "http-equiv" in attrs)
    digest = base64.b64encode(hashlib.sha256(page.scripts[0].encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy
    assert "http://" not in html
    assert "https://" not in html
    assert "url(" not in html.replace("url(#hatch)", "")


def test_no_id_stands_twice_and_every_header_cell_has_a_scope(run):
    page = Page(render(run, EVIDENCE, TOPICS, MEASURES))
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
