"""What one question has gathered: candidates, variables, evidence and what they cost.

The workspace is the host's memory of a question. An agent refers to its rows by number and to its
candidates by id; whatever an agent sends back is looked up here, so that nothing it made up or changed
reaches a stage. Source: PSA, 3.1 and A.2.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any, Final

from searchops.errors import ToolError
from searchops.frames import Record

__all__ = ["Candidate", "Costs", "Evidence", "Variable", "Workspace", "candidate_id"]

DESCRIBE_CHARS: Final = 2000
_NAME_CHARS: Final = 60
_KIND: Final = re.compile(r"[A-Za-z_][A-Za-z_.\[\]]{0,39}")


@dataclass(frozen=True)
class Costs:
    """What search work was done, whether or not its results were kept.

    Attributes:
        retrieval_requests: Queries an engine answered (answers taken from memory are none).
        returned_documents: Documents those answers held.
        rerank_pairs: (query, text) pairs scored by rerank.
        extract_calls: Extract calls with something to read.
        extract_pairs: (query, passage) pairs scored by extract.
        seconds: Seconds inside the operations.

    Source: PSA, C (resources).

    Example:
        >>> (Costs(retrieval_requests=2) - Costs(retrieval_requests=1)).retrieval_requests
        1
    """

    retrieval_requests: int = 0
    returned_documents: int = 0
    rerank_pairs: int = 0
    extract_calls: int = 0
    extract_pairs: int = 0
    seconds: float = 0.0

    def __add__(self, other: Costs) -> Costs:
        """Both together."""
        return Costs(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __sub__(self, earlier: Costs) -> Costs:
        """What came since."""
        return Costs(*(getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self)))


@dataclass(frozen=True)
class Evidence:
    """One passage that an extract call kept, with the exact source window."""

    docno: str
    passage_id: str
    start: int
    end: int
    text: str
    note: str
    title: str
    instruction: str
    query: str


@dataclass(frozen=True)
class Variable:
    """What is known of a variable without looking into it; `value` is the holder's own business."""

    kind: str
    size: int | None = None
    value: Any = field(default=None, compare=False, repr=False)


@dataclass
class Candidate:
    """A document or passage, as first seen, with every query that found it, in order."""

    id: str
    record: Record
    queries: list[str]


def candidate_id(row: Record) -> str:
    """What a row is a view of: its passage where it is one, else its document.

    Example:
        >>> candidate_id({"docno": "d1"}), candidate_id({"docno": "d1", "passage_id": "d1%p0"})
        ('d1', 'd1%p0')
    """
    return str(row.get("passage_id") or row["docno"])


class Workspace:
    """The state of one question.

    Attributes:
        qid: The task.
        question: Its text.
        rows: Every row an operation put out, by number: the records that stages work on.
        candidates: The first record of each document and passage, by id, with its queries.
        variables: Names the agent may refer to.
        evidence: The ledger; only extraction adds to it.
        costs: Work done so far. A transaction that fails gives none of it back.

    Example:
        >>> workspace = Workspace("1", "deepest lake?")
        >>> workspace.admit([{"docno": "d1", "source_query": "lake"}])
        [0]
        >>> print(workspace.describe())
        1 candidates from 1 queries, 0 passages in evidence
        no variables
    """

    def __init__(self, qid: str, question: str) -> None:
        self.qid = qid
        self.question = question
        self.rows: list[Record] = []
        self.candidates: dict[str, Candidate] = {}
        self.variables: dict[str, Variable] = {}
        self.evidence: list[Evidence] = []
        self.costs = Costs()
        self._undo: list[tuple[str, int]] = []
        self._lock = threading.RLock()

    def spend(self, **amounts: float) -> None:
        """Adds to the costs; safe from several threads."""
        with self._lock:
            self.costs += Costs(**amounts)  # type: ignore[arg-type]

    def admit(self, rows: Sequence[Record]) -> list[int]:
        """Takes rows that an operation put out; returns their numbers."""
        with self._lock:
            first = len(self.rows)
            self.rows.extend(rows)
            for row in rows:
                self._meet(row)
            return list(range(first, len(self.rows)))

    def _meet(self, row: Record) -> None:
        key, query = candidate_id(row), row.get("source_query")
        known = self.candidates.get(key)
        if known is None:
            known = self.candidates[key] = Candidate(key, row, [])
            self._undo.append((key, -1))
        if isinstance(query, str) and query not in known.queries:
            self._undo.append((key, len(known.queries)))
            known.queries.append(query)

    def resolve(self, numbers: Sequence[object]) -> list[Record]:
        """The rows of these numbers.

        Raises:
            ToolError: A number is not one that `admit` gave out.

        Example:
            >>> Workspace("1", "q").resolve([7])
            Traceback (most recent call last):
            ...
            searchops.errors.ToolError: candidates that a primitive returned are needed; found row 7 (there are 0 rows)
        """
        total = len(self.rows)
        found = []
        for number in numbers:
            if type(number) is not int or not 0 <= number < total:
                shown = f"row {number}" if type(number) is int else type(number).__name__
                raise ToolError("candidates that a primitive returned are needed", f"{shown} (there are {total} rows)")
            found.append(self.rows[number])
        return found

    def extracted(self, rows: Sequence[Record]) -> None:
        """Adds an extract call's passages to the ledger; a window stands there once for an instruction."""
        with self._lock:
            known = {(item.passage_id, item.instruction) for item in self.evidence}
            for item in map(_evidence, rows):
                if (item.passage_id, item.instruction) not in known:
                    known.add((item.passage_id, item.instruction))
                    self.evidence.append(item)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What the block adds stays if it succeeds and goes if it fails; costs stay either way."""
        n_rows, n_evidence, variables = len(self.rows), len(self.evidence), dict(self.variables)
        self._undo = []
        try:
            yield
        except BaseException:
            with self._lock:
                del self.rows[n_rows:]
                del self.evidence[n_evidence:]
                self.variables = variables
                self._forget()
            raise

    def _forget(self) -> None:
        for key, length in reversed(self._undo):
            if length < 0:
                del self.candidates[key]
            else:
                del self.candidates[key].queries[length:]
        self._undo = []

    def describe(self) -> str:
        """Names, types and sizes, one line each and never a content; under 2,000 characters.

        The newest variables are shown where not all fit, and a line says how many are left out.
        """
        queries = {query for candidate in self.candidates.values() for query in candidate.queries}
        head = (
            f"{len(self.candidates)} candidates from {len(queries)} queries, {len(self.evidence)} passages in evidence"
        )
        lines = [_line(name, variable) for name, variable in self.variables.items()]
        if not lines:
            return f"{head}\nno variables"
        left = DESCRIBE_CHARS - len(head) - 60
        shown: list[str] = []
        for line in reversed(lines):
            left -= len(line) + 1
            if left < 0:
                break
            shown.insert(0, line)
        hidden = len(lines) - len(shown)
        more = [f"and {hidden} older variables, left out here"] if hidden else []
        return "\n".join([head, *more, *shown])


def _line(name: str, variable: Variable) -> str:
    shown = name if name.isidentifier() else repr(name)
    if len(shown) > _NAME_CHARS:
        shown = f"{shown[: _NAME_CHARS - 1]}…"
    kind = variable.kind if _KIND.fullmatch(variable.kind) else "object"
    return f"{shown}: {kind}" if variable.size is None else f"{shown}: {kind}, {clip_count(variable.size)}"


def clip_count(size: int) -> str:
    """A size in few characters, whatever it is.

    Example:
        >>> clip_count(1200), clip_count(10**40)
        ('1,200', 'more than 1e+15')
    """
    return f"{size:,}" if size < 10**15 else "more than 1e+15"


def _evidence(row: Record) -> Evidence:
    return Evidence(
        docno=str(row["docno"]),
        passage_id=str(row["passage_id"]),
        start=int(row["start"]),
        end=int(row["end"]),
        text=str(row["text"]),
        note=str(row["note"]),
        title=str(row.get("title") or ""),
        instruction=str(row["instruction"]),
        query=str(row.get("source_query") or row.get("query") or ""),
    )
