"""One question from its text to its answer: decisions, repairs, calls, and why it ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from searchops import recorder
from searchops.agents.budget import Budget
from searchops.agents.conversation import Conversation
from searchops.agents.finalizer import final_messages
from searchops.agents.interface import Action, Interface, Observation
from searchops.agents.replies import Reading, read_reply, with_ids
from searchops.agents.usage import Spent
from searchops.errors import BudgetExceeded, DataError, SpecError, ToolError
from searchops.models.protocol import ChatModel, Message, Reply
from searchops.workspace import Costs, Evidence

BUDGET: Final = Budget()

__all__ = ["STOP_REASONS", "Interrupted", "Outcome", "run_question"]

STOP_REASONS: Final = {
    "answered": "The model wrote an answer.",
    "budget": "All decisions were used; the finalizer wrote the answer.",
    "no_action": "The last reply held neither a tool call nor a text.",
    "repair_exhausted": "The last reply was malformed, and no repair was left.",
    "filtered": "The model refused, or its reply was filtered.",
    "model_error": "The model gave no usable reply.",
    "limit": "A budget of the whole run was used up.",
}
"""Why a question ends."""


class Interrupted(Exception):  # noqa: N818 - it is no error of the question's
    """The question was stopped from outside, between two decisions; nothing of it is kept."""


@dataclass
class Outcome:
    """What a question came to.

    Attributes:
        answer: The answer; "" where there is none.
        stop_reason: One of `STOP_REASONS`.
        error: What failed, or "".
        decisions: Decisions that were made, the finishing one included.
        repairs: Replies that were asked for again.
        observation_chars: Characters of all observations.
        seconds: From the question to the answer.
        spent: Tokens and money.
        costs: Search work.
        ledger: The evidence that extraction kept.
        lines: The exchanges, for the record.
    """

    answer: str = ""
    stop_reason: str = ""
    error: str = ""
    decisions: int = 0
    repairs: int = 0
    observation_chars: int = 0
    seconds: float = 0.0
    spent: Spent = field(default_factory=Spent)
    costs: Costs = field(default_factory=Costs)
    ledger: list[Evidence] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)


def run_question(
    question: str,
    model: ChatModel,
    interface: Interface,
    *,
    system: str,
    finalizer: str,
    budget: Budget = BUDGET,
    stopped: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Lets a model search until it answers or may not go on; the answer's own failures are outcomes.

    Args:
        question: What the model is asked; nothing else of the task reaches it.
        model: Chooses the actions and writes the answer.
        interface: The question's tools, over its own workspace.
        system: The system prompt.
        finalizer: The system prompt of the call that answers when all decisions are used.
        budget: Limits and settings of the calls.
        stopped: Asked before every decision; True ends the question with `Interrupted`.

    Raises:
        SpecError: The model is set up wrongly: no question could be answered.
        Interrupted: `stopped` said so.
        DataError, FrameError: The search side is broken (an index, a scorer).

    Source: PSA, 4.1, A.2, A.3.
    """
    return _Loop(Conversation(model, budget, system, question), interface, stopped).run(question, finalizer)


class _Loop:
    def __init__(self, talk: Conversation, interface: Interface, stopped: Callable[[], bool]) -> None:
        self.talk = talk
        self.interface = interface
        self.stopped = stopped
        self.outcome = Outcome(spent=talk.spent, lines=talk.lines)

    def run(self, question: str, finalizer: str) -> Outcome:
        start = time.perf_counter()
        outcome = self.outcome
        try:
            outcome.stop_reason = self._decisions()
            if outcome.stop_reason == "budget":
                self._finalize(question, finalizer)
        except BudgetExceeded as error:
            outcome.stop_reason, outcome.error = "limit", str(error)
        outcome.seconds = time.perf_counter() - start
        outcome.costs = self.interface.workspace.costs
        outcome.ledger = list(self.interface.workspace.evidence)
        return outcome

    def _decisions(self) -> str:
        """Makes decisions until there is a stop reason."""
        for decision in range(self.talk.budget.decisions):
            if self.stopped():
                raise Interrupted
            stop = self._decision(decision)
            if stop:
                return stop
        return "budget"

    def _decision(self, decision: int) -> str:
        """One decision, with its repairs; returns the stop reason, or "" to go on."""
        self.outcome.decisions += 1
        for attempt in range(self.talk.budget.repairs + 1):
            try:
                reply = with_ids(self.talk.ask(self.interface.tools, decision, attempt), decision)
            except DataError as error:
                self.outcome.error = str(error)
                return "model_error"
            reading = read_reply(reply, self.interface.tools)
            if reading.answer is not None:
                self.outcome.answer = reading.answer
                return "answered"
            if not reading.problem:
                self.talk.answer(reply, self._act(reply, reading, decision))
                return ""
            self.talk.lines[-1]["problem"] = reading.problem
            if attempt < self.talk.budget.repairs and reading.stop != "filtered":
                self.outcome.repairs += 1
                self.talk.answer(reply, _corrections(reply, reading))
            else:
                self.outcome.error = reading.problem
                return reading.stop
        raise AssertionError("the last attempt returns")

    def _act(self, reply: Reply, reading: Reading, decision: int) -> list[Message]:
        """Runs the calls of a reply in their order; one tool message each."""
        actions = [call for call in reading.calls if isinstance(call, Action)]
        refusals = dict(zip((action.id for action in actions), self.interface.refusals(actions), strict=True))
        notes, texts = [], []
        for number, (call, read) in enumerate(zip(reply.tool_calls, reading.calls, strict=True)):
            before = self.interface.workspace.costs
            observation = self._observe(read, refusals.get(call.id), decision, number)
            texts.append(observation.text)
            self.outcome.observation_chars += len(observation.text)
            arguments = dict(read.arguments) if isinstance(read, Action) else call.arguments
            costs = asdict(self.interface.workspace.costs - before)
            notes.append(_note(number, call.name, arguments, observation, costs))
        state = self.interface.state()
        self.talk.lines[-1].update(calls=notes, workspace=state)
        texts[-1] += _footer(self.talk.budget.decisions - decision - 1, state)
        pairs = zip(reply.tool_calls, texts, strict=True)
        return [Message("tool", text, tool_call_id=call.id) for call, text in pairs]

    def _observe(self, read: Action | str, refusal: str | None, decision: int, number: int) -> Observation:
        if isinstance(read, str):
            return Observation(f"error: {read}", failed=True)
        if refusal:
            return Observation(f"not run: {refusal}", failed=True)
        try:
            with recorder.step(decision, number):
                return self.interface.call(read, decision)
        except (ToolError, SpecError) as error:
            return Observation(f"error: {error}", failed=True)

    def _finalize(self, question: str, finalizer: str) -> None:
        budget, ledger = self.talk.budget, self.interface.workspace.evidence
        messages = final_messages(question, ledger, finalizer, budget.finalizer_chars)
        try:
            reply = self.talk.ask_apart(messages, budget.decisions)
        except DataError as error:
            self.outcome.error = f"finalizer: {error}"
            return
        self.outcome.answer = (reply.content or "").strip()


def _corrections(reply: Reply, reading: Reading) -> list[Message]:
    """What a malformed reply is answered with."""
    if not reply.tool_calls:
        return [Message("user", reading.problem)]
    pairs = zip(reply.tool_calls, reading.calls, strict=True)
    return [Message("tool", f"error: {text}", tool_call_id=call.id) for call, text in pairs]


def _footer(left: int, state: str) -> str:
    """What every turn ends with: how many decisions are left, and the workspace."""
    lines = [f"decisions left: {left}"]
    if left == 0:
        lines.append("No further call can be made.")
    if state:
        lines += ["workspace:", state]
    return "\n\n---\n" + "\n".join(lines)


def _note(number: int, name: str, arguments: Any, observation: Observation, costs: dict[str, Any]) -> dict[str, Any]:
    """One call as the record holds it."""
    note = {
        "call": number,
        "name": name,
        "arguments": arguments,
        "observation": observation.text,
        "shown": [list(part) for part in observation.shown],
        "referenced": list(observation.referenced),
        "failed": observation.failed,
        "costs": {**costs, "seconds": round(costs["seconds"], 6)},
    }
    if observation.status:
        note["status"] = observation.status
    return note
