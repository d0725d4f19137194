"""searchops: a retrieval-pipeline language for search agents that says where evidence was lost.

Compose `Retrieve`, `Filter`, `Rerank`, `Extract` and `Dedupe` with PyTerrier's operators, run them
over a collection, and see retrieval quality next to evidence delivery.
"""

import importlib as _importlib
import typing as _typing

from searchops.accounting import delivery, funnel, why
from searchops.corpus import Collection
from searchops.datasets import load
from searchops.engines.dense import DenseIndex
from searchops.engines.lucene import LuceneIndex
from searchops.errors import (
    BudgetExceeded,
    DataError,
    FrameError,
    SearchopsError,
    SpecError,
    ToolError,
)
from searchops.experiments.comparison import Experiment
from searchops.fusion import RRF, Rewrite, Union
from searchops.metrics import (
    Available,
    CompleteDelivery,
    Delivered,
    DeliveredCharacters,
    EvidenceRecall,
    NoDelivery,
    PartialDelivery,
    Retrieved,
    parse_measure,
)
from searchops.pipeline import Pipeline
from searchops.predicates import field
from searchops.primitives import Dedupe, Extract, Filter, Rerank, Retrieve
from searchops.recorder import record
from searchops.records import Run
from searchops.report import write_report
from searchops.scorers.biencoder import BiEncoder
from searchops.scorers.chat import Chat
from searchops.scorers.crossencoder import CrossEncoder
from searchops.scorers.lexical import Lexical
from searchops.splitting import Given, Sentences, Words

if _typing.TYPE_CHECKING:
    from searchops.agents import Budget, ProgramAgent, QueryAgent, ToolAgent
    from searchops.models import OpenAIModel

__version__ = "0.1.0"

__all__ = [
    "RRF",
    "Available",
    "BiEncoder",
    "Budget",
    "BudgetExceeded",
    "Chat",
    "Collection",
    "CompleteDelivery",
    "CrossEncoder",
    "DataError",
    "Dedupe",
    "Delivered",
    "DeliveredCharacters",
    "DenseIndex",
    "EvidenceRecall",
    "Experiment",
    "Extract",
    "Filter",
    "FrameError",
    "Given",
    "Lexical",
    "LuceneIndex",
    "NoDelivery",
    "OpenAIModel",
    "PartialDelivery",
    "Pipeline",
    "ProgramAgent",
    "QueryAgent",
    "Rerank",
    "Retrieve",
    "Retrieved",
    "Rewrite",
    "Run",
    "SearchopsError",
    "Sentences",
    "SpecError",
    "ToolAgent",
    "ToolError",
    "Union",
    "Words",
    "delivery",
    "field",
    "funnel",
    "load",
    "parse_measure",
    "record",
    "why",
    "write_report",
]

_AT_FIRST_USE = {
    "Budget": "searchops.agents",
    "OpenAIModel": "searchops.models",
    "ProgramAgent": "searchops.agents",
    "QueryAgent": "searchops.agents",
    "ToolAgent": "searchops.agents",
}
"""What most users of pipelines never need is imported when it is first asked for."""


def __getattr__(name: str) -> _typing.Any:
    if name in _AT_FIRST_USE:
        return getattr(_importlib.import_module(_AT_FIRST_USE[name]), name)
    raise AttributeError(f"module 'searchops' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_AT_FIRST_USE})
