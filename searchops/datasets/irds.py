"""Collections out of ir_datasets, which downloads what it has not got."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import pandas as pd

from searchops.corpus import Collection
from searchops.errors import DataError

__all__ = ["load_irds"]

_IDS = {"doc_id": "docno", "query_id": "qid", "relevance": "label"}


def load_irds(name: str) -> Collection:
    """The ir_datasets data set of that name, such as `beir/scifact/test`.

    `text` is the document's own text field where it has one, else what ir_datasets takes as its
    text; likewise for `query`. Further fields stay as columns, except raw bytes.

    Raises:
        DataError: ir_datasets is not installed, knows no such data set, cannot get its files, or
            the data set has no documents.
    """
    dataset = _dataset(name)
    if not dataset.has_docs():
        raise DataError("a data set with documents is needed", repr(name), where="irds")
    notes: list[str] = []
    try:
        documents = _records(dataset.docs_iter(), "text")
        topics = _records(dataset.queries_iter(), "query") if dataset.has_queries() else None
        qrels = _qrels(dataset.qrels_iter(), notes) if dataset.has_qrels() else None
    except (OSError, RuntimeError) as error:
        raise DataError(
            "the data set's files are needed",
            str(error),
            where=f"irds:{name}",
            hint="ir_datasets downloads them at first use; see its page for data that needs a licence.",
        ) from error
    return Collection(
        f"irds:{name}",
        pd.DataFrame(documents, columns=None if documents else ["docno", "text"]),
        topics=None if topics is None else pd.DataFrame(topics, columns=None if topics else ["qid", "query"]),
        qrels=qrels,
        notes=tuple(notes),
    )


def _dataset(name: str) -> Any:
    try:
        import ir_datasets
    except ImportError as error:
        raise DataError(
            "the package ir_datasets is needed", "none", where="irds", hint="pip install ir_datasets"
        ) from error
    try:
        return ir_datasets.load(name)
    except KeyError as error:
        close = get_close_matches(name, list(ir_datasets.registry), n=3)
        hint = f"Did you mean {' or '.join(map(repr, close))}?" if close else "See https://ir-datasets.com."
        raise DataError("a data set of ir_datasets is needed", repr(name), where="irds", hint=hint) from error


def _records(items: Iterable[Any], text_column: str) -> list[dict[str, Any]]:
    """ir_datasets' named tuples as records in our columns."""
    records = []
    for item in items:
        fields = {
            _IDS.get(field, field): value
            for field, value in item._asdict().items()
            if isinstance(value, (str, int, float))
        }
        own = fields.pop("text", None)
        fields[text_column] = own if isinstance(own, str) else item.default_text()
        records.append(fields)
    return records


def _qrels(items: Iterable[Any], notes: list[str]) -> pd.DataFrame:
    """The judgements; a judgement that is there twice, word for word, is kept once and noted."""
    rows = [(item.query_id, item.doc_id, item.relevance) for item in items]
    once = list(dict.fromkeys(rows))
    if len(once) < len(rows):
        notes.append(f"{len(rows) - len(once):,} repeated qrels kept once")
    return pd.DataFrame(once, columns=["qid", "docno", "label"])
