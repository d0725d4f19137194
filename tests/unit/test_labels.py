"""Evidence labels: their shapes, and what covers them."""

from dataclasses import dataclass

import pandas as pd
import pytest

from searchops.errors import FrameError
from searchops.labels import Label, to_labels


@dataclass
class Piece:
    passage: int | None
    start: int | None = None
    end: int | None = None


def test_the_union_of_passages_covers_a_span():
    label = Label("1", "d", 10, 20)
    assert label.covered([Piece(0, 0, 15)]) == 0.5
    assert label.covered([Piece(0, 0, 15), Piece(1, 15, 30)]) == 1.0
    assert label.covered([Piece(0, 8, 14), Piece(1, 12, 16), Piece(2, 18, 19)]) == pytest.approx(0.7)
    assert label.covered([Piece(0, 0, 10), Piece(1, 20, 30)]) == 0.0


def test_a_whole_document_covers_everything():
    assert Label("1", "d", 10, 20).covered([Piece(None)]) == 1.0
    assert Label("1", "d", passage=3).covered([Piece(None)]) == 1.0


def test_a_passage_label_wants_that_passage():
    label = Label("1", "d", passage=3)
    assert label.covered([Piece(2, 0, 5)]) == 0.0
    assert label.covered([Piece(2, 0, 5), Piece(3, 5, 9)]) == 1.0


def test_a_document_label_wants_any_part_of_it():
    assert Label("1", "d").covered([Piece(7, 0, 5)]) == 1.0
    assert Label("1", "d").covered([]) == 0.0


@pytest.mark.parametrize("what", ["d1", "d1%p4", "d1:10-20", "a%p1%p2", "http://x/y:80%p0", "x:1:3-9"])
def test_a_label_is_written_as_it_is_parsed(what):
    assert str(Label.parse("1", what)) == what


def test_passage_ids_use_their_last_marker():
    label = Label.parse("1", "rivers%p1%p2")
    assert (label.docno, label.passage) == ("rivers%p1", 2)


def test_the_three_shapes_of_labels_are_read():
    spans = to_labels(pd.DataFrame([{"qid": 1, "docno": "d", "start": 0, "end": 4, "text": "abcd"}]))
    assert spans == [Label("1", "d", 0, 4, text="abcd")]
    assert to_labels(pd.DataFrame([{"qid": "1", "passage_id": "d%p2"}])) == [Label("1", "d", passage=2)]
    assert to_labels(pd.DataFrame([{"qid": "1", "docno": "d"}])) == [Label("1", "d")]
    mixed = pd.DataFrame([{"qid": "1", "docno": "d", "start": 1.0, "end": 2.0}, {"qid": "1", "docno": "e"}])
    assert to_labels(mixed) == [Label("1", "d", 1, 2), Label("1", "e")]


def test_a_label_given_twice_counts_once():
    frame = pd.DataFrame([{"qid": "1", "docno": "d"}] * 2)
    assert len(to_labels(frame)) == 1


def test_wrong_shapes_are_refused():
    with pytest.raises(FrameError, match="need qid with docno"):
        to_labels(pd.DataFrame([{"qid": "1", "text": "x"}]))
    with pytest.raises(FrameError, match="ends behind its start"):
        to_labels(pd.DataFrame([{"qid": "1", "docno": "d", "start": 5, "end": 2}]))
