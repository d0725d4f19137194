"""Where a stage finds the run in progress, and its place in it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal, NamedTuple

from searchops.recorder.gathering import Recorder


class Scope(NamedTuple):
    """Where in the run the stages now running stand."""

    pipeline: int
    prefix: str
    children: dict[str, int]


_recorder: ContextVar[Recorder | None] = ContextVar("searchops_recorder", default=None)
_scope: ContextVar[Scope | None] = ContextVar("searchops_scope", default=None)
_step: ContextVar[tuple[int, int]] = ContextVar("searchops_step", default=(-1, -1))


def current() -> Recorder | None:
    """The recorder of the run in progress, if there is one."""
    return _recorder.get()


@contextmanager
def record(
    path: str | os.PathLike[str] | None = None,
    *,
    mode: Literal["new", "replace", "resume"] = "new",
    **meta: Any,
) -> Iterator[Recorder]:
    """Records every stage that runs inside the `with` block.

    Args:
        path: Folder to write; None keeps the run in memory.
        mode: What to do where the folder already holds a run: refuse, replace it, or go on with it.
        meta: Further entries for run.json (spec, seeds, data hashes): JSON values.

    Effects: Writes below `path`, at each checkpoint and at the end, also when the block fails.

    Raises:
        DataError: The folder holds a run (mode "new"), something that is no run, or cannot be
            written.

    Example:
        >>> with record() as run:
        ...     pass
        >>> len(run.run().events)
        0
    """
    recorder = Recorder(Path(path) if path is not None else None, mode, meta)
    try:
        with record_into(recorder):
            yield recorder
    except BaseException as error:
        recorder.close(
            status="interrupted" if isinstance(error, KeyboardInterrupt) else "failed",
            error=f"{type(error).__name__}: {error}",
        )
        raise
    recorder.close(status="finished")


@contextmanager
def record_into(recorder: Recorder) -> Iterator[None]:
    """Stages run in this block are noted by that recorder, which stays open."""
    token, place = _recorder.set(recorder), _scope.set(None)
    try:
        yield
    finally:
        _scope.reset(place)
        _recorder.reset(token)


class Question(Recorder):
    """Gathers the events of one question of an agent, apart from the run's.

    Nothing of it counts until `complete` is called and the block of `apart` ends.
    """

    def __init__(self, whole: Recorder) -> None:
        super().__init__(None, "new", {})
        self._whole_run = whole
        self.completed: tuple[Sequence[Mapping[str, Any]], Mapping[str, Any]] | None = None

    def pipeline_number(self, name: str) -> int:
        """The number in the whole run."""
        return self._whole_run.pipeline_number(name)

    def checkpoint(self, *, force: bool = True) -> None:
        """Does nothing: a question stays together until it is finished."""

    def complete(self, decisions: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> None:
        """Says that the question is finished, with its lines of decisions.jsonl and answers.jsonl."""
        self.completed = decisions, answer


@contextmanager
def apart() -> Iterator[Question | None]:
    """Stages run in this block are one question's; they join the run in progress when it is completed.

    Gives None where nothing is recorded. A question that is not completed leaves no trace.
    """
    whole = _recorder.get()
    if whole is None:
        yield None
        return
    question = Question(whole)
    token = _recorder.set(question)
    try:
        yield question
    finally:
        _recorder.reset(token)
    if question.completed is not None:
        whole.adopt(question, *question.completed)


@contextmanager
def scope(name: str) -> Iterator[Scope]:
    """Opens the place of one pipeline: a numbered child of the stage (or run) it runs in.

    The same pipeline run again in the same place gets the same number, so that batches add up.
    """
    outer, recorder = _scope.get(), _recorder.get()
    if outer is None:
        number = recorder.pipeline_number(name) if recorder else 0
        inner = Scope(number, "", {})
    else:
        child = outer.children.setdefault(name, len(outer.children))
        inner = Scope(outer.pipeline, f"{outer.prefix}{child}.", {})
    token = _scope.set(inner)
    try:
        yield inner
    finally:
        _scope.reset(token)


@contextmanager
def inside_stage(place: Scope, index: int) -> Iterator[None]:
    """Pipelines run in this block are branches of the stage at `index`."""
    token = _scope.set(Scope(place.pipeline, f"{place.prefix}{index}.", {}))
    try:
        yield
    finally:
        _scope.reset(token)


@contextmanager
def step(decision: int, call: int) -> Iterator[None]:
    """Events of this block belong to one call of one decision of an agent."""
    token = _step.set((decision, call))
    try:
        yield
    finally:
        _step.reset(token)


def current_step() -> tuple[int, int]:
    """(decision, call) of the agent now at work; (-1, -1) in a pipeline."""
    return _step.get()
