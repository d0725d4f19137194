"""Stages with branches, and rewritten queries, by hand calculation."""

import pandas as pd
import pyterrier as pt
import pytest
import pytrec_eval
from pyterrier._ops import Compose

from searchops import recorder
from searchops.errors import FrameError
from searchops.fusion import RRF, Rewrite, Union
from searchops.pipeline import Pipeline
from searchops.primitives import Dedupe, Extract, Filter, Rerank, Retrieve
from searchops.scorers.base import Scorer
from searchops.scorers.lexical import Lexical

TOPICS = [{"qid": "1", "query": "first"}, {"qid": "2", "query": "second"}]


class Found(pt.Transformer):
    """Somebody else's retriever: fixed (docno, score) pairs a task."""

    def __init__(self, hits):
        self.hits = hits

    def transform(self, inp):
        rows = [
            {"qid": q, "query": text, "docno": d, "score": s, "rank": n, "text": f"text of {d}"}
            for q, text in zip(inp["qid"], inp["query"], strict=True)
            for n, (d, s) in enumerate(self.hits.get(q, ()))
        ]
        return pd.DataFrame(rows, columns=["qid", "query", "docno", "score", "rank", "text"])


class Twice(pt.Transformer):
    """Makes a task of its own beside each it is given."""

    def transform(self, inp):
        return pd.concat([inp, inp.assign(qid=inp["qid"] + "-b")], ignore_index=True)


class Lengths(Scorer):
    def score(self, pairs):
        return [float(len(text)) for _, text in pairs]


def ids(rows, qid="1"):
    return [row["docno"] for row in rows if row["qid"] == qid]


# -- reciprocal rank fusion --------------------------------------------------------------------

ONE = Found({"1": [("a", 9.0), ("b", 8.0), ("c", 7.0)]})
TWO = Found({"1": [("c", 0.3), ("a", 0.2), ("d", 0.1)], "2": [("e", 1.0)]})


def test_rrf_is_the_sum_of_reciprocal_ranks():
    out = RRF(ONE, TWO)(TOPICS)
    expected = {"a": 1 / 61 + 1 / 62, "c": 1 / 63 + 1 / 61, "b": 1 / 62, "d": 1 / 63}
    assert [(r["docno"], r["rank"]) for r in out if r["qid"] == "1"] == [("a", 0), ("c", 1), ("b", 2), ("d", 3)]
    assert {r["docno"]: r["score"] for r in out if r["qid"] == "1"} == pytest.approx(expected, abs=0)
    assert [(r["docno"], r["score"]) for r in out if r["qid"] == "2"] == [("e", 1 / 61)]


def test_the_constant_of_rrf_counts():
    # c = 1: a 1/2 + 1/3, c 1/4 + 1/2, b 1/3, d 1/4
    assert [r["score"] for r in RRF(ONE, TWO, c=1)(TOPICS[:1])] == pytest.approx([5 / 6, 3 / 4, 1 / 3, 1 / 4])


def test_rrf_goes_by_scores_not_by_the_order_of_rows_or_the_rank_column():
    shuffled = Found({"1": [("c", 7.0), ("a", 9.0), ("b", 8.0)]})
    assert RRF(shuffled, TWO)(TOPICS) == RRF(ONE, TWO)(TOPICS)


def test_rrf_breaks_ties_of_a_branch_as_trec_eval_does():
    tied = Found({"1": [("a", 1.0), ("b", 1.0), ("c", 1.0)]})
    assert [(r["docno"], r["score"]) for r in RRF(tied)(TOPICS[:1])] == [("c", 1 / 61), ("b", 1 / 62), ("a", 1 / 63)]


def test_a_document_counts_once_a_branch():
    repeated = Found({"1": [("a", 9.0), ("a", 8.0), ("b", 7.0)]})
    assert [(r["docno"], r["score"]) for r in RRF(repeated)(TOPICS[:1])] == [("a", 1 / 61), ("b", 1 / 63)]


def test_the_order_of_rrf_is_the_order_trec_eval_sees():
    docnos = [f"d{n}" for n in range(12)]
    branches = [
        Found({"1": [(d, float((n * step) % 5)) for n, d in enumerate(docnos) if n % skip]})
        for step, skip in ((3, 4), (7, 3), (2, 5))
    ]
    out = RRF(*branches)(TOPICS[:1])
    run = {r["docno"]: r["score"] for r in out}
    for row in out:
        found = pytrec_eval.RelevanceEvaluator({"1": {row["docno"]: 1}}, {"recip_rank"}).evaluate({"1": run})
        assert found["1"]["recip_rank"] == pytest.approx(1 / (row["rank"] + 1))


def test_k_cuts_the_fused_list_and_a_cutoff_behind_it_lowers_k():
    whole = RRF(ONE, TWO)(TOPICS[:1])
    assert RRF(ONE, TWO, k=2)(TOPICS[:1]) == whole[:2]
    assert (RRF(ONE, TWO, k=20) % 3).compile() == RRF(ONE, TWO, k=3)
    assert (RRF(ONE, TWO) % 3).compile() == RRF(ONE, TWO, k=3)
    assert (RRF(ONE, TWO, k=2) % 3).compile() == RRF(ONE, TWO, k=2)
    assert (RRF(ONE, TWO) % 3)(TOPICS[:1]) == whole[:3]


def test_of_a_document_that_several_branches_found_the_first_branchs_row_is_kept():
    out = RRF(ONE >> pt.apply.found(lambda _: "one"), TWO >> pt.apply.found(lambda _: "two"))(TOPICS[:1])
    assert {r["docno"]: r["found"] for r in out} == {"a": "one", "b": "one", "c": "one", "d": "two"}


def test_two_passages_of_one_document_stay_two():
    texts = Found({"1": [("a", 2.0), ("b", 1.0)]}) >> pt.apply.text(lambda _: "One here. Two here. Three.")
    branch = texts >> Extract(Lengths(), k=4, per_document=2)
    out = RRF(branch, branch)(TOPICS[:1])
    assert sorted(r["passage_id"] for r in out) == ["a%p0", "a%p1", "b%p0", "b%p1"]
    assert {r["passage_id"]: r["score"] for r in out}["a%p0"] == pytest.approx(2 / 61)


@pytest.mark.parametrize("bad", [{"k": 0}, {"k": -1}, {"k": 2.0}, {"c": 0}, {"c": None}])
def test_rrf_refuses_settings_out_of_range(bad):
    with pytest.raises(FrameError, match=f"RRF: {next(iter(bad))} must be a whole number"):
        RRF(ONE, **bad)


@pytest.mark.parametrize("stage", [RRF, Union])
@pytest.mark.parametrize("branches", [(), ("bm25",), (ONE, lambda rows: rows), (Found,)])
def test_branches_must_be_pipelines(stage, branches):
    with pytest.raises(FrameError, match=f"{stage.__name__}: one or more pipelines"):
        stage(*branches)


def test_a_branch_that_gives_no_scores_is_refused_by_name():
    with pytest.raises(FrameError, match="RRF: a score that is a number is needed; found None for docno"):
        RRF(Found({"1": [("a", 1.0)]}) | Found({"1": [("b", 1.0)]}))(TOPICS)


# -- union -------------------------------------------------------------------------------------


def test_union_keeps_every_row_branch_by_branch_with_its_score_and_rank():
    out = Union(TWO, ONE)(TOPICS)
    assert [(r["qid"], r["docno"], r["score"], r["rank"]) for r in out] == [
        ("1", "c", 0.3, 0), ("1", "a", 0.2, 1), ("1", "d", 0.1, 2),
        ("1", "a", 9.0, 0), ("1", "b", 8.0, 1), ("1", "c", 7.0, 2),
        ("2", "e", 1.0, 0),
    ]  # fmt: skip


def test_a_branch_keeps_its_own_query_as_source_query_and_the_task_keeps_its_query(tiny_index):
    out = Union(Retrieve(tiny_index, k=1), Rewrite("{query} Cairo") >> Retrieve(tiny_index, k=1))(
        [{"qid": "1", "query": "Nile"}]
    )
    assert [r["source_query"] for r in out] == ["Nile", "Nile Cairo"]
    assert [r["query"] for r in out] == ["Nile", "Nile"]
    assert not any("query_0" in r for r in out)


def test_rerank_behind_a_union_ranks_each_branch_against_its_own_query(tiny_index):
    pipe = (
        Union(Retrieve(tiny_index, k=3), Rewrite("seal") >> Retrieve(tiny_index, k=3))
        >> Dedupe()
        >> Rerank(Lexical(), k=2)
    )
    out = pipe([{"qid": "1", "query": "capital of Egypt"}])
    assert [(r["docno"], r["source_query"]) for r in out] == [("cities/1", "capital of Egypt"), ("seals", "seal")]


def test_a_query_rewritten_before_the_branches_is_the_query_behind_them():
    fused = RRF(ONE, TWO)
    together = (Rewrite("{query} more") >> fused)(TOPICS)
    assert together == fused(Rewrite("{query} more")(TOPICS))
    assert {(r["query"], r["query_0"]) for r in together} == {("first more", "first"), ("second more", "second")}


def test_columns_of_a_topic_go_through_the_branches(tiny_index):
    out = RRF(Retrieve(tiny_index, k=2), Rewrite("{query} {place}") >> Retrieve(tiny_index, k=2))(
        [{"qid": "1", "query": "river", "place": "Cairo", "query_0": "older"}]
    )
    assert {(r["place"], r["query"], r["query_0"]) for r in out} == {("Cairo", "river", "older")}


# -- what may stand in a branch ----------------------------------------------------------------


def test_a_plain_composition_in_a_branch_becomes_a_pipeline():
    plain = ONE >> Filter("score > 7.5")
    assert type(plain) is Compose
    fused = RRF(plain, TWO)
    assert [type(branch) for branch in fused.branches] == [Pipeline, Found]
    assert ids(fused(TOPICS)) == ["a", "c", "b", "d"]
    with recorder.record() as run:
        fused(TOPICS)
    events = run.run().events
    assert set(events["stage"]) == {"0", "0.0.0", "0.0.1", "0.1.0"}
    assert events[events["stage"] == "0.0.1"].groupby("qid")["n_out"].sum().to_dict() == {"1": 2, "2": 0}


@pytest.mark.parametrize("operator", ["+", "|", "^"])
def test_pyterriers_own_fusions_may_stand_in_a_branch(operator):
    branch = {"+": ONE + TWO, "|": ONE | TWO, "^": ONE ^ TWO}[operator]
    frame = branch.transform(pd.DataFrame(TOPICS[:1]))
    assert ids(Union(branch)(TOPICS[:1])) == frame["docno"].tolist()


def test_a_branch_without_rows_for_a_task_disturbs_no_other():
    assert ids(RRF(ONE, TWO)(TOPICS), "2") == ["e"]
    assert RRF(Found({}), Found({}))(TOPICS) == []
    out = RRF(Found({}), Found({}))(pd.DataFrame(TOPICS))
    assert len(out) == 0
    assert {"qid", "query", "docno", "score", "rank", "source_query"} <= set(out.columns)


def test_a_branch_that_makes_tasks_of_its_own_is_refused_not_cut_off():
    with pytest.raises(FrameError, match=r"Union: branches that keep the qids.*'1-b', '2-b'"):
        Union(Twice() >> Found({"1": [("a", 1.0)], "1-b": [("b", 1.0)], "2-b": [("c", 1.0)]}))(TOPICS)


def test_branches_in_branches_are_traced_at_their_place():
    with recorder.record() as run:
        Union(RRF(ONE, TWO), TWO)(TOPICS[:1])
    assert run.run().events["stage"].tolist() == ["0.0.0.0.0", "0.0.0.1.0", "0.0.0", "0.1.0", "0"]


def test_equal_branches_make_equal_stages(tiny_index):
    def build(k):
        return RRF(Retrieve(tiny_index, k=k), Rewrite("{query} x") >> Retrieve(tiny_index, k=k), k=5)

    assert build(3) == build(3)
    assert build(3) != build(4)
    assert repr(build(3)).endswith(f"(Rewrite('{{query}} x') >> Retrieve({tiny_index!r}, k=3)), k=5)")


# -- rewritten queries -------------------------------------------------------------------------


def test_a_template_is_filled_with_the_rows_columns():
    out = Rewrite("{query} in {year}, {{not a column}}")([{"qid": "1", "query": "sort", "year": 2019}])
    assert out == [{"qid": "1", "query": "sort in 2019, {not a column}", "year": 2019, "query_0": "sort"}]


def test_what_stands_in_a_column_is_no_template():
    out = Rewrite("{query}!")([{"qid": "1", "query": "{qid} {query.__class__} {"}])
    assert out[0]["query"] == "{qid} {query.__class__} {!"


def test_older_queries_are_numbered_on_as_pyterrier_does():
    rows = [{"qid": "1", "query": "sort"}]
    three = (Rewrite("{query} a") >> Rewrite("{query} b") >> Rewrite("{query} c"))(rows)
    assert three == [{"qid": "1", "query": "sort a b c", "query_0": "sort a b", "query_1": "sort a", "query_2": "sort"}]
    pushed = pt.model.push_queries(pt.model.push_queries(pd.DataFrame(rows)).assign(query="sort a"))
    two = (Rewrite("{query} a") >> Rewrite("{query} b"))(pd.DataFrame(rows))
    assert two[["query_0", "query_1"]].iloc[0].tolist() == pushed[["query_0", "query_1"]].iloc[0].tolist()


@pytest.mark.parametrize(
    "template",
    [
        "{query.__class__}", "{query.__class__.__mro__[1]}", "{0}", "{}", "{query[0]}", "{query!r}", "{query!s}",
        "{query:>10}", "{query:{qid}}", "{query", "query}", "{ query }", "{query-x}", "{", "}", None, 5, ["{query}"],
    ],
)  # fmt: skip
def test_a_template_reaches_nothing_but_columns(template):
    with pytest.raises(FrameError, match="Rewrite: a template with columns in braces is needed"):
        Rewrite(template)


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(FrameError, match=r"Rewrite: a column 'titel' is needed; found columns .*title.*mean 'title'"):
        Rewrite("{titel}")([{"qid": "1", "query": "q", "title": "t"}])


@pytest.mark.parametrize("value", [None, float("nan")])
def test_a_missing_value_is_no_word_of_a_query(value):
    with pytest.raises(FrameError, match="Rewrite: a value in column 'title' is needed.*for qid '2'"):
        Rewrite("{query} {title}")(
            [{"qid": "1", "query": "q", "title": "t"}, {"qid": "2", "query": "q", "title": value}]
        )
