"""A pipeline file run over its collection: in batches, recorded, and resumed where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
from ir_measures import Measure

from searchops import datasets
from searchops.agents.agent import Agent
from searchops.corpus import Collection
from searchops.errors import DataError, SpecError
from searchops.experiments.agent_runs import run_agent
from searchops.experiments.comparison import intervals
from searchops.experiments.indexes import opener
from searchops.experiments.results import done_tasks, failures, read_values, write_results
from searchops.frames import Group, frame_to_groups
from searchops.metrics import FUNNEL, is_evidence, parse_measure
from searchops.pipeline import Pipeline, normalise
from searchops.recorder import Recorder, record, write_text
from searchops.records import ANSWERS_FILE, RUN_FILE, Run, read_meta
from searchops.spec import Spec

BATCH = 32
DEFAULT_MEASURES = ("nDCG@10", "R@100")
HALVES_SEED = 0


@dataclass(frozen=True)
class Result:
    """What a run came to.

    Attributes:
        folder: Where its record is.
        collection: What it ran over.
        names: Number of each pipeline in the record, by name.
        values: Measures of every task: name, qid, measure, value.
        failed: What went wrong, by (pipeline name, qid).
        reused: The run was complete already, and nothing was run.
    """

    folder: Path
    collection: Collection
    names: dict[str, int]
    values: pd.DataFrame
    failed: dict[tuple[str, str], str] = field(default_factory=dict)
    reused: bool = False

    def means(self) -> pd.DataFrame:
        """Means over tasks with 95 % bootstrap intervals: name, measure, mean, low, high, tasks, missing."""
        return intervals(self.values, np.random.default_rng(0))


def run_spec(
    spec: Spec,
    out: str | Path | None = None,
    *,
    replace: bool = False,
    half: int | None = None,
    progress: Callable[[Sequence[Any], str], Iterator[Any]] | None = None,
) -> Result:
    """Builds what is missing, runs every pipeline of a file over the topics, measures and records.

    The same call goes on where an interrupted run stopped, and gives a finished one's numbers again
    without running it. A task that fails is recorded with its error and has no value; the others go on.

    Args:
        spec: A checked pipeline file.
        out: The record's folder; default the file's `record`, else `runs/NAME`.
        replace: Start anew where a run is there already.
        half: 1 or 2 runs over that half of the questions (`Collection.halves(seed=0)`): settings chosen
            on one half are reported on the other. None runs over all.
        progress: Wraps the batches of one pipeline, for a progress bar.

    Effects: Writes the record's folder, and indexes into the cache folder.

    Raises:
        SpecError: The file asks for what there is not (a measure, labels, topics).
        DataError: A collection or index cannot be read, or the folder holds another run.
    """
    measures = _measures(spec)
    collection = _half(_collection(spec), half)
    _check_measures(spec, measures, collection)
    # A batch's bar is ours; where there is none, building shows none either.
    pipelines = spec.build(opener(collection, progress=progress is not None))
    systems = {name: _as_system(system) for name, system in pipelines.items()}
    _check_different(spec, systems)
    folder = Path(out or spec.record or f"runs/{Path(spec.source).stem}")
    if "\0" in str(folder):
        raise SpecError("a folder's name without NUL is needed", repr(str(folder)), where=spec.where("record"))
    meta = {**_meta(spec, collection, systems), "half": half}
    status = _status(folder, meta, replace)
    if status == "finished":
        return _result(folder, collection, measures, reused=True)
    mode: Any = {"absent": "new", "partial": "resume", "replace": "replace"}[status]
    with record(folder, mode=mode, **meta) as run:
        _write_inputs(folder, collection)
        run.meta["names"] = {str(run.pipeline_number(_identity(system))): name for name, system in systems.items()}
        run.meta["stages"] = {
            str(run.pipeline_number(repr(system))): len(system)
            for system in systems.values()
            if isinstance(system, Pipeline)
        }
        done = done_tasks(run.run())
        groups = frame_to_groups(collection.topics, where="topics")
        for name, system in systems.items():
            if isinstance(system, Agent):
                run_agent(run, system, name, groups, progress)
                continue
            number = run.pipeline_number(repr(system))
            left = [group for group in groups if (number, group.qid) not in done]
            batches = [left[start : start + BATCH] for start in range(0, len(left), BATCH)]
            for place, batch in enumerate(progress(batches, name) if progress else batches):
                _run_batch(run, system, batch, first=place == 0 and len(left) == len(groups))
    return _result(folder, collection, measures)


def _run_batch(run: Recorder, system: Pipeline, batch: Sequence[Group], *, first: bool) -> None:
    """Runs a batch; where it fails, each of its tasks alone, so that one bad task costs no other.

    Where every task of the first batch fails, the pipeline is at fault and its error is raised.
    """
    try:
        with run.whole():
            system.run(batch)
    except Exception as error:
        n_failed = 0
        for group in batch:
            try:
                system.run([group])
            except Exception:
                n_failed += 1  # its event is recorded, with the error
            run.checkpoint()
        if first and n_failed == len(batch):
            raise error


def _check_different(spec: Spec, systems: Mapping[str, Pipeline | Agent]) -> None:
    """Records tell pipelines apart by what they are, so two equal ones cannot stand in one run."""
    seen: dict[str, str] = {}
    for name, system in systems.items():
        same = seen.setdefault(_identity(system), name)
        if same != name:
            raise SpecError(
                "pipelines that differ are needed",
                f"{same!r} and {name!r}, which are equal",
                where=spec.where("pipelines"),
            )


def _as_system(system: pt.Transformer) -> Pipeline | Agent:
    system = normalise(system)
    return system if isinstance(system, (Pipeline, Agent)) else Pipeline(system)


def _identity(system: Pipeline | Agent) -> str:
    """What the record knows a system by."""
    return system.record_name if isinstance(system, Agent) else repr(system)


def _config(system: Pipeline | Agent) -> str:
    """What a run that goes on must have in common with the run before."""
    if not isinstance(system, Agent):
        return repr(system)
    return " ".join([system.record_name, *(prompt.sha256 for prompt in system.prompts().values())])


def _measures(spec: Spec) -> list[Measure]:
    names = spec.measures or (*DEFAULT_MEASURES, *map(repr, FUNNEL))
    parsed = []
    for place, name in enumerate(names):
        try:
            parsed.append(parse_measure(name))
        except SpecError as error:
            where = spec.where("measures", place)
            raise SpecError(error.needed, error.found, where=where, hint=error.hint) from error
    return parsed


def _collection(spec: Spec) -> Collection:
    if spec.collection is None:
        raise SpecError("a collection is needed", "none", where=spec.source, hint="Write collection: pydocs.")
    try:
        collection = datasets.load(spec.collection)
    except DataError as error:
        # An error in one of the collection's files keeps its file and line.
        where = spec.where("collection") if error.where in ("", "load") else error.where
        raise DataError(error.needed, error.found, where=where, hint=error.hint) from error
    if collection.topics is None or not len(collection.topics):
        raise SpecError(
            "a collection with topics is needed", f"none in {spec.collection!r}", where=spec.where("collection")
        )
    return collection


def _half(collection: Collection, half: int | None) -> Collection:
    """The collection with the questions of that half; all of them where none is asked for."""
    if half is None:
        return collection
    if half not in (1, 2):
        raise SpecError("half must be 1 or 2", repr(half), where="run")
    return collection.halves(HALVES_SEED)[half - 1]


def _check_measures(spec: Spec, measures: Sequence[Measure], collection: Collection) -> None:
    for place, measure in enumerate(measures):
        lacks = "evidence labels" if is_evidence(measure) and collection.evidence is None else ""
        lacks = lacks or ("qrels" if not is_evidence(measure) and collection.qrels is None else "")
        if lacks and spec.measures:
            raise SpecError(
                f"a collection with {lacks} is needed by {measure!r}",
                repr(collection),
                where=spec.where("measures", place),
            )


def _meta(spec: Spec, collection: Collection, systems: Mapping[str, Pipeline | Agent]) -> dict[str, Any]:
    told = json.dumps({name: _config(system) for name, system in systems.items()})
    return {
        "spec": spec.text,
        "source": spec.source,
        "collection": collection.name,
        "data_hash": collection.data_hash,
        "topics_hash": _frame_hash(collection.topics),
        "config": hashlib.sha256(told.encode()).hexdigest()[:16],
        "notes": list(collection.notes),
    }


def _frame_hash(frame: pd.DataFrame) -> str:
    return hashlib.sha256(frame.to_json(orient="records").encode()).hexdigest()[:16]


def _status(folder: Path, meta: Mapping[str, Any], replace: bool) -> str:
    """absent, partial, finished, or replace; refuses a folder that holds another run."""
    if not (folder / RUN_FILE).exists():
        return "absent"
    old = read_meta(folder)
    if replace:
        return "replace"
    if not done_tasks(Run.open(folder)) and not (folder / ANSWERS_FILE).exists():
        return "replace"  # nothing came of it: an early error, since mended
    differs = [name for name in ("config", "data_hash", "topics_hash", "half") if old.get(name) != meta[name]]
    if differs:
        raise DataError(
            "a folder for this run is needed",
            f"the record of another one (other {', '.join(differs)})",
            where=str(folder),
            hint="Give another folder with --out, or --replace to start anew.",
        )
    whole = old.get("status") == "finished" and not failures(Run.open(folder))
    return "finished" if whole else "partial"


def _write_inputs(folder: Path, collection: Collection) -> None:
    """Topics and labels beside the record: a report needs nothing else."""
    for name in ("topics", "evidence"):
        frame = getattr(collection, name)
        if frame is not None:
            text = frame.to_json(orient="records", lines=True, force_ascii=False)
            write_text(folder / f"{name}.jsonl", text if text.endswith("\n") or not text else text + "\n")


def _result(folder: Path, collection: Collection, measures: Sequence[Measure], *, reused: bool = False) -> Result:
    """The result, out of the record alone."""
    run = Run.open(folder)
    names = {name: int(number) for number, name in run.meta["names"].items()}
    write_results(run, collection, measures)
    by_number = {number: name for name, number in names.items()}
    failed = {(by_number[number], qid): text for (number, qid), text in failures(run).items()}
    return Result(folder, collection, names, read_values(folder), failed, reused)
