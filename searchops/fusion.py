"""Stages with branches: pools of several pipelines, reciprocal rank fusion, rewritten queries."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from string import Formatter
from typing import Any, ClassVar

import pyterrier as pt

from searchops.errors import FrameError
from searchops.frames import Group, Record, ranked, require
from searchops.pipeline import Pipeline, normalise, without_help_pages
from searchops.primitives.base import Outcome, Primitive, cutoff


class Branches(Primitive):
    """A stage that runs several pipelines on the same queries and makes one list of theirs.

    The query of the task stays what it was; `source_query` keeps the query of the branch.
    """

    needs: ClassVar[tuple[str, ...]] = ("qid", "query")
    branches: tuple[pt.Transformer, ...]

    @property
    def engine(self) -> Any | None:
        """The first index that a branch retrieves from."""
        ours = (branch.engine for branch in self.branches if isinstance(branch, (Pipeline, Primitive)))
        return next((engine for engine in ours if engine is not None), None)

    @abstractmethod
    def join(self, lists: list[list[Record]]) -> list[Record]:
        """One task's rows of every branch in, one list out."""

    def process(self, groups: Sequence[Group]) -> list[Outcome]:
        """Runs every branch on the whole batch, then joins task by task."""
        results = [_run_branch(branch, groups) for branch in self.branches]
        self._check_tasks(groups, results)
        outcomes = []
        for group in groups:
            lists = [[_as_asked(row, group) for row in result.get(group.qid, [])] for result in results]
            outcomes.append(Outcome(self.join(lists)))
        return outcomes

    def _check_tasks(self, groups: Sequence[Group], results: Sequence[dict[str, list[Record]]]) -> None:
        """A branch's rows under a qid that was not asked would have no list to go to."""
        asked = {group.qid for group in groups}
        for branch, result in zip(self.branches, results, strict=True):
            strange = [qid for qid in result if qid not in asked]
            if strange:
                raise FrameError(
                    "branches that keep the qids they are given are needed",
                    ", ".join(map(repr, strange[:5])) + f" out of {branch!r}",
                    where=type(self).__name__,
                    hint="Make new tasks before the branches.",
                )

    def transform_outputs(self, input_columns: list[str]) -> list[str]:
        """The columns of all branches, in first-seen order."""
        self.check_columns(input_columns, empty=True)
        names = [name for branch in self.branches for name in pt.inspect.transformer_outputs(branch, input_columns)]
        return list(dict.fromkeys([*input_columns, *(n for n in names if not n.startswith("query_")), "source_query"]))

    def subtransformers(self) -> dict[str, Any]:
        """The branches."""
        return {"branches": list(self.branches)}

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        """PyTerrier's picture, branches side by side."""
        with without_help_pages():
            inner = [
                pt.schematic.transformer_schematic(branch, input_columns=input_columns or ["qid", "query"])
                for branch in self.branches
            ]
        drawn = super().schematic(input_columns=input_columns)
        return {
            **drawn,
            "inner_pipelines": inner,
            "inner_pipelines_mode": "combine",
            "inner_pipelines_labels": [str(n) for n in range(len(inner))],
        }

    def __repr__(self) -> str:
        rest = {name: value for name, value in self.arguments().items() if name != "branches"}
        parts = [repr(branch) for branch in self.branches] + [f"{name}={value!r}" for name, value in rest.items()]
        return f"{type(self).__name__}({', '.join(parts)})"


class Union(Branches):
    """Pools the candidates of several pipelines, one behind the other; nothing is merged or reranked.

    Rows keep the score and rank of their branch; follow with `Dedupe` and `Rerank`, which ranks each
    source query's candidates against their own query.

    Columns: Q -> R with the columns of all branches.
    Source: PSA, Table 2 (dedupe concatenates; merging pools never reranks by itself).

    Args:
        branches: Pipelines from queries to candidates.

    Raises:
        FrameError: There is no branch.
    """

    kind: ClassVar[str] = "union"

    def __init__(self, *branches: pt.Transformer) -> None:
        self.branches = _checked(branches, "Union")

    def join(self, lists: list[list[Record]]) -> list[Record]:
        """All rows, branch by branch."""
        return [row for rows in lists for row in rows]


class RRF(Branches):
    """Reciprocal rank fusion: score(d) = sum over branches of 1 / (c + rank from 1).

    Of a document (or passage, where branches put out passages) that several branches found, the first
    branch's row is kept.

    Columns: Q -> R with the columns of all branches, new score and rank.
    Rows: at most k a task, in rank order.
    Source: Cormack, Clarke and Büttcher, SIGIR 2009 (c = 60).

    Args:
        branches: Pipelines from queries to ranked candidates.
        k: Rows a task; None keeps all.
        c: The constant added to ranks.

    Raises:
        FrameError: There is no branch, or k is out of range.
    """

    kind: ClassVar[str] = "fuse"

    def __init__(self, *branches: pt.Transformer, k: int | None = None, c: int = 60) -> None:
        self.branches = _checked(branches, "RRF")
        self.k = cutoff(k, where="RRF", optional=True)
        self.c = cutoff(c, where="RRF", name="c") or 60

    def join(self, lists: list[list[Record]]) -> list[Record]:
        """The fused list."""
        scores: dict[str, float] = {}
        first: dict[str, Record] = {}
        for rows in lists:
            seen: set[str] = set()
            for place, row in enumerate(ranked(rows, where="RRF"), start=1):
                key = _key(row)
                if key not in seen:
                    seen.add(key)
                    first.setdefault(key, row)
                    scores[key] = scores.get(key, 0.0) + 1.0 / (self.c + place)
        return ranked([{**row, "score": scores[key]} for key, row in first.items()], where="RRF")[: self.k]

    def fuse_rank_cutoff(self, k: int) -> RRF:
        """`RRF(…) % 10` keeps 10."""
        return self if self.k is not None and k >= self.k else self.with_arguments(k=k)


class Rewrite(Primitive):
    """Writes each query anew from a template of its columns; the old one moves to `query_0`.

    Columns: Q -> Q + query_0 (an older query_0 moves to query_1, and so on).

    Args:
        template: Text with columns in braces, such as `"{query} exception raised"`.

    Raises:
        FrameError: The template is no template, names a column that is not there, or one whose value
            is missing.

    Example:
        >>> Rewrite("{query} python")([{"qid": "1", "query": "sort"}])
        [{'qid': '1', 'query': 'sort python', 'query_0': 'sort'}]
    """

    kind: ClassVar[str] = "rewrite"
    needs: ClassVar[tuple[str, ...]] = ("qid", "query")

    def __init__(self, template: str) -> None:
        self.template = template
        try:
            self._parts()
        except (ValueError, TypeError) as error:
            raise FrameError(
                "a template with columns in braces is needed", f"{template!r} ({error})", where="Rewrite"
            ) from None

    def _parts(self) -> list[tuple[str, str | None]]:
        # Columns only: no attributes, no indexing, no conversion; templates may come from a model.
        parts = []
        for literal, name, spec, conversion in Formatter().parse(self.template):
            if spec or conversion:
                raise ValueError(f"{{{name}}} may have no format and no conversion")
            if name is not None and not name.isidentifier():
                raise ValueError(f"{{{name}}} is no column name")
            parts.append((literal, name))
        return parts

    def kernel(self, rows: list[Record]) -> list[Record]:
        """The rows with their new query."""
        parts = self._parts()
        out = []
        for row in rows:
            text = "".join(literal + ("" if name is None else _value(row, name)) for literal, name in parts)
            out.append(_pushed(row, text))
        return out

    def transform_outputs(self, input_columns: list[str]) -> list[str]:
        """The input's columns, with the older queries numbered on."""
        self.check_columns(input_columns, empty=True)
        depth = 0
        while f"query_{depth}" in input_columns:
            depth += 1
        return [*input_columns, f"query_{depth}"]


def _value(row: Record, name: str) -> str:
    value = require(row, name, where="Rewrite")
    if value is None or value != value:
        raise FrameError(f"a value in column {name!r} is needed", f"{value!r} for qid {row['qid']!r}", where="Rewrite")
    return str(value)


def _key(row: Record) -> str:
    """What a row is one of: a passage where it is one, else a document."""
    passage_id = row.get("passage_id")
    return passage_id if isinstance(passage_id, str) else str(row["docno"])


def _pushed(row: Record, query: str) -> Record:
    """The row with a new query and the older ones numbered on (`pt.model.push_queries_dict` never returns)."""
    older = [name for name in ("query", *(f"query_{n}" for n in range(len(row)))) if name in row]
    moved = {f"query_{n}": row[name] for n, name in enumerate(older)}
    return {**row, "query": query, **moved}


def _checked(branches: Sequence[pt.Transformer], where: str) -> tuple[pt.Transformer, ...]:
    if not branches or not all(isinstance(branch, pt.Transformer) for branch in branches):
        raise FrameError("one or more pipelines are needed as branches", repr(branches), where=where)
    return tuple(normalise(branch) for branch in branches)


def _run_branch(branch: pt.Transformer, groups: Sequence[Group]) -> dict[str, list[Record]]:
    if isinstance(branch, Pipeline):
        done = branch.run(groups)
    elif isinstance(branch, Primitive):
        done = branch.run_alone(groups)
    else:
        done = Pipeline(branch).run(groups)
    return {group.qid: group.rows for group in done}


def _as_asked(row: Record, group: Group) -> Record:
    """The row under the task's own query; what a branch asked instead is its source query."""
    # Not the group's own query: a stage before the branches may have rewritten it.
    asked = {name: value for name, value in group.rows[0].items() if name == "query" or name.startswith("query_")}
    kept = {name: value for name, value in row.items() if not name.startswith("query_")}
    return {**kept, **asked, "source_query": row.get("source_query", row.get("query"))}


__all__ = ["RRF", "Branches", "Rewrite", "Union"]
