"""The program interface: one cell of restricted Python a decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from searchops.agents.agent import BUDGET, FUNNEL, LEXICAL, Agent
from searchops.agents.budget import Budget
from searchops.agents.interface import Action, Interface, Observation
from searchops.agents.observations import shown_in
from searchops.agents.schemas import PROGRAM_TOOLS
from searchops.cells import CellRunner, Limits
from searchops.engines.base import Engine
from searchops.models.protocol import ChatModel, Tool
from searchops.primitives.extract import SENTENCES
from searchops.scorers.base import Scorer
from searchops.splitting import Splitter
from searchops.substrate import Funnel, Substrate

__all__ = ["ProgramAgent"]

LIMITS = Limits()


class Programming(Interface):
    """`run_program(code)`: variables stay, the last expression is what is shown."""

    tools: ClassVar[tuple[Tool, ...]] = PROGRAM_TOOLS
    unit: ClassVar[str] = "decision"

    def __init__(self, substrate: Substrate, limits: Limits) -> None:
        super().__init__(substrate)
        self.runner = CellRunner(substrate, limits)

    def refusals(self, actions: Sequence[Action]) -> list[str | None]:
        """One cell a turn; further ones are not run."""
        more = "a turn takes one cell; put what belongs together into it, or go on in the next turn"
        return [None if place == 0 else more for place in range(len(actions))]

    def call(self, action: Action, decision: int) -> Observation:
        """Runs one cell."""
        result = self.runner.run(str(action.arguments["code"]), decision)
        text = result.observation
        shown = shown_in(self.workspace.rows, text) if result.ok else ()
        return Observation(text, shown, result.shown, failed=not result.ok, status=result.status)

    def state(self) -> str:
        """Names, types and sizes of the variables, never their contents."""
        return self.workspace.describe()

    def close(self) -> None:
        """Ends the sandbox's session."""
        self.runner.close()


class ProgramAgent(Agent):
    """Answers questions by writing program cells over a persistent workspace.

    Columns: Q -> Q + qanswer, stop_reason, decisions, …; see `Agent`.
    Source: PSA, 3 and A.2 (Programmatic Search Agent).

    Args:
        model: Writes the cells and the answer.
        index: What is searched.
        scorer: Reranks, and scores passages where there is no other scorer for that.
        extract_scorer: Scores passages.
        splitter: How documents become passages.
        limits: Of each cell.
        budget: Limits of a question.
        funnel: Limits of a call.
        prompt: A file with a system prompt of your own.
        finalizer_prompt: A file with a prompt of your own for the finalizer.
        n_parallel: Questions at a time.
    """

    interface_name: ClassVar[str] = "program"

    def __init__(
        self,
        model: ChatModel,
        index: Engine,
        scorer: Scorer = LEXICAL,
        *,
        extract_scorer: Scorer | None = None,
        splitter: Splitter = SENTENCES,
        limits: Limits = LIMITS,
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
        self.limits = limits

    @property
    def unit(self) -> str:
        """A whole cell with its observation."""
        return Programming.unit

    def interface(self, substrate: Substrate) -> Interface:
        """A question's sandbox."""
        return Programming(substrate, self.limits)
