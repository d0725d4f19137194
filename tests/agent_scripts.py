"""What tests let a scripted model say through each of the three interfaces."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from searchops.agents import Budget, ProgramAgent, QueryAgent, ToolAgent
from searchops.models import Request, ScriptedModel, ToolCall

AGENTS = {"query": QueryAgent, "tool": ToolAgent, "program": ProgramAgent}


def call(tool: str, id_: str = "c0", **arguments: Any) -> ToolCall:
    """A tool call with its arguments as JSON."""
    return ToolCall(id_, tool, json.dumps(arguments, ensure_ascii=False))


def searching(kind: str, query: str, k: int | None = None) -> list[list[ToolCall]]:
    """The turns that retrieve, rerank and extract for one query."""
    size = {} if k is None else {"k": k}
    if kind == "query":
        return [[call("search", query=query, **size)]]
    if kind == "tool":
        return [
            [call("retrieve", query=query, name="pool", **size)],
            [call("rerank", candidates="pool", name="best", **size)],
            [call("extract", candidates="best", name="notes", **size)],
        ]
    n = "" if k is None else f", k={k}"
    code = (
        f"pool = retrieve({query!r}{n})\nbest = rerank(pool{n})\n"
        f"notes = extract(best{n})\n[(c.passage_id, c.note) for c in notes]"
    )
    return [[call("run_program", code=code)]]


def fruitless(kind: str) -> list[ToolCall]:
    """A turn that runs and extracts nothing."""
    if kind == "query":
        return [call("search", query="zzzunknownword")]
    if kind == "tool":
        return [call("retrieve", query="lake", name="pool")]
    return [call("run_program", code="pool = retrieve('lake')\nlen(pool)")]


def always(turn: Sequence[ToolCall], finally_: str = "From the finalizer.") -> ScriptedModel:
    """A model that makes the same turn for ever, and answers where it has no tools."""

    def line(request: Request) -> Any:
        return turn if request.tools else finally_

    return ScriptedModel(line)


def made(kind: str, index: Any, replies: Any, **settings: Any) -> Any:
    """An agent of a kind with a scripted model."""
    model = replies if hasattr(replies, "complete") else ScriptedModel(replies)
    settings.setdefault("budget", Budget(decisions=8, repairs=2))
    return AGENTS[kind](model, index, **settings)
