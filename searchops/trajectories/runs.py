"""Trajectories as a recorded run, so that the evidence measures apply to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from os import PathLike
from typing import Any

from searchops import recorder
from searchops.corpus import Collection
from searchops.errors import DataError, FrameError
from searchops.records import Event, Run
from searchops.trajectories.figures import figures, plain
from searchops.trajectories.react import Step, Trajectory

__all__ = ["react_run"]


def react_run(
    trajectories: Sequence[Trajectory], collection: Collection, path: str | PathLike[str] | None = None
) -> Run:
    """The trajectories as a recorded run over a collection: one agent a trial.

    Questions are told by their text, pages by their title. An observation is accounted for by its text, so
    that Delivered says which labels stand in it. The log tells of no extraction: Available finds nothing in it,
    and Delivered/Available has no value.

    Args:
        trajectories: What `read_react` gave.
        collection: The collection with these questions.
        path: A new folder for the record; None keeps it in memory.

    Raises:
        DataError: A question is not among the collection's topics, a trial has one twice, or the folder
            holds something already.
        FrameError: The collection has no topics.
    """
    if collection.topics is None:
        raise FrameError("a collection with topics is needed", repr(collection), where="react_run")
    qids = {
        plain(query): str(qid) for qid, query in zip(*(collection.topics[c] for c in ("qid", "query")), strict=True)
    }
    docnos = {plain(title): docno for docno, title in zip(*_titles(collection), strict=True)}
    _check_questions(trajectories, qids)
    with recorder.record(path, collection=collection.name, data_hash=collection.data_hash, source="ReAct") as run:
        names = {f"trial {told.trial}": run.pipeline_number(f"ReAct trial {told.trial}") for told in trajectories}
        run.meta["names"] = {str(number): name for name, number in names.items()}
        for told in trajectories:
            _record(told, qids[plain(told.question)], names[f"trial {told.trial}"], docnos)
    return run.run()


def _titles(collection: Collection) -> tuple[Any, Any]:
    return collection.documents["docno"], collection.documents["title"]


def _check_questions(trajectories: Sequence[Trajectory], qids: dict[str, str]) -> None:
    seen = Counter((told.trial, plain(told.question)) for told in trajectories)
    for told in trajectories:
        key = plain(told.question)
        if key not in qids:
            raise DataError("a question of the collection is needed", repr(told.question[:80]), where="react_run")
        if seen[told.trial, key] > 1:
            raise DataError("a question once a trial is needed", repr(told.question[:80]), where="react_run")


def _record(told: Trajectory, qid: str, number: int, docnos: dict[str, str]) -> None:
    head = {"qid": qid, "pipeline": number, "agent": "react", "unit": "decision"}
    lines = []
    with recorder.apart() as part:
        assert part is not None
        for place, step in enumerate(told.steps):
            docno = docnos.get(plain(step.argument)) if step.found else None
            rows = [] if docno is None else [{"docno": docno, "score": 1.0, "rank": 0}]
            if step.action == "Search":
                part.add(_event("retrieve", step, (qid, number, place), len(rows)), rows)
            if step.action != "Finish":
                part.add(_event("observation", step, (qid, number, place), 0), ())
            lines.append({**head, **_line(step, place, docno)})
        part.complete(lines, {**head, **_answer(told)})


def _event(kind: str, step: Step, place: tuple[str, int, int], n_out: int) -> Event:
    """One event of a step: what a search found, or that something was read."""
    qid, number, decision = place
    return Event(
        qid=qid,
        query=step.argument,
        pipeline=number,
        stage="0" if kind == "retrieve" else "1",
        label=step.action if kind == "retrieve" else kind,
        kind=kind,
        name=kind,
        config=recorder.config_hash(kind),
        parent=-1,
        n_in=1,
        n_out=n_out,
        seconds=float("nan"),
        decision=decision,
        call=0,
    )


def _line(step: Step, place: int, docno: str | None) -> dict[str, Any]:
    """A line of decisions.jsonl: what was said and done, without a request, which the log has not."""
    call = {
        "call": 0,
        "name": step.action,
        "arguments": {"text": step.argument},
        "observation": step.observation,
        "shown": [],
        "referenced": [docno] if docno else [],
        "failed": step.action == "Search" and not step.found,
    }
    calls = [] if step.action == "Finish" else [call]
    return {"kind": "decision", "decision": place, "attempt": 0, "thought": step.thought, "calls": calls}


def _answer(told: Trajectory) -> dict[str, Any]:
    """A line of answers.jsonl; None is what the log does not say."""
    unknown = (
        "repairs", "final_step_tokens", "total_tokens", "rerank_pairs", "extract_calls", "extract_pairs", "seconds",
    )  # fmt: skip
    return {
        "query": told.question,
        "qanswer": told.answer,
        "stop_reason": "answered" if told.answer else "budget",
        "error": "",
        "decisions": len(told.steps),
        "token_source": "",
        "retrieval_requests": len(told.queries),
        "returned_documents": sum(step.found for step in told.steps),
        "observation_chars": figures(told)["observation_chars"],
        **dict.fromkeys(unknown),
        "success": told.outcome == "correct",
        "ledger": [],
    }
