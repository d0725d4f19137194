"""ReAct transcripts, read.

Source of the format: Reflexion's HotpotQA logs (Thought, Action Search[..] | Lookup[..] | Finish[..],
Observation; trials one after the other, each with its summary).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final, TypeAlias

from searchops.errors import DataError

__all__ = ["OUTCOMES", "Step", "Trajectory", "read_react"]

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
