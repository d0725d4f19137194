"""What trajectories did, in figures."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from searchops.trajectories.react import Trajectory

__all__ = ["figures", "plain", "trajectory_values"]


def trajectory_values(trajectories: Sequence[Trajectory]) -> pd.DataFrame:
    """What each trajectory did, in figures: name (the trial), question, measure, value.

    Measures: success (a right answer), steps, searches, lookups, not_found (searches without a page),
    repeated_searches (queries asked before, whatever the case), observation_chars.

    Example:
        >>> from searchops.trajectories.react import Step
        >>> step = Step("I look.", "Search", "Emma", "Emma is a novel.")
        >>> told = Trajectory(1, "Who wrote Emma?", (step, step), "halted", "Jane Austen")
        >>> frame = trajectory_values([told])
        >>> frame.set_index("measure")["value"][["searches", "repeated_searches", "success"]].tolist()
        [2.0, 1.0, 0.0]
    """
    rows = [
        {"name": f"trial {told.trial}", "question": told.question, "measure": measure, "value": float(value)}
        for told in trajectories
        for measure, value in figures(told).items()
    ]
    return pd.DataFrame(rows, columns=["name", "question", "measure", "value"])


def figures(told: Trajectory) -> dict[str, int]:
    """The figures of one trajectory, by measure."""
    searches = [step for step in told.steps if step.action == "Search"]
    return {
        "success": int(told.outcome == "correct"),
        "steps": len(told.steps),
        "searches": len(searches),
        "lookups": sum(step.action == "Lookup" for step in told.steps),
        "not_found": sum(not step.found for step in searches),
        "repeated_searches": len(searches) - len({plain(step.argument) for step in searches}),
        "observation_chars": sum(len(step.observation) for step in told.steps if step.action != "Finish"),
    }


def plain(text: str) -> str:
    """A query, question or title for comparison: without quotation marks around it, case folded.

    Example:
        >>> plain(' "The  Nile"')
        'the nile'
    """
    return " ".join(text.strip("\"' ").split()).casefold()
