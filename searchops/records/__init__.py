"""What a recorded run looks like on disk, and how it is read back.

A run is a folder: `run.json` (versions, spec, data hashes, seeds), `events/` and `candidates/`
(Parquet, one pair of files a checkpoint), `run.trec`, `measures.json`, and for agents `decisions.jsonl`
and `answers.jsonl`. A checkpoint counts once its events file is there, which is written last; that of an
agent's question, once the question's answer is there. Source: PSA, B.2 (extraction events, in their order).
"""

from searchops.records.events import Event, candidate_schema, event_schema
from searchops.records.runs import FORMAT_VERSION, RUN_FILE, HasRun, Run, as_run, read_meta
from searchops.records.trajectories import ANSWERS_FILE, DECISIONS_FILE, whole_requests

__all__ = [
    "ANSWERS_FILE",
    "DECISIONS_FILE",
    "FORMAT_VERSION",
    "RUN_FILE",
    "Event",
    "HasRun",
    "Run",
    "as_run",
    "candidate_schema",
    "event_schema",
    "read_meta",
    "whole_requests",
]
