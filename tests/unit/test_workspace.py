"""The state of a question and the operations that all agents share."""

import threading

import pytest

import searchops as so
from searchops import recorder
from searchops.errors import FrameError, SpecError, ToolError
from searchops.predicates import field
from searchops.primitives import Dedupe, Extract, Filter, Rerank, Retrieve
from searchops.recorder import record
from searchops.scorers.lexical import Lexical
from searchops.substrate import Found, Funnel, Marks, Substrate
from searchops.workspace import Costs, Variable, Workspace

LAKES, RIVERS = "deepest lake Siberia", "river north Nile"


@pytest.fixture
def workspace():
    return Workspace("1", "Which lake is deepest?")


@pytest.fixture
def substrate(workspace, tiny_index):
    return Substrate(workspace, tiny_index, Lexical())


def row(docno, query="q", **more):
    return {"qid": "1", "query": query, "docno": docno, "title": "", "text": "t", "source_query": query, **more}


# -- the workspace ------------------------------------------------------------------------------


def test_a_candidate_keeps_every_query_that_found_it_in_order(workspace):
    workspace.admit([row("a", "first"), row("b", "first")])
    workspace.admit([row("a", "second"), row("a", "first")])
    assert workspace.candidates["a"].queries == ["first", "second"]
    assert workspace.candidates["b"].queries == ["first"]


def test_the_canonical_record_is_the_first_one_seen(workspace):
    workspace.admit([row("a", score=1.0)])
    workspace.admit([row("a", score=9.0)])
    assert workspace.candidates["a"].record["score"] == 1.0
    assert [found["score"] for found in workspace.resolve([1, 0])] == [9.0, 1.0]


@pytest.mark.parametrize("number", [-1, 1, True, 0.0, "0", None])
def test_only_numbers_that_were_given_out_resolve(workspace, number):
    workspace.admit([row("a")])
    with pytest.raises(ToolError, match="candidates that a primitive returned"):
        workspace.resolve([0, number])


def test_a_failed_transaction_leaves_everything_but_the_costs_as_it_was(workspace):
    workspace.admit([row("a", "first")])
    workspace.variables["x"] = Variable("int")
    passage = row("a", "third", passage_id="a%p0", start=0, end=1, note="n", instruction="i")

    def fail():
        with workspace.transaction():
            workspace.admit([row("a", "second"), row("b", "second"), passage])
            workspace.extracted([passage])
            workspace.variables["y"] = Variable("int")
            workspace.spend(retrieval_requests=1, seconds=0.5)
            raise ToolError("no")

    for _ in range(2):
        with pytest.raises(ToolError):
            fail()
    assert list(workspace.candidates) == ["a"]
    assert workspace.candidates["a"].queries == ["first"]
    assert (len(workspace.rows), workspace.evidence, list(workspace.variables)) == (1, [], ["x"])
    assert workspace.costs == Costs(retrieval_requests=2, seconds=1.0)


def test_a_transaction_that_succeeds_is_not_undone_by_the_next_failure(workspace):
    with workspace.transaction():
        workspace.admit([row("a")])
    with pytest.raises(ZeroDivisionError), workspace.transaction():
        workspace.admit([row("a", "other"), row("b")])
        raise ZeroDivisionError
    assert [(c.id, c.queries) for c in workspace.candidates.values()] == [("a", ["q"])]


def test_a_passage_stands_in_the_ledger_once_for_an_instruction(workspace):
    passage = row("a", passage_id="a%p0", start=0, end=1, note="n", instruction="i")
    workspace.extracted([passage, passage, {**passage, "instruction": "j"}])
    assert [(e.passage_id, e.instruction, e.text) for e in workspace.evidence] == [
        ("a%p0", "i", "t"),
        ("a%p0", "j", "t"),
    ]


def test_costs_from_many_threads_all_count(workspace):
    threads = [threading.Thread(target=lambda: [workspace.spend(rerank_pairs=1) for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert workspace.costs.rerank_pairs == 2000


def test_the_description_gives_names_types_and_sizes_and_no_content(workspace):
    workspace.admit([row("secret-id", "secret query", text="secret text")])
    workspace.variables = {"pool": Variable("list[Candidate]", 1200), "n": Variable("int"), "s": Variable("str", 3)}
    assert workspace.describe().splitlines() == [
        "1 candidates from 1 queries, 0 passages in evidence",
        "pool: list[Candidate], 1,200",
        "n: int",
        "s: str, 3",
    ]


def test_the_description_stays_short_whatever_the_workspace_holds(workspace):
    for n in range(5000):
        workspace.variables[f"{'x' * 300}{n}"] = Variable("list", 10**50)
    workspace.variables["new\nline: int"] = Variable("evil\nkind " * 99, 10**400)
    workspace.variables["newest"] = Variable("int")
    text = workspace.describe()
    lines = text.splitlines()
    assert len(text) < 2000
    assert lines[-1] == "newest: int"
    assert lines[-2] == "'new\\nline: int': object, more than 1e+15"
    hidden = int(lines[1].split()[1])
    assert lines[1].endswith("older variables, left out here")
    assert hidden + len(lines) - 2 == 5002


# -- the operations -----------------------------------------------------------------------------


def documents(rows):
    return [(r["docno"], r["score"], r["rank"]) for r in rows]


def test_operations_give_what_the_pipelines_stages_give(substrate, tiny_index):
    pipeline = (
        Retrieve(tiny_index, k=8)
        >> Filter("year >= 2011")
        >> Rerank(Lexical(), k=4)
        >> Extract(Lexical(), k=3, instruction="how deep")
        >> Dedupe("passage_id")
    )
    expected = list(pipeline.transform_iter([{"qid": "1", "query": LAKES}]))
    found = substrate.retrieve(LAKES, 8)
    found = substrate.rerank(substrate.filter(found, "year >= 2011"), 4)
    found = substrate.dedupe(substrate.extract(found, "how deep", 3), key="passage_id")
    assert found.rows == expected
    assert {row["passage_score"] for row in found.rows} != {0.0}


def test_pools_of_several_queries_are_reranked_as_the_stage_does_it(substrate, tiny_index):
    pool = substrate.dedupe(substrate.retrieve(LAKES), substrate.retrieve(RIVERS))
    bound = Rerank(Lexical(tiny_index), k=10)
    assert substrate.rerank(pool).rows == list(bound.transform_iter(pool.rows))
    assert {row["source_query"] for row in pool.rows} == {LAKES, RIVERS}


def test_an_equal_retrieval_is_paid_for_once(substrate, workspace):
    first, again = substrate.retrieve(LAKES, 5), substrate.retrieve(LAKES, 5)
    assert first.rows == again.rows
    assert (workspace.costs.retrieval_requests, workspace.costs.returned_documents) == (1, len(first.rows))
    substrate.retrieve(LAKES, 4)
    assert workspace.costs.retrieval_requests == 2


def test_costs_count_pairs_and_calls(substrate, workspace, tiny_index):
    pool = substrate.retrieve(LAKES, 4)
    substrate.filter(pool, "year > 0")
    substrate.rerank(pool)
    substrate.extract(pool, "x", 2)
    passages = sum(len(substrate.splitter.spans(row)) for row in pool.rows[:2])
    costs = workspace.costs
    assert (costs.rerank_pairs, costs.extract_calls, costs.extract_pairs) == (len(pool.rows), 1, passages)
    assert costs.seconds > 0
    substrate.extract([], "x")
    assert workspace.costs.extract_calls == 1


def test_only_extraction_adds_to_the_ledger(substrate, workspace):
    pool = substrate.rerank(substrate.filter(substrate.retrieve(LAKES), "year > 0"))
    assert workspace.evidence == []
    kept = substrate.extract(pool, "how deep", 2)
    assert [(e.docno, e.start, e.end, e.instruction) for e in workspace.evidence] == [
        (r["docno"], r["start"], r["end"], "how deep") for r in kept.rows
    ]


def test_requests_above_the_funnel_are_capped_and_say_so(workspace, tiny_index):
    small = Substrate(workspace, tiny_index, Lexical(), funnel=Funnel(retrieve=3, rerank=2, extract=1))
    found = small.retrieve("lake river city", 50)
    assert (len(found.rows), found.notice) == (3, "retrieve gives at most 3; k was larger and is capped")
    assert small.retrieve("lake river city", 2).notice == ""
    ranked = small.rerank(found, 3)
    assert (len(ranked.rows), ranked.notice) == (2, "rerank gives at most 2; k was larger and is capped")
    taken = small.extract(found.rows)
    assert (len(taken.rows), taken.notice) == (1, "extract read the first 1 documents; 2 more were given")


def test_the_funnel_of_the_paper_is_the_default():
    assert (Funnel().retrieve, Funnel().rerank, Funnel().extract, Funnel().leaves, Funnel().depth) == (20, 10, 10, 8, 3)


def test_documents_are_told_apart_by_docno_where_there_is_no_passage_id(substrate):
    a, b = substrate.retrieve(LAKES, 5), substrate.retrieve("Lake Baikal", 5)
    pool = substrate.dedupe(a, b, key="passage_id")
    assert [r["docno"] for r in pool.rows] == list(dict.fromkeys(r["docno"] for r in [*a.rows, *b.rows]))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda s: s.retrieve(""), "a query that is text"),
        (lambda s: s.retrieve(5), "found 5"),
        (lambda s: s.retrieve("x" * 2001), "at most 2,000 characters"),
        (lambda s: s.retrieve("x", 0), "whole number of at least 1"),
        (lambda s: s.rerank([], True), "found True"),
        (lambda s: s.extract([], 5), "an instruction that is text"),
        (lambda s: s.extract([], "x", schema="y"), "a schema that is a dict"),
        (lambda s: s.filter([], " or ".join(["year > 1"] * 9)), "at most 8 conditions"),
        (lambda s: s.filter([], "not (a == 1 and (b == 1 or c == 1 and d == 1))"), "depth 3"),
        (lambda s: s.rerank([row("a")] * 10_001), "at most 10,000 candidates"),
        (lambda s: s.dedupe([row("a")], [row("a", passage_id="a%p0")]), "1 documents and 1 extracted passages"),
    ],
)
def test_what_cannot_be_done_is_a_tool_error_with_the_reason(substrate, workspace, call, text):
    with pytest.raises(ToolError) as caught:
        call(substrate)
    assert text in str(caught.value)
    assert workspace.costs.retrieval_requests == 0


def test_wrong_filters_and_keys_keep_the_errors_of_their_stages(substrate):
    with pytest.raises(SpecError):
        substrate.filter([], "year >")
    with pytest.raises(FrameError, match="docno or passage_id"):
        substrate.dedupe([], key="title")


def test_marks_keep_the_rows_that_were_marked(substrate):
    pool = substrate.retrieve(LAKES, 3)
    assert substrate.filter(pool, Marks([True, False, True])).rows == [pool.rows[0], pool.rows[2]]
    assert substrate.filter(pool, field("year") > 0).rows == pool.rows
    with pytest.raises(ToolError, match="3 truth values"):
        substrate.filter(pool, Marks([True]))
    assert repr(Marks([True])) == "<cell predicate>"


def test_every_call_is_recorded_under_its_step_with_its_parent(substrate):
    with record() as run:
        with recorder.step(4, 0):
            pool = substrate.retrieve(LAKES, 5)
        with recorder.step(4, 1):
            ranked = substrate.rerank(pool, 3)
        with recorder.step(5, 0):
            substrate.extract(ranked.rows, "how deep")
        with recorder.step(6, 0):
            again = substrate.retrieve(LAKES, 5)
        with recorder.step(6, 1), pytest.raises(FrameError):
            substrate.filter(again, "nothing == 1")
    events = run.run().events
    assert events["kind"].tolist() == ["retrieve", "rerank", "extract", "retrieve", "filter"]
    assert list(zip(events["decision"], events["call"], strict=True)) == [(4, 0), (4, 1), (5, 0), (6, 0), (6, 1)]
    assert events["parent"].tolist() == [-1, pool.event, -1, -1, again.event]
    assert events["cache"].tolist()[3] == "hit"
    assert events["n_out"].tolist()[0] == events["n_out"].tolist()[3] == 5
    assert "'nothing'" in events["error"].tolist()[4]
    assert events["pipeline"].nunique() == 1


def test_the_available_set_of_an_extract_call_is_recorded(substrate):
    with record() as run:
        kept = substrate.extract(substrate.retrieve(LAKES, 3), "deep")
    candidates = run.run().candidates
    scored = candidates[(candidates["event"] == kept.event) & (candidates["side"] == "in")]
    assert len(scored) == substrate.workspace.costs.extract_pairs


def test_a_scorer_that_is_none_is_refused_when_the_substrate_is_made(workspace, tiny_index):
    with pytest.raises(FrameError):
        Substrate(workspace, tiny_index, Lexical)
    with pytest.raises(FrameError):
        Substrate(workspace, "index", Lexical())
    assert Substrate(workspace, tiny_index, Lexical(), Lexical(k1=1.2)).extract_scorer == Lexical(k1=1.2)


def test_a_substrate_needs_no_record_to_run(substrate):
    assert substrate.retrieve(LAKES, 2).event == -1
    assert Found([]).event == -1
    assert so.__version__
