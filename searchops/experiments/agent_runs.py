"""Agents of a file run over its questions, and what their records come to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pandas as pd

from searchops.agents.agent import Agent
from searchops.frames import Group, Record
from searchops.recorder import Recorder
from searchops.records import Run

__all__ = ["RESOURCES", "agent_numbers", "agent_rows", "broken_questions", "resource_values", "run_agent"]

BATCH: Final = 32
RESOURCES: Final = (
    "decisions",
    "retrieval_requests",
    "returned_documents",
    "rerank_pairs",
    "extract_calls",
    "extract_pairs",
    "final_step_tokens",
    "total_tokens",
    "observation_chars",
    "seconds",
)
"""What an agent's question costs; each is a measure of an agent's run. Source: PSA, C."""

Progress = Callable[[Sequence[Any], str], Iterator[Any]]


def run_agent(run: Recorder, agent: Agent, name: str, groups: Sequence[Group], progress: Progress | None) -> None:
    """Answers the questions that the record has no answer of; one that breaks costs no other.

    What broke is kept in the record's `broken`, and the same command tries it again.

    Raises:
        SpecError: The model is set up wrongly.
        Exception: What broke the first questions, where not one of the first batch got an answer.
    """
    number = run.pipeline_number(agent.record_name)
    broken: list[Record] = [told for told in run.meta.get("broken", []) if told["pipeline"] != number]
    known = run.answered(number)
    left = [group for group in groups if group.qid not in known]
    batches = [left[start : start + BATCH] for start in range(0, len(left), BATCH)]
    for place, batch in enumerate(progress(batches, name) if progress else batches):
        answers = agent.attempt(batch)
        errors = [answer for answer in answers if isinstance(answer, Exception)]
        if place == 0 and len(errors) == len(batch):
            raise errors[0]
        broken += [
            {"pipeline": number, "qid": group.qid, "error": f"{type(answer).__name__}: {answer}"}
            for group, answer in zip(batch, answers, strict=True)
            if isinstance(answer, Exception)
        ]
        run.meta["broken"] = broken


def broken_questions(run: Run) -> dict[tuple[int, str], str]:
    """The error of each (pipeline, qid) of an agent that broke and has no answer."""
    return {(int(told["pipeline"]), str(told["qid"])): str(told["error"]) for told in run.meta.get("broken", [])}


def agent_numbers(run: Run) -> dict[int, list[str]]:
    """The numbers of the agents of a run, each with the questions it answered."""
    found: dict[int, list[str]] = {}
    for line in run.iter_answers():
        found.setdefault(int(line["pipeline"]), []).append(str(line["qid"]))
    return found


def agent_rows(run: Run, number: int) -> pd.DataFrame:
    """The documents that an agent's evidence is from, first found first: qid, docno, score, rank.

    Source: PSA, Table 1 (supporting-document recall).
    """
    rows = [
        {"qid": str(line["qid"]), "docno": docno, "score": 1.0 / (1 + rank), "rank": rank}
        for line in run.iter_answers()
        if line["pipeline"] == number
        for rank, docno in enumerate(dict.fromkeys(item["docno"] for item in line.get("ledger", ())))
    ]
    frame = pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"])
    return frame.astype({"score": "float64"})


def resource_values(run: Run, number: int) -> pd.DataFrame:
    """What each question cost: qid, measure, value (NaN where it is not known)."""
    answers = run.answers
    long = answers[answers["pipeline"] == number].melt("qid", list(RESOURCES), "measure", "value")
    return long.astype({"qid": str, "measure": str, "value": "float64"})
