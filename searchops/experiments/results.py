"""What a run came to, computed from its record: values of every task, TREC runs, failures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import ir_measures
import pandas as pd
import pyterrier as pt
from ir_measures import Measure

from searchops.corpus import Collection
from searchops.errors import SpecError
from searchops.experiments.agent_runs import agent_numbers, agent_rows, broken_questions, resource_values
from searchops.metrics import evidence_values, is_evidence
from searchops.recorder import write_text
from searchops.records import Run
from searchops.trec import write_run

MEASURES_FILE = "measures.json"


def write_results(run: Run, collection: Collection, measures: Sequence[Measure]) -> None:
    """Writes measures.json (values of every task) and a TREC run a pipeline beside a run's record.

    Raises:
        SpecError: A retrieval measure is asked of a pipeline that puts out no scores.
    """
    assert run.path is not None
    names: dict[str, str] = run.meta["names"]
    frames = []
    agents = agent_numbers(run)
    for number, name in names.items():
        final = agent_rows(run, int(number)) if int(number) in agents else final_rows(run, int(number))
        if len(final) and not final["score"].isna().any():
            file = "run.trec" if len(names) == 1 else f"run-{number}-{_safe(name)}.trec"
            write_run(_without_spaces(final), run.path / file, name=_safe(name))
        frame = _values(run, int(number), final, collection, measures)
        frame.insert(0, "name", name)
        frames.append(frame)
    rows = pd.concat(frames, ignore_index=True).to_dict("records")
    told = [{**row, "value": None if row["value"] != row["value"] else row["value"]} for row in rows]
    write_text(run.path / MEASURES_FILE, json.dumps({"per_query": told}, ensure_ascii=False) + "\n")


def read_values(folder: Path) -> pd.DataFrame:
    """The values that `write_results` wrote: name, qid, measure, value (NaN where there is none)."""
    rows = json.loads((folder / MEASURES_FILE).read_text(encoding="utf-8"))["per_query"]
    return pd.DataFrame(rows, columns=["name", "qid", "measure", "value"]).astype({"value": "float64"})


def done_tasks(run: Run) -> set[tuple[int, str]]:
    """(pipeline, qid) of the tasks that came through the last stage of their pipeline."""
    top = _top_level(run.events)
    top = top[top["decision"] < 0]
    if not len(top):
        return set()
    places = top["stage"].astype(str).astype(int)
    last = places.groupby(top["pipeline"]).transform("max")
    # Where every task stopped early, as an interrupted run's may, the furthest place is not the last stage.
    stages = {int(number): n - 1 for number, n in run.meta.get("stages", {}).items()}
    last = top["pipeline"].map(stages).fillna(last)
    through = top[(places == last) & top["error"].isna()]
    return {(int(number), str(qid)) for number, qid in zip(through["pipeline"], through["qid"], strict=True)}


def failures(run: Run) -> dict[tuple[int, str], str]:
    """The error of each (pipeline, qid) that failed and has not come through since."""
    done = done_tasks(run)
    # A call that fails is the agent's to see; its question goes on.
    bad = run.events[run.events["error"].notna() & (run.events["decision"] < 0)]
    found = {
        (int(n), str(qid)): str(text) for n, qid, text in zip(bad["pipeline"], bad["qid"], bad["error"], strict=True)
    }
    return {key: text for key, text in {**found, **broken_questions(run)}.items() if key not in done}


def _top_level(events: pd.DataFrame) -> pd.DataFrame:
    return events[~events["stage"].astype(str).str.contains(".", regex=False)]


def final_rows(run: Run, pipeline: int) -> pd.DataFrame:
    """What a pipeline put out at its end: qid, docno, score, rank; of a document's passages, the first."""
    events = run.events
    events = _top_level(events[events["pipeline"] == pipeline])
    last = events.groupby("qid", sort=False, observed=True)["event"].max()
    rows = run.candidates
    rows = rows[(rows["side"] == "out") & rows["event"].isin(set(last))]
    qid_of = {int(event): str(qid) for qid, event in last.items()}
    frame = pd.DataFrame(
        {
            "qid": [qid_of[int(event)] for event in rows["event"]],
            "docno": rows["docno"].astype(str).to_numpy(),
            "score": rows["score"].to_numpy(dtype="float64"),
            "rank": rows["rank"].to_numpy(),
        }
    )
    return frame.drop_duplicates(["qid", "docno"], ignore_index=True)


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)


def _without_spaces(rows: pd.DataFrame) -> pd.DataFrame:
    """TREC's format has no room for white space in ids: there it is percent-encoded."""
    return rows.assign(
        qid=["".join(f"%{ord(c):02X}" if c.isspace() else c for c in text) for text in rows["qid"]],
        docno=["".join(f"%{ord(c):02X}" if c.isspace() else c for c in text) for text in rows["docno"]],
    )


def _values(
    run: Run, number: int, final: pd.DataFrame, collection: Collection, measures: Sequence[Measure]
) -> pd.DataFrame:
    """qid, measure, value of one pipeline, over the tasks that did not fail."""
    frames = []
    answered = agent_numbers(run).get(number)
    plain = [measure for measure in measures if not is_evidence(measure)]
    events = run.events[run.events["pipeline"] == number]
    broken = {qid for at, qid in failures(run) if at == number}
    if plain and collection.qrels is not None:
        asked = (set(events["qid"]) if answered is None else set(answered)) - broken
        qrels = collection.qrels[collection.qrels["qid"].isin(asked)]
        frames.append(_retrieval_values(final, qrels, plain))
    evidence = [measure for measure in measures if is_evidence(measure)]
    if evidence and collection.evidence is not None:
        labels = collection.evidence[~collection.evidence["qid"].isin(broken)]
        frames.append(evidence_values(run, labels, evidence, pipeline=number))
    if answered is not None:
        frames.append(resource_values(run, number))
    if not frames:
        return pd.DataFrame(columns=["qid", "measure", "value"])
    order = {repr(measure): place for place, measure in enumerate(measures)}
    for name in frames[-1]["measure"]:
        order.setdefault(name, len(order))
    return pd.concat(frames, ignore_index=True).sort_values(
        "measure", key=lambda column: column.map(order), kind="stable", ignore_index=True
    )


def _retrieval_values(final: pd.DataFrame, qrels: pd.DataFrame, measures: Sequence[Measure]) -> pd.DataFrame:
    if final["score"].isna().any():
        raise SpecError(
            "a pipeline that scores its results is needed by " + ", ".join(map(repr, measures)),
            "rows without a score",
            hint="End it with a stage that ranks, or ask for evidence measures only.",
        )
    found = ir_measures.iter_calc(list(measures), pt.model.to_ir_measures(qrels), pt.model.to_ir_measures(final))
    rows = [{"qid": metric.query_id, "measure": repr(metric.measure), "value": float(metric.value)} for metric in found]
    return pd.DataFrame(rows, columns=["qid", "measure", "value"])
