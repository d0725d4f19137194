"""`OpenAIModel` with the real `openai` client against a server on the loopback interface."""

from __future__ import annotations

import json
import os
import pickle
import signal
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from email.utils import formatdate
from typing import Any

import openai
import pytest

from searchops.errors import DataError, SearchopsError, SpecError
from searchops.models import (
    Exchange,
    Message,
    OpenAIModel,
    ReplayModel,
    Reply,
    Request,
    Tool,
    ToolCall,
    Usage,
)
from tests.loopback_openai import (
    MODEL,
    Answer,
    LoopbackOpenAI,
    calls,
    completion,
    cut,
    fails,
    filtered,
    garbage,
    limited,
    no_choices,
    says,
    usage,
)

KEY = "sk-loopback-0123456789abcdef"
QUESTION = (Message("system", "Be brief."), Message("user", "Who wrote it?"))
SEARCH = Tool("search", "Searches.", {"type": "object", "properties": {"query": {"type": "string"}}})


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def model_of(server: LoopbackOpenAI, **settings: Any) -> OpenAIModel:
    return OpenAIModel(MODEL, server.url, **{"backoff_s": 0.001, "timeout_s": 5.0, **settings})


def failure_of(script: Any, kind: type[SearchopsError] = DataError, **settings: Any) -> tuple[str, int]:
    with LoopbackOpenAI(script) as server:
        with pytest.raises(kind) as caught:
            model_of(server, **settings).complete(QUESTION)
        return str(caught.value), server.n_requests


def test_the_official_client_reads_the_server_with_its_own_types() -> None:
    with LoopbackOpenAI([calls(("search", "{}"), ("read", "{}"))], key=KEY) as server:
        client = openai.OpenAI(base_url=server.url, max_retries=0, _strict_response_validation=True)
        tool: Any = SEARCH.to_dict()
        answer = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "?"}], tools=[tool])
        assert [call.id for call in answer.choices[0].message.tool_calls or []] == ["call_1", "call_2"]
        assert answer.usage is not None
        assert answer.usage.total_tokens == 17
        assert [entry.id for entry in client.models.list()] == [MODEL]


def test_a_reply_in_words_comes_with_the_usage_of_the_provider() -> None:
    script = [says("Ada.", usage=usage(120, 30, cached=100, reasoning=20))]
    with LoopbackOpenAI(script, key=KEY) as server:
        reply = model_of(server, prices={"input": 2.0, "cached": 0.5, "output": 10.0}).complete(QUESTION)
    assert (reply.content, reply.finish_reason, reply.model, reply.requests) == ("Ada.", "stop", MODEL, 1)
    assert reply.usage == Usage(120, 30, 100, 20, "provider")
    # By hand: 20 fresh at 2, 100 cached at 0.5, 30 written at 10 dollars a million.
    assert reply.cost_usd == pytest.approx((20 * 2 + 100 * 0.5 + 30 * 10) / 1e6)
    assert reply.seconds > 0
    assert reply.details["system_fingerprint"] == "fp_loopback"


def test_the_request_on_the_wire_has_the_documented_shape_and_only_what_was_given() -> None:
    with LoopbackOpenAI() as server:
        model = model_of(server)
        model.complete(QUESTION)
        model.complete(QUESTION, tools=[SEARCH], temperature=0.0, max_tokens=64, top_p=0.9, seed=7)
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who wrote it?"}]
    assert server.bodies[0] == {"model": MODEL, "messages": messages}
    assert server.bodies[1] == {
        "model": MODEL,
        "messages": messages,
        "tools": [{"type": "function", "function": asdict(SEARCH)}],
        "temperature": 0.0,
        "max_tokens": 64,
        "top_p": 0.9,
        "seed": 7,
    }


def test_settings_of_the_model_fill_in_rename_add_and_leave_out_fields() -> None:
    with LoopbackOpenAI() as server:
        settings: dict[str, Any] = {
            "temperature": 1.0,
            "top_p": 0.95,
            "tokens_field": "max_completion_tokens",
        }
        extra = {"reasoning_effort": "low"}
        model_of(server, **settings, extra=extra, omit=["seed"]).complete(QUESTION, max_tokens=9, seed=1)
        model_of(server, **settings).complete(QUESTION, temperature=0.0)
    first, second = server.bodies
    assert (first["temperature"], first["top_p"], first["reasoning_effort"]) == (1.0, 0.95, "low")
    assert first["max_completion_tokens"] == 9
    assert "seed" not in first
    assert "max_tokens" not in first
    assert second["temperature"] == 0.0


def test_a_conversation_with_parallel_tool_calls_goes_there_and_back() -> None:
    script = [calls(("search", '{"query": "a"}'), ("search", '{"query": "b"}')), says("Ada")]
    with LoopbackOpenAI(script) as server:
        model = model_of(server)
        first = model.complete(QUESTION, tools=[SEARCH])
        answers = [Message("tool", f"found {call.id}", tool_call_id=call.id) for call in first.tool_calls]
        second = model.complete([*QUESTION, first.message(), *answers], tools=[SEARCH])
    assert first.finish_reason == "tool_calls"
    assert first.tool_calls == (
        ToolCall("call_1", "search", '{"query": "a"}'),
        ToolCall("call_2", "search", '{"query": "b"}'),
    )
    assert second.content == "Ada"
    assert server.bodies[1]["messages"][2]["tool_calls"][1]["id"] == "call_2"


def test_malformed_arguments_of_a_tool_call_pass_through_as_they_are() -> None:
    with LoopbackOpenAI([calls(("search", '{"query": "a'))]) as server:
        reply = model_of(server).complete(QUESTION, tools=[SEARCH])
        assert server.n_requests == 1
    assert reply.tool_calls[0].arguments == '{"query": "a'


@pytest.mark.parametrize(
    ("script", "reason"), [([filtered()], "content_filter"), ([says("Once upon", "length")], "length")]
)
def test_a_filtered_or_cut_answer_is_an_outcome_and_not_an_exception(script: list[Answer], reason: str) -> None:
    with LoopbackOpenAI(script) as server:
        reply = model_of(server).complete(QUESTION)
        assert server.n_requests == 1
    assert reply.finish_reason == reason


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503])
def test_what_goes_away_by_itself_is_asked_again(status: int) -> None:
    with LoopbackOpenAI([fails(status), fails(status), says("Ada")]) as server:
        reply = model_of(server).complete(QUESTION)
        assert server.n_requests == 3
    assert (reply.content, reply.requests) == ("Ada", 3)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, DataError), (422, DataError), (401, SpecError), (403, SpecError), (404, SpecError)],
)
def test_what_no_attempt_mends_is_asked_once(status: int, kind: type[SearchopsError]) -> None:
    text, n_requests = failure_of([fails(status, "No way.", "some_code")], kind)
    assert n_requests == 1
    assert f"HTTP {status}: No way. (some_code)" in text
    assert text.startswith(f"model {MODEL}: ")


def test_an_account_without_money_is_not_asked_again() -> None:
    text, n_requests = failure_of([fails(429, "You exceeded your quota.", "insufficient_quota")])
    assert n_requests == 1
    assert "insufficient_quota" in text


def test_attempts_end_and_the_error_says_how_many_there_were() -> None:
    text, n_requests = failure_of(lambda _: fails(500), max_retries=3)
    assert n_requests == 4
    assert "HTTP 500" in text
    assert "after 4 requests" in text


def test_no_retries_means_one_request() -> None:
    assert failure_of([fails(503)], max_retries=0)[1] == 1


def test_an_error_that_is_no_json_is_shown_as_it_is() -> None:
    text, _ = failure_of([Answer("<h1>Bad gateway</h1>", 502)], max_retries=0)
    assert "HTTP 502: <h1>Bad gateway</h1>" in text


@pytest.mark.parametrize("as_date", [False, True], ids=["seconds", "date"])
def test_retry_after_is_waited_for_in_both_forms(as_date: bool) -> None:
    def script(body: dict[str, Any]) -> Answer:
        if server.n_requests > 1:
            return says("Ada")
        # A date has whole seconds: the next but one is at least one second away.
        asked_for.append(float(int(time.time()) + 2) if as_date else time.time() + 1)
        return limited(formatdate(asked_for[0], usegmt=True) if as_date else "1")

    asked_for: list[float] = []
    with LoopbackOpenAI(script) as server:
        assert model_of(server).complete(QUESTION).content == "Ada"
        assert server.n_requests == 2
        assert server.requests[1].at >= asked_for[0]


def test_a_retry_after_beyond_the_longest_wait_ends_the_call_and_says_so() -> None:
    text, n_requests = failure_of([limited("3600")], max_wait_s=5)
    assert n_requests == 1
    assert "asks for a wait of 3600 s; max_wait_s allows 5" in text


def test_a_slow_reply_runs_into_the_timeout_and_is_asked_again() -> None:
    with LoopbackOpenAI([says("late", delay_s=30), says("Ada")]) as server:
        reply = model_of(server, timeout_s=0.8).complete(QUESTION)
        assert server.n_requests == 2
    assert reply.content == "Ada"


def test_replies_that_stay_slow_are_an_error_that_names_the_timeout() -> None:
    text, n_requests = failure_of(lambda _: says("late", delay_s=30), timeout_s=0.2, max_retries=1)
    assert n_requests == 2
    assert "timed out" in text


def test_a_reply_cut_in_the_middle_is_asked_again_and_never_half_read() -> None:
    with LoopbackOpenAI([cut(), says("Ada")]) as server:
        assert model_of(server).complete(QUESTION).content == "Ada"
        assert server.n_requests == 2
    text, n_requests = failure_of(lambda _: cut(), max_retries=2)
    assert n_requests == 3
    assert "connection error" in text


def test_nobody_listening_is_a_connection_error() -> None:
    with LoopbackOpenAI() as server:
        model = model_of(server, max_retries=1)
    with pytest.raises(DataError, match=r"connection error.*after 2 requests"):
        model.complete(QUESTION)


@pytest.mark.parametrize(
    ("answer", "needed"),
    [
        (garbage(), "a reply in JSON is needed"),
        (garbage(""), "an empty body"),
        (garbage("[1]"), "a reply that is a JSON object is needed"),
        (no_choices(), "a reply with choices is needed; found an empty list"),
        (Answer({"error": {"message": "upstream died"}}), "upstream died"),
    ],
)
def test_a_reply_that_cannot_be_read_is_a_clear_error_after_one_request(answer: Answer, needed: str) -> None:
    text, n_requests = failure_of([answer])
    assert n_requests == 1
    assert needed in text


def test_tokens_the_provider_does_not_count_are_estimated_and_said_to_be() -> None:
    with LoopbackOpenAI([says("12345678", usage=None)]) as server:
        reply = model_of(server).complete([Message("user", "1234567890")])
    assert reply.usage == Usage(3, 2, source="characters/4")


@pytest.mark.parametrize("cap", [1, 3])
def test_as_many_requests_are_in_flight_as_the_cap_allows_and_no_more(cap: int) -> None:
    # The server answers only when `cap` requests are there at once.
    gate = threading.Barrier(cap, timeout=20)

    def script(body: dict[str, Any]) -> Answer:
        gate.wait()
        return says("ok")

    with LoopbackOpenAI(script) as server:
        model = model_of(server, max_concurrency=cap, timeout_s=30)
        with ThreadPoolExecutor(12) as threads:
            futures = [threads.submit(model.complete, QUESTION) for _ in range(12)]
        assert [future.result().content for future in futures] == ["ok"] * 12
        assert server.n_requests == 12
        assert server.max_in_flight == cap


def test_a_failed_request_gives_its_place_back() -> None:
    with LoopbackOpenAI([fails(400), garbage(), fails(500), says("Ada")]) as server:
        model = model_of(server, max_concurrency=1)
        for _ in range(2):
            with pytest.raises(DataError):
                model.complete(QUESTION)
        assert model.complete(QUESTION).content == "Ada"


def test_ctrl_c_in_the_middle_of_a_request_is_not_swallowed() -> None:
    def script(body: dict[str, Any]) -> Answer:
        if server.n_requests == 1:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            return says("late", delay_s=30)
        return says("Ada")

    with LoopbackOpenAI(script) as server:
        model = model_of(server, max_concurrency=1, timeout_s=20)
        with pytest.raises(KeyboardInterrupt):
            model.complete(QUESTION)
        assert server.n_requests == 1
        assert model.complete(QUESTION).content == "Ada"


def test_ctrl_c_while_waiting_for_the_next_attempt_is_not_swallowed() -> None:
    def interrupt() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def script(body: dict[str, Any]) -> Answer:
        threading.Timer(0.2, interrupt).start()
        return fails(503)

    with LoopbackOpenAI(script) as server:
        with pytest.raises(KeyboardInterrupt):
            model_of(server, backoff_s=30, max_wait_s=60).complete(QUESTION)
        assert server.n_requests == 1


def test_the_key_stands_in_no_repr_pickle_attribute_or_record() -> None:
    with LoopbackOpenAI([says(f"your key is {KEY}")], key=KEY) as server:
        model = model_of(server)
        reply = model.complete(QUESTION)
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        record = json.dumps(Exchange(Request(QUESTION), reply).to_dict())
        assert reply.content == "your key is [key]"
        for text in (repr(model), record, repr(reply), repr(pickle.dumps(model)), repr(vars(model))):
            assert KEY not in text


@pytest.mark.parametrize("status", [401, 400, 500])
def test_the_key_stands_in_no_error_nor_in_what_hangs_on_it(status: int) -> None:
    script = lambda _: fails(status, f"Incorrect API key provided: {KEY}")  # noqa: E731
    with LoopbackOpenAI(script) as server:
        with pytest.raises(SearchopsError) as caught:
            model_of(server, max_retries=1).complete(QUESTION)
        error = caught.value
        assert "[key]" in str(error)
        assert error.__cause__ is None
        assert error.__context__ is None
        assert KEY not in "".join(traceback.format_exception(error))
        assert KEY.encode() not in pickle.dumps(error)


def test_a_pickled_model_works_and_equals_the_one_it_came_from() -> None:
    with LoopbackOpenAI() as server:
        model = model_of(server, prices={"input": 1, "output": 2}, extra={"reasoning_effort": "low"})
        model.complete(QUESTION)
        copy = pickle.loads(pickle.dumps(model))
        assert copy == model
        assert hash(copy) == hash(model)
        assert copy.complete(QUESTION).content == "ok"
        assert server.n_requests == 2


def test_a_key_that_changes_is_the_one_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with LoopbackOpenAI() as server:
        model = model_of(server)
        model.complete(QUESTION)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-another-0123456789\n")
        model.complete(QUESTION)
    sent = [asked.headers["authorization"] for asked in server.requests]
    assert sent == [f"Bearer {KEY}", "Bearer sk-another-0123456789"]


def test_an_endpoint_without_a_key_is_sent_none_of_the_environment() -> None:
    with LoopbackOpenAI() as server:
        assert model_of(server, api_key_env=None).complete(QUESTION).content == "ok"
        assert KEY not in json.dumps(server.requests[0].headers)


def test_an_endpoint_that_wants_a_key_after_all_says_which_setting_names_it() -> None:
    assert "api_key_env" in failure_of([fails(401)], SpecError, api_key_env=None)[0]
    assert "OPENAI_API_KEY" in failure_of([fails(401)], SpecError)[0]


@pytest.mark.parametrize("key", [None, "", "  ", "sk-schlüssel", "sk-a\x01b"])
def test_a_missing_or_unusable_key_is_named_by_its_variable_before_any_request(
    key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if key is None:
        monkeypatch.delenv("OTHER_KEY", raising=False)
    else:
        monkeypatch.setenv("OTHER_KEY", key)
    text, n_requests = failure_of([], SpecError, api_key_env="OTHER_KEY")
    assert n_requests == 0
    assert "OTHER_KEY" in text
    assert not key or not key.strip() or key not in text


def test_a_text_that_no_json_can_carry_is_refused_without_another_attempt() -> None:
    with LoopbackOpenAI() as server:
        with pytest.raises(DataError, match="cannot be sent as JSON"):
            model_of(server).complete([Message("user", "half a pair: \ud83d")])
        assert server.n_requests == 0


def test_a_conversation_replays_from_its_record_without_the_server(tmp_path: Any) -> None:
    record: list[Exchange] = []
    path = tmp_path / "record.jsonl"

    def two_turns(complete: Any) -> list[Reply]:
        first = complete(QUESTION)
        second = complete([*QUESTION, first.message(), Message("user", "And when?")])
        return [first, second]

    with LoopbackOpenAI([says("Ada “Łovelace”\u2028"), says("1843")]) as server:
        model = model_of(server)

        def recorded(messages: Any) -> Reply:
            reply = model.complete(messages, temperature=0.0)
            record.append(Exchange(Request(tuple(messages), temperature=0.0), reply))
            return reply

        live = two_turns(recorded)
    path.write_text("".join(json.dumps(e.to_dict(), ensure_ascii=False) + "\n" for e in record), "utf-8")
    replay = ReplayModel(path)
    assert two_turns(lambda messages: replay.complete(messages, temperature=0)) == live
    assert replay.remaining == 0


def test_the_server_refuses_requests_that_are_not_of_the_documented_shape() -> None:
    orphan = Message("tool", "found", tool_call_id="call_9")
    unanswered = Message("assistant", None, (ToolCall("c1", "search", "{}"),))
    for messages in ([], [*QUESTION, orphan], [*QUESTION, unanswered]):
        with LoopbackOpenAI() as server, pytest.raises(DataError, match="HTTP 400"):
            model_of(server).complete(messages)


def test_the_address_of_the_endpoint_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with LoopbackOpenAI() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert OpenAIModel(MODEL).complete(QUESTION, max_tokens=5).content == "ok"
    assert server.bodies[0]["max_tokens"] == 5
    assert os.environ["OPENAI_BASE_URL"] == server.url


def test_reasoning_and_a_refusal_are_kept_beside_the_content() -> None:
    message = {"role": "assistant", "content": None, "reasoning_content": "Hm.", "refusal": "I will not."}
    with LoopbackOpenAI([Answer(completion(message))]) as server:
        reply = model_of(server).complete(QUESTION)
    assert (reply.content, reply.reasoning, reply.refusal) == (None, "Hm.", "I will not.")
