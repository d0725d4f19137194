"""Tokens and money of one question, added up over its model calls."""

from __future__ import annotations

from dataclasses import dataclass, field

from searchops.models.protocol import Reply, Usage

__all__ = ["Spent"]


@dataclass
class Spent:
    """What the model calls of one question used.

    Attributes:
        final_step_tokens: Of the last decision call: all its input messages and its output.
        input_tokens: Of all calls.
        output_tokens: Of all calls, reasoning included.
        cached_tokens: Part of the input.
        reasoning_tokens: Part of the output.
        sources: Who counted: the provider, a tokenizer, or characters / 4.
        cost_usd: None where no call had a price.
        model_calls: Replies, repairs and the finalizer's included.

    Source: PSA, 4.1 and C (final-step tokens).
    """

    final_step_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    sources: set[str] = field(default_factory=set)
    cost_usd: float | None = None
    model_calls: int = 0

    def add(self, reply: Reply, usage: Usage, *, decision: bool) -> None:
        """Adds one call; the finalizer's is no decision."""
        if decision:
            self.final_step_tokens = usage.total_tokens
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.cached_tokens += usage.cached_tokens
        self.reasoning_tokens += usage.reasoning_tokens
        self.sources.add(usage.source)
        self.model_calls += 1
        if reply.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + reply.cost_usd

    @property
    def total_tokens(self) -> int:
        """Input and output of all calls."""
        return self.input_tokens + self.output_tokens

    @property
    def source(self) -> str:
        """Who counted the tokens; several are joined by +, "" is no call."""
        return "+".join(sorted(self.sources))
