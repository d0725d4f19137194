"""Splitters on texts whose passages are plain to see."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from searchops.errors import FrameError
from searchops.splitting import Given, Sentences, Splitter, Words, parse_passage_id, passages


def _cut(text: str, splitter: Splitter | None = None) -> list[str]:
    return [text[start:end] for start, end in (splitter or Sentences()).spans({"docno": "d", "text": text})]


def _stripped(text: str) -> list[str]:
    return [piece.strip() for piece in _cut(text)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Dr. Smith met Mrs. Jones. They left.", ["Dr. Smith met Mrs. Jones.", "They left."]),
        ("See Fig. 3 and vol. 2. Then stop.", ["See Fig. 3 and vol. 2.", "Then stop."]),
        ("The answer is no. He left.", ["The answer is no.", "He left."]),
        ("It ranked No. 1 there. Good.", ["It ranked No. 1 there.", "Good."]),
        ("Fruit, e.g. Apples, and i.e. Pears. Done.", ["Fruit, e.g. Apples, and i.e. Pears.", "Done."]),
        ("J. R. R. Tolkien wrote. P. G. Wodehouse too.", ["J. R. R. Tolkien wrote.", "P. G. Wodehouse too."]),
        ("He was in the U.S. Cavalry then. Yes.", ["He was in the U.S. Cavalry then.", "Yes."]),
        ("He lives in the U.S. The town is small.", ["He lives in the U.S.", "The town is small."]),
        ("It was vitamin D. RESULTS show it.", ["It was vitamin D.", "RESULTS show it."]),
        ("Vitamin A. A. Smith found it.", ["Vitamin A. A. Smith found it."]),
        ("Acme Inc. (a maker) sold. It went.", ["Acme Inc. (a maker) sold.", "It went."]),
        ("Bread, milk, etc. The rest came.", ["Bread, milk, etc.", "The rest came."]),
        ("So am I. Anna knows.", ["So am I.", "Anna knows."]),
        ("Pi is 3.14 or so. Next 2.5 came.", ["Pi is 3.14 or so.", "Next 2.5 came."]),
        ("It was 1999. 25 came.", ["It was 1999.", "25 came."]),
        ('He said "Go." She went.', ['He said "Go."', "She went."]),
        ("He went (slowly.) She ran.", ["He went (slowly.)", "She ran."]),
        ("What?! Really... Yes! ok then.", ["What?!", "Really...", "Yes! ok then."]),
        ("He won.[1][ 2 ] She lost.", ["He won.[1][ 2 ]", "She lost."]),
        ("It ends here.\n1. First. Here.", ["It ends here.", "1. First.", "Here."]),
        ("wing . an experimental study . done .", ["wing .", "an experimental study .", "done ."]),
        ("all lower case. no capitals here. none.", ["all lower case.", "no capitals here.", "none."]),
        ("Rows . . . . . . 12 here", ["Rows . . . . . . 12 here"]),
        ("今日は晴れ。明日は雨\uff01本当\uff1fはい", ["今日は晴れ。", "明日は雨\uff01", "本当\uff1f", "はい"]),
        ("他说「你好。」然后走了。", ["他说「你好。」", "然后走了。"]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, sentences: list[str]) -> None:
    assert _stripped(text) == sentences


def test_blank_lines_list_items_and_short_lines_end_a_sentence_without_a_stop() -> None:
    text = "A heading\n\nFirst words here\nShort Line\n- one thing\n- another\n* starred\n(a) b\n# Title\nend"
    assert _stripped(text) == [
        "A heading",
        "First words here",
        "Short Line",
        "- one thing",
        "- another",
        "* starred",
        "(a) b",
        "# Title\nend",
    ]


def test_hard_wrapped_prose_goes_on_in_the_next_line() -> None:
    first = "This line has some sixty characters and is then wrapped by\n"
    assert _stripped(first + "The Editor for no reason.\nAnother one.") == [
        first + "The Editor for no reason.",
        "Another one.",
    ]
    assert len(_cut("x" * 101 + "\nNext paragraph")) == 2


def test_an_abbreviation_before_a_blank_line_still_ends() -> None:
    assert _stripped("Ask the Dr.\n\nSmith went.") == ["Ask the Dr.", "Smith went."]


def test_windows_of_sentences_overlap_by_size_less_stride_and_keep_the_tail() -> None:
    text = "Aa. Bb. Cc. Dd. Ee."
    assert _cut(text, Sentences(size=2)) == ["Aa. Bb. ", "Cc. Dd. ", "Ee."]
    assert _cut(text, Sentences(size=3, stride=1)) == ["Aa. Bb. Cc. ", "Bb. Cc. Dd. ", "Cc. Dd. Ee."]
    assert _cut(text, Sentences(size=3, stride=3)) == ["Aa. Bb. Cc. ", "Dd. Ee."]
    assert _cut(text, Sentences(size=9)) == [text]


def test_an_overlong_sentence_is_cut_at_white_space_and_only_then_within_a_word() -> None:
    assert _cut("aaaa bbbb cccc", Sentences(max_chars=10)) == ["aaaa bbbb ", "cccc"]
    assert _cut("aaaa bbbb cccc", Sentences(max_chars=9)) == ["aaaa bbbb", " cccc"]
    assert _cut("aaaabbbbcccc", Sentences(max_chars=5)) == ["aaaab", "bbbcc", "cc"]
    assert max(map(len, _cut("word " * 2000))) == 2000


def test_words_keep_the_tail_that_a_sliding_window_would_lose() -> None:
    words = [f"w{i}" for i in range(200)]
    text = " ".join(words)
    assert [piece.split() for piece in _cut(text, Words(size=150))] == [words[:150], words[150:]]
    assert [piece.split() for piece in _cut(text, Words(size=100, stride=60))] == [
        words[:100],
        words[60:160],
        words[120:],
    ]


def test_a_short_text_is_one_window_of_words() -> None:
    assert _cut("  just three words ", Words()) == ["  just three words "]


def test_text_without_white_space_does_not_make_one_endless_word() -> None:
    assert [len(piece) for piece in _cut("字" * 1000, Words(size=4))] == [400, 400, 200]


@pytest.mark.parametrize("splitter", [Sentences(), Sentences(size=3, stride=2), Words(), Given()])
def test_an_empty_text_has_no_passage_and_white_space_has_one(splitter: Splitter) -> None:
    assert splitter.spans({"docno": "d", "text": "", "spans": []}) == []
    assert splitter.spans({"docno": "d", "text": " \n\n ", "spans": []}) == [(0, 4)]


def test_given_spans_are_widened_over_the_gaps() -> None:
    document = {"docno": "d", "text": " One. Two.  Three. ", "spans": [[1, 5], [6, 10], [12, 18]]}
    assert Given().spans(document) == [(0, 6), (6, 12), (12, 19)]
    assert Given("other").spans({"docno": "d", "text": "abcdef", "other": np.array([[0, 4], [2, 3]])}) == [
        (0, 4),
        (2, 6),
    ]


def test_given_leaves_out_empty_spans() -> None:
    assert Given().spans({"docno": "d", "text": "One. Two.", "spans": [[0, 4], [5, 9], [10, 10]]}) == [
        (0, 5),
        (5, 9),
    ]
    assert Given().spans({"docno": "d", "text": "ab", "spans": [[1, 2], [1, 2]]}) == [(0, 2), (1, 2)]


@pytest.mark.parametrize("spans", [[[0, 5]], [[2, 1]], [[-1, 2]], [[2, 3], [0, 1]]])
def test_given_spans_outside_the_text_or_out_of_order_are_refused(spans: list[list[int]]) -> None:
    with pytest.raises(FrameError, match="within the text's 4 characters"):
        Given().spans({"docno": "d7", "text": "text", "spans": spans})


@pytest.mark.parametrize("record", [{}, {"spans": None}, {"spans": float("nan")}])
def test_a_document_without_spans_is_an_error_unless_told_otherwise(record: dict[str, object]) -> None:
    document = {"docno": "d7", "text": "One. Two.", **record}
    with pytest.raises(FrameError, match=r"none for docno 'd7'\. Give Given\('spans', otherwise=Sentences"):
        Given().spans(document)
    assert Given(otherwise=Sentences()).spans(document) == [(0, 5), (5, 9)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sentences(size=0), "size must be at least 1; found 0"),
        (lambda: Words(size=3, stride=4), "a stride from 1 to the size"),
        (lambda: Words(size=3, stride=0), "a stride from 1 to the size"),
        (lambda: Sentences(max_chars=0), "max_chars must be at least 1"),
    ],
)
def test_windows_that_would_lose_text_are_refused(make: object, message: str) -> None:
    with pytest.raises(FrameError, match=message):
        make()  # type: ignore[operator]


def test_a_splitter_is_its_arguments() -> None:
    assert Sentences(2) == Sentences(size=2)
    assert hash(Words(5, 2)) == hash(Words(size=5, stride=2))
    assert Sentences() != Sentences(stride=1)
    assert len({Sentences(), Words(), Given(), Sentences(), Given("spans")}) == 3
    assert repr(Given()) == "Given(column='spans', otherwise=None)"
    assert eval(repr(Words(3, 1))) == Words(3, 1)


def test_passages_keep_the_documents_columns_and_leave_the_document_alone() -> None:
    document = {"docno": "a/b c", "title": "T", "text": "One. Two.", "year": 2020}
    before = dict(document)
    got = passages(document, Sentences())
    assert got == [
        {
            "docno": "a/b c",
            "title": "T",
            "text": "One. ",
            "year": 2020,
            "passage_id": "a/b c%p0",
            "start": 0,
            "end": 5,
        },
        {
            "docno": "a/b c",
            "title": "T",
            "text": "Two.",
            "year": 2020,
            "passage_id": "a/b c%p1",
            "start": 5,
            "end": 9,
        },
    ]
    assert document == before


@pytest.mark.parametrize("document", [{"docno": "d"}, {"docno": "d", "text": None}, {"text": "x"}])
def test_a_document_without_text_or_docno_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(FrameError):
        passages(document, Words())


@pytest.mark.parametrize("wrong", ["d", "d%p", "%p1", "d%p-1", "d%p1x", "d%p²", ""])
def test_what_is_no_passage_id_is_refused(wrong: str) -> None:
    with pytest.raises(FrameError, match="a passage id such as"):
        parse_passage_id(wrong)


@pytest.mark.parametrize(
    ("collection", "precision", "recall"),
    [("hotpotqa", 0.99, 0.98), ("2wikimultihopqa", 0.98, 0.94), ("scifact", 0.99, 0.95)],
)
def test_sentences_agree_with_the_data_sets_own_boundaries(
    collection: str, precision: float, recall: float, shared_data: Callable[[str], Path]
) -> None:
    folder = shared_data(collection)
    texts = {row["docno"]: row["text"] for row in map(json.loads, (folder / "corpus.jsonl").open())}
    common = theirs = ours = 0
    for row in map(json.loads, (folder / "sents.jsonl").open()):
        text = texts[row["docno"]]
        outer = {0, len(text.rstrip())}
        labelled = {len(text[:end].rstrip()) for _, end in row["spans"]} - outer
        found = {len(text[:end].rstrip()) for _, end in Sentences().spans({"text": text})} - outer
        common, theirs, ours = common + len(labelled & found), theirs + len(labelled), ours + len(found)
    assert common / ours >= precision
    assert common / theirs >= recall
