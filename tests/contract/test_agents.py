"""What every agent keeps to, whatever its interface."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import pandas as pd
import pyterrier as pt
import pytest

from searchops.agents import Budget, Funnel
from searchops.errors import DataError, FrameError, SpecError
from searchops.frames import to_groups
from searchops.models import ReplayModel, Reply, ScriptedModel, ToolCall, Usage
from searchops.primitives import Extract, Rerank, Retrieve
from searchops.recorder import record
from searchops.records import Run
from searchops.scorers.lexical import Lexical
from tests.agent_scripts import AGENTS, always, call, fruitless, made, searching

QUESTION = "Where does the Baikal seal live?"


class Answering:
    """A model that answers at once; two of them are told apart by nothing but what they were asked."""

    def __init__(self):
        self.n_asked = 0

    def __repr__(self):
        return "Answering()"

    def complete(self, messages, *, tools=(), temperature=None, max_tokens=None, top_p=None, seed=None):
        self.n_asked += 1
        return Reply(f"About: {messages[1].content}")


@pytest.fixture(params=AGENTS)
def kind(request):
    return request.param


@pytest.fixture
def topics():
    return pd.DataFrame([{"qid": "7", "query": QUESTION}])


def told(model):
    """All that the model ever read."""
    return "\n".join(message.content or "" for request in model.requests for message in request.messages)


def test_a_text_without_a_call_is_the_answer(kind, tiny_index, topics):
    agent = made(kind, tiny_index, [*searching(kind, "Baikal seal"), "  In Lake Baikal. "])
    (row,) = agent(topics).to_dict("records")
    assert (row["qanswer"], row["stop_reason"], row["error"]) == ("In Lake Baikal.", "answered", "")
    assert row["decisions"] == len(searching(kind, "")) + 1
    assert (row["qid"], row["query"]) == ("7", QUESTION)


def test_when_all_decisions_are_used_a_finalizer_without_tools_answers_from_the_ledger(kind, tiny_index, topics):
    script = searching(kind, "Baikal seal")
    model = ScriptedModel([*script, "The finalizer's answer."])
    (row,) = made(kind, tiny_index, model, budget=Budget(decisions=len(script)))(topics).to_dict("records")
    assert (row["qanswer"], row["stop_reason"]) == ("The finalizer's answer.", "budget")
    assert row["decisions"] == len(script)
    last = model.requests[-1]
    assert last.tools == ()
    assert [message.role for message in last.messages] == ["system", "user"]
    assert QUESTION in last.messages[1].content
    assert "The Baikal seal lives only in Lake Baikal." in last.messages[1].content
    assert sum(len(message.content) for message in last.messages) <= 16_000
    assert len(model.requests) == len(script) + 1


def test_no_question_takes_more_decisions_than_its_budget(kind, tiny_index, topics):
    model = always(fruitless(kind))
    (row,) = made(kind, tiny_index, model, budget=Budget(decisions=5, repairs=2))(topics).to_dict("records")
    assert (row["decisions"], row["stop_reason"], row["repairs"]) == (5, "budget", 0)
    assert len(model.requests) == 6


def test_only_extraction_adds_to_the_ledger(kind, tiny_index, topics):
    model = always(fruitless(kind))
    outcome = made(kind, tiny_index, model, budget=Budget(decisions=2)).ask(QUESTION)
    assert outcome.ledger == []
    assert "no evidence was extracted" in model.requests[-1].messages[1].content
    found = made(kind, tiny_index, [*searching(kind, "Baikal seal"), "x"]).ask(QUESTION)
    assert found.ledger[0].text.strip() == "The Baikal seal lives only in Lake Baikal."
    assert {item.passage_id.rpartition("%p")[0] for item in found.ledger} == {item.docno for item in found.ledger}


def test_a_malformed_reply_is_asked_again_as_often_as_repairs_allow(kind, tiny_index, topics):
    broken = [ToolCall("b0", "look_up", "{")]
    model = ScriptedModel([broken, "", *searching(kind, "Baikal seal"), "In Lake Baikal."])
    (row,) = made(kind, tiny_index, model)(topics).to_dict("records")
    assert (row["stop_reason"], row["repairs"], row["qanswer"]) == ("answered", 2, "In Lake Baikal.")
    assert row["decisions"] == len(searching(kind, "")) + 1
    assert model.requests[1].messages[-1].role == "tool"
    assert "there is no tool" in model.requests[1].messages[-1].content
    assert model.requests[2].messages[-1].role == "user"


@pytest.mark.parametrize(
    ("replies", "repairs", "reason", "n_asked"),
    [
        ([""], 0, "no_action", 1),
        (["", "", ""], 2, "no_action", 3),
        ([[ToolCall("a", "nothing", "{}")]], 0, "repair_exhausted", 1),
        ([[ToolCall("a", "nothing", "{}")]] * 3, 2, "repair_exhausted", 3),
        ([Reply("cut off in the mid", finish_reason="length")] * 3, 2, "repair_exhausted", 3),
        ([Reply(None, finish_reason="content_filter")], 2, "filtered", 1),
        ([Reply(None, refusal="No.")], 2, "filtered", 1),
        ([DataError("a reply is needed", "HTTP 500")], 2, "model_error", 1),
    ],
)
def test_a_question_that_cannot_go_on_ends_with_its_reason_and_without_an_answer(
    kind, tiny_index, topics, replies, repairs, reason, n_asked
):
    model = ScriptedModel(replies)
    agent = made(kind, tiny_index, model, budget=Budget(decisions=5, repairs=repairs))
    (row,) = agent(topics).to_dict("records")
    assert (row["stop_reason"], row["qanswer"], row["decisions"]) == (reason, "", 1)
    assert row["error"]
    assert len(model.requests) == n_asked


def test_a_model_error_behind_a_search_keeps_what_was_done(kind, tiny_index, topics):
    replies = [*searching(kind, "Baikal seal"), DataError("a reply is needed", "HTTP 500")]
    (row,) = made(kind, tiny_index, replies)(topics).to_dict("records")
    assert row["stop_reason"] == "model_error"
    assert "HTTP 500" in row["error"]
    assert row["retrieval_requests"] == 1
    assert row["extract_pairs"] > 0
    assert row["final_step_tokens"] > 0


def test_tokens_of_a_question_without_any_reply_are_unknown_not_zero(kind, tiny_index, topics):
    (row,) = made(kind, tiny_index, [DataError("a reply is needed", "HTTP 500")])(topics).to_dict("records")
    assert pd.isna(row["final_step_tokens"])
    assert pd.isna(row["total_tokens"])
    assert row["token_source"] == ""


def test_a_model_that_is_set_up_wrongly_ends_the_whole_run(kind, tiny_index, topics):
    with pytest.raises(SpecError, match="a key"):
        made(kind, tiny_index, [SpecError("a key is needed", "none")])(topics)


def test_a_broken_index_is_no_outcome(kind, tiny_index, topics):
    class Broken:
        columns = tiny_index.columns

        def __len__(self):
            return 0

        def search(self, query, k):
            raise OSError("a torn file")

        search_many = fetch = search

        def statistics(self, analyzer):
            return tiny_index.statistics(analyzer)

    with record() as run, pytest.raises(OSError, match="a torn file"):
        made(kind, Broken(), [*searching(kind, "lake"), "x"])(topics)
    assert run.run().answers.empty
    assert run.run().events.empty


def test_the_calls_of_a_reply_are_answered_each_by_its_own_message_in_order(kind, tiny_index, topics):
    names = {
        "query": [call("search", "a", query="Nile"), call("search", "b", query="Lena")],
        "tool": [call("retrieve", "a", query="Nile", name="n"), call("retrieve", "b", query="Lena", name="l")],
        "program": [call("run_program", "a", code="1 + 1"), call("run_program", "b", code="2 + 2")],
    }
    model = ScriptedModel([names[kind], "done"])
    (row,) = made(kind, tiny_index, model)(topics).to_dict("records")
    messages = model.requests[1].messages[-2:]
    assert [message.tool_call_id for message in messages] == ["a", "b"]
    assert row["decisions"] == 2
    if kind == "program":
        assert messages[0].content.startswith("2")
        assert messages[1].content.startswith("not run: a turn takes one cell")
    else:
        assert "Nile" in messages[0].content
        assert "Lena" in messages[1].content
        assert row["retrieval_requests"] == 2
    assert "decisions left: 7" in messages[1].content
    assert "decisions left" not in messages[0].content


def test_a_call_that_cannot_run_beside_one_that_can_is_told_and_costs_no_repair(kind, tiny_index, topics):
    good = fruitless(kind)[0]
    model = ScriptedModel([[good, ToolCall("bad", "nothing", "{}")], "done"])
    (row,) = made(kind, tiny_index, model)(topics).to_dict("records")
    assert row["repairs"] == 0
    assert model.requests[1].messages[-1].content.startswith("error: there is no tool 'nothing'")


def test_a_larger_k_than_the_funnel_s_is_capped_and_the_observation_says_so(kind, tiny_index, topics):
    funnel = Funnel(retrieve=4, rerank=3, extract=2)
    model = ScriptedModel([*searching(kind, "lake Siberia river", k=50), "done"])
    (row,) = made(kind, tiny_index, model, funnel=funnel)(topics).to_dict("records")
    assert row["returned_documents"] <= 4
    outcome = made(kind, tiny_index, [*searching(kind, "lake Siberia river", k=50), "done"], funnel=funnel).ask("?")
    assert len(outcome.ledger) == 2
    assert "extract gives at most 2; k was larger and is capped" in told(model)


def test_a_smaller_k_is_honoured(kind, tiny_index):
    outcome = made(kind, tiny_index, [*searching(kind, "lake Siberia river", k=1), "done"]).ask("?")
    assert len(outcome.ledger) == 1


def test_the_scores_are_those_of_the_pipeline(kind, tiny_index, tiny_collection):
    topics = tiny_collection.topics.head(1)
    query = topics["query"][0]
    pipeline = Retrieve(tiny_index, k=20) >> Rerank(Lexical(), k=10) >> Extract(Lexical(), k=10)
    with record() as expected:
        pipeline(topics)
    with record() as found:
        made(kind, tiny_index, [*searching(kind, query), "done"])(topics)

    def candidates(run):
        rows = run.run().candidates.merge(run.run().events[["event", "kind"]], on="event")
        keys = ["kind", "side", "docno", "passage", "start", "end", "score"]
        rows = rows[(rows["side"] == "out") | rows["passage"].notna()]
        return rows[keys].astype({"docno": str, "side": str, "kind": str}).sort_values(keys, ignore_index=True)

    pd.testing.assert_frame_equal(candidates(found), candidates(expected))


def test_nothing_of_the_task_but_its_question_reaches_the_model(kind, tiny_index, tiny_collection):
    topics = pd.DataFrame(
        [{"qid": "SECRET-QID", "query": QUESTION, "answer": "SECRET-ANSWER", "gold": "SECRET-LABEL", "year": 1}]
    )
    model = always(searching(kind, "Baikal")[0])
    answers = made(kind, tiny_index, model, budget=Budget(decisions=3))(topics)
    assert "SECRET" not in told(model)
    assert "SECRET" not in json.dumps([request.to_dict() for request in model.requests])
    assert answers["answer"][0] == "SECRET-ANSWER"


def test_provider_usage_is_taken_and_final_step_tokens_are_those_of_the_last_decision(kind, tiny_index, topics):
    script = searching(kind, "Baikal seal")
    replies = [
        Reply(tool_calls=tuple(turn), usage=Usage(100 * (n + 1), 10, cached_tokens=5, source="provider"))
        for n, turn in enumerate(script)
    ]
    final = Reply("From the finalizer.", usage=Usage(7, 3, source="provider"))
    outcome = made(kind, tiny_index, [*replies, final], budget=Budget(decisions=len(script))).ask(QUESTION)
    n = len(script)
    assert outcome.spent.final_step_tokens == 100 * n + 10
    assert outcome.spent.total_tokens == sum(100 * (k + 1) + 10 for k in range(n)) + 10
    assert outcome.spent.cached_tokens == 5 * n
    assert outcome.spent.source == "provider"


def test_tokens_that_no_provider_counted_say_so(kind, tiny_index, topics):
    (row,) = made(kind, tiny_index, ["at once"])(topics).to_dict("records")
    assert row["token_source"] == "characters/4"
    assert row["final_step_tokens"] == row["total_tokens"] > 0


def test_costs_are_those_of_the_recorded_events(kind, tiny_index, topics):
    with record() as run:
        (row,) = made(kind, tiny_index, [*searching(kind, "Baikal seal"), "x"])(topics).to_dict("records")
    events = run.run().events
    of = {name: events[events["kind"] == name] for name in ("retrieve", "rerank", "extract")}
    assert row["retrieval_requests"] == len(of["retrieve"])
    assert row["returned_documents"] == of["retrieve"]["n_out"].sum()
    assert row["rerank_pairs"] == of["rerank"]["n_in"].sum()
    assert row["extract_calls"] == len(of["extract"])
    rows = run.run().candidates
    assert row["extract_pairs"] == ((rows["side"] == "in") & rows["passage"].notna()).sum()
    assert row["seconds"] > 0
    assert events["decision"].min() == 0


def test_the_record_replays_to_the_same_answers(kind, tiny_index, topics, tmp_path):
    script = ["", *searching(kind, "Baikal seal"), *searching(kind, "Nile")]
    folder = tmp_path / "run"
    budget = Budget(decisions=len(script) - 1, repairs=2)
    with record(folder):
        first = made(kind, tiny_index, [*script, "From the finalizer."], budget=budget)(topics)
    assert first["stop_reason"].tolist() == ["budget"]
    again = made(kind, tiny_index, ReplayModel(folder), budget=budget)
    second = again(topics)
    assert again.model.remaining == 0
    drop = ["seconds"]
    pd.testing.assert_frame_equal(first.drop(columns=drop), second.drop(columns=drop))


def test_a_record_that_goes_on_does_not_ask_again(kind, tiny_index, tmp_path):
    folder = tmp_path / "run"
    questions = pd.DataFrame([{"qid": str(n), "query": f"Where is lake {n}?"} for n in range(4)])
    with record(folder):
        first = made(kind, tiny_index, Answering())(questions.head(3))
    late = Answering()
    with record(folder, mode="resume"):
        second = made(kind, tiny_index, late)(questions)
    assert late.n_asked == 1
    pd.testing.assert_frame_equal(second.head(3), first)
    assert Run.open(folder).answers["qid"].tolist() == ["0", "1", "2", "3"]
    with record(folder, mode="resume"), pytest.raises(DataError, match="one question a qid is needed in a record"):
        made(kind, tiny_index, late)(questions.assign(query="Another question?"))


@pytest.mark.parametrize("n_parallel", [1, 2])
def test_an_interrupt_leaves_the_finished_questions_and_the_run_goes_on_behind_them(
    kind, tiny_index, tmp_path, n_parallel
):
    class Interrupting(Answering):
        armed = True

        def complete(self, messages, **settings):
            if self.armed and "lake 2" in messages[1].content:
                raise KeyboardInterrupt
            return super().complete(messages, **settings)

    questions = pd.DataFrame([{"qid": str(n), "query": f"Where is lake {n}?"} for n in range(4)])
    folder, model = tmp_path / "run", Interrupting()
    with pytest.raises(KeyboardInterrupt), record(folder):
        made(kind, tiny_index, model, n_parallel=n_parallel)(questions)
    left = Run.open(folder)
    assert left.meta["status"] == "interrupted"
    assert "2" not in {str(line["qid"]) for line in left.iter_answers()}
    model.armed = False
    with record(folder, mode="resume"):
        answers = made(kind, tiny_index, model, n_parallel=n_parallel)(questions)
    assert model.n_asked == 4
    assert answers["qanswer"].tolist() == [f"About: Where is lake {n}?" for n in range(4)]
    assert sorted(Run.open(folder).answers["qid"]) == ["0", "1", "2", "3"]


def test_questions_side_by_side_give_the_rows_that_they_give_one_by_one(kind, tiny_index):
    questions = pd.DataFrame(
        [{"qid": str(n), "query": q} for n, q in enumerate(["lake", "river", "seal", "Cairo", "Nile"])]
    )

    def policy(request):
        n = sum(message.role == "assistant" for message in request.messages)
        script = [*searching(kind, request.messages[1].content), f"about {request.messages[1].content}"]
        return script[n]

    with record() as one:
        serial = made(kind, tiny_index, ScriptedModel(policy))(questions)
    with record() as four:
        parallel = made(kind, tiny_index, ScriptedModel(policy), n_parallel=4)(questions)
    pd.testing.assert_frame_equal(serial.drop(columns="seconds"), parallel.drop(columns="seconds"))
    assert parallel["qanswer"].tolist() == ["about lake", "about river", "about seal", "about Cairo", "about Nile"]

    def events(run):
        keys = ["qid", "decision", "call", "kind", "label", "n_in", "n_out"]
        return run.run().events[keys].astype(str).sort_values(keys, ignore_index=True)

    pd.testing.assert_frame_equal(events(one), events(four))
    parents = four.run().events.set_index("event")
    for event, parent in parents["parent"].items():
        assert parent < 0 or (parent < event and parents.loc[parent, "qid"] == parents.loc[event, "qid"])


def test_an_agent_is_its_constructor_arguments(kind, tiny_index):
    model = ScriptedModel(["x"])
    one, same = (AGENTS[kind](model, tiny_index, budget=Budget(decisions=3)) for _ in range(2))
    other = AGENTS[kind](model, tiny_index, budget=Budget(decisions=4))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert "Budget(decisions=3" in repr(one)
    assert "funnel" not in repr(one)
    assert one.record_name == one.with_arguments(n_parallel=3).record_name


def test_frames_keep_their_columns_and_an_empty_one_has_the_promised_columns(kind, tiny_index, topics):
    agent = made(kind, tiny_index, ScriptedModel(lambda request: "x"))
    promised = pt.inspect.transformer_outputs(agent, ["qid", "query", "extra"])
    assert list(agent(topics.assign(extra=1)).columns) == promised
    assert list(agent(topics.head(0)).columns) == agent.transform_outputs(["qid", "query"])
    assert agent([{"qid": "1", "query": "q"}])[0]["qanswer"] == "x"


@pytest.mark.parametrize(
    "rows",
    [
        [{"qid": "1", "query": "a"}, {"qid": "1", "query": "b"}],
        [{"qid": "1", "query": "a", "docno": "d"}],
        [{"qid": "1", "query": "  "}],
        [{"qid": "1", "query": None}],
    ],
)
def test_what_is_no_question_is_refused(kind, tiny_index, rows):
    with pytest.raises(FrameError, match="question"):
        made(kind, tiny_index, ["x"]).process(to_groups(rows))


def test_agents_compose_with_stages_before_them_and_are_traced(kind, tiny_index, topics):
    from searchops.fusion import Rewrite

    model = ScriptedModel([*searching(kind, "Baikal seal"), "x"])
    pipeline = Rewrite("{query} Answer in one word.") >> made(kind, tiny_index, model)
    with record() as run:
        answers = pipeline(topics)
    assert answers["query"][0] == f"{QUESTION} Answer in one word."
    assert model.requests[0].messages[1].content == f"{QUESTION} Answer in one word."
    events = run.run().events
    assert {"rewrite", "retrieve", "rerank", "extract", "agent"} <= set(events["kind"])


def test_a_prompt_of_the_user_s_is_used_and_recorded_by_its_hash(kind, tiny_index, topics, tmp_path):
    from hashlib import sha256

    file = tmp_path / "mine.md"
    file.write_text("Search $decisions times at most. It costs $5.", encoding="utf-8")
    model = ScriptedModel(["x"])
    with record() as run:
        made(kind, tiny_index, model, prompt=str(file))(topics)
    assert model.requests[0].messages[0].content == "Search 8 times at most. It costs $5."
    told_of = run.run().meta["prompts"]["0"]
    assert told_of["system"] == {"source": str(file), "sha256": sha256(file.read_bytes()).hexdigest()}
    assert told_of["finalizer"]["source"] == "finalizer.md"
    file.write_text("Another one.", encoding="utf-8")
    with record() as run:
        run.meta["prompts"] = {"0": told_of}
        with pytest.raises(DataError, match="the prompts that the record was made with"):
            made(kind, tiny_index, model, prompt=str(file))(topics)


def test_every_call_asks_with_temperature_0_and_4096_tokens(kind, tiny_index, topics):
    model = always(fruitless(kind))
    AGENTS[kind](model, tiny_index, budget=Budget(decisions=2))(topics)
    assert [(r.temperature, r.max_tokens) for r in model.requests] == [(0.0, 4096)] * 3
    assert pickle.loads(pickle.dumps(replace(Budget(), decisions=3))) == Budget(decisions=3)


def test_calls_without_ids_of_their_own_are_given_some(kind, tiny_index, topics):
    turn = [replace(fruitless(kind)[0], id=""), replace(fruitless(kind)[0], id="")]
    model = ScriptedModel([turn, "done"])
    made(kind, tiny_index, model)(topics)
    assistant, *answers = model.requests[1].messages[2:]
    ids = [each.id for each in assistant.tool_calls]
    assert len(set(ids)) == 2
    assert [message.tool_call_id for message in answers] == ids


def test_costs_in_money_add_up_and_are_unknown_where_no_call_had_a_price(kind, tiny_index):
    turn = tuple(fruitless(kind))
    priced = [Reply(tool_calls=turn, cost_usd=0.25), Reply("done", cost_usd=0.5)]
    assert made(kind, tiny_index, priced).ask("q").spent.cost_usd == 0.75
    assert made(kind, tiny_index, [Reply(tool_calls=turn), "done"]).ask("q").spent.cost_usd is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"model": "gpt"}, "a chat model is needed"),
        ({"index": "path"}, "an index is needed"),
        ({"scorer": "lexical"}, "a scorer is needed"),
        ({"n_parallel": 0}, "n_parallel must be a whole number"),
    ],
)
def test_an_agent_refuses_what_it_cannot_work_with(kind, tiny_index, arguments, words):
    with pytest.raises(FrameError, match=words):
        AGENTS[kind](**{"model": ScriptedModel([]), "index": tiny_index, **arguments})


def test_the_label_names_the_interface(kind, tiny_index):
    assert made(kind, tiny_index, []).label() == f"{kind} agent"
