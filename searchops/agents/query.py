"""The query interface: one search tool with a fixed funnel behind it."""

from __future__ import annotations

from typing import ClassVar

from searchops.agents.agent import BUDGET, FUNNEL, LEXICAL, Agent
from searchops.agents.budget import Budget
from searchops.agents.interface import Action, Interface, Observation, ids_of
from searchops.agents.observations import passage_blocks, shown_by
from searchops.agents.schemas import QUERY_TOOLS
from searchops.engines.base import Engine
from searchops.frames import Record
from searchops.models.protocol import ChatModel, Tool
from searchops.predicates import Predicate, as_predicate
from searchops.primitives.extract import SENTENCES
from searchops.scorers.base import Scorer
from searchops.splitting import Splitter
from searchops.substrate import Funnel, Substrate

__all__ = ["QueryAgent"]


class Searching(Interface):
    """`search(query)`: retrieve, filter, rerank, extract, each to the funnel's limit."""

    tools: ClassVar[tuple[Tool, ...]] = QUERY_TOOLS

    def __init__(self, substrate: Substrate, where: Predicate | None = None) -> None:
        super().__init__(substrate)
        self.where = where

    def call(self, action: Action, decision: int) -> Observation:
        """Runs one search through the whole funnel."""
        query, k = str(action.arguments["query"]), action.arguments.get("k")
        funnel = self.substrate.funnel
        found = self.substrate.retrieve(query, funnel.retrieve)
        kept = found if self.where is None else self.substrate.filter(found, self.where)
        ranked = self.substrate.rerank(kept, funnel.rerank)
        notes = self.substrate.extract(ranked, None, k)
        capped = notes.notice if k is not None and k > funnel.extract else ""
        text = _told(query, (len(found.rows), len(ranked.rows)), notes.rows, capped)
        return Observation(text, shown_by(notes.rows), ids_of(notes.rows))


def _told(query: str, numbers: tuple[int, int], notes: list[Record], notice: str) -> str:
    n, asked = len(notes), " ".join(query.split())
    head = f'{n} passage{"s"[: n != 1]} for "{asked}" ({numbers[0]} retrieved, {numbers[1]} reranked)'
    if notice:
        head += f"\n[{notice}]"
    return f"{head}\n\n{passage_blocks(notes)}" if notes else head


class QueryAgent(Agent):
    """Answers questions with one tool, `search(query)`; what happens behind a query is fixed.

    Columns: Q -> Q + qanswer, stop_reason, decisions, …; see `Agent`.
    Source: PSA, 3.3 and 4.1 (Query-based Agent).

    Args:
        model: Chooses the queries and writes the answer.
        index: What is searched.
        scorer: Reranks, and scores passages where there is no other scorer for that.
        extract_scorer: Scores passages.
        splitter: How documents become passages.
        where: A condition every search filters by; None keeps all.
        budget: Limits of a question.
        funnel: Limits of a call.
        prompt: A file with a system prompt of your own.
        finalizer_prompt: A file with a prompt of your own for the finalizer.
        n_parallel: Questions at a time.
    """

    interface_name: ClassVar[str] = "query"

    def __init__(
        self,
        model: ChatModel,
        index: Engine,
        scorer: Scorer = LEXICAL,
        *,
        extract_scorer: Scorer | None = None,
        splitter: Splitter = SENTENCES,
        where: Predicate | str | None = None,
        budget: Budget = BUDGET,
        funnel: Funnel = FUNNEL,
        prompt: str | None = None,
        finalizer_prompt: str | None = None,
        n_parallel: int = 1,
    ) -> None:
        super().__init__(
            model,
            index,
            scorer,
            extract_scorer=extract_scorer,
            splitter=splitter,
            budget=budget,
            funnel=funnel,
            prompt=prompt,
            finalizer_prompt=finalizer_prompt,
            n_parallel=n_parallel,
        )
        self.where = None if where is None else as_predicate(where)

    def interface(self, substrate: Substrate) -> Interface:
        """A question's search tool."""
        return Searching(substrate, self.where)
