"""Search logs of other systems, read as trajectories and as runs that the same measures apply to.

What a log does not say is not made up: a ReAct transcript has no token counts, no candidates and no
extraction, so those measures have no value. Source of the format: Reflexion's HotpotQA logs (Thought,
Action Search[..] | Lookup[..] | Finish[..], Observation; five trials over 100 questions).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

import pandas as pd

from searchops import recorder
from searchops.corpus import Collection
from searchops.errors import DataError, FrameError
from searchops.records import Event, Run

__all__ = ["OUTCOMES", "Step", "Trajectory", "react_run", "read_react", "trajectory_values"]

OUTCOMES: Final = ("correct", "incorrect", "halted")
"""How a trajectory ended: with a right answer, with a wrong one, or without one."""

_TRIAL: Final = re.compile(r"BEGIN TRIAL (\d+)")
_SUMMARY: Final = re.compile(r"Trial summary: Correct: (\d+), Incorrect: (\d+), Halted: (\d+)")
_GROUP: Final = re.compile(r"-+ BEGIN (CORRECT|INCORRECT|HALTED) AGENTS -+")
_PART: Final = re.compile(r"(Thought|Action|Observation) (\d+): ?(.*)", re.DOTALL)
_ACTION: Final = re.compile(r"(\w+)\[(.*)\]", re.DOTALL)
_ORDER: Final = ("Thought", "Action", "Observation")
_NOT_FOUND: Final = "Could not find ["

Numbered: TypeAlias = tuple[int, str]


@dataclass(frozen=True)
class Step:
    """One thought, what was done and what came of it.

    Attributes:
        thought: The thought.
        action: The action's name: Search, Lookup or Finish.
        argument: What stands in its brackets.
        observation: What came of it; "" where the log ends.
    """

    thought: str
    action: str
    argument: str
    observation: str = ""

    @property
    def found(self) -> bool:
        """Whether it is a search that found a page."""
        return self.action == "Search" and not self.observation.startswith(_NOT_FOUND)


@dataclass(frozen=True)
class Trajectory:
    """One question's search in one trial.

    Attributes:
        trial: Number of the trial.
        question: The question.
        steps: Its steps, in order.
        outcome: One of `OUTCOMES`.
        reference: The right answer.
    """

    trial: int
    question: str
    steps: tuple[Step, ...]
    outcome: str
    reference: str

    @property
    def answer(self) -> str:
        """What it finished with; "" where it did not."""
        return next((step.argument for step in reversed(self.steps) if step.action == "Finish"), "")

    @property
    def queries(self) -> list[str]:
        """What it searched for, in order."""
        return [step.argument for step in self.steps if step.action == "Search"]


def read_react(path: str | PathLike[str]) -> list[Trajectory]:
    """Reads a file of ReAct transcripts.

    A trajectory that a trial lists as incorrect and again as halted (it answered wrongly in its last step)
    is one and incorrect, which is how the trial's own summary counts it.

    Raises:
        DataError: The file cannot be read, a line is out of place, or a trial's summary and its
            trajectories disagree.
    """
    file = Path(path)
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError("a readable transcript is needed", str(error), where=str(file)) from error
    return [trajectory for trial in _trials(list(enumerate(lines, start=1)), file) for trajectory in trial]


def trajectory_values(trajectories: Sequence[Trajectory]) -> pd.DataFrame:
    """What each trajectory did, in figures: name (the trial), question, measure, value.

    Measures: success (a right answer), steps, searches, lookups, not_found (searches without a page),
    repeated_searches (queries asked before, whatever the case), observation_chars.

    Example:
        >>> step = Step("I look.", "Search", "Emma", "Emma is a novel.")
        >>> told = Trajectory(1, "Who wrote Emma?", (step, step), "halted", "Jane Austen")
        >>> frame = trajectory_values([told])
        >>> frame.set_index("measure")["value"][["searches", "repeated_searches", "success"]].tolist()
        [2.0, 1.0, 0.0]
    """
    rows = [
        {"name": f"trial {told.trial}", "question": told.question, "measure": measure, "value": float(value)}
        for told in trajectories
        for measure, value in _figures(told).items()
    ]
    return pd.DataFrame(rows, columns=["name", "question", "measure", "value"])


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
        _plain(query): str(qid) for qid, query in zip(*(collection.topics[c] for c in ("qid", "query")), strict=True)
    }
    docnos = {_plain(title): docno for docno, title in zip(*_titles(collection), strict=True)}
    _check_questions(trajectories, qids)
    with recorder.record(path, collection=collection.name, data_hash=collection.data_hash, source="ReAct") as run:
        names = {f"trial {told.trial}": run.pipeline_number(f"ReAct trial {told.trial}") for told in trajectories}
        run.meta["names"] = {str(number): name for name, number in names.items()}
        for told in trajectories:
            _record(told, qids[_plain(told.question)], names[f"trial {told.trial}"], docnos)
    return run.run()


# -- reading -------------------------------------------------------------------------------------


def _trials(lines: Sequence[Numbered], file: Path) -> Iterator[list[Trajectory]]:
    starts = [place for place, (_, line) in enumerate(lines) if _TRIAL.fullmatch(line)]
    if not starts:
        raise DataError("a line 'BEGIN TRIAL n' is needed", "none", where=str(file))
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield _trial(lines[start:stop], file)


def _trial(lines: Sequence[Numbered], file: Path) -> list[Trajectory]:
    number, head = lines[0]
    trial = int(head.split()[-1])
    found: dict[str, Trajectory] = {}
    for outcome, block in _blocks(lines, file):
        told = _trajectory(block, trial, outcome, file)
        old = found.setdefault(told.question, told)
        if old is not told and (old.steps != told.steps or told.outcome != "halted"):
            raise DataError(
                "a question once a trial is needed", f"{told.question[:60]!r} again", where=_at(file, block[0])
            )
    summary = next((match for _, line in lines if (match := _SUMMARY.fullmatch(line))), None)
    counts = Counter(told.outcome for told in found.values())
    # Halted may differ: the logs leave a trajectory out of that figure that ended for another reason.
    if summary is None or [int(n) for n in summary.groups()][:2] != [counts[outcome] for outcome in OUTCOMES[:2]]:
        needed = summary[0] if summary else "a line 'Trial summary: …'"
        raise DataError(f"{needed} is needed to agree with the trial", f"{dict(counts)}", where=f"{file}:{number}")
    return list(found.values())


def _blocks(lines: Sequence[Numbered], file: Path) -> Iterator[tuple[str, list[Numbered]]]:
    """The lines of each trajectory, from its question to its right answer, with the group it stands in."""
    outcome, block = "", list[Numbered]()
    for number, line in lines:
        group = _GROUP.fullmatch(line.strip())
        if group:
            outcome = group[1].lower()
        elif block or line.startswith("Question: "):
            if not outcome:
                raise DataError("a group of agents before a question is needed", "none", where=f"{file}:{number}")
            block.append((number, line))
            if line.startswith("Correct answer: "):
                yield outcome, block
                block = []
    if block:
        raise DataError("a line 'Correct answer: …' is needed", "the end of the trial", where=_at(file, block[0]))


def _trajectory(block: Sequence[Numbered], trial: int, outcome: str, file: Path) -> Trajectory:
    question = block[0][1].removeprefix("Question: ").strip()
    reference = block[-1][1].removeprefix("Correct answer: ").strip()
    parts: list[tuple[Numbered, list[str]]] = []
    for number, line in block[1:-1]:
        part = _PART.fullmatch(line)
        # Only the part whose turn it is begins here; anything else is text that looks like one.
        if part and (part[1], int(part[2])) == (_ORDER[len(parts) % 3], len(parts) // 3 + 1):
            parts.append(((number, part[1]), [part[3]]))
        elif parts:
            parts[-1][1].append(line)
        elif line.strip():
            raise DataError("a line 'Thought 1: …' is needed", repr(line[:60]), where=f"{file}:{number}")
    steps = [_step(parts[start : start + 3], file) for start in range(0, len(parts), 3)]
    return Trajectory(trial, question, tuple(steps), outcome, reference)


def _step(parts: Sequence[tuple[Numbered, list[str]]], file: Path) -> Step:
    texts = ["\n".join(lines).strip() for _, lines in parts]
    if len(parts) < 2:
        raise DataError("an action behind every thought is needed", "none", where=_at(file, parts[0][0]))
    action = _ACTION.fullmatch(texts[1])
    if action is None:
        found = repr(texts[1][:60])
        raise DataError("an action such as Search[words] is needed", found, where=_at(file, parts[1][0]))
    return Step(texts[0], action[1], action[2], texts[2] if len(texts) > 2 else "")


def _at(file: Path, line: Numbered) -> str:
    return f"{file}:{line[0]}"


# -- measuring -----------------------------------------------------------------------------------


def _figures(told: Trajectory) -> dict[str, int]:
    searches = [step for step in told.steps if step.action == "Search"]
    return {
        "success": int(told.outcome == "correct"),
        "steps": len(told.steps),
        "searches": len(searches),
        "lookups": sum(step.action == "Lookup" for step in told.steps),
        "not_found": sum(not step.found for step in searches),
        "repeated_searches": len(searches) - len({_plain(step.argument) for step in searches}),
        "observation_chars": sum(len(step.observation) for step in told.steps if step.action != "Finish"),
    }


def _plain(text: str) -> str:
    return " ".join(text.strip("\"' ").split()).casefold()


def _titles(collection: Collection) -> tuple[Any, Any]:
    return collection.documents["docno"], collection.documents["title"]


def _check_questions(trajectories: Sequence[Trajectory], qids: dict[str, str]) -> None:
    seen = Counter((told.trial, _plain(told.question)) for told in trajectories)
    for told in trajectories:
        key = _plain(told.question)
        if key not in qids:
            raise DataError("a question of the collection is needed", repr(told.question[:80]), where="react_run")
        if seen[told.trial, key] > 1:
            raise DataError("a question once a trial is needed", repr(told.question[:80]), where="react_run")


def _record(told: Trajectory, qid: str, number: int, docnos: dict[str, str]) -> None:
    lines, n_searches, n_found = [], 0, 0
    with recorder.apart() as part:
        assert part is not None
        for place, step in enumerate(told.steps):
            docno = docnos.get(_plain(step.argument)) if step.found else None
            if step.action == "Search":
                n_searches, n_found = n_searches + 1, n_found + step.found
                rows = [] if docno is None else [{"docno": docno, "score": 1.0, "rank": 0}]
                part.add(_event(step, qid, number, place, len(rows)), rows)
            lines.append(
                {"qid": qid, "pipeline": number, "agent": "react", "unit": "decision", **_line(step, place, docno)}
            )
        answer = {
            "qid": qid,
            "pipeline": number,
            "agent": "react",
            "unit": "decision",
            **_answer(told, n_searches, n_found),
        }
        part.complete(lines, answer)


def _event(step: Step, qid: str, number: int, place: int, n_out: int) -> Event:
    return Event(
        qid=qid,
        query=step.argument,
        pipeline=number,
        stage="0",
        label="Search",
        kind="retrieve",
        name="Search",
        config=recorder.config_hash("Search"),
        parent=-1,
        n_in=1,
        n_out=n_out,
        seconds=float("nan"),
        decision=place,
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


def _answer(told: Trajectory, n_searches: int, n_found: int) -> dict[str, Any]:
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
        "retrieval_requests": n_searches,
        "returned_documents": n_found,
        "observation_chars": _figures(told)["observation_chars"],
        **dict.fromkeys(unknown),
        "success": told.outcome == "correct",
        "ledger": [],
    }
