"""A collection in a folder of JSON lines and TREC files.

    corpus.jsonl     {"docno", "text", optional "title", metadata...}     needed
    topics.jsonl     {"qid", "query", optional "answer", metadata...}     or topics.tsv: qid TAB query
    qrels.txt        qid 0 docno label
    evidence.jsonl   {"qid", "docno", "start", "end", "text", ...}
    sents.jsonl      {"docno", "spans": [[start, end], ...]}              the documents' own sentences

Every error names the file and the line.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from searchops.corpus import Collection, misplaced_evidence
from searchops.errors import DataError, did_you_mean, sentence
from searchops.frames import Record
from searchops.trec import read_qrels, read_topics

__all__ = ["load_folder", "read_json_lines"]


class JsonLine(NamedTuple):
    """One object of a JSON lines file, and where it stands (`file:line`)."""

    where: str
    record: Record


def load_folder(path: str | PathLike[str], *, name: str | None = None, qrels: str = "qrels.txt") -> Collection:
    """The collection in a folder. All files but corpus.jsonl may be absent.

    Args:
        path: The folder.
        name: The collection's name; the folder's if None.
        qrels: The judgements' file in the folder, where it has several.

    Raises:
        DataError: A file is missing or malformed, a label's text is not what stands at its offsets,
            or spans do not lie in their document.
    """
    folder = Path(path)
    corpus = folder / "corpus.jsonl"
    if not corpus.is_file():
        found = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
        raise DataError("a folder with corpus.jsonl is needed", ", ".join(found[:9]) or "none", where=str(folder))
    documents = read_json_lines(corpus, needed=("docno", "text"))
    for where, record in documents:
        _check_document(record, where)
    notes: list[str] = []
    if (folder / "sents.jsonl").is_file():
        documents, notes = _with_spans(documents, read_json_lines(folder / "sents.jsonl", ("docno", "spans")))
    labels = _optional_lines(folder / "evidence.jsonl", ("qid",))
    collection = Collection(
        name or folder.resolve().name,
        _frame(documents),
        topics=_topics(folder),
        qrels=_qrels(folder, qrels),
        evidence=None if labels is None else _frame(labels),
        notes=tuple(notes),
    )
    _check_offsets(collection, labels)
    return collection


def read_json_lines(path: Path, needed: Sequence[str] = ()) -> list[JsonLine]:
    """The objects of a JSON lines file; blank lines are skipped.

    Raises:
        DataError: A line is not UTF-8, not JSON, not an object, or lacks a needed key; the text
            names file, line and, for JSON, column.
    """
    lines = []
    for number, line in enumerate(path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        record = _object(line, where)
        for key in needed:
            if key not in record:
                hint = sentence(did_you_mean(key, record)) if record else ""
                raise DataError(f"a key {key!r} is needed", "keys " + ", ".join(record), where=where, hint=hint)
        lines.append(JsonLine(where, record))
    return lines


def _object(line: bytes, where: str) -> Record:
    try:
        record = json.loads(line)
    except UnicodeDecodeError as error:
        raise DataError("UTF-8 is needed", str(error), where=where) from error
    except json.JSONDecodeError as error:
        raise DataError("JSON is needed", error.msg, where=f"{where}:{error.colno}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, lists a thousand deep
        raise DataError("JSON of ordinary size is needed", str(error)[:80], where=where) from error
    if not isinstance(record, dict):
        raise DataError("a JSON object is needed", type(record).__name__, where=where)
    return record


def _optional_lines(path: Path, needed: Sequence[str]) -> list[JsonLine] | None:
    return read_json_lines(path, needed) if path.is_file() else None


def _topics(folder: Path) -> pd.DataFrame | None:
    lines = _optional_lines(folder / "topics.jsonl", ("qid", "query"))
    if lines is not None:
        return _frame(lines)
    return read_topics(folder / "topics.tsv") if (folder / "topics.tsv").is_file() else None


def _qrels(folder: Path, file: str) -> pd.DataFrame | None:
    path = folder / file
    return read_qrels(path) if path.is_file() or file != "qrels.txt" else None


def _frame(lines: Sequence[JsonLine]) -> pd.DataFrame:
    """The records as a frame. A column with gaps keeps its values (2019 stays an int) and None."""
    names = dict.fromkeys(key for line in lines for key in line.record)
    columns: dict[str, Any] = {}
    for name in names:
        values = [line.record.get(name) for line in lines]
        gaps = any(value is None for value in values)
        columns[name] = pd.Series(values, dtype="object") if gaps else values
    return pd.DataFrame(columns)


def _check_document(record: Record, where: str) -> None:
    for key, kinds, what in (("docno", (str, int), "text"), ("text", (str, type(None)), "text or null")):
        if not isinstance(record[key], kinds):
            raise DataError(f"a {key} that is {what} is needed", repr(record[key])[:60], where=where)


def _with_spans(documents: list[JsonLine], sents: list[JsonLine]) -> tuple[list[JsonLine], list[str]]:
    """The documents with a column `spans` (None where sents.jsonl has nothing for them), and notes."""
    spans: dict[str, list[list[int]]] = {}
    n_empty = 0
    texts = {str(line.record["docno"]): line.record["text"] or "" for line in documents}
    for where, record in sents:
        docno = str(record["docno"])
        if docno not in texts:
            raise DataError("a docno of corpus.jsonl is needed", repr(docno), where=where)
        spans[docno] = _checked_spans(record["spans"], len(texts[docno]), where)
        n_empty += len(record["spans"]) - len(spans[docno])
    with_spans = [JsonLine(where, {**record, "spans": spans.get(str(record["docno"]))}) for where, record in documents]
    n_without = len(texts) - len(spans)
    notes = [f"{n_without:,} of {len(texts):,} documents have no spans in sents.jsonl"] if n_without else []
    return with_spans, notes + ([f"{n_empty:,} empty spans of sents.jsonl left out"] if n_empty else [])


def _checked_spans(spans: Any, length: int, where: str) -> list[list[int]]:
    """The spans that hold text; an empty one (an empty sentence of the source) holds none."""
    kept = []
    before = 0
    for span in spans if isinstance(spans, list) else [spans]:
        match span:
            case [int(start), int(end)] if start == end:
                continue
            case [int(start), int(end)] if before <= start < end <= length:
                kept.append([start, end])
                before = start
            case _:
                raise DataError(
                    f"spans [start, end] by start within the text's {length:,} characters are needed",
                    repr(span),
                    where=where,
                )
    return kept


def _check_offsets(collection: Collection, labels: list[JsonLine] | None) -> None:
    """Refuses labels that are not at their offsets: each would be counted as lost or found by chance."""
    if labels is None or collection.evidence is None:
        return
    wrong = misplaced_evidence(collection.evidence, collection.documents)
    if wrong:
        where, record = labels[wrong[0]]
        text = str(record.get("text"))[:60]
        more = f" ({len(wrong):,} such labels)" if len(wrong) > 1 else ""
        raise DataError(
            "the label's text at its offsets in the document is needed",
            f"{text!r} not at {record['start']}-{record['end']} of {record['docno']!r}{more}",
            where=where,
            hint="Offsets count characters of the document's text, not bytes.",
        )
