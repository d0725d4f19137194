"""The tools that models are offered, one set for each of the three interfaces.

Sizes up to 50 may be asked for; what the funnel allows is enforced, and said, when a call runs.
Source: PSA, A.1 (schemas permit 50, the runtime caps at 20/10/10) and Table 2.
"""

from __future__ import annotations

from typing import Any, Final

from searchops.models.protocol import Tool

__all__ = ["FINISH_HINT", "PRIMARY", "PROGRAM_TOOLS", "QUERY_TOOLS", "TOOL_TOOLS"]

FINISH_HINT: Final = "To finish, write the answer as plain text, without a tool call."
PRIMARY: Final = ("retrieve", "rerank", "extract")
"""Stages of which a turn of the tool interface may use one kind."""

_SIZE: Final = {"type": "integer", "minimum": 1, "maximum": 50}
_ALIAS: Final = {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,39}$"}
_NAME: Final = {**_ALIAS, "description": "The name to keep the result under; one is made up if none is given."}
_FROM: Final = {**_ALIAS, "description": "The name of a kept result."}


def _tool(name: str, description: str, needed: dict[str, Any], optional: dict[str, Any]) -> Tool:
    parameters = {
        "type": "object",
        "properties": {**needed, **optional},
        "required": list(needed),
        "additionalProperties": False,
    }
    return Tool(name, description, parameters)


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _size(description: str) -> dict[str, Any]:
    return {**_SIZE, "description": description}


QUERY_TOOLS: Final = (
    _tool(
        "search",
        "Search the collection. Retrieves documents, reranks them and gives back the best passage of each.",
        {"query": _text("What to look for, in words.")},
        {"k": _size("Most passages to give back.")},
    ),
)

TOOL_TOOLS: Final = (
    _tool(
        "retrieve",
        "Find documents for a query and keep them under a name. Shows their ids and titles.",
        {"query": _text("What to look for, in words.")},
        {"k": _size("Most documents."), "name": _NAME},
    ),
    _tool(
        "filter",
        "Keep the candidates for which a condition on their fields holds, in their order.",
        {"candidates": _FROM, "where": _text('Such as: year >= 2019 and title contains "lake".')},
        {"name": _NAME},
    ),
    _tool(
        "rerank",
        "Order candidates by relevance to the query that found each of them, and keep the best.",
        {"candidates": _FROM},
        {"k": _size("Most candidates to keep."), "name": _NAME},
    ),
    _tool(
        "extract",
        "Read the first candidates and take the passage of each that serves an instruction. Shows the passages.",
        {"candidates": _FROM},
        {
            "instruction": _text("What to look for in the documents."),
            "k": _size("Most documents to read."),
            "size": {"type": "integer", "minimum": 1, "description": "Most characters of a note."},
            "name": _NAME,
        },
    ),
    _tool(
        "dedupe",
        "Put kept results together, each document (or passage) once, in order of first appearance.",
        {"candidates": {"type": "array", "items": _ALIAS, "minItems": 1, "description": "Names of kept results."}},
        {"key": {"type": "string", "enum": ["docno", "passage_id"]}, "name": _NAME},
    ),
)

PROGRAM_TOOLS: Final = (
    _tool(
        "run_program",
        "Run one cell of restricted Python over the search primitives. Variables stay; the last expression is shown.",
        {"code": _text("The cell.")},
        {},
    ),
)
