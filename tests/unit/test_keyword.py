"""The keyword policy: its term rules, what it asks next, and its searches through the three interfaces."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

import searchops as so
from searchops.agents import Budget, ProgramAgent, QueryAgent, ToolAgent
from searchops.agents.keyword import KeywordPolicy
from searchops.agents.keyword_queries import Round, next_queries, sources
from searchops.agents.keyword_terms import names, stems, words
from searchops.agents.observations import Item
from searchops.agents.schemas import PROGRAM_TOOLS, QUERY_TOOLS, TOOL_TOOLS
from searchops.corpus import Collection
from searchops.errors import DataError, SpecError
from searchops.models import ChatModel, Message, ScriptedModel, Tool, ToolCall
from searchops.registry import lookup

QUESTION = "Which film has the director who died earlier, Payment On Demand or My Cousin From Warsaw?"
AGENTS = {"query": QueryAgent, "tool": ToolAgent, "program": ProgramAgent}


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """Two films, their directors in documents of their own, and what has nothing to do with them."""
    texts = [
        ("a", "Payment on Demand", "Payment on Demand is a 1951 film directed by Curtis Bernhardt."),
        ("b", "Curtis Bernhardt", "Curtis Bernhardt was born in Worms. The director died in California in 1981."),
        ("c", "My Cousin from Warsaw", "My Cousin from Warsaw is a 1931 film directed by Carl Boese."),
        ("d", "Carl Boese", "Carl Boese was a German. The director died on 6 July 1958."),
        ("e", "Tea", "Tea is a drink made of leaves. It is drunk hot."),
    ]
    documents = pd.DataFrame(texts, columns=["docno", "title", "text"])
    collection = Collection(name="films", documents=documents, topics=None, qrels=None, evidence=None)
    return so.LuceneIndex.build(collection, tmp_path_factory.mktemp("index") / "films", progress=False)


def calls_of(outcome):
    return [call for line in outcome.lines for call in line.get("calls", ())]


def queries_of(outcome):
    """All queries of a question, whatever interface they went through."""
    found = []
    for call in calls_of(outcome):
        if call["name"] in ("search", "retrieve"):
            found.append(call["arguments"]["query"])
        elif call["name"] == "run_program":
            code = call["arguments"]["code"]
            found += eval(code[code.rindex("look(") + 5 : -1])
    return found


# -- terms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Were Scott Derrickson and Ed Wood of the same nationality?", ["Scott Derrickson", "Ed Wood"]),
        ("He co-founded The Libertines with Carl Barât in 1997.", ["The Libertines", "Carl Barât"]),
        ('The creator of "Wallace and Gromit" left.', ["Wallace and Gromit"]),
        ("Who died later, What Will You Catch? or School On Fire", ["What Will You Catch", "School On Fire"]),
        ("Who died later, What Will You Do?", []),
        ("George W. Bush met Dr. Smith on Monday.", ["George W. Bush", "Dr. Smith"]),
        ("It lies in the United States of America, near Lake Huron.", ["United States of America", "Lake Huron"]),
        ("Call functools.lru_cache or json.loads here.", ["functools.lru_cache", "json.loads"]),
        ("The Boeing 747 flew over São Paulo.", ["Boeing 747", "São Paulo"]),
        ("NASA launched it.", ["NASA"]),
        ("Directed by nobody. Written by nobody.", []),
        ("In March 1990 it rained.", []),
        ("", []),
    ],
)
def test_names_are_capitalised_sequences_quoted_titles_and_identifiers(text, expected):
    assert [name.text for name in names(text)] == expected


def test_a_word_that_only_begins_a_sentence_is_no_name_but_one_that_is_capitalised_elsewhere_is():
    assert [name.text for name in names("Rivers flow. People like Rivers.")] == ["Rivers"]
    assert names("Rivers flow. People like rivers.") == ()


def test_a_single_capital_is_a_weak_name_and_two_words_or_quotes_make_a_strong_one():
    found = {name.text: name.strong for name in names('A German film with Bette Davis and "Fear".')}
    assert found == {"German": False, "Bette Davis": True, "Fear": True}


def test_quotations_that_are_no_titles_are_left_out():
    assert names('He said "it is a very long day and none of us knows how it will end at last" then.') == ()
    assert names('They called it "a day".') == ()


def test_telling_words_are_stems_with_their_first_surface_and_no_function_words():
    assert dict(words("Which bands did the band's members leave?")) == {
        "band": "bands", "member": "members", "leav": "leave",
    }  # fmt: skip
    assert stems("of the and") == frozenset()


# -- what is asked next --------------------------------------------------------------------------


def ask(rounds, question=QUESTION, **settings):
    return next_queries(question, rounds, **{"queries": 12, "parallel": 2, "patience": 2, **settings})


def test_the_question_comes_first_as_it_is():
    assert ask([], "  Who wrote\n Emma? ") == ["Who wrote Emma?"]


def test_what_the_question_names_and_no_title_shows_comes_next():
    shown = Item("x%p0", "Films of Warsaw", "A film and its director.")
    assert ask([Round([QUESTION], [shown])]) == [
        "Payment On Demand film director died", "My Cousin From Warsaw film director died",
    ]  # fmt: skip


def test_new_names_come_before_names_that_were_read_about():
    rounds = [
        Round(
            [QUESTION],
            [
                Item("a%p0", "Payment on Demand", "Payment on Demand is a film directed by Curtis Bernhardt."),
                Item("c%p0", "My Cousin from Warsaw", "It is a film by the German director Carl Boese, of Warsaw."),
                Item("d%p0", "Carl Boese", "Carl Boese was a director."),
            ],
        )
    ]
    first, second = ask(rounds)
    assert first.startswith("Curtis Bernhardt ")
    assert second.startswith(("Payment on Demand", "My Cousin from Warsaw", "Carl Boese"))
    asked = [*rounds, Round([first, second], [])]
    assert not any("Curtis Bernhardt" in query for query in ask(asked))


def test_a_query_carries_the_words_of_the_question_that_are_still_open():
    shown = Item("a%p0", "Emma", "Emma is a novel by Jane Austen.")
    assert ask([Round(["q"], [shown])], "When was the novel Emma published?", parallel=1) == ["Jane Austen published"]


def test_a_single_capital_of_the_question_waits_behind_new_names():
    shown = Item("a%p0", "Fear", "Fear is a rock band whose drummer is Ann Other.")
    rounds = [Round(["q"], [shown])]
    assert ask(rounds, "Which Canadian rock band did a drummer leave?")[0] == "Ann Other Canadian leave"
    assert ask([Round(["q"], [])], "Which Canadian rock band did a drummer leave?")[0] == "Canadian rock band drummer"


def test_words_that_a_query_asked_already_are_not_asked_alone():
    shown = Item("a%p0", "Fear", "Fear is a rock band whose drummer is Ann Other.")
    asked = ask([Round(["q"], [shown])], "Which Canadian rock band did a drummer leave?", parallel=9)
    assert asked == ["Ann Other Canadian leave"]


def test_names_of_passages_that_share_nothing_with_the_question_are_not_followed():
    untied = Item("z%p0", "Tea", "Tea came with Marco Polo.")
    asked = ask([Round([QUESTION], [untied])], parallel=10)
    assert asked
    assert not any("Marco" in query for query in asked)


def test_where_no_name_is_left_rare_words_of_tied_passages_are_asked():
    shown = Item("a%p0", "", "boiling water dissolves crystals of sugar")
    other = Item("b%p0", "", "water and sugar in pots")
    rounds = [Round(["q"], [shown, other])]
    assert ask(rounds, "does water dissolve sugar?", parallel=1) == ["boiling crystals"]


def test_two_rounds_that_show_nothing_new_of_use_end_the_search():
    first = Round([QUESTION], [Item("a%p0", "Payment on Demand", "A film directed by Curtis Bernhardt and Ann Other.")])
    vain = Round(["Curtis Bernhardt"], [Item("z%p0", "Tea", "Tea is hot.")])
    assert ask([first, vain], patience=2)
    assert ask([first, vain, vain], patience=2) == []
    again = Round(["Ann Other"], first.shown)
    assert ask([first, vain, again], patience=2) == []
    assert ask([first, vain, again], patience=3)


def test_no_more_queries_are_asked_than_allowed():
    shown = [Item(f"a{n}%p0", "", f"The film director Xaver Name{n} died.") for n in range(9)]
    rounds = [Round([QUESTION], shown)]
    assert len(ask(rounds, queries=2, parallel=5)) == 1
    assert ask(rounds, queries=1) == []
    assert len(ask(rounds, queries=100, parallel=3)) == 3


def test_sources_are_listed_once_with_the_most_related_first():
    weak, strong = Item("w%p0", "Tea", "Hot."), Item("s%p0", "Payment on Demand", "A film whose director died.")
    assert sources(QUESTION, [Round([], [weak, strong]), Round([], [weak])]) == [strong, weak]


# -- the three interfaces, for real --------------------------------------------------------------


@pytest.mark.parametrize("name", AGENTS)
def test_it_finds_both_directors_whom_the_question_does_not_name(films, name):
    outcome = AGENTS[name](KeywordPolicy(), films).ask(QUESTION)
    assert outcome.stop_reason == "answered"
    found = {item.docno for item in outcome.ledger}
    assert {"a", "b", "c", "d"} <= found
    asked = queries_of(outcome)
    assert asked[0] == QUESTION
    assert any(query.startswith("Curtis Bernhardt") for query in asked)
    assert any(query.startswith("Carl Boese") for query in asked)
    assert len(set(asked)) == len(asked)
    assert not any(call["failed"] for call in calls_of(outcome))


@pytest.mark.parametrize("name", AGENTS)
def test_the_answer_says_that_it_is_none_and_lists_its_sources(films, name):
    answer = AGENTS[name](KeywordPolicy(), films).ask(QUESTION).answer
    assert answer.startswith("No answer. This policy has no model: it gives evidence, not an answer.")
    assert "[a%p0] Payment on Demand" in answer.splitlines()


def test_the_first_two_queries_of_a_round_go_in_one_decision_of_the_query_interface(films):
    outcome = QueryAgent(KeywordPolicy(), films).ask(QUESTION)
    assert [len(line.get("calls", ())) for line in outcome.lines][:2] == [1, 2]
    assert outcome.decisions == len([line for line in outcome.lines if line.get("calls")]) + 1


def test_a_round_of_the_tool_interface_takes_three_turns_and_pools_two_queries(films):
    outcome = ToolAgent(KeywordPolicy(), films).ask(QUESTION)
    turns = [[call["name"] for call in line["calls"]] for line in outcome.lines if line.get("calls")]
    assert turns[:3] == [["retrieve"], ["rerank"], ["extract"]]
    assert turns[3:6] == [["retrieve", "retrieve"], ["dedupe", "rerank"], ["extract"]]


def test_cells_show_a_passage_once_and_a_clipped_note(films):
    outcome = ProgramAgent(KeywordPolicy(note_chars=20), films).ask(QUESTION)
    text = "\n".join(call["observation"] for call in calls_of(outcome))
    assert text.count("[a%p0]") == 1
    assert "[a%p0] Payment on Demand\n  Payment on Demand is\n" in text + "\n"


def test_the_first_cell_defines_what_the_others_call(films):
    codes = [call["arguments"]["code"] for call in calls_of(ProgramAgent(KeywordPolicy(), films).ask(QUESTION))]
    assert "def look(queries):" in codes[0]
    assert all(code.startswith("look([") for code in codes[1:])
    assert len(codes) > 1


def test_it_reads_nothing_but_messages_so_that_the_same_messages_give_the_same_reply(films):
    outcome = QueryAgent(KeywordPolicy(), films).ask(QUESTION)
    again = QueryAgent(KeywordPolicy(), films).ask(QUESTION)
    assert [line["reply"] for line in outcome.lines] == [line["reply"] for line in again.lines]


def test_one_policy_serves_several_questions_at_once(films):
    agent = QueryAgent(KeywordPolicy(), films)
    questions = [QUESTION, "Who is Carl Boese?", "What is tea made of?"] * 4
    alone = [queries_of(agent.ask(question)) for question in questions]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda question: queries_of(agent.ask(question)), questions)) == alone


@pytest.mark.parametrize("name", AGENTS)
def test_a_question_that_finds_nothing_ends_at_once(films, name):
    outcome = AGENTS[name](KeywordPolicy(), films).ask("qwertz zxcvb?")
    assert outcome.stop_reason == "answered"
    assert outcome.ledger == []
    assert outcome.answer.endswith("It found none.")
    assert outcome.decisions <= 4


@pytest.mark.parametrize("name", AGENTS)
def test_when_the_budget_ends_the_finalizer_lists_the_ledger(films, name):
    outcome = AGENTS[name](KeywordPolicy(), films, budget=Budget(decisions=3)).ask(QUESTION)
    assert outcome.stop_reason == "budget"
    assert "[a%p0] Payment on Demand" in outcome.answer
    assert outcome.answer.startswith("No answer.")


# -- replies to what goes wrong ------------------------------------------------------------------


def told(calls, texts, question="Who directed Payment on Demand?"):
    """A conversation with one turn of the past."""
    made = tuple(ToolCall(f"c{n}", name, json.dumps(arguments)) for n, (name, arguments) in enumerate(calls))
    replies = [Message("tool", text, tool_call_id=f"c{n}") for n, text in enumerate(texts)]
    return [Message("system", "s"), Message("user", question), Message("assistant", None, made), *replies]


def test_a_retrieve_that_failed_is_left_out_of_the_pool():
    calls = [("retrieve", {"query": "a", "name": "found_1_1"}), ("retrieve", {"query": "b", "name": "found_1_2"})]
    reply = KeywordPolicy().complete(told(calls, ["error: too long", "found_1_2 = retrieve"]), tools=TOOL_TOOLS)
    assert [(call.name, json.loads(call.arguments)["candidates"]) for call in reply.tool_calls] == [
        ("rerank", "found_1_2")
    ]


def test_a_round_whose_retrieves_all_failed_is_over():
    calls = [("retrieve", {"query": "Who directed Payment on Demand?", "name": "found_1_1"})]
    reply = KeywordPolicy().complete(told(calls, ["error: broken"]), tools=TOOL_TOOLS)
    assert [json.loads(call.arguments)["name"] for call in reply.tool_calls] == ["found_2_1"]


def test_a_rerank_that_failed_ends_its_round():
    messages = told([("rerank", {"candidates": "x", "name": "best_1"})], ["not run: call it in the next turn"])
    assert {call.name for call in KeywordPolicy().complete(messages, tools=TOOL_TOOLS).tool_calls} == {"retrieve"}


def test_a_first_cell_that_failed_is_written_whole_again():
    code = "look(['Who directed Payment on Demand?'])"
    messages = told([("run_program", {"code": code})], ["limit: out of memory"])
    reply = KeywordPolicy().complete(messages, tools=PROGRAM_TOOLS)
    assert "def look(queries):" in json.loads(reply.tool_calls[0].arguments)["code"]


def test_calls_of_others_in_the_conversation_do_not_break_it():
    messages = told([("search", {"query": "x"}), ("run_program", {"code": "1 + 1"})], ["[a%p0] A\n  Film.", "2"])
    messages[2] = Message("assistant", None, (*messages[2].tool_calls, ToolCall("c9", "search", "{not json")))
    messages.append(Message("tool", "error", tool_call_id="c9"))
    cell = json.dumps({"code": "look([x for x in y])"})
    messages[2] = Message("assistant", None, (*messages[2].tool_calls, ToolCall("c8", "run_program", cell)))
    messages[2] = Message("assistant", None, (*messages[2].tool_calls, ToolCall("c10", "search", "[1]")))
    assert KeywordPolicy().complete(messages, tools=QUERY_TOOLS).tool_calls


def test_tools_that_it_does_not_know_are_not_called():
    other = Tool("grep", parameters={"type": "object", "properties": {}, "required": []})
    reply = KeywordPolicy().complete([Message("user", "Who?")], tools=[other])
    assert reply.tool_calls == ()
    assert reply.content.startswith("No answer.")


def test_long_lists_of_sources_are_cut_and_say_so():
    items = "\n".join(f"[d{n}%p0] Film {n}\n  A film." for n in range(25))
    messages = told([("search", {"query": "Film"})], [items], "Which film?")
    answer = KeywordPolicy(queries=1).complete(messages, tools=QUERY_TOOLS).content
    assert answer.count("[d") == 20
    assert answer.endswith("and 5 more")


def test_a_conversation_without_a_question_is_an_error():
    with pytest.raises(DataError, match="a question is needed"):
        KeywordPolicy().complete([Message("system", "s")], tools=QUERY_TOOLS)


@pytest.mark.parametrize("setting", ["queries", "parallel", "patience", "note_chars"])
@pytest.mark.parametrize("value", [0, True, 1.5])
def test_settings_are_whole_numbers_above_0(setting, value):
    with pytest.raises(SpecError, match=setting):
        KeywordPolicy(**{setting: value})


def test_it_is_a_chat_model_by_the_name_keyword():
    assert isinstance(KeywordPolicy(), ChatModel)
    assert lookup("model", "keyword") is KeywordPolicy
    assert KeywordPolicy(queries=3) == KeywordPolicy(queries=3) != KeywordPolicy()


def test_the_policy_gets_no_label_or_answer_to_see(films):
    """All that a model is asked holds the question and what the index holds: a planted answer is in neither."""
    seen = ScriptedModel(lambda request: KeywordPolicy().complete(request.messages, tools=request.tools))
    topics = pd.DataFrame([{"qid": "1", "query": QUESTION, "answer": "PLANTED"}])
    QueryAgent(seen, films)(topics)
    assert seen.requests
    assert "PLANTED" not in repr(seen.requests)
