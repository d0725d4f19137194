"""Chat models that need no endpoint, and what all of them share."""

from __future__ import annotations

import json
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from searchops.errors import DataError, FrameError, SpecError
from searchops.models import (
    ChatModel,
    Exchange,
    Message,
    OpenAIModel,
    Prices,
    ReplayModel,
    Reply,
    Request,
    ScriptedModel,
    Tool,
    ToolCall,
    Usage,
    count_tokens,
    read_exchanges,
)
from searchops.models.completion import read_completion, read_usage
from searchops.models.retry import Backoff, retry_after_s

USER = Message("user", "Who wrote it?")
SEARCH = Tool("search", "Searches.", {"type": "object", "properties": {"query": {"type": "string"}}})


def body(**choice: Any) -> str:
    message = {"role": "assistant", "content": "Ada"}
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop", **choice}]})


# --- messages and their JSON


def test_a_tool_message_without_the_id_of_its_call_is_refused() -> None:
    with pytest.raises(FrameError, match="names its call"):
        Message("tool", "found")


def test_an_unknown_role_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(FrameError, match="Did you mean 'assistant'"):
        Message("asistant", "found")


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        (Message, {"role": "user", "contents": "x"}, "'contents'"),
        (Message, {"role": "user", "content": ["x"]}, "type str is needed; found list"),
        (Message, {"content": "x"}, "'role' of type str is needed; found no such field"),
        (Message, {"role": "robot", "content": "x"}, "a known role"),
        (Message, ["user"], "a JSON object is needed; found list"),
        (ToolCall, {"id": "c", "function": {"name": "f"}}, "'arguments'"),
        (ToolCall, {"id": "c", "function": {"name": "f", "arguments": {}}}, "found dict"),
        (Tool, {"type": "function", "function": {"name": "f", "description": ""}}, "'parameters'"),
        (
            Usage,
            {"input_tokens": True, "output_tokens": 1},
            "'input_tokens' of type int is needed; found bool",
        ),
        (Reply, {"content": "x", "tool_call": []}, "Did you mean 'tool_calls'"),
        (Request, {"messages": [], "temprature": 0}, "Did you mean 'temperature'"),
        (Exchange, {"request": {"messages": []}}, "'reply'"),
    ],
)
def test_json_of_another_shape_is_refused_by_name_and_nothing_is_lost_silently(kind: Any, data: Any, text: str) -> None:
    with pytest.raises(DataError) as caught:
        kind.from_dict(data)
    assert text in str(caught.value)


def test_messages_have_the_shape_of_the_chat_protocol() -> None:
    call = ToolCall("c1", "search", '{"query": "ada"}')
    assert Message("assistant", None, (call,)).to_dict() == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"query": "ada"}'}}
        ],
    }
    assert Message("tool", "", tool_call_id="c1").to_dict() == {
        "role": "tool",
        "content": "",
        "tool_call_id": "c1",
    }


@pytest.mark.parametrize("model", [ScriptedModel([]), ReplayModel([]), OpenAIModel("m", api_key_env=None)])
def test_every_model_satisfies_the_protocol(model: Any) -> None:
    assert isinstance(model, ChatModel)


# --- token counts and prices


def test_characters_by_four_round_up_over_the_whole_conversation() -> None:
    call = ToolCall("ignored-id", "abcd", "12345")
    # 13 + 3 + 4 + 5 = 25 characters.
    assert count_tokens([USER, Message("assistant", "abc", (call,))]) == (7, "characters/4")
    assert count_tokens("") == (0, "characters/4")


def test_a_tokenizer_counts_where_there_is_one(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, "who": 1}, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    words.save(str(tmp_path / "tokenizer.json"))
    for given in (words, str(tmp_path), str(tmp_path / "tokenizer.json")):
        assert count_tokens("who wrote it down", given) == (4, "tokenizer")
    assert count_tokens([USER, USER], words) == (6, "tokenizer")


def test_a_tokenizer_that_returns_a_list_of_ids_is_counted_too() -> None:
    class Listing:
        def encode(self, text: str, add_special_tokens: bool) -> list[int]:
            return [0] * len(text.split()) if not add_special_tokens else [0]

    assert count_tokens("who wrote it", Listing()) == (3, "tokenizer")


def test_a_tokenizer_that_does_not_load_is_named(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "tokenizer.json").write_text("{}")
    for name in (str(tmp_path), "no such/name at all"):
        with pytest.raises(SpecError, match="a tokenizer that loads"):
            count_tokens("x", name)


def test_cached_tokens_cost_the_full_price_unless_another_is_given() -> None:
    used = Usage(1_000, 200, cached_tokens=600)
    assert Prices(1.0, 4.0).cost_usd(used) == pytest.approx(0.0018)
    assert Prices(1.0, 4.0, cached=0.0).cost_usd(used) == pytest.approx(0.0012)


@pytest.mark.parametrize(
    ("prices", "text"),
    [
        ({"input": 1}, "'output'"),
        ({"input": 1, "output": 2, "cache": 3}, "Did you mean 'cached'"),
        ({"input": -1, "output": 2}, "prices.input"),
        ({"input": 1, "output": float("inf")}, "prices.output"),
        ({"input": 1, "output": True}, "prices.output"),
        ({"input": 1, "output": 2, "cached": "free"}, "prices.cached"),
    ],
)
def test_prices_that_cannot_be_right_are_refused(prices: Any, text: str) -> None:
    with pytest.raises(SpecError) as caught:
        Prices.of(prices)
    assert text in str(caught.value)


# --- waiting


def test_waits_double_on_average_and_stay_within_the_longest_wait() -> None:
    backoff, rng = Backoff(base_s=1.0, max_wait_s=100.0), random.Random(7)
    for attempt in range(5):
        waits = [backoff.wait_s(attempt, None, rng) or 0 for _ in range(400)]
        assert 0.5 * 2**attempt <= min(waits) < max(waits) <= 1.5 * 2**attempt
        assert sum(waits) / 400 == pytest.approx(2**attempt, rel=0.1)
    assert backoff.wait_s(10_000, None, rng) == 100.0


def test_what_the_server_asks_for_is_the_least_and_jitter_comes_on_top() -> None:
    backoff, rng = Backoff(base_s=0.5, max_wait_s=60.0), random.Random(7)
    waits = [backoff.wait_s(0, 60.0, rng) or 0 for _ in range(100)]
    assert 60.0 <= min(waits) < max(waits) <= 60.5


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("3", 3.0),
        (" 0.25 ", 0.25),
        ("-5", 0.0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 37.0),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 37.0),
        ("Sun Nov  6 08:49:37 1994", 37.0),
        ("Sun, 06 Nov 1994 08:48:00 GMT", 0.0),
        ("inf", None),
        ("nan", None),
        ("", None),
        ("tomorrow", None),
    ],
)
def test_retry_after_is_read_in_every_form_of_the_rfc(header: str, seconds: float | None) -> None:
    # 784111740 is 1994-11-06 08:49:00 GMT; the three dates are those of RFC 9110, 5.6.7.
    assert retry_after_s({"retry-after": header}, 784_111_740.0) == seconds


# --- reading a completion


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("[" * 100_000, "a reply in JSON"),
        ("null", "a reply that is a JSON object"),
        ("{}", "a reply with choices is needed; found None"),
        ('{"choices": {}}', "a reply with choices"),
        ('{"choices": [7]}', "a choice that is a JSON object"),
        (body(message=None), "a message is needed"),
        (body(finish_reason=None), "a finish reason is needed; found None"),
        (body(message={"content": [{"type": "text"}]}), "content that is text"),
        (body(message={"tool_calls": {}}), "tool calls in a list"),
        (body(message={"tool_calls": ["x"]}), "a tool call is needed"),
        (body(message={"tool_calls": [{"id": "c"}]}), "a function in a tool call"),
        (body(message={"tool_calls": [{"function": {"arguments": "{}"}}]}), "names its function"),
        (body(message={"tool_calls": [{"function": {"name": "f", "arguments": 7}}]}), "the arguments"),
    ],
)
def test_a_completion_of_another_shape_says_what_is_wrong_with_it(text: str, needed: str) -> None:
    with pytest.raises(DataError) as caught:
        read_completion(text, where="model m")
    assert needed in str(caught.value)
    assert caught.value.where == "model m"
    assert len(str(caught.value)) < 600


def test_calls_without_ids_get_one_each_and_arguments_as_objects_become_text() -> None:
    functions = [{"function": {"name": "f", "arguments": {"q": "ü"}}}, {"id": "", "function": {"name": "g"}}]
    reply, counted = read_completion(body(message={"tool_calls": functions}), where="m")
    assert reply.tool_calls == (ToolCall("call_0", "f", '{"q": "ü"}'), ToolCall("call_1", "g", ""))
    assert not counted


@pytest.mark.parametrize(
    "data",
    [None, [], {"prompt_tokens": 1}, {"prompt_tokens": -1, "completion_tokens": 1}, {"prompt_tokens": "9"}],
)
def test_a_usage_that_is_not_one_counts_as_none(data: Any) -> None:
    assert read_usage(data) is None


def test_details_of_a_usage_may_be_missing_or_null() -> None:
    data = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": None}}
    assert read_usage(data) == Usage(9, 4)


# --- the model that follows a script


def test_a_script_that_is_at_its_end_says_which_request_found_nothing() -> None:
    model = ScriptedModel(["one"])
    model.complete([USER])
    with pytest.raises(DataError, match="a reply to request 2 is needed; found 1 in the script"):
        model.complete([USER])


def test_a_scripted_model_keeps_what_it_was_asked() -> None:
    model = ScriptedModel(["one"])
    model.complete([USER], tools=[SEARCH], temperature=0.0, max_tokens=9, top_p=0.5, seed=3)
    assert model.requests == [Request((USER,), (SEARCH,), 0.0, 9, 0.5, 3)]


def test_a_script_may_hold_replies_texts_calls_and_exceptions() -> None:
    call = ToolCall("c1", "search", "{}")
    full = Reply("four", usage=Usage(7, 1), model="named")
    model = ScriptedModel(["one", call, [call, ToolCall("c2", "read", "")], full, DataError("no luck")])
    assert model.complete([USER]).usage == Usage(4, 1, source="characters/4")
    assert model.complete([USER]).tool_calls == (call,)
    third = model.complete([USER])
    assert (len(third.tool_calls), third.finish_reason, third.content) == (2, "tool_calls", None)
    assert model.complete([USER]) is not None
    with pytest.raises(DataError, match="no luck"):
        model.complete([USER])
    assert "named" in repr(model)


def test_a_reply_with_its_own_usage_and_model_comes_back_equal() -> None:
    full = Reply("four", usage=Usage(7, 1), model="named")
    assert ScriptedModel([full]).complete([USER]) == full


def test_a_script_may_be_a_function_of_the_request() -> None:
    model = ScriptedModel(lambda request: f"{len(request.messages)} messages")
    assert model.complete([USER, USER]).content == "2 messages"
    assert repr(model) == "ScriptedModel(a function)"


def test_tools_count_as_tokens_read() -> None:
    with_tools, without = (ScriptedModel(["x"]).complete([USER], tools=tools) for tools in ([SEARCH], []))
    n_characters = len(json.dumps(SEARCH.to_dict()))
    assert with_tools.usage.input_tokens == -(-(len("Who wrote it?") + n_characters) // 4)
    assert without.usage.input_tokens == 4


def test_threads_share_a_script_and_each_reply_is_given_once() -> None:
    model = ScriptedModel([str(n) for n in range(200)])
    with ThreadPoolExecutor(8) as threads:
        said = list(threads.map(lambda _: model.complete([USER]).content, range(200)))
    assert sorted(map(int, filter(None, said))) == list(range(200))


# --- the model that plays a record


def recorded(*contents: str, **settings: Any) -> list[Exchange]:
    return [
        Exchange(Request((Message("system", "Be brief."), Message("user", text)), **settings), Reply(text[::-1]))
        for text in contents
    ]


def ask(model: ReplayModel, text: str, system: str = "Be brief.", **settings: Any) -> str | None:
    return model.complete([Message("system", system), Message("user", text)], **settings).content


def test_a_replay_gives_the_recorded_replies_and_counts_what_is_left() -> None:
    model = ReplayModel(recorded("ab", "cd"))
    assert (ask(model, "ab"), model.remaining) == ("ba", 1)
    assert (ask(model, "cd"), model.remaining) == ("dc", 0)
    with pytest.raises(DataError, match=r"request 3: .* found the record at its end"):
        ask(model, "ab")


def test_the_first_differing_message_is_shown_with_its_path_and_a_diff() -> None:
    model = ReplayModel(recorded("line one\nline two\nline three"))
    with pytest.raises(DataError) as caught:
        ask(model, "line one\nline 2\nline three")
    text = str(caught.value)
    assert "ReplayModel, request 1" in text
    assert "The first difference is at messages[1].content" in text
    assert "-line two\n+line 2" in text
    assert model.remaining == 1


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({"temperature": 0.5}, "temperature"),
        ({"temperature": 0.0, "seed": 1}, "seed"),
        ({"temperature": 0.0, "tools": [SEARCH]}, "tools[0]"),
        ({}, "temperature"),
    ],
)
def test_settings_and_tools_belong_to_the_request(asked: dict[str, Any], path: str) -> None:
    with pytest.raises(DataError) as caught:
        ask(ReplayModel(recorded("ab", temperature=0.0)), "ab", **asked)
    assert f"The first difference is at {path}:" in str(caught.value)


def test_a_further_message_is_a_difference_at_its_own_place() -> None:
    model = ReplayModel(recorded("ab"))
    with pytest.raises(DataError, match=r"difference is at messages\[2\]:"):
        model.complete([Message("system", "Be brief."), Message("user", "ab"), Message("user", "more")])


def test_a_temperature_of_0_and_one_of_0_point_0_are_one_setting() -> None:
    assert ask(ReplayModel(recorded("ab", temperature=0)), "ab", temperature=0.0) == "ba"


def test_numbers_that_only_json_tells_apart_still_give_a_refusal() -> None:
    request = Request((USER,), (Tool("f", "", {"maximum": 1}),))
    with pytest.raises(DataError, match="the JSON text"):
        ReplayModel([Exchange(request, Reply("x"))]).complete([USER], tools=[Tool("f", "", {"maximum": 1.0})])


def test_in_order_refuses_a_request_of_the_record_that_comes_too_early() -> None:
    with pytest.raises(DataError, match=r"messages\[1\]\.content"):
        ask(ReplayModel(recorded("ab", "cd")), "cd")


def test_without_order_each_exchange_is_given_once_and_repeats_keep_their_sequence() -> None:
    again = [Exchange(e.request, Reply(f"{n}")) for n, e in enumerate(recorded("ab", "cd", "ab"))]
    model = ReplayModel(again, in_order=False)
    assert [ask(model, text) for text in ("cd", "ab", "ab")] == ["1", "0", "2"]
    with pytest.raises(DataError, match="the record at its end"):
        ask(model, "ab")


def test_without_order_the_nearest_exchange_is_the_one_compared() -> None:
    other = Exchange(Request((Message("system", "Be long."), Message("user", "xy"))), Reply("x"))
    model = ReplayModel([other, *recorded("ab")], in_order=False)
    with pytest.raises(DataError, match=r"messages\[1\]\.content(?s:.)*-ab\n\+zz"):
        ask(model, "zz")


def test_a_long_difference_is_shown_in_short() -> None:
    old, new = ("\n".join(f"{word} {n}" + "x" * 500 for n in range(99)) for word in ("old", "new"))
    with pytest.raises(DataError) as caught:
        ask(ReplayModel(recorded(old)), new)
    assert len(str(caught.value)) < 6_000
    assert "more lines]" in str(caught.value)


def test_a_record_is_read_from_a_file_or_a_folder_and_other_keys_may_stand_there(tmp_path: Path) -> None:
    lines = [json.dumps({"qid": "1", **e.to_dict()}, ensure_ascii=False) for e in recorded("a\u2028b", "cd")]
    (tmp_path / "decisions.jsonl").write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    for source in (tmp_path, str(tmp_path / "decisions.jsonl")):
        model = ReplayModel(source)
        assert ask(model, "a\u2028b") == "b\u2028a"
        assert repr(model) == f"ReplayModel({str(source)!r}, in_order=True)"
    assert repr(ReplayModel(read_exchanges(tmp_path))) == "ReplayModel(2 exchanges, in_order=True)"
    assert ReplayModel([json.loads(line) for line in lines]).remaining == 2


@pytest.mark.parametrize(
    ("line", "text"),
    [("{", "JSON"), ("[]", "a JSON object"), ('{"request": {}}', "'messages'"), ("\udcff", "readable")],
)
def test_a_damaged_record_names_the_file_and_the_line(line: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    good = json.dumps(recorded("ab")[0].to_dict())
    path.write_bytes(f"{good}\n{line}\n".encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError) as caught:
        ReplayModel(path)
    assert text in str(caught.value)
    assert caught.value.where.startswith(str(path) if text == "readable" else f"{path}:2")


def test_a_record_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing\.jsonl"):
        read_exchanges(tmp_path / "nothing.jsonl")


# --- setting up the endpoint's model


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"model": " "}, "model"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"max_retries": -1}, "max_retries"),
        ({"backoff_s": -1}, "backoff_s"),
        ({"max_wait_s": -1}, "max_wait_s"),
        ({"max_concurrency": 0}, "max_concurrency"),
        ({"base_url": "127.0.0.1:8000/v1"}, "base_url"),
        ({"base_url": "ftp://host/v1"}, "base_url"),
        ({"base_url": "https://user:secret@host/v1"}, "base_url"),
    ],
)
def test_settings_that_cannot_be_right_are_refused_at_once(settings: dict[str, Any], where: str) -> None:
    with pytest.raises(SpecError) as caught:
        OpenAIModel(**{"model": "m", **settings})
    assert caught.value.where == f"OpenAIModel.{where}"
    assert "secret" not in str(caught.value)


def test_without_the_package_the_error_has_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(SpecError, match=r'pip install "searchops\[llm\]"'):
        OpenAIModel("m", api_key_env=None).complete([USER])


def test_a_model_is_its_arguments() -> None:
    one, same = (OpenAIModel("m", max_retries=2, extra={"n": 1}, omit=["seed"]) for _ in range(2))
    assert one == same
    assert hash(one) == hash(same)
    assert one != OpenAIModel("m", max_retries=3, extra={"n": 1}, omit=["seed"])
    assert one != "m"
    assert eval(repr(one)) == one


@pytest.mark.parametrize(
    ("url", "field"),
    [
        (None, "max_completion_tokens"),
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("http://h/v1", "max_tokens"),
    ],
)
def test_the_limit_of_tokens_goes_by_the_name_the_endpoint_knows(
    url: str | None, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert OpenAIModel("m", url)._body(Request((USER,), max_tokens=5))[field] == 5


def test_models_do_not_load_the_openai_package_before_they_are_used() -> None:
    import subprocess

    code = "import sys, searchops.models as m; m.OpenAIModel('x'); sys.exit('openai' in sys.modules)"
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


def test_a_scripted_model_lets_a_keyboard_interrupt_through() -> None:
    with pytest.raises(KeyboardInterrupt):
        ScriptedModel([KeyboardInterrupt()]).complete([USER])
