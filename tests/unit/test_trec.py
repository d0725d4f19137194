"""TREC files: what is read, what is refused with its line, and what cannot be written."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from searchops.errors import DataError, FrameError
from searchops.trec import read_qrels, read_run, read_topics, write_qrels, write_run


def _file(folder: Path, text: str | bytes) -> Path:
    path = folder / "file.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_run_is_ranked_by_score_with_ties_by_docno_descending(tmp_path: Path) -> None:
    path = _file(tmp_path, "2 Q0 a 1 0.5 t\n1 Q0 b 1 1 t\n2 Q0 c 9 0.5 t\n2 Q0 b 2 7e-1 t\n")
    assert read_run(path).to_dict("records") == [
        {"qid": "2", "docno": "b", "rank": 0, "score": 0.7, "name": "t"},
        {"qid": "2", "docno": "c", "rank": 1, "score": 0.5, "name": "t"},
        {"qid": "2", "docno": "a", "rank": 2, "score": 0.5, "name": "t"},
        {"qid": "1", "docno": "b", "rank": 0, "score": 1.0, "name": "t"},
    ]


def test_comments_blank_lines_tabs_and_words_after_the_tag_are_taken_as_trec_eval_takes_them(
    tmp_path: Path,
) -> None:
    text = "\ufeff# head\n\n  \t\n1\tQ0\td#1  1  0.5\tt more words\r\n   # inner 1 2 3 4 5\n"
    text += "1 Q0 ä\u00a0b 2 0.25 t"
    assert read_run(_file(tmp_path, text))["docno"].tolist() == ["d#1", "ä\u00a0b"]


def test_an_empty_run_has_the_promised_columns(tmp_path: Path) -> None:
    path = _file(tmp_path, "# nothing\n")
    assert list(read_run(path).columns) == ["qid", "docno", "rank", "score", "name"]
    assert read_run(path).empty
    assert list(read_qrels(path).columns) == ["qid", "docno", "label"]
    write_run(read_run(path), path)
    assert path.read_text() == ""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 Q0 d 1 0.5", "six fields (qid Q0 docno rank score tag) are needed; found '1 Q0 d 1 0.5'"),
        ("1 Q0 a b one 0.5 t", "a score that is a number is needed; found 'one'"),
        ("1 Q0 d 1 high t", "a score that is a number is needed; found 'high'"),
        ("1 Q0 d 1 nan t", "a score that is a number is needed; found 'nan'"),
        ("1 Q0 d 1 1_0 t", "a score that is a number is needed; found '1_0'"),
        ("1 Q0 x 2 0.5 t", "docno 'x' for qid '1' again (first in line 1)"),
        (b"1 Q0 \xff 1 0.5 t", "UTF-8 is needed"),
        ("x" * 200, "found 'xxx"),
    ],
)
def test_a_malformed_run_line_is_refused_with_file_and_line(line: str | bytes, message: str, tmp_path: Path) -> None:
    raw = line.encode() if isinstance(line, str) else line
    path = _file(tmp_path, b"1 Q0 x 1 0.5 t\n\n" + raw + b"\n")
    with pytest.raises(DataError) as caught:
        read_run(path)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert message in str(caught.value)
    assert len(caught.value.found) < 120


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 0 d", "four fields (qid 0 docno label) are needed; found '1 0 d'"),
        ("1 0 a d 1", "four fields"),
        ("1 0 d 1.0", "a label that is a whole number is needed; found '1.0'"),
        ("1 0 x 0", "docno 'x' for qid '1' again (first in line 1)"),
    ],
)
def test_a_malformed_qrels_line_is_refused_with_file_and_line(line: str, message: str, tmp_path: Path) -> None:
    path = _file(tmp_path, f"1 0 x 1\n{line}\n")
    with pytest.raises(DataError) as caught:
        read_qrels(path)
    assert str(caught.value).startswith(f"{path}:2: ")
    assert message in str(caught.value)


def test_labels_may_be_negative(tmp_path: Path) -> None:
    assert read_qrels(_file(tmp_path, "1 0 d -1\n1 0 e +2\n"))["label"].tolist() == [-1, 2]


@pytest.mark.parametrize("read", [read_run, read_qrels, read_topics])
def test_a_file_that_is_not_there_is_a_data_error(read: object, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a file that can be read is needed"):
        read(tmp_path / "none.txt")  # type: ignore[operator]


def test_a_run_is_written_in_rank_order_with_exact_scores(tmp_path: Path) -> None:
    frame = pd.DataFrame({"qid": [2, 1, 2], "docno": ["a", "b", "c"], "score": [0.1 + 0.2, 1, 0.30000000000000004]})
    path = tmp_path / "run.txt"
    write_run(frame, path, name="mine")
    assert path.read_text() == (
        "2 Q0 c 0 0.30000000000000004 mine\n2 Q0 a 1 0.30000000000000004 mine\n1 Q0 b 0 1.0 mine\n"
    )


@pytest.mark.parametrize(
    ("frame", "name", "message"),
    [
        ({"qid": ["1"], "docno": ["a b"], "score": [1.0]}, "t", "a docno without white space"),
        ({"qid": ["1"], "docno": ["a\u00a0b"], "score": [1.0]}, "t", "a docno without white space"),
        ({"qid": ["1"], "docno": [""], "score": [1.0]}, "t", "a docno without white space"),
        ({"qid": ["#1"], "docno": ["a"], "score": [1.0]}, "t", "no qid that starts a comment"),
        ({"qid": ["1"], "docno": ["a"], "score": [1.0]}, "my run", "a run name without white space"),
        ({"qid": ["1", "1"], "docno": ["a", "a"], "score": [1.0, 2.0]}, "t", "docno 'a' twice for qid '1'"),
    ],
)
def test_what_cannot_stand_in_a_run_is_refused_and_no_file_is_left(
    frame: dict[str, list[object]], name: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        write_run(pd.DataFrame(frame), tmp_path / "run.txt", name)
    assert not (tmp_path / "run.txt").exists()


def test_a_run_without_scores_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FrameError, match="a score that is a number"):
        write_run(pd.DataFrame({"qid": ["1"], "docno": ["a"]}), tmp_path / "run.txt")


def test_qrels_are_written_in_the_frames_order(tmp_path: Path) -> None:
    frame = pd.DataFrame({"qid": ["2", "1"], "docno": ["a#b", "c"], "label": [1, -1]})
    write_qrels(frame, tmp_path / "q")
    assert (tmp_path / "q").read_text() == "2 0 a#b 1\n1 0 c -1\n"
    with pytest.raises(DataError, match="a docno without white space"):
        write_qrels(frame.assign(docno="a b"), tmp_path / "q")


def test_topics_are_read_from_tab_separated_lines(tmp_path: Path) -> None:
    frame = read_topics(_file(tmp_path, "1\twhat is it ?\r\n\nq 2\ta\tb\n#3\tc\n"))
    assert frame.to_dict("records") == [
        {"qid": "1", "query": "what is it ?"},
        {"qid": "q 2", "query": "a\tb"},
        {"qid": "#3", "query": "c"},
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2 no tab", "a line 'qid TAB query' is needed; found '2 no tab'"),
        ("2\t ", "a line 'qid TAB query'"),
        ("\tquery", "a line 'qid TAB query'"),
        ("1\tagain", "qid '1' again (first in line 1)"),
    ],
)
def test_a_malformed_topic_line_is_refused_with_file_and_line(line: str, message: str, tmp_path: Path) -> None:
    path = _file(tmp_path, f"1\tx\n{line}\n")
    with pytest.raises(DataError) as caught:
        read_topics(path)
    assert str(caught.value).startswith(f"{path}:2: ")
    assert message in str(caught.value)


TOP = """
<top>
<num> Number: 301
<title> International
  Organized Crime

<desc> Description:
Identify organizations.
<narr> Narrative:
A relevant document must.
</top>

<TOP><NUM>302</NUM><TITLE>Topic: Polio</TITLE><desc>Is it gone?</desc></TOP>
"""


def test_topics_are_read_from_trec_entries_with_and_without_closing_tags(tmp_path: Path) -> None:
    frame = read_topics(_file(tmp_path, TOP))
    assert frame[["qid", "query", "desc"]].to_dict("records") == [
        {"qid": "301", "query": "International Organized Crime", "desc": "Identify organizations."},
        {"qid": "302", "query": "Polio", "desc": "Is it gone?"},
    ]
    assert frame["narr"][0] == "A relevant document must."
    assert read_topics(_file(tmp_path, TOP), field="desc")["query"].tolist() == [
        "Identify organizations.",
        "Is it gone?",
    ]


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        (TOP, "narr", ":13: a topic with <num> and <narr> is needed"),
        ("<top>\n<num> 1\n<title> a\n</top>\n<top>\n<title> b\n</top>", "title", ":5: a topic with <num>"),
        ("<top><num>1<title>a</top>\n<top><num>1<title>b</top>", "title", ":2: every entry once"),
        (TOP, "head", "a field that is title, desc or narr is needed; found 'head'"),
    ],
)
def test_a_malformed_trec_topic_is_refused_with_its_line(text: str, field: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_topics(_file(tmp_path, text), field=field)
    assert message in str(caught.value)
