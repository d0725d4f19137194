"""extract(C, u, k): the passages of the candidates that answer an instruction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from searchops.errors import FrameError
from searchops.frames import Group, Record, require
from searchops.primitives.base import Outcome, cutoff
from searchops.primitives.scored import ScoredPrimitive, check_scorer, scores_of, text_of
from searchops.recorder import ScoredPassage
from searchops.scorers.base import Scorer
from searchops.splitting import Sentences, Splitter, parse_passage_id, passages


@runtime_checkable
class Locator(Protocol):
    """A scorer that reads a document's passages together and picks one (a chat model)."""

    def locate(
        self, query: str, instruction: str | None, passages: Sequence[str], schema: dict[str, Any] | None = None
    ) -> Any:
        """The choice: index (of the passage), note, quote (None if it is not exact)."""
        ...


SENTENCES = Sentences()


class _Choice(NamedTuple):
    passage: Record
    score: float
    note: str
    quote: str | None


class Extract(ScoredPrimitive):
    """Splits documents into passages, scores all of them and keeps the best.

    By default one passage a document, from the first k documents, in document order. Every passage
    of those documents is scored: together they are the *available* set of evidence accounting.

    Columns: R -> P + passage_score, instruction, note (what is shown), quote (the exact source).
        The document's score and rank stay; text becomes the passage's slice.
    Rows: at most k a task, in document order, passages of one document by offset.
    Source: PSA, Table 2 (extract); B.2 (available and selected).

    Args:
        scorer: Scores passages against the query (and instruction). One that can `locate`, such as
            `Chat`, picks a passage of each document instead.
        k: Passages a task.
        instruction: What to look for, beside the query.
        splitter: How documents become passages; rows that are passages stay as they are.
        per_document: Passages a document; None takes the k best over all documents.
        depth: Documents read, from the top; default as many as fill k.
        size: Longest note, in characters; the quote stays whole.
        schema: Fields a locating scorer fills into the note (JSON Schema).
        fields: Columns scored in front of a passage's text, for context (such as the title).

    Raises:
        FrameError: An argument is out of range, a row has no text, or a score is NaN.
    """

    kind: ClassVar[str] = "extract"
    needs: ClassVar[tuple[str, ...]] = ("qid", "query", "docno", "text")

    def __init__(
        self,
        scorer: Scorer,
        k: int | None = 10,
        *,
        instruction: str | None = None,
        splitter: Splitter = SENTENCES,
        per_document: int | None = 1,
        depth: int | None = None,
        size: int | None = None,
        schema: dict[str, Any] | None = None,
        fields: Sequence[str] = (),
    ) -> None:
        self.scorer = check_scorer(scorer, "Extract")
        self.k = cutoff(k, where="Extract", optional=True)
        self.instruction = instruction
        self.splitter = splitter
        self.per_document = cutoff(per_document, where="Extract", name="per_document", optional=True)
        self.depth = cutoff(depth, where="Extract", name="depth", optional=True)
        self.size = cutoff(size, where="Extract", name="size", optional=True)
        self.schema = schema
        self.fields = tuple(fields)
        if schema is not None and not isinstance(scorer, Locator):
            raise FrameError(
                "a schema needs a scorer that writes notes", repr(scorer), where="Extract", hint="Use Chat(model)."
            )

    def process(self, groups: Sequence[Group]) -> list[Outcome]:
        """Scores the passages of the whole batch in one call to the scorer."""
        scorer = self.bound_scorer()
        batch = [[self._split(row) for row in self._documents(group.rows)] for group in groups]
        if isinstance(scorer, Locator):
            return [self._locate(group, documents, scorer) for group, documents in zip(groups, batch, strict=True)]
        asked = [
            (group, passage)
            for group, documents in zip(groups, batch, strict=True)
            for document in documents
            for passage in document
        ]
        fields = (*self.fields, "text")
        pairs = [(self._asks(group, row), text_of(row, fields, where="Extract")) for group, row in asked]
        scores = iter(scores_of(scorer, pairs, [row for _, row in asked]))
        return [self._select(documents, scores) for documents in batch]

    def _documents(self, rows: list[Record]) -> list[Record]:
        """The rows to read: the first `depth` documents (passages of one document count as one)."""
        depth = self.depth
        if depth is None and self.k is not None and self.per_document is not None:
            depth = -(-self.k // self.per_document)
        seen: dict[str, None] = {}
        kept: dict[str, Record] = {}
        for row in rows:
            docno = row["docno"]
            if docno not in seen and depth is not None and len(seen) >= depth:
                continue
            seen[docno] = None
            kept.setdefault(row.get("passage_id") or docno, row)
        return list(kept.values())

    def _split(self, row: Record) -> list[Record]:
        text = require(row, "text", where="Extract")
        if text is None or text != text:
            return []
        if "passage_id" in row and "start" in row:
            return [row]
        return passages(row, self.splitter)

    def _asks(self, group: Group, row: Record) -> str:
        query = str(row.get("query", group.query))
        return f"{query}\n{self.instruction}" if self.instruction else query

    def _select(self, documents: list[list[Record]], scores: Iterator[float]) -> Outcome:
        scored: list[ScoredPassage] = []
        choices: list[tuple[float, int, int, Record]] = []
        for place, document in enumerate(documents):
            found = []
            first = _first_number(document)
            for nth, passage in enumerate(document):
                score = next(scores)
                scored.append(ScoredPassage(passage["docno"], first + nth, passage["start"], passage["end"], score))
                found.append((score, place, nth, passage))
            if self.per_document is not None:
                found = sorted(found, key=_best_first)[: self.per_document]
            choices.extend(found)
        if self.per_document is None:
            choices = sorted(choices, key=_best_first)[: self.k]
        kept = sorted(choices, key=lambda choice: (choice[1], choice[3]["start"]))[: self.k]
        rows = [self._row(_Choice(row, score, row["text"], row["text"])) for score, _, _, row in kept]
        return Outcome(rows, scored)

    def _locate(self, group: Group, documents: list[list[Record]], locator: Locator) -> Outcome:
        rows: list[Record] = []
        scored: list[ScoredPassage] = []
        for document in documents:
            first = _first_number(document)
            scored.extend(
                ScoredPassage(passage["docno"], first + nth, passage["start"], passage["end"], 0.0)
                for nth, passage in enumerate(document)
            )
            if document and (self.k is None or len(rows) < self.k):
                rows.append(self._row(self._located(group, document, locator)))
        return Outcome(rows, scored)

    def _located(self, group: Group, document: list[Record], locator: Locator) -> _Choice:
        query = str(document[0].get("query", group.query))
        found = locator.locate(query, self.instruction, [row["text"] for row in document], self.schema)
        return _Choice(document[found.index], 1.0, found.note, found.quote)

    def _row(self, choice: _Choice) -> Record:
        return {
            **choice.passage,
            "passage_score": choice.score,
            "instruction": self.instruction or "",
            "note": clip(choice.note, self.size),
            "quote": choice.quote or "",
        }

    def transform_outputs(self, input_columns: list[str]) -> list[str]:
        """The input's columns, then passage_id, start, end, passage_score, instruction, note, quote."""
        self.check_columns(input_columns, empty=True)
        new = ["passage_id", "start", "end", "passage_score", "instruction", "note", "quote"]
        return list(dict.fromkeys([*input_columns, *new]))


def clip(text: str, size: int | None) -> str:
    """A text of at most `size` characters, cut at a word, that says so by an ellipsis.

    Example:
        >>> clip("one two three", 9)
        'one two…'
    """
    if size is None or len(text) <= size:
        return text
    head = text[: size - 1]
    space = head.rfind(" ")
    return (head[:space] if space > size // 2 else head).rstrip() + "…"


def _first_number(document: list[Record]) -> int:
    """The N of a document's first passage: 0 where it was just split, its own where it is a passage alone."""
    return parse_passage_id(document[0]["passage_id"])[1] if document else 0


def _best_first(choice: tuple[float, int, int, Record]) -> tuple[float, int, int]:
    score, place, nth, _ = choice
    return (-score, place, nth)
