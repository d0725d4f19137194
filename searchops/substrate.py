"""The search side of one question: the five operations that every agent interface shares.

They are the pipeline's own stages, run on the workspace's rows with the caps of the funnel. Every call
is recorded as a stage event under the step (decision, call) that the caller opened with
`recorder.step`. Source: PSA, 4.1, A.1 and Table 2.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from searchops import recorder
from searchops.engines.base import Engine
from searchops.errors import ToolError
from searchops.frames import Group, Record
from searchops.predicates import Predicate, parse
from searchops.predicates.columns import Table
from searchops.primitives import Dedupe, Extract, Filter, Rerank, Retrieve
from searchops.primitives.base import Outcome, Primitive, Traced, record_failure, record_stage
from searchops.primitives.extract import SENTENCES
from searchops.primitives.scored import statistics_from
from searchops.records import Event
from searchops.scorers.base import Scorer
from searchops.splitting import Splitter
from searchops.workspace import Workspace

__all__ = ["Found", "Funnel", "Marks", "Substrate"]

_PLACES = {"retrieve": 0, "filter": 1, "rerank": 2, "extract": 3, "dedupe": 4}


@dataclass(frozen=True)
class Funnel:
    """The most that one call may ask for; a larger request is capped and says so.

    Attributes:
        retrieve: Documents a query.
        rerank: Candidates a rerank returns.
        extract: Documents an extract reads.
        leaves: Conditions of a filter text.
        depth: Levels of a filter text.
        query_chars: Characters of a query.
        candidates: Candidates that a call may be given.

    Source: PSA, Table 2 and A.1 (20/10/10; eight leaves, depth three).
    """

    retrieve: int = 20
    rerank: int = 10
    extract: int = 10
    leaves: int = 8
    depth: int = 3
    query_chars: int = 2000
    candidates: int = 10_000


class Found(NamedTuple):
    """What an operation gives.

    Attributes:
        rows: The rows, as a pipeline's stage would have put them out.
        event: Number of the recorded event; -1 where nothing is recorded.
        notice: What was capped, or "".
    """

    rows: list[Record]
    event: int = -1
    notice: str = ""


class Marks(Predicate):
    """A predicate that was decided elsewhere: one truth value a row, in order."""

    leaves = depth = 1
    fields = frozenset()

    def __init__(self, flags: Sequence[bool], text: str = "<cell predicate>") -> None:
        self.flags = list(flags)
        self.text = text

    def _python(self) -> str:
        return self.text

    def _check(self, table: Table) -> None:
        if len(table.records) != len(self.flags):
            raise ToolError(f"{len(table.records)} truth values are needed", str(len(self.flags)), where="filter")

    def _evaluate(self, _table: Table, _live: list[bool], /) -> list[bool]:
        return self.flags


class Substrate:
    """Retrieve, filter, rerank, extract and dedupe for one question.

    Retrieval is memoised per question: asking again costs nothing and is recorded as a cache hit.

    Args:
        workspace: The question's workspace; costs and the evidence ledger are kept there.
        engine: What retrieve searches, and where scorers take collection statistics from.
        rerank_scorer: Scores candidates against the query that found them.
        extract_scorer: Scores passages; the rerank scorer if None.
        splitter: How extract cuts documents.
        funnel: Caps of one call.
        name: Under which the calls stand in a record.

    Raises:
        FrameError: An engine or a scorer is none.
    """

    def __init__(
        self,
        workspace: Workspace,
        engine: Engine,
        rerank_scorer: Scorer,
        extract_scorer: Scorer | None = None,
        *,
        splitter: Splitter = SENTENCES,
        funnel: Funnel = Funnel(),
        name: str = "substrate",
    ) -> None:
        self.workspace = workspace
        self.engine = engine
        self.rerank_scorer = Rerank(rerank_scorer).scorer
        self.extract_scorer = Rerank(extract_scorer).scorer if extract_scorer is not None else rerank_scorer
        self.splitter = splitter
        self.funnel = funnel
        self.name = name
        self._memory: dict[tuple[str, int], list[Record]] = {}
        Retrieve(engine)

    def retrieve(self, query: str, k: int | None = None) -> Found:
        """The k best documents for a query; at most the funnel's.

        Raises:
            ToolError: The query is no text, empty or too long; k is no whole number above 0.
        """
        if not isinstance(query, str) or not query.strip():
            raise ToolError("a query that is text is needed", _kind(query), where="retrieve")
        if len(query) > self.funnel.query_chars:
            raise ToolError(
                f"a query of at most {self.funnel.query_chars:,} characters is needed",
                f"{len(query):,}",
                where="retrieve",
            )
        k, notice = self._capped("retrieve", k, self.funnel.retrieve)
        stage, group = Retrieve(self.engine, k), self._group([{"qid": self.workspace.qid, "query": query}])
        known = self._memory.get((query, k))
        if known is not None:
            return Found(known, self._record_hit(stage, group, known), notice)
        self.workspace.spend(retrieval_requests=1)
        outcome, event = self._run(stage, group)
        self._memory[query, k] = outcome.rows
        self.workspace.spend(returned_documents=len(outcome.rows))
        return Found(outcome.rows, event, notice)

    def filter(self, candidates: Sequence[Record] | Found, predicate: Predicate | str) -> Found:
        """The candidates for which a predicate holds, in their order.

        Raises:
            ToolError: The predicate is too large.
            SpecError: Its text does not parse.
            FrameError: It names a column that no candidate has.
        """
        stage = Filter(parse(predicate) if isinstance(predicate, str) else predicate)
        leaves, depth = stage.predicate.leaves, stage.predicate.depth
        if leaves > self.funnel.leaves or depth > self.funnel.depth:
            raise ToolError(
                f"a filter of at most {self.funnel.leaves} conditions and depth {self.funnel.depth} is needed",
                f"{leaves} conditions, depth {depth}",
                where="filter",
                hint="Filter twice, or put values into one `in [..]`.",
            )
        rows, parent = self._given("filter", candidates)
        outcome, event = self._run(stage, self._group(rows), parent)
        return Found(outcome.rows, event)

    def rerank(self, candidates: Sequence[Record] | Found, k: int | None = None) -> Found:
        """The k best candidates, each scored against the query that found it.

        Raises:
            ToolError: k is no whole number above 0, or the candidates are of two kinds.
        """
        k, notice = self._capped("rerank", k, self.funnel.rerank)
        rows, parent = self._given("rerank", candidates)
        self.workspace.spend(rerank_pairs=len(rows))
        outcome, event = self._run(Rerank(self.rerank_scorer, k), self._group(rows), parent)
        return Found(outcome.rows, event, notice)

    def extract(
        self,
        candidates: Sequence[Record] | Found,
        instruction: str | None = None,
        k: int | None = None,
        *,
        size: int | None = None,
        schema: dict[str, Any] | None = None,
    ) -> Found:
        """One passage a document out of the first k candidates, in their order; the ledger keeps them.

        Raises:
            ToolError: k is no whole number above 0, the instruction is no text, the schema no dict, or the
                candidates are of two kinds.
            FrameError: A size is out of range, or a schema is given to a scorer that writes no notes.
        """
        if instruction is not None and not isinstance(instruction, str):
            raise ToolError("an instruction that is text is needed", _kind(instruction), where="extract")
        if schema is not None and not isinstance(schema, dict):
            raise ToolError("a schema that is a dict is needed", _kind(schema), where="extract")
        k, notice = self._capped("extract", k, self.funnel.extract)
        rows, parent = self._given("extract", candidates)
        stage = Extract(
            self.extract_scorer, k, instruction=instruction or None, splitter=self.splitter, size=size, schema=schema
        )
        outcome, event = self._run(stage, self._group(rows), parent)
        self.workspace.spend(extract_calls=1 if rows else 0, extract_pairs=len(outcome.scored))
        self.workspace.extracted(outcome.rows)
        left_out = len({row["docno"] for row in rows}) - k
        if left_out > 0 and not notice:
            notice = f"extract read the first {k} documents; {left_out} more were given"
        return Found(outcome.rows, event, notice)

    def dedupe(self, *collections: Sequence[Record] | Found, key: str = "docno") -> Found:
        """The collections in one list, the first candidate of each key kept, in order.

        Candidates without a passage are told apart by document whatever the key.

        Raises:
            ToolError: Candidates of two kinds.
            FrameError: The key is neither docno nor passage_id.
        """
        stage = Dedupe(key)
        rows, parent = self._given("dedupe", *collections)
        if rows and "passage_id" not in rows[0]:
            stage = Dedupe("docno")
        outcome, event = self._run(stage, self._group(rows), parent)
        return Found(outcome.rows, event)

    def _capped(self, where: str, k: int | None, most: int) -> tuple[int, str]:
        if k is None:
            return most, ""
        if type(k) is not int or k < 1:
            raise ToolError("k as a whole number of at least 1 is needed", _kind(k), where=where)
        return (k, "") if k <= most else (most, f"{where} gives at most {most}; k was larger and is capped")

    def _given(self, where: str, *collections: Sequence[Record] | Found) -> tuple[list[Record], int]:
        parent = -1
        if len(collections) == 1 and isinstance(collections[0], Found):
            parent = collections[0].event
        lists = [given.rows if isinstance(given, Found) else given for given in collections]
        rows = [row for given in lists for row in given]
        if len(rows) > self.funnel.candidates:
            raise ToolError(f"at most {self.funnel.candidates:,} candidates are needed", f"{len(rows):,}", where=where)
        n_passages = sum("passage_id" in row for row in rows)
        if 0 < n_passages < len(rows):
            raise ToolError(
                "candidates of one kind are needed",
                f"{len(rows) - n_passages} documents and {n_passages} extracted passages",
                where=where,
                hint="Keep what retrieve and what extract returned in separate lists.",
            )
        return rows, parent

    def _group(self, rows: list[Record]) -> Group:
        queries = {row["query"] for row in rows}
        query = queries.pop() if len(queries) == 1 else self.workspace.question
        return Group(self.workspace.qid, query, rows)

    def _run(self, stage: Primitive, group: Group, parent: int = -1) -> tuple[Outcome, int]:
        """Runs one stage as a pipeline over this engine would, and records it."""
        run, item, index = recorder.current(), Traced(group, parent), _PLACES[stage.kind]
        start = time.perf_counter()
        with recorder.scope(self.name) as place, statistics_from(self.engine):
            try:
                with recorder.inside_stage(place, index):
                    outcome = stage.process([group])[0]
            except Exception as error:
                record_failure(stage, [item], place, index, error)
                raise
            finally:
                seconds = time.perf_counter() - start
                self.workspace.spend(seconds=seconds)
            if run is None:
                return outcome, -1
            return outcome, record_stage(run, stage, [item], [outcome], place, index, seconds)[0].event

    def _record_hit(self, stage: Primitive, group: Group, rows: list[Record]) -> int:
        """Notes that a retrieval was answered from memory."""
        run = recorder.current()
        if run is None:
            return -1
        decision, call = recorder.current_step()
        with recorder.scope(self.name) as place:
            event = Event(
                qid=group.qid,
                query=group.query,
                pipeline=place.pipeline,
                stage=f"{place.prefix}{_PLACES[stage.kind]}",
                label=stage.label(),
                kind=stage.kind,
                name=repr(stage),
                config=recorder.config_hash(repr(stage)),
                parent=-1,
                n_in=1,
                n_out=len(rows),
                seconds=0.0,
                decision=decision,
                call=call,
                cache="hit",
            )
        return run.add(event, rows, read=group.rows)


def _kind(value: object) -> str:
    return repr(value) if isinstance(value, (int, float, bool)) and abs(value) < 1e15 else type(value).__name__
