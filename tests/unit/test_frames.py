"""Frames as groups of records, and the one order of ranks."""

import numpy as np
import pandas as pd
import pytest

from searchops.errors import FrameError
from searchops.frames import (
    frame_to_groups,
    groups_to_records,
    ranked,
    records_to_frame,
    require,
    to_groups,
)


def test_groups_keep_the_order_in_which_each_qid_is_first_seen():
    rows = [{"qid": "b", "query": "x"}, {"qid": "a", "query": "y"}, {"qid": "b", "query": "z"}]
    assert [(g.qid, g.query, len(g.rows)) for g in to_groups(rows)] == [("b", "x", 2), ("a", "y", 1)]


def test_int_qids_become_text_once_at_the_border():
    groups = frame_to_groups(pd.DataFrame({"qid": [7, 7], "query": ["a", "b"]}))
    assert [g.qid for g in groups] == ["7"]
    assert {row["qid"] for row in groups[0].rows} == {"7"}


@pytest.mark.parametrize("qid", [None, float("nan"), 1.5])
def test_a_qid_that_is_no_name_is_refused(qid):
    with pytest.raises(FrameError, match="qid"):
        to_groups([{"qid": qid}])


def test_a_missing_qid_column_names_the_columns_there_are():
    with pytest.raises(FrameError, match=r"'qid' is needed; found columns query"):
        frame_to_groups(pd.DataFrame({"query": ["a"]}))
    with pytest.raises(FrameError, match=r"'qid' is needed; found columns query"):
        to_groups([{"query": "a"}])


def test_rows_with_different_columns_become_one_frame():
    frame = records_to_frame([{"qid": "1", "docno": "a"}, {"qid": "1", "docno": "b", "year": 3}], ())
    assert list(frame.columns) == ["qid", "docno", "year"]
    assert frame["year"].isna().tolist() == [True, False]


def test_no_rows_keep_the_promised_columns_with_their_types():
    frame = records_to_frame([], ["qid", "score", "rank"])
    assert frame.dtypes.astype(str).tolist() == ["object", "float64", "int64"]


def test_ranks_follow_trec_evals_order_of_ties():
    # trec_eval sorts by score descending, then by docno descending.
    rows = [{"docno": d, "score": s} for d, s in [("a", 1.0), ("c", 1.0), ("b", 2.0), ("ä", 1.0)]]
    assert [(r["docno"], r["rank"]) for r in ranked(rows)] == [("b", 0), ("ä", 1), ("c", 2), ("a", 3)]


def test_ranking_changes_no_record_it_was_given():
    rows = [{"docno": "a", "score": 1.0}]
    ranked(rows)
    assert rows == [{"docno": "a", "score": 1.0}]


@pytest.mark.parametrize("score", [float("nan"), None, "high"])
def test_a_score_that_is_no_number_is_refused_by_name(score):
    with pytest.raises(FrameError, match=r"docno 'bad'"):
        ranked([{"docno": "ok", "score": 1.0}, {"docno": "bad", "score": score}])


def test_numpy_scores_are_scores():
    assert ranked([{"docno": "a", "score": np.float32(1.5)}])[0]["rank"] == 0


def test_a_missing_column_is_named_with_a_guess():
    with pytest.raises(FrameError, match=r"'docno' is needed; found columns docn. Did you mean 'docn'\?"):
        require({"docn": "x"}, "docno", where="Rerank")


def test_frame_to_groups_and_back_is_the_frame():
    frame = pd.DataFrame({"qid": ["1", "2"], "docno": ["a", "b"], "score": [0.5, float("nan")]})
    pd.testing.assert_frame_equal(records_to_frame(groups_to_records(frame_to_groups(frame)), ()), frame)
