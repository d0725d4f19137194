"""A policy with no model that really searches: for runs without a key, and as a yardstick of interfaces.

The question is asked first, then what it names and what the passages name anew, until nothing new comes.
The rules (`keyword_terms`, `keyword_queries`) are the same through every interface; an interface decides
only what a round of queries costs in decisions and what of it is shown.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from searchops.agents.keyword_queries import Round, next_queries, sources
from searchops.agents.observations import items_of
from searchops.errors import DataError, SpecError
from searchops.models.protocol import Message, Reply, Tool, ToolCall

__all__ = ["KeywordPolicy"]

RULES: Final = 1
"""Version of the rules; measurements of one version are not those of another."""

_SOURCES: Final = 20
_LOOK: Final = re.compile(r"^look\((\[.*\])\)$", re.MULTILINE)
_FAILED: Final = ("error:", "rejected:", "limit:", "not run:")
_NO_ANSWER: Final = "No answer. This policy has no model: it gives evidence, not an answer."
_DEFINITIONS: Final = r"""
seen = []

def look(queries):
    pool = dedupe(*[retrieve(query) for query in queries])
    new = [c for c in extract(rerank(pool)) if c.passage_id not in seen]
    seen.extend([c.passage_id for c in new])
    lines = ["[" + c.passage_id + "] " + (c.title or "") + "\n  " + c.note[:CHARS].replace("\n", " ") for c in new]
    return "\n".join(lines) or "nothing new"
"""


@dataclass(frozen=True)
class KeywordPolicy:
    """A chat model's place taken by rules: new names and terms become the next queries.

    It takes the interface from the tools it is offered. `search` gets the queries of a round in parallel;
    retrieve, dedupe, rerank and extract get them pooled, in three turns; `run_program` gets cells that
    pool, dedupe, rerank and extract, and show ids and clipped notes of what is new. It reads the
    messages and nothing else, keeps no state, and its text is a list of sources: it gives evidence, not an
    answer, so its success has no value.

    Args:
        queries: The most queries of a question.
        parallel: The most queries of a round.
        patience: How many rounds in a row that show nothing new of use end the search.
        note_chars: Characters of a note that cells show.

    Raises:
        SpecError: A number is below 1.

    Example:
        >>> from searchops.agents.schemas import QUERY_TOOLS
        >>> asked = [Message("user", "Who wrote Emma?")]
        >>> KeywordPolicy().complete(asked, tools=QUERY_TOOLS).tool_calls[0].arguments
        '{"query": "Who wrote Emma?"}'
        >>> KeywordPolicy().complete(asked).content
        'No answer. This policy has no model: it gives evidence, not an answer. It found none.'
    """

    queries: int = 12
    parallel: int = 2
    patience: int = 2
    note_chars: int = 300

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise SpecError(f"{name} must be a whole number of at least 1", repr(value), where="KeywordPolicy")

    def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        temperature: float | None = None,
        max_tokens: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> Reply:
        """The next queries through the tools at hand, or the sources. Settings change nothing.

        Raises:
            DataError: No message asks anything.
        """
        question = _question(messages)
        turns = _turns(messages)
        rounds = _rounds(turns)
        calls = self._calls(question, turns, rounds, {tool.name for tool in tools})
        details = {"rules": RULES}
        if calls:
            return Reply(tool_calls=calls, finish_reason="tool_calls", model="keyword", details=details)
        if not turns:  # a finalizer's messages, or no search at all: the evidence stands in the question
            rounds = [Round([], items_of(messages[-1].content or ""))]
        return Reply(_listed(question, rounds), model="keyword", details=details)

    def _calls(
        self, question: str, turns: Sequence[_Turn], rounds: Sequence[Round], offered: set[str]
    ) -> tuple[ToolCall, ...]:
        """The tool calls of the next decision; none ends the search."""
        with_tools = not offered & {"run_program", "search"} and {"retrieve", "rerank", "extract"} <= offered
        if with_tools and turns:
            going_on = _next_stage(turns[-1], len(rounds))
            if going_on:
                return _numbered(going_on, turns)
        if not offered & {"run_program", "search"} and not with_tools:
            return ()
        asked = next_queries(question, rounds, queries=self.queries, parallel=self.parallel, patience=self.patience)
        if not asked:
            return ()
        if "run_program" in offered:
            return _numbered([("run_program", {"code": self._cell(asked, turns)})], turns)
        if with_tools:
            place = len(rounds) + 1
            return _numbered(
                [("retrieve", {"query": query, "name": f"found_{place}_{n}"}) for n, query in enumerate(asked, 1)],
                turns,
            )
        return _numbered([("search", {"query": query}) for query in asked], turns)

    def _cell(self, asked: Sequence[str], turns: Sequence[_Turn]) -> str:
        """The cell of a round; until one has run, it defines the function that the others call."""
        defined = any(not text.startswith(_FAILED) for turn in turns for text in turn.texts)
        head = "" if defined else _DEFINITIONS.replace("CHARS", str(self.note_chars)).lstrip() + "\n"
        return f"{head}look({list(asked)!r})"


@dataclass(frozen=True)
class _Turn:
    """One decision of the past: its calls and what they were told."""

    calls: tuple[tuple[str, dict[str, Any]], ...]
    texts: tuple[str, ...]


def _question(messages: Sequence[Message]) -> str:
    for message in messages:
        if message.role == "user" and message.content:
            text = message.content
            return text.removeprefix("Question: ").split("\n\nEvidence:\n\n")[0]
    raise DataError("a question is needed", "no user message", where="KeywordPolicy")


def _turns(messages: Sequence[Message]) -> list[_Turn]:
    told = {m.tool_call_id: m.content or "" for m in messages if m.role == "tool"}
    return [
        _Turn(
            tuple((call.name, _arguments(call)) for call in message.tool_calls),
            tuple(told.get(call.id, "") for call in message.tool_calls),
        )
        for message in messages
        if message.tool_calls
    ]


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _rounds(turns: Sequence[_Turn]) -> list[Round]:
    """What was asked together, with the passages shown for it (in the tool interface, turns later)."""
    rounds: list[Round] = []
    for turn in turns:
        asked = [query for name, arguments in turn.calls for query in _queries_of(name, arguments)]
        if asked or not rounds:
            rounds.append(Round(asked))
        rounds[-1].shown.extend(item for text in turn.texts for item in items_of(text) if item.text)
    return rounds


def _queries_of(name: str, arguments: dict[str, Any]) -> list[str]:
    if name in ("search", "retrieve"):
        return [str(arguments.get("query", ""))]
    found = _LOOK.search(str(arguments.get("code", "")))
    try:
        return [str(query) for query in ast.literal_eval(found[1])] if found else []
    except (ValueError, SyntaxError):  # a cell of somebody else's
        return []


def _next_stage(last: _Turn, place: int) -> list[tuple[str, dict[str, Any]]]:
    """What follows a turn of the tool interface within its round; nothing if the round is over."""
    made = [
        str(arguments["name"])
        for (_, arguments), text in zip(last.calls, last.texts, strict=True)
        if "name" in arguments and not text.startswith(_FAILED)
    ]
    kinds = {name for name, _ in last.calls}
    if "retrieve" in kinds and len(made) == 1:
        return [("rerank", {"candidates": made[0], "name": f"best_{place}"})]
    if "retrieve" in kinds and made:
        pool = f"pool_{place}"
        return [
            ("dedupe", {"candidates": made, "name": pool}),
            ("rerank", {"candidates": pool, "name": f"best_{place}"}),
        ]
    if "rerank" in kinds and f"best_{place}" in made:
        return [("extract", {"candidates": f"best_{place}", "name": f"notes_{place}"})]
    return []


def _numbered(calls: Sequence[tuple[str, dict[str, Any]]], turns: Sequence[_Turn]) -> tuple[ToolCall, ...]:
    n_before = sum(len(turn.calls) for turn in turns)
    return tuple(
        ToolCall(f"k{n}", name, json.dumps(arguments, ensure_ascii=False))
        for n, (name, arguments) in enumerate(calls, n_before)
    )


def _listed(question: str, rounds: Sequence[Round]) -> str:
    found = sources(question, rounds)
    if not found:
        return f"{_NO_ANSWER} It found none."
    shown = [f"[{item.id}] {item.title}".rstrip() for item in found[:_SOURCES]]
    more = len(found) - len(shown)
    rest = [f"and {more} more"] if more else []
    return "\n".join([f"{_NO_ANSWER} Sources, the most related first:", *shown, *rest])
