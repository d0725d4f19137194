"""The tool interface: the five primitives as tools, over named results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from searchops.agents.agent import Agent
from searchops.agents.interface import Action, Interface, Observation, ids_of
from searchops.agents.observations import document_lines, passage_blocks, shown_by
from searchops.agents.schemas import PRIMARY, TOOL_TOOLS
from searchops.errors import FrameError, ToolError, did_you_mean, sentence
from searchops.models.protocol import Tool
from searchops.substrate import Found, Substrate
from searchops.workspace import Variable

__all__ = ["ToolAgent"]


class FiveTools(Interface):
    """retrieve, filter, rerank, extract and dedupe; results stay under names.

    Of the primary stages (retrieve, rerank, extract) a turn may use one kind, and none on what the turn
    itself makes with one: that needs the model's next turn.
    """

    tools: ClassVar[tuple[Tool, ...]] = TOOL_TOOLS

    def __init__(self, substrate: Substrate) -> None:
        super().__init__(substrate)
        self._n_named = 0

    def refusals(self, actions: Sequence[Action]) -> list[str | None]:
        """Refuses a second kind of primary stage, and a primary stage on this turn's own results."""
        kinds = [action.name for action in actions if action.name in PRIMARY]
        fresh: set[str] = set()
        found: list[str | None] = []
        for action in actions:
            used = _names_used(action)
            refusal = None
            if action.name in PRIMARY and action.name != kinds[0]:
                refusal = (
                    f"a turn takes one of {', '.join(PRIMARY)}, and this one has {kinds[0]}; "
                    f"call {action.name} in the next turn"
                )
            elif action.name in PRIMARY and fresh.intersection(used):
                waiting = ", ".join(sorted(fresh.intersection(used)))
                refusal = f"{waiting} is made in this same turn; call {action.name} on it in the next turn"
            elif (action.name in PRIMARY or fresh.intersection(used)) and "name" in action.arguments:
                fresh.add(action.arguments["name"])
            found.append(refusal)
        return found

    def call(self, action: Action, decision: int) -> Observation:
        """Runs one primitive and keeps its result."""
        arguments = action.arguments
        try:
            found, what = self._run(action.name, arguments)
        except FrameError as error:
            # Of a filter: a column that no candidate has, or values that do not compare.
            if action.name != "filter":
                raise
            raise ToolError(error.needed, error.found, where=error.where, hint=error.hint) from error
        name = arguments.get("name") or self._made_up()
        replaced = f" (replaces what {name} was)" if name in self.workspace.variables else ""
        self._keep(name, found)
        n = len(found.rows)
        kind = "passage" if found.rows and "passage_id" in found.rows[0] else "document"
        head = f"{name} = {what}: {n} {kind}{'s'[: n != 1]}{replaced}"
        if found.notice:
            head += f"\n[{found.notice}]"
        if not found.rows:
            return Observation(head)
        if action.name == "extract":
            return Observation(f"{head}\n\n{passage_blocks(found.rows)}", shown_by(found.rows), ids_of(found.rows))
        return Observation(f"{head}\n\n{document_lines(found.rows)}", (), ids_of(found.rows))

    def _run(self, tool: str, arguments: Any) -> tuple[Found, str]:
        """The result, and how the call reads."""
        if tool == "retrieve":
            query = str(arguments["query"])
            return self.substrate.retrieve(query, arguments.get("k")), f'retrieve("{" ".join(query.split())}")'
        if tool == "dedupe":
            names = list(arguments["candidates"])
            key = arguments.get("key", "docno")
            found = self.substrate.dedupe(*map(self._kept, names), key=key)
            return found, f"dedupe({', '.join(names)}, by {key})"
        name = arguments["candidates"]
        given = self._kept(name)
        if tool == "filter":
            return self.substrate.filter(given, arguments["where"]), f"filter({name}, {arguments['where']})"
        if tool == "rerank":
            return self.substrate.rerank(given, arguments.get("k")), f"rerank({name})"
        found = self.substrate.extract(
            given, arguments.get("instruction"), arguments.get("k"), size=arguments.get("size")
        )
        return found, f"extract({name})"

    def _kept(self, name: str) -> Found:
        variables = self.workspace.variables
        if name not in variables:
            hint = sentence(did_you_mean(name, variables)) if variables else "Nothing is kept yet: retrieve first."
            raise ToolError("the name of a kept result is needed", repr(name), hint=hint)
        kept: Found = variables[name].value
        return kept

    def _keep(self, name: str, found: Found) -> None:
        self.workspace.admit(found.rows)
        kind = "passages" if found.rows and "passage_id" in found.rows[0] else "documents"
        self.workspace.variables.pop(name, None)
        self.workspace.variables[name] = Variable(kind, len(found.rows), found)

    def _made_up(self) -> str:
        while True:
            self._n_named += 1
            name = f"r{self._n_named}"
            if name not in self.workspace.variables:
                return name

    def state(self) -> str:
        """Names, kinds and sizes of what is kept."""
        return self.workspace.describe()


def _names_used(action: Action) -> list[str]:
    used = action.arguments.get("candidates", [])
    return [used] if isinstance(used, str) else list(used)


class ToolAgent(Agent):
    """Answers questions with the five primitives as tools; what depends on a result waits for the next turn.

    Columns: Q -> Q + qanswer, stop_reason, decisions, …; see `Agent`.
    Source: PSA, 3.3 and 4.1 (Tool-based Agent).

    Args:
        model: Chooses the calls and writes the answer.
        index: What is searched.
        scorer: Reranks, and scores passages where there is no other scorer for that.
        extract_scorer: Scores passages.
        splitter: How documents become passages.
        budget: Limits of a question.
        funnel: Limits of a call.
        prompt: A file with a system prompt of your own.
        finalizer_prompt: A file with a prompt of your own for the finalizer.
        n_parallel: Questions at a time.
    """

    interface_name: ClassVar[str] = "tool"

    def interface(self, substrate: Substrate) -> Interface:
        """A question's five tools."""
        return FiveTools(substrate)
