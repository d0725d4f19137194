"""One question put to an agent over a collection, with the index built where it is missing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from searchops import datasets, registry
from searchops.experiments.indexes import opener
from searchops.frames import Record
from searchops.models import ChatModel, OpenAIModel
from searchops.recorder import record
from searchops.spec import IndexSpec

__all__ = ["POLICY", "Asked", "ask"]

POLICY = "keyword"
"""The model that is none: it searches by rules, and gives evidence, not an answer."""


@dataclass(frozen=True)
class Asked:
    """What a question came to.

    Attributes:
        answer: The row of the answers frame.
        evidence: What extraction kept, what the answer names first: docno, passage_id, start, end, text, …
        notes: What the collection left out.
        is_answer: Whether a model wrote the text; the keyword policy only lists evidence.
    """

    answer: Record
    evidence: list[Record]
    notes: tuple[str, ...]
    is_answer: bool


def ask(
    question: str,
    agent: str = "query",
    collection: str = "pydocs",
    *,
    model: str = POLICY,
    base_url: str | None = None,
    decisions: int | None = None,
    out: str | Path | None = None,
    progress: bool = False,
) -> Asked:
    """Answers one question with an agent over a collection.

    Args:
        question: The question.
        agent: query, tool or program.
        collection: pydocs, a folder, or irds:NAME.
        model: keyword, or an endpoint's name of a model.
        base_url: Of the endpoint.
        decisions: Most decisions.
        out: Folder to record into; None keeps no record.
        progress: Show progress bars while building.

    Effects: Builds the index into the cache folder where it is missing.

    Raises:
        SpecError: There is no such agent, or the model is set up wrongly.
        DataError: The collection or its index cannot be read.
    """
    made = registry.lookup("agent", agent)
    chosen = _model(model, base_url)
    budget = registry.lookup("part", "budget")
    found = datasets.load(collection)
    index = opener(found, progress=progress)(IndexSpec("lucene", "lucene"))
    settings: dict[str, Any] = {} if decisions is None else {"budget": budget(decisions=decisions)}
    transformer = made(chosen, index, **settings)
    topics = pd.DataFrame([{"qid": "1", "query": question}])
    with record(out) as run:
        answers = transformer(topics)
    answer = answers.to_dict("records")[0]
    ledger = list(next(run.run().iter_answers())["ledger"])
    return Asked(answer, _cited_first(ledger, answer["qanswer"]), found.notes, model != POLICY)


def _cited_first(ledger: list[Record], text: str) -> list[Record]:
    """The passages that the answer names, in its order; then the others."""
    places = [text.find(item["passage_id"]) for item in ledger]
    order = sorted(range(len(ledger)), key=lambda n: places[n] if places[n] >= 0 else len(text))
    return list({ledger[n]["passage_id"]: ledger[n] for n in order}.values())


def _model(name: str, base_url: str | None) -> ChatModel:
    if name == POLICY:
        policy: ChatModel = registry.lookup("model", POLICY)()
        return policy
    return OpenAIModel(name, base_url)
