"""The run in progress: stages hand their events here, checkpoints bring them to disk.

The recorder is found through a context variable, so that a stage needs no argument for it and two
runs in two threads do not meet. Rows are gathered in plain lists and written in blocks: memory
stays flat and recording costs a fraction of a microsecond a row.
"""

from searchops.recorder.columns import ScoredPassage
from searchops.recorder.context import (
    Question,
    Scope,
    apart,
    current,
    current_step,
    inside_stage,
    record,
    record_into,
    scope,
    step,
)
from searchops.recorder.gathering import Recorder, write_text
from searchops.recorder.surroundings import config_hash

__all__ = [
    "Question",
    "Recorder",
    "Scope",
    "ScoredPassage",
    "apart",
    "config_hash",
    "current",
    "current_step",
    "inside_stage",
    "record",
    "record_into",
    "scope",
    "step",
    "write_text",
]
