"""What a question came to, as a line of the record and as a row of the answers frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from searchops.agents.loop import Outcome
from searchops.frames import Record

__all__ = ["ANSWER_COLUMNS", "answer_line", "answer_row"]

ANSWER_COLUMNS: Final = (
    "qanswer",
    "stop_reason",
    "error",
    "decisions",
    "repairs",
    "final_step_tokens",
    "total_tokens",
    "token_source",
    "retrieval_requests",
    "returned_documents",
    "rerank_pairs",
    "extract_calls",
    "extract_pairs",
    "observation_chars",
    "seconds",
)
"""The columns that an agent adds to a question."""


def answer_line(qid: str, query: str, outcome: Outcome) -> Record:
    """The line of answers.jsonl: the columns, the parts of the token sums, and the evidence ledger."""
    spent, costs = outcome.spent, outcome.costs
    # Where not one reply came, nothing is known of the tokens.
    known = spent.model_calls > 0
    return {
        "qid": qid,
        "query": query,
        "qanswer": outcome.answer,
        "stop_reason": outcome.stop_reason,
        "error": outcome.error,
        "decisions": outcome.decisions,
        "repairs": outcome.repairs,
        "final_step_tokens": spent.final_step_tokens if known else None,
        "total_tokens": spent.total_tokens if known else None,
        "token_source": spent.source,
        "retrieval_requests": costs.retrieval_requests,
        "returned_documents": costs.returned_documents,
        "rerank_pairs": costs.rerank_pairs,
        "extract_calls": costs.extract_calls,
        "extract_pairs": costs.extract_pairs,
        "observation_chars": outcome.observation_chars,
        "seconds": round(outcome.seconds, 6),
        "search_seconds": round(costs.seconds, 6),
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "cached_tokens": spent.cached_tokens,
        "reasoning_tokens": spent.reasoning_tokens,
        "model_calls": spent.model_calls,
        "cost_usd": spent.cost_usd,
        "ledger": [asdict(item) for item in outcome.ledger],
    }


def answer_row(question: Record, line: Mapping[str, Any]) -> Record:
    """The question's row with the answer's columns."""
    return {**question, **{name: line[name] for name in ANSWER_COLUMNS}}
