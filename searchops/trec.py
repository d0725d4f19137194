"""TREC files: runs, qrels and topics, read as trec_eval reads them, into PyTerrier's columns.

Fields are separated by ASCII white space, a line that starts with `#` is a comment, blank lines are
skipped, and what follows a run's tag is ignored. Unlike trec_eval, a number that is none is an error
here, never a zero.

Source: trec_eval, get_trec_results.c and get_qrels.c.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from searchops.errors import DataError
from searchops.frames import Record, frame_to_groups, groups_to_records, ranked, records_to_frame

__all__ = ["read_qrels", "read_run", "read_topics", "write_qrels", "write_run"]

Path_: TypeAlias = str | PathLike[str]

RUN_COLUMNS = ("qid", "docno", "rank", "score", "name")
QRELS_COLUMNS = ("qid", "docno", "label")
TOPIC_FIELDS = ("title", "desc", "narr")


def read_run(path: Path_) -> pd.DataFrame:
    """A run: `qid, docno, rank, score, name` (the run's tag), in rank order within each qid.

    The rank field is ignored, as trec_eval ignores it: `rank` follows from the scores (from 0;
    ties by docno, descending).

    Raises:
        DataError: The file is not there, a line has fewer than six fields or a score that is no
            number, or a document comes twice for one qid.
    """
    rows: list[Record] = []
    seen: dict[tuple[str, str], int] = {}
    for number, line in _lines(path):
        fields = line.split()
        if len(fields) < 6:
            raise _malformed(path, number, "six fields (qid Q0 docno rank score tag) are needed", line)
        qid, docno, score, name = (fields[i].decode() for i in (0, 2, 4, 5))
        _once(seen, (qid, docno), path, number)
        rows.append({"qid": qid, "docno": docno, "score": _score(score, path, number), "name": name})
    groups = frame_to_groups(records_to_frame(rows, ("qid", "docno", "score", "name")))
    ordered = [group._replace(rows=ranked(group.rows)) for group in groups]
    return records_to_frame(groups_to_records(ordered), RUN_COLUMNS)[list(RUN_COLUMNS)]


def write_run(frame: pd.DataFrame, path: Path_, name: str = "searchops") -> None:
    """Writes `qid, docno, score` as a run, each qid's documents in trec_eval's order.

    Scores are written so that reading gives the same float again.

    Raises:
        DataError: A qid, docno or name cannot stand in a TREC file (white space), a score is no
            number, or a document comes twice for one qid.
        FrameError: A column is missing.
    """
    _check_field(name, "run name", path)
    lines: list[str] = []
    for group in frame_to_groups(frame, where="write_run"):
        _check_field(group.qid, "qid", path)
        seen: set[str] = set()
        for row in ranked(group.rows, where="write_run"):
            docno = _check_field(row["docno"], "docno", path)
            if docno in seen:
                raise DataError(
                    "every document once per qid is needed",
                    f"docno {docno!r} twice for qid {group.qid!r}",
                    where=str(path),
                    hint="Keep one row a document, for example with Dedupe('docno').",
                )
            seen.add(docno)
            lines.append(f"{group.qid} Q0 {docno} {row['rank']} {float(row['score'])!r} {name}\n")
    Path(path).write_text("".join(lines), encoding="utf-8", newline="\n")


def read_qrels(path: Path_) -> pd.DataFrame:
    """Judgements: `qid, docno, label`, in the order of the file.

    Raises:
        DataError: The file is not there, a line has not four fields or a label that is no whole
            number, or a document is judged twice for one qid.
    """
    rows: list[Record] = []
    seen: dict[tuple[str, str], int] = {}
    for number, line in _lines(path):
        fields = line.split()
        if len(fields) != 4:
            raise _malformed(path, number, "four fields (qid 0 docno label) are needed", line)
        qid, docno, label = (fields[i].decode() for i in (0, 2, 3))
        _once(seen, (qid, docno), path, number)
        if not re.fullmatch(r"[-+]?[0-9]{1,18}", label):
            raise _malformed(path, number, "a label that is a whole number is needed", fields[3])
        rows.append({"qid": qid, "docno": docno, "label": int(label)})
    return _typed(records_to_frame(rows, QRELS_COLUMNS), "label", "int64")


def write_qrels(frame: pd.DataFrame, path: Path_) -> None:
    """Writes `qid, docno, label` as qrels, in the frame's order.

    Raises:
        DataError: A qid or docno cannot stand in a TREC file (white space).
        FrameError: The column qid is missing.
    """
    lines: list[str] = []
    for row in groups_to_records(frame_to_groups(frame, where="write_qrels")):
        qid, docno = _check_field(row["qid"], "qid", path), _check_field(row["docno"], "docno", path)
        lines.append(f"{qid} 0 {docno} {row['label']}\n")
    Path(path).write_text("".join(lines), encoding="utf-8", newline="\n")


def read_topics(path: Path_, field: str = "title") -> pd.DataFrame:
    r"""Topics: `qid, query`, from lines of `qid TAB query` or from TREC `<top>` entries.

    Args:
        path: The file. Entries are recognised by a `<top>` in front.
        field: Which field of `<top>` entries is the query: title, desc or narr. The other fields
            stay as columns.

    Raises:
        DataError: The file is not there, an entry or line lacks its id or query, or an id comes
            twice.
    """
    text = b"\n".join(_file_lines(path))
    if re.match(rb"\s*(?:<\?xml[^>]*>\s*)?(?:<\w+>\s*)?<top>", text, re.IGNORECASE):
        rows = list(_top_entries(text.decode(), path, field))
    else:
        rows = list(_topic_lines(path))
    seen: dict[tuple[str, str], int] = {}
    for row in rows:
        _once(seen, (row["qid"], ""), path, row.pop("_line"))
    return records_to_frame(rows, ("qid", "query"))


def _topic_lines(path: Path_) -> Iterator[Record]:
    for number, line in _lines(path, comments=False):
        qid, tab, query = line.decode().partition("\t")
        if not (tab and qid.strip() and query.strip()):
            raise _malformed(path, number, "a line 'qid TAB query' is needed", line)
        yield {"qid": qid.strip(), "query": query.strip(), "_line": number}


def _top_entries(text: str, path: Path_, field: str) -> Iterator[Record]:
    if field not in TOPIC_FIELDS:
        raise DataError("a field that is title, desc or narr is needed", repr(field), where="read_topics")
    for entry in re.finditer(r"<top>(.*?)(?:</top>|(?=<top>)|\Z)", text, re.DOTALL | re.IGNORECASE):
        number = text.count("\n", 0, entry.start()) + 1
        found = {
            tag.lower(): _field_text(value)
            for tag, value in re.findall(r"<(num|title|desc|narr)>(.*?)(?=<|\Z)", entry[1], re.DOTALL | re.IGNORECASE)
        }
        if not (found.get("num") and found.get(field)):
            raise _malformed(path, number, f"a topic with <num> and <{field}> is needed", entry[0].encode()[:60])
        rest = {name: found[name] for name in TOPIC_FIELDS if name in found and name != field}
        yield {"qid": found["num"], "query": found[field], **rest, "_line": number}


def _field_text(value: str) -> str:
    """A field without its conventional first word ("Number:") and with single spaces."""
    text = re.sub(r"^\s*(?:Number|Topic|Description|Narrative)\s*:", "", value)
    return " ".join(text.split())


def _lines(path: Path_, *, comments: bool = True) -> Iterator[tuple[int, bytes]]:
    """The numbered lines that say something.

    They are split as bytes: only ASCII white space separates fields, as in C.
    """
    for number, line in enumerate(_file_lines(path), start=1):
        stripped = line.strip()
        if stripped and not (comments and stripped.startswith(b"#")):
            yield number, stripped


def _file_lines(path: Path_) -> list[bytes]:
    try:
        lines = Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as error:
        raise DataError("a file that can be read is needed", str(error), where=str(path)) from error
    for number, line in enumerate(lines, start=1):
        try:
            line.decode()
        except UnicodeDecodeError as error:
            raise _malformed(path, number, "UTF-8 is needed", line) from error
    return lines


def _once(seen: dict[tuple[str, str], int], key: tuple[str, str], path: Path_, number: int) -> None:
    before = seen.setdefault(key, number)
    if before != number:
        qid, docno = key
        what = f"docno {docno!r} for qid {qid!r}" if docno else f"qid {qid!r}"
        raise DataError(
            "every entry once is needed", f"{what} again (first in line {before})", where=f"{path}:{number}"
        )


def _score(text: str, path: Path_, number: int) -> float:
    try:
        score = float(text)
        if not math.isnan(score) and "_" not in text:
            return score
    except ValueError:
        pass
    raise _malformed(path, number, "a score that is a number is needed", text.encode())


def _malformed(path: Path_, number: int, needed: str, line: bytes) -> DataError:
    found = line.decode(errors="backslashreplace")
    return DataError(needed, repr(found if len(found) <= 80 else found[:77] + "..."), where=f"{path}:{number}")


def _check_field(value: Any, what: str, path: Path_) -> str:
    text = str(value)
    if len(text.split()) != 1 or text.strip() != text or (what == "qid" and text.startswith("#")):
        raise DataError(
            f"a {what} without white space (and no qid that starts a comment) is needed in a TREC file",
            repr(text),
            where=str(path),
            hint="Give such ids another form first, for example urllib.parse.quote(docno).",
        )
    return text


def _typed(frame: pd.DataFrame, column: str, dtype: Any) -> pd.DataFrame:
    return frame.assign(**{column: frame[column].astype(dtype)})
