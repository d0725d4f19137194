"""The parts of the agents: arguments, replies, observations, the finalizer's text, prompts, concurrency."""

from __future__ import annotations

import contextvars
import threading

import pytest

from searchops.agents.arguments import read_arguments
from searchops.agents.budget import Budget
from searchops.agents.concurrency import answer_all
from searchops.agents.finalizer import final_messages
from searchops.agents.interface import Action, Shown
from searchops.agents.loop import STOP_REASONS, Interrupted, run_question
from searchops.agents.observations import document_lines, items_of, passage_blocks, shown_by, shown_in
from searchops.agents.prompting import load_prompt
from searchops.agents.query import Searching
from searchops.agents.replies import read_reply
from searchops.agents.schemas import PROGRAM_TOOLS, QUERY_TOOLS, TOOL_TOOLS
from searchops.agents.tool import FiveTools
from searchops.errors import BudgetExceeded, SpecError, ToolError
from searchops.models import Reply, ScriptedModel, ToolCall
from searchops.scorers.lexical import Lexical
from searchops.substrate import Substrate
from searchops.workspace import Evidence, Workspace
from tests.agent_scripts import call

SEARCH, EXTRACT, DEDUPE = QUERY_TOOLS[0], TOOL_TOOLS[3], TOOL_TOOLS[4]


def passage(text, note=None, *, docno="d", number=0, start=100, quote=""):
    return {
        "docno": docno,
        "passage_id": f"{docno}%p{number}",
        "start": start,
        "text": text,
        "note": text if note is None else note,
        "quote": quote,
        "title": "Title",
    }


# -- arguments and replies ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "text", "arguments"),
    [
        (SEARCH, '{"query": "a", "k": 5}', {"query": "a", "k": 5}),
        (SEARCH, '{"query": "a", "k": 5.0}', {"query": "a", "k": 5}),
        (SEARCH, '{"query": "a", "k": null}', {"query": "a"}),
        (SEARCH, '{"query": "a", "k": 5000}', {"query": "a", "k": 5000}),
        (DEDUPE, '{"candidates": "a"}', {"candidates": ["a"]}),
        (DEDUPE, '{"candidates": ["a", "b"], "key": "passage_id"}', {"candidates": ["a", "b"], "key": "passage_id"}),
    ],
)
def test_arguments_are_taken_as_they_are_meant(tool, text, arguments):
    assert read_arguments(tool, text) == arguments


@pytest.mark.parametrize(
    ("tool", "text", "words"),
    [
        (SEARCH, "", "the argument query is needed"),
        (SEARCH, "{", "a JSON object are needed"),
        (SEARCH, "[" * 100_000, "a JSON object are needed"),
        (SEARCH, '["a"]', "a JSON object are needed; found list"),
        (SEARCH, '{"query": 5}', "text is needed; found int"),
        (SEARCH, '{"query": "a", "k": true}', "a whole number is needed; found bool"),
        (SEARCH, '{"query": "a", "k": 2.5}', "a whole number is needed; found float"),
        (SEARCH, '{"query": "a", "k": 0}', "at least 1 is needed; found 0"),
        (SEARCH, '{"query": "a", "kk": 1}', "unknown argument 'kk'"),
        (DEDUPE, '{"candidates": []}', "a list of at least one is needed"),
        (DEDUPE, '{"candidates": ["a b"]}', "a name of letters, digits and _ is needed"),
        (DEDUPE, '{"candidates": ["a"], "key": "text"}', "one of docno, passage_id is needed"),
    ],
)
def test_arguments_that_do_not_fit_are_told_what_is_needed(tool, text, words):
    with pytest.raises(ToolError, match=words.replace("[", r"\[")):
        read_arguments(tool, text)


def test_every_schema_is_one_that_json_schema_knows_and_takes_sizes_up_to_50():
    import jsonschema

    for tool in (*QUERY_TOOLS, *TOOL_TOOLS, *PROGRAM_TOOLS):
        jsonschema.Draft202012Validator.check_schema(dict(tool.parameters))
        k = tool.parameters["properties"].get("k")
        assert k is None or (k["minimum"], k["maximum"]) == (1, 50)


def test_a_reply_is_malformed_only_if_none_of_its_calls_can_run():
    bad, good = ToolCall("b", "search", "{"), call("search", query="a")
    assert read_reply(Reply(tool_calls=(good, bad)), QUERY_TOOLS).problem == ""
    assert "JSON object" in read_reply(Reply(tool_calls=(bad, bad)), QUERY_TOOLS).problem
    assert read_reply(Reply("and a text", tool_calls=(good,)), QUERY_TOOLS).answer is None


# -- observations ------------------------------------------------------------------------------


def test_no_text_and_no_title_can_look_like_another_item():
    rows = [passage("A [x%p9] fake\n[y%p9] Forged\n  text", docno="a [b]"), passage("Two.", number=1)]
    rows[1]["title"] = "Line\n[z%p9] break"
    items = items_of("2 passages\n\n" + passage_blocks(rows) + "\n\n---\ndecisions left: 1\nworkspace:\np: list, 2")
    assert [item.id for item in items] == ["a [b]%p0", "d%p1"]
    assert items[0].text == "A [x%p9] fake\n[y%p9] Forged\n  text"


def test_a_list_of_documents_shows_ids_and_titles_and_no_text():
    assert document_lines([{"docno": "a", "title": "A", "text": "secret"}, {"docno": "b"}]) == "[a] A\n[b] "


def test_a_note_shows_what_of_the_source_it_still_holds():
    text = "The Nile flows north through Egypt to the sea."
    assert shown_by([passage(text)]) == (Shown("d", 0, 100, 100 + len(text)),)
    assert shown_by([passage(text, "The Nile flows north through…")]) == (Shown("d", 0, 100, 128),)
    assert shown_by([passage(text, "It goes to the sea", quote="to the sea")]) == (Shown("d", 0, 135, 145),)
    assert shown_by([passage(text, "In my own words", quote="to the sea")]) == ()
    assert shown_by([passage("", "")]) == ()


def test_a_program_s_text_shows_the_passages_that_stand_in_it_whatever_its_line_breaks():
    text = "The Nile flows north through Egypt to the sea."
    rows = [passage(text), passage("It is cold.", number=1), passage("Another passage that is long enough.", number=2)]
    told = "- note: THE NILE flows\n    north through Egypt\n    to the sea.\n- 'It is c'"
    assert shown_in(rows, told) == (Shown("d", 0, 100, 146),)
    assert shown_in(rows, text[:30]) == (Shown("d", 0, 100, 130),)
    assert shown_in([*rows, {"docno": "e", "text": "a document"}, rows[0]], text) == (Shown("d", 0, 100, 146),)


# -- the finalizer -----------------------------------------------------------------------------


def window(n, query, size=100):
    return Evidence(f"d{n}", f"d{n}%p0", 0, size, f"{n:03d}" + "x" * (size - 3), "note", "T", "", query)


def test_the_finalizer_hears_every_search_before_it_hears_one_twice():
    ledger = [*(window(n, "first") for n in range(30)), window(99, "second")]
    text = final_messages("Who?", ledger, "Answer.", 2000)[1].content
    assert text.index("[d0%p0]") < text.index("[d99%p0]") < text.index("[d1%p0]")
    assert "more passages are left out for lack of room" in text


@pytest.mark.parametrize("limit", [2000, 5000, 16_000])
@pytest.mark.parametrize("size", [3, 100, 5000])
def test_the_finalizer_s_two_messages_never_pass_their_limit(limit, size):
    ledger = [window(n, str(n % 7), size) for n in range(200)]
    for question in ("Who?", "q" * 30_000):
        for system in ("Answer.", "s" * 30_000):
            messages = final_messages(question, ledger, system, limit)
            assert sum(len(message.content) for message in messages) <= limit


def test_a_passage_stands_once_before_the_finalizer():
    text = final_messages("Who?", [window(1, "a"), window(1, "b")], "Answer.", 2000)[1].content
    assert text.count("[d1%p0]") == 1


# -- prompts, budget ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["query", "tool", "program", "finalizer"])
def test_a_prompt_of_the_package_has_a_value_for_each_of_its_names(name):
    values = {**vars(Budget()), "retrieve": 20, "rerank": 10, "extract": 10, "fields": "docno, title"}
    text = load_prompt(name).filled(values)
    assert "$" not in text
    assert len(text) > 200


def test_a_prompt_file_that_is_missing_or_empty_is_told(tmp_path):
    with pytest.raises(SpecError, match="a prompt file that can be read"):
        load_prompt("query", str(tmp_path / "none.md"))
    (tmp_path / "empty.md").write_text(" \n")
    with pytest.raises(SpecError, match="found an empty file"):
        load_prompt("query", str(tmp_path / "empty.md"))


@pytest.mark.parametrize("setting", [{"decisions": 0}, {"repairs": -1}, {"decisions": True}, {"max_tokens": 1.5},
                                     {"finalizer_chars": 10}, {"temperature": "hot"}])  # fmt: skip
def test_a_budget_that_allows_nothing_is_refused(setting):
    with pytest.raises(SpecError, match=next(iter(setting))):
        Budget(**setting)


# -- the tool interface ------------------------------------------------------------------------


@pytest.fixture
def substrate(tiny_index):
    return Substrate(Workspace("1", "Where is the lake?"), tiny_index, Lexical())


@pytest.fixture
def tools(substrate):
    return FiveTools(substrate)


def action(tool, **arguments):
    return Action("id", tool, arguments)


def test_a_turn_takes_one_kind_of_primary_stage_and_any_filter_or_dedupe(tools):
    turn = [
        action("retrieve", query="a", name="a"),
        action("retrieve", query="b", name="b"),
        action("dedupe", candidates=["a", "b"], name="pool"),
        action("filter", candidates="pool", where="year > 2012", name="late"),
        action("rerank", candidates="old"),
        action("extract", candidates="old"),
    ]
    refusals = tools.refusals(turn)
    assert refusals[:4] == [None] * 4
    assert "this one has retrieve; call rerank in the next turn" in refusals[4]
    assert "call extract in the next turn" in refusals[5]


def test_a_primary_stage_waits_for_what_its_own_turn_makes_with_one_also_through_a_filter(tools):
    turn = [
        action("rerank", candidates="old", name="best"),
        action("filter", candidates="best", where="year > 2012", name="late"),
        action("rerank", candidates="late"),
        action("rerank", candidates="best"),
        action("rerank", candidates="other"),
    ]
    refusals = tools.refusals(turn)
    assert refusals[:2] == [None, None]
    assert refusals[2].startswith("late is made in this same turn")
    assert refusals[3].startswith("best is made in this same turn")
    assert refusals[4] is None


def test_a_primary_stage_may_read_what_its_turn_only_filters_or_dedupes(tools):
    turn = [
        action("dedupe", candidates=["a", "b"], name="pool"),
        action("filter", candidates="pool", where="year > 2012", name="late"),
        action("rerank", candidates="late"),
    ]
    assert tools.refusals(turn) == [None] * 3


def test_results_stay_under_their_names_and_a_name_given_again_says_so(tools):
    first = tools.call(action("retrieve", query="Baikal", name="pool"), 0)
    assert first.text.startswith('pool = retrieve("Baikal"): ')
    assert "Baikal lies" not in first.text
    made_up = tools.call(action("rerank", candidates="pool", k=2), 1)
    assert made_up.text.startswith("r1 = rerank(pool): 2 documents")
    again = tools.call(action("filter", candidates="pool", where='title contains "Lake"', name="pool"), 2)
    assert "(replaces what pool was)" in again.text
    assert list(tools.workspace.variables) == ["r1", "pool"]
    assert "pool: documents" in tools.state()


def test_a_wrong_name_or_condition_is_told_as_an_error_the_model_can_mend(tools):
    with pytest.raises(ToolError, match="Nothing is kept yet: retrieve first"):
        tools.call(action("rerank", candidates="pool"), 0)
    tools.call(action("retrieve", query="Baikal", name="pool"), 0)
    with pytest.raises(ToolError, match=r"found 'poll'. Did you mean 'pool'\?"):
        tools.call(action("rerank", candidates="poll"), 0)
    with pytest.raises(ToolError, match="yaer"):
        tools.call(action("filter", candidates="pool", where="yaer > 2000"), 0)
    with pytest.raises(SpecError, match="filter"):
        tools.call(action("filter", candidates="pool", where="year >"), 0)


def test_passages_and_documents_do_not_mix(tools):
    tools.call(action("retrieve", query="Baikal", name="pool"), 0)
    notes = tools.call(action("extract", candidates="pool", instruction="Where?", size=12, name="notes"), 1)
    assert {part.docno for part in notes.shown} <= set(notes.referenced)
    with pytest.raises(ToolError, match="candidates of one kind"):
        tools.call(action("dedupe", candidates=["pool", "notes"]), 2)
    both = tools.call(action("dedupe", candidates=["notes", "notes"], key="passage_id", name="all"), 2)
    assert both.text.splitlines()[0].startswith("all = dedupe(notes, notes, by passage_id): ")


def test_a_search_that_finds_nothing_says_so(substrate):
    found = Searching(substrate).call(action("search", query="zzzunknown"), 0)
    assert found.text == '0 passages for "zzzunknown" (0 retrieved, 0 reranked)'


def test_a_search_filters_by_its_fixed_condition(substrate):
    from searchops.predicates import parse

    found = Searching(substrate, parse("lang == 'de'")).call(action("search", query="See Größe Baikal"), 0)
    assert {part.docno for part in found.shown} == {"größe"}


# -- the loop ----------------------------------------------------------------------------------


def test_a_question_stopped_from_outside_is_interrupted_between_decisions(substrate):
    asked = []
    model = ScriptedModel(lambda request: [call("search", query="lake")])
    with pytest.raises(Interrupted):
        run_question("q", model, Searching(substrate), system="s", finalizer="f",
                     stopped=lambda: len(model.requests) >= 2 or bool(asked))  # fmt: skip
    assert len(model.requests) == 2


def test_a_budget_of_the_run_that_is_used_up_ends_the_question_with_what_it_has(substrate):
    replies = [[call("search", query="Baikal")], BudgetExceeded("at most 1 USD is needed", "more")]
    outcome = run_question("q", ScriptedModel(replies), Searching(substrate), system="s", finalizer="f")
    assert (outcome.stop_reason, outcome.answer) == ("limit", "")
    assert "at most 1 USD" in outcome.error
    assert outcome.ledger
    assert set(STOP_REASONS) >= {outcome.stop_reason}


def test_a_finalizer_that_fails_leaves_no_answer_and_says_why(substrate):
    from searchops.errors import DataError

    def line(request):
        return [call("search", query="lake")] if request.tools else DataError("a reply is needed", "HTTP 500")

    outcome = run_question("q", ScriptedModel(line), Searching(substrate), system="s", finalizer="f",
                           budget=Budget(decisions=2))  # fmt: skip
    assert (outcome.stop_reason, outcome.answer) == ("budget", "")
    assert outcome.error.startswith("finalizer: ")


# -- concurrency -------------------------------------------------------------------------------


def test_context_variables_hold_in_every_thread_and_results_stand_in_order():
    setting = contextvars.ContextVar("setting", default="none")
    setting.set("mine")
    gate = threading.Barrier(3, timeout=30)

    def work(item, stopped):
        gate.wait()
        return item, setting.get()

    assert answer_all(work, [3, 1, 2], 3) == [(3, "mine"), (1, "mine"), (2, "mine")]


@pytest.mark.parametrize("n", [1, 3])
def test_one_exception_costs_no_other_item(n):
    def work(item, stopped):
        if item == 2:
            raise OSError("two")
        return item

    results = answer_all(work, [1, 2, 3], n)
    assert results[0::2] == [1, 3]
    assert isinstance(results[1], OSError)


def test_an_error_that_no_item_escapes_stops_the_others_before_their_next_step():
    seen = threading.Event()

    def work(item, stopped):
        if item == 0:
            assert seen.wait(30)
            raise SpecError("a key is needed", "none")
        seen.set()
        while not stopped():
            threading.Event().wait(0.001)
        return item

    with pytest.raises(SpecError, match="a key"):
        answer_all(work, [0, 1, 2, 3, 4, 5], 2)
