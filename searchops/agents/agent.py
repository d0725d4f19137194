"""What the three agents share: a transformer from questions to answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from searchops import recorder
from searchops.agents.answers import ANSWER_COLUMNS, answer_line, answer_row
from searchops.agents.budget import Budget
from searchops.agents.concurrency import answer_all
from searchops.agents.interface import Interface
from searchops.agents.loop import Outcome, run_question
from searchops.agents.prompting import Prompt, load_prompt
from searchops.engines.base import Engine
from searchops.errors import DataError, FrameError
from searchops.frames import Group, Record, require
from searchops.models.protocol import ChatModel
from searchops.primitives.base import Outcome as Kept
from searchops.primitives.base import Primitive, cutoff
from searchops.primitives.extract import SENTENCES
from searchops.primitives.scored import check_scorer
from searchops.scorers.base import Scorer
from searchops.scorers.lexical import Lexical
from searchops.splitting import Splitter
from searchops.substrate import Funnel, Substrate
from searchops.workspace import Workspace

__all__ = ["BUDGET", "FUNNEL", "LEXICAL", "Agent"]

LEXICAL = Lexical()
BUDGET = Budget()
FUNNEL = Funnel()


class Agent(Primitive):
    """A search agent: questions in, answers out, one row each.

    What a question came to is an outcome, also where there is no answer (see `stop_reason`); a broken index
    or scorer is not, and raises. Inside `record`, each finished question is on disk at once, with all its
    events, and a run that goes on takes the questions that are there from its record.

    Columns: Q -> Q + qanswer, stop_reason, error, decisions, repairs, final_step_tokens, total_tokens,
        token_source, retrieval_requests, returned_documents, rerank_pairs, extract_calls, extract_pairs,
        observation_chars, seconds.
    Rows: one a question.
    Source: PSA, 3 and 4.1.
    """

    kind: ClassVar[str] = "agent"
    needs: ClassVar[tuple[str, ...]] = ("qid", "query")
    interface_name: ClassVar[str] = "agent"

    def __init__(
        self,
        model: ChatModel,
        index: Engine,
        scorer: Scorer = LEXICAL,
        *,
        extract_scorer: Scorer | None = None,
        splitter: Splitter = SENTENCES,
        budget: Budget = BUDGET,
        funnel: Funnel = FUNNEL,
        prompt: str | None = None,
        finalizer_prompt: str | None = None,
        n_parallel: int = 1,
    ) -> None:
        where = type(self).__name__
        if not isinstance(model, ChatModel):
            raise FrameError("a chat model is needed", repr(model), where=where, hint="Give for example OpenAIModel().")
        if not isinstance(index, Engine):
            raise FrameError("an index is needed", repr(index), where=where, hint="Give LuceneIndex('path').")
        self.model = model
        self.index = index
        self.scorer = check_scorer(scorer, where)
        self.extract_scorer = None if extract_scorer is None else check_scorer(extract_scorer, where)
        self.splitter = splitter
        self.budget = budget
        self.funnel = funnel
        self.prompt = None if prompt is None else os.fspath(prompt)
        self.finalizer_prompt = None if finalizer_prompt is None else os.fspath(finalizer_prompt)
        self.n_parallel = cutoff(n_parallel, where=where, name="n_parallel") or 1
        self.prompts()

    def interface(self, substrate: Substrate) -> Interface:
        """The tools of one question."""
        raise NotImplementedError(f"{type(self).__name__} has no interface")

    def prompts(self) -> dict[str, Prompt]:
        """The system prompt and the finalizer's.

        Raises:
            SpecError: A file cannot be read.
        """
        return {
            "system": load_prompt(self.interface_name, self.prompt),
            "finalizer": load_prompt("finalizer", self.finalizer_prompt),
        }

    @property
    def record_name(self) -> str:
        """What a record knows the agent by: its arguments, but for how many questions run at a time."""
        return repr(self if self.n_parallel == 1 else self.with_arguments(n_parallel=1))

    # -- answering -----------------------------------------------------------------------------

    def ask(self, question: str, qid: str = "1", *, stopped: Callable[[], bool] = lambda: False) -> Outcome:
        """Answers one question; a recorder in progress gets its events, not its decisions.

        Raises:
            SpecError: The model is set up wrongly.
            DataError, FrameError: The search side is broken.
        """
        workspace = Workspace(qid, question)
        substrate = Substrate(
            workspace,
            self.index,
            self.scorer,
            self.extract_scorer,
            splitter=self.splitter,
            funnel=self.funnel,
            name=self.record_name,
        )
        interface = self.interface(substrate)
        values = {**vars(self.budget), **vars(self.funnel), "fields": ", ".join(self.index.columns)}
        texts = {name: prompt.filled(values) for name, prompt in self.prompts().items()}
        try:
            return run_question(question, self.model, interface, **texts, budget=self.budget, stopped=stopped)
        finally:
            interface.close()

    def attempt(self, groups: Sequence[Group]) -> list[Record | Exception]:
        """Answers questions side by side; each gives its row, or the exception that broke it.

        Raises:
            SpecError: The model is set up wrongly.
            DataError: The record in progress was made with other prompts.
            FrameError: A row is no question.
        """
        questions = [_question(group, type(self).__name__) for group in groups]
        with recorder.scope(self.record_name) as place:
            number = place.pipeline
        run = recorder.current()
        known = {} if run is None else run.answered(number)
        if run is not None:
            self._note_prompts(run, number)

        def work(question: Record, stopped: Callable[[], bool]) -> Record:
            qid, query = question["qid"], question["query"]
            if qid in known:
                return answer_row(question, _same(known[qid], query))
            with recorder.apart() as part:
                outcome = self.ask(query, qid, stopped=stopped)
                line = answer_line(qid, query, outcome)
                if part is not None:
                    head = {"pipeline": number, "agent": self.interface_name, "unit": self.unit}
                    part.complete([{"qid": qid, **head, **told} for told in outcome.lines], {**head, **line})
            return answer_row(question, line)

        return answer_all(work, questions, self.n_parallel)

    @property
    def unit(self) -> str:
        """What an event of evidence accounting is: one "call", or a whole "decision"."""
        return "call"

    def process(self, groups: Sequence[Group]) -> list[Kept]:
        """A batch of questions; the first exception is raised when all of them are through."""
        rows: list[Record] = []
        broken: Exception | None = None
        for row in self.attempt(groups):
            if isinstance(row, Exception):
                broken = broken or row
            else:
                rows.append(row)
        if broken is not None:
            raise broken
        return [Kept([row]) for row in rows]

    def run_alone(self, groups: Sequence[Group]) -> list[Group]:
        """Answers questions outside any pipeline; its record holds the calls, and no event of the whole."""
        outcomes = self.process(groups)
        return [Group(g.qid, g.query, outcome.rows) for g, outcome in zip(groups, outcomes, strict=True)]

    def transform_outputs(self, input_columns: list[str]) -> list[str]:
        """The input's columns, then the answer's."""
        self.check_columns(input_columns, empty=True)
        return list(dict.fromkeys([*input_columns, *ANSWER_COLUMNS]))

    def label(self) -> str:
        """Such as `query agent`."""
        return f"{self.interface_name} agent"

    def _note_prompts(self, run: recorder.Recorder, number: int) -> None:
        told: dict[str, Any] = {
            name: {"source": prompt.source, "sha256": prompt.sha256} for name, prompt in self.prompts().items()
        }
        known = run.meta.setdefault("prompts", {}).setdefault(str(number), told)
        if known != told:
            raise DataError(
                "the prompts that the record was made with are needed",
                "other ones",
                where=str(run.path or "record"),
                hint="Give the old prompt files, or another folder.",
            )


def _same(line: Record, query: str) -> Record:
    """The recorded answer, if it is one to this question."""
    if line["query"] != query:
        found = f"an answer to {line['query']!r}"[:200]
        raise DataError("one question a qid is needed in a record", found, where=f"qid {line['qid']!r}")
    return line


def _question(group: Group, where: str) -> Record:
    """The one row of a question."""
    row = group.rows[0]
    if len(group.rows) > 1 or "docno" in row:
        found = f"{len(group.rows)} rows" if "docno" not in row else "documents"
        raise FrameError("one question a qid is needed", f"{found} for qid {group.qid!r}", where=where)
    query = require(row, "query", where=where)
    if not isinstance(query, str) or not query.strip():
        raise FrameError("a question that is text is needed", f"{query!r} for qid {group.qid!r}", where=where)
    return row
