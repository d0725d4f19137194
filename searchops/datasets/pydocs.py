"""`pydocs`: the collection that ships with every Python, and questions about it.

Documents are the language-reference topics of `pydoc_data.topics` (the largest have 60,000
characters) and the docstrings of the standard library, all read from source files: nothing is
imported. Questions, answers and supporting quotations stand in `data/pydocs/questions.jsonl`; the
quotations are located when the collection is loaded, since the texts differ between Pythons.
"""

from __future__ import annotations

import ast
import json
import re
import sysconfig
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from searchops.corpus import Collection
from searchops.datasets import cache
from searchops.datasets.docstrings import read_docstrings, source_files
from searchops.datasets.quotes import locate
from searchops.errors import DataError
from searchops.frames import Record

__all__ = ["load_pydocs"]

TOPICS_FILE = "pydoc_data/topics.py"
_UNDERLINE = re.compile(r"[*=\-~^\"']{2,}")
_SHOWN = 5
"""How many names a note gives."""


class _Documents(NamedTuple):
    documents: list[Record]
    notes: list[str]


def load_pydocs(*, stdlib: Path | None = None, questions: Path | None = None) -> Collection:
    """The documentation of this Python as a collection with questions and supporting passages.

    Parsing takes some seconds; its result is kept in the user's cache folder (`$SEARCHOPS_CACHE`,
    else `$XDG_CACHE_HOME/searchops`, else `~/.cache/searchops`) until a source file changes. A cache
    that is damaged or cannot be written is parsed around, silently: it holds nothing of its own.

    A question of which a quotation is gone is left out, and `notes` names it.

    Args:
        stdlib: The standard library's folder; None: the one of the running Python.
        questions: A questions file of the same shape; None: the one that ships with searchops.

    Columns: documents docno, title, text, kind (topic, module, class, function or method), module,
        package, public, line, n_chars; topics qid, query, answer, hops, kind (single, distant:
        two far places of one document, multi-document).

    Raises:
        DataError: The library's source files are not there, or the questions file is damaged.

    Example:
        >>> collection = load_pydocs()
        >>> len(collection) > 5000, len(collection.topics) >= 90
        (True, True)
        >>> collection.evidence.columns.tolist()
        ['qid', 'docno', 'start', 'end', 'text']
    """
    root = Path(sysconfig.get_path("stdlib")) if stdlib is None else stdlib
    documents, notes = _documents(root)
    topics, evidence, lost = _located(_read_questions(questions or _shipped()), documents)
    qrels = evidence[["qid", "docno"]].drop_duplicates(ignore_index=True).assign(label=1)
    return Collection(
        name="pydocs",
        documents=pd.DataFrame(documents),
        topics=topics,
        qrels=qrels,
        evidence=evidence,
        notes=(*notes, *lost),
    )


def _documents(root: Path) -> _Documents:
    try:
        files = source_files(root)
    except OSError as error:
        raise _no_sources(root, str(error)) from None
    if not files:
        raise _no_sources(root, "no .py file in it")
    # The readers' own files belong to the key: what they make of the sources changes with them.
    readers = [Path(__file__), Path(__file__).with_name("docstrings.py")]
    slot = cache.Slot.of("pydocs", root, [*files, root / TOPICS_FILE, *readers])
    kept = slot.read()
    if kept is not None:
        return _Documents(kept["documents"], kept["notes"])
    made = _parse(root, files)
    slot.write(made._asdict())
    return made


def _no_sources(root: Path, found: str) -> DataError:
    return DataError(
        "the source files of the standard library are needed",
        found,
        where=f"pydocs: {root}",
        hint="Use a Python that ships its library as .py files.",
    )


def _parse(root: Path, files: list[Path]) -> _Documents:
    notes: list[str] = []
    topics = _read_topics(root / TOPICS_FILE)
    if not topics:
        notes.append(f"no language-reference topics: {TOPICS_FILE} is missing or holds none")
    parts = _sections(topics)
    if parts:
        notes.append(
            f"{len(parts)} topics left out: each is a section of a longer one that holds its every line"
            f" ({_some(f'{part} in {whole}' for part, whole in parts.items())})"
        )
    walk = read_docstrings(root, files)
    if walk.unparsable:
        notes.append(f"{len(walk.unparsable)} source files do not parse: {_some(iter(walk.unparsable))}")
    if walk.repeated:
        notes.append(f"{walk.repeated} docstrings left out: their names were documented before")
    whole_topics = [_topic(name, text) for name, text in topics.items() if name not in parts]
    return _Documents(whole_topics + walk.documents, notes)


def _some(names: Iterator[str]) -> str:
    shown = list(names)
    return ", ".join(shown[:_SHOWN]) + (", …" if len(shown) > _SHOWN else "")


def _read_topics(path: Path) -> dict[str, str]:
    """The dictionary that the topics module assigns, by name; empty when there is none."""
    try:
        tree = ast.parse(path.read_bytes())
        values = [ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign)]
    except (OSError, SyntaxError, ValueError):
        return {}
    return {
        str(name): str(text).strip()
        for value in values
        if isinstance(value, dict)
        for name, text in sorted(value.items())
        if str(text).strip()
    }


def _sections(topics: dict[str, str]) -> dict[str, str]:
    """Topics that stand wholly inside a longer one, with the longest that holds them.

    With both in the collection a supporting sentence would stand in two documents, and a search
    that delivers it from the other one would count as a loss.
    """
    lines = {name: _lines(text) for name, text in topics.items()}
    by_length = sorted(topics, key=lambda name: (len(topics[name]), name), reverse=True)
    parts: dict[str, str] = {}
    for position, part in enumerate(by_length):
        whole = next((name for name in by_length[:position] if lines[part] <= lines[name]), None)
        if whole is not None:
            parts[part] = whole
    return dict(sorted(parts.items()))


def _lines(text: str) -> frozenset[str]:
    """The lines of a topic without the underlines of headings, which depend on the heading's level."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return frozenset(line for line in lines if line and not _UNDERLINE.fullmatch(line))


def _topic(name: str, text: str) -> Record:
    return {
        "docno": f"topic/{name}",
        "title": text.splitlines()[0],
        "text": text,
        "kind": "topic",
        "module": "",
        "package": "",
        "public": True,
        "line": 1,
        "n_chars": len(text),
    }


def _shipped() -> Traversable:
    # Beside the package first, so that a checkout never reads the data of an older installation.
    beside = Path(__file__).resolve().parents[2] / "data" / "pydocs" / "questions.jsonl"
    return beside if beside.is_file() else resources.files("searchops_data") / "pydocs" / "questions.jsonl"


def _read_questions(path: Traversable) -> list[Record]:
    questions: list[Record] = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError("a readable questions file is needed", str(error), where=str(path)) from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            questions.append(_question(line, f"{path}:{number}"))
    return questions


def _question(line: str, where: str) -> Record:
    try:
        question = json.loads(line)
        evidence = [(e["docno"], e["quote"], e.get("occurrence", 1)) for e in question["evidence"]]
        kept = {name: question[name] for name in ("qid", "query", "answer", "hops", "kind")}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            "a JSON object with qid, query, answer, hops, kind and evidence [{docno, quote}] is needed",
            f"{type(error).__name__}: {error}",
            where=where,
        ) from None
    if not evidence:
        raise DataError("one supporting quotation or more is needed", "none", where=where)
    return {**kept, "evidence": evidence}


def _located(questions: list[Record], documents: list[Record]) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """The questions whose quotations are all there, the places of these, and notes on the rest."""
    texts = {document["docno"]: document["text"] for document in documents}
    topics: list[Record] = []
    evidence: list[Record] = []
    notes: list[str] = []
    for question in questions:
        labels, gone = _labels(question, texts)
        notes += gone
        if not gone:
            topics.append({name: value for name, value in question.items() if name != "evidence"})
            evidence += labels
    return (
        pd.DataFrame(topics, columns=["qid", "query", "answer", "hops", "kind"]),
        pd.DataFrame(evidence, columns=["qid", "docno", "start", "end", "text"]),
        notes,
    )


def _labels(question: Record, texts: dict[str, str]) -> tuple[list[Record], list[str]]:
    labels: list[Record] = []
    gone: list[str] = []
    qid = question["qid"]
    for docno, quote, occurrence in question["evidence"]:
        text = texts.get(docno)
        place = None if text is None else locate(quote, text, occurrence)
        if text is None:
            gone.append(f"question {qid} left out: its document {docno} is not in this Python's pydocs")
        elif place is None:
            gone.append(f"question {qid} left out: {docno} does not hold its quotation {quote!r}")
        else:
            start, end = place
            labels.append({"qid": qid, "docno": docno, "start": start, "end": end, "text": text[start:end]})
    return labels, gone
