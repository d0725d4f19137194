"""Laws of ranks, dedupe and records."""

from itertools import pairwise

import pandas as pd
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from searchops.frames import frame_to_groups, groups_to_records, ranked, records_to_frame
from searchops.primitives import Dedupe
from searchops.recorder import Recorder, ScoredPassage
from searchops.records import Event

docnos = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=8)
scores = st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-9, 1e9])


@given(st.dictionaries(st.text("abcdeé", min_size=1, max_size=3), scores, min_size=1, max_size=12))
def test_ranks_agree_with_trec_eval_on_ties(pool):
    order = [row["docno"] for row in ranked({"docno": d, "score": s} for d, s in pool.items())]
    # trec_eval's reciprocal rank tells where it puts a document: make each one the only relevant one.
    for place, docno in enumerate(order, start=1):
        evaluator = pytrec_eval.RelevanceEvaluator({"q": {docno: 1}}, {"recip_rank"})
        assert evaluator.evaluate({"q": pool})["q"]["recip_rank"] == 1 / place


@given(st.lists(st.tuples(docnos, scores), max_size=20))
def test_ranking_loses_and_invents_nothing(pairs):
    rows = [{"docno": d, "score": s, "n": n} for n, (d, s) in enumerate(pairs)]
    out = ranked(rows)
    assert sorted(row["n"] for row in out) == list(range(len(rows)))
    assert [row["rank"] for row in out] == list(range(len(rows)))
    assert all(a["score"] >= b["score"] for a, b in pairwise(out))


@given(st.lists(st.tuples(st.sampled_from("ab"), docnos), max_size=20))
def test_dedupe_twice_is_dedupe_once(pairs):
    rows = [{"qid": q, "query": "x", "docno": d, "n": n} for n, (q, d) in enumerate(pairs)]
    once = Dedupe()(rows)
    assert Dedupe()(once) == once
    assert {(row["qid"], row["docno"]) for row in once} == set(pairs)
    assert [row["n"] for row in sorted(once, key=lambda r: r["n"])] == sorted(row["n"] for row in once)


@given(st.lists(st.tuples(st.sampled_from("ab"), docnos, scores), min_size=1, max_size=20))
def test_a_frame_survives_its_way_through_groups(triples):
    frame = pd.DataFrame(triples, columns=["qid", "docno", "score"]).sort_values(
        "qid", kind="stable", ignore_index=True
    )
    pd.testing.assert_frame_equal(records_to_frame(groups_to_records(frame_to_groups(frame)), ()), frame)


@settings(max_examples=50)
@given(
    st.lists(
        st.lists(st.tuples(docnos, st.none() | st.integers(0, 99), st.floats(width=32, allow_nan=False)), max_size=6),
        min_size=1,
        max_size=6,
    )
)
def test_records_read_back_as_they_were_written(tmp_path_factory, batches):
    path = tmp_path_factory.mktemp("record") / "run"
    recorder = Recorder(path, "new", {})
    wrote = []
    for number, batch in enumerate(batches):
        event = Event(str(number), "q", 0, "0", "extract", "extract", "E", "0", -1, 0, len(batch), 0.0)
        plain = [{"docno": d, "score": s, "rank": n} for n, (d, p, s) in enumerate(batch) if p is None]
        passages = [ScoredPassage(d, p, p, p + 1, s) for d, p, s in batch if p is not None]
        recorder.add(event, plain, scored=passages)
        wrote += [(number, "in", d, p, p, p + 1, s) for d, p, s in batch if p is not None]
        wrote += [(number, "out", row["docno"], None, None, None, row["score"]) for row in plain]
        if number % 2:
            recorder.checkpoint()
    table = recorder.run().candidate_table
    names = ["event", "side", "docno", "passage", "start", "end", "score"]
    assert list(zip(*(table.column(name).to_pylist() for name in names), strict=True)) == wrote
