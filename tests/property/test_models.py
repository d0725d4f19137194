"""Laws of messages, replies and records."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from searchops.models import (
    Exchange,
    Message,
    ReplayModel,
    Reply,
    Request,
    Tool,
    ToolCall,
    Usage,
    count_tokens,
)

texts = st.text(max_size=30)
names = st.text(min_size=1, max_size=8)
counts = st.integers(0, 10**9)
json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, json_values, max_size=3)
tool_calls = st.builds(ToolCall, texts, texts, texts)
plain = st.builds(
    Message,
    st.sampled_from(["system", "developer", "user", "assistant"]),
    st.none() | texts,
    st.lists(tool_calls, max_size=2).map(tuple),
)
messages = plain | st.builds(Message, st.just("tool"), texts, st.just(()), names)
usages = st.builds(Usage, counts, counts, counts, counts, st.sampled_from(["provider", "tokenizer", "characters/4"]))
finite = st.floats(0, 1e6)
replies = st.builds(
    Reply,
    st.none() | texts,
    st.lists(tool_calls, max_size=2).map(tuple),
    texts,
    usages,
    texts,
    finite,
    st.none() | finite,
    st.none() | texts,
    st.none() | texts,
    st.integers(1, 9),
    objects,
)
requests = st.builds(
    Request,
    st.lists(messages, max_size=4).map(tuple),
    st.lists(st.builds(Tool, names, texts, objects), max_size=2).map(tuple),
    st.none() | st.floats(0, 2),
    st.none() | st.integers(1, 10**6),
    st.none() | st.floats(0, 1),
    st.none() | st.integers(0, 2**63),
)
exchanges = st.builds(Exchange, requests, replies)


@given(exchanges)
def test_an_exchange_survives_json_exactly(exchange: Exchange) -> None:
    assert Exchange.from_dict(json.loads(json.dumps(exchange.to_dict()))) == exchange


@given(st.lists(exchanges, max_size=5))
def test_a_replay_gives_every_recorded_reply_to_its_request_in_order(record: list[Exchange]) -> None:
    model = ReplayModel([json.loads(json.dumps(exchange.to_dict())) for exchange in record])
    for exchange in record:
        assert complete(model, exchange.request) == exchange.reply
    assert model.remaining == 0


@given(st.lists(exchanges, max_size=5), st.randoms(use_true_random=False))
def test_without_order_any_order_of_requests_gives_the_same_replies(record: list[Exchange], rng: Any) -> None:
    model = ReplayModel(record, in_order=False)
    order = list(range(len(record)))
    rng.shuffle(order)
    got = {position: complete(model, record[position].request) for position in order}
    # Requests that are equal share their replies, each given once.
    assert sorted(repr(reply) for reply in got.values()) == sorted(repr(e.reply) for e in record)
    for position, reply in got.items():
        assert reply in [e.reply for e in record if e.request == record[position].request]


@given(st.lists(messages, max_size=5))
def test_a_conversation_counts_all_its_text_and_rounds_up_once(conversation: list[Message]) -> None:
    n = sum(len(m.content or "") + sum(len(c.name) + len(c.arguments) for c in m.tool_calls) for m in conversation)
    counted = count_tokens(conversation).n
    assert 4 * counted - 3 <= n <= 4 * counted


def complete(model: ReplayModel, request: Request) -> Reply:
    return model.complete(request.messages, tools=request.tools, **request.settings())
