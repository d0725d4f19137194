"""The documents of an index: an Arrow file, mapped into memory, and a bounded cache of records."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date
from itertools import accumulate
from math import isnan
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from searchops.errors import DataError
from searchops.frames import Record
from searchops.scorers.statistics import Analyzer, TermStatistics

__all__ = ["DOCUMENTS", "DocumentStore"]

DOCUMENTS = "documents.arrow"
_ENCODING = b"searchops.encoding"
_BLOCK_ROWS = 8192
_CACHE_BYTES = 256 * 2**20
_RECORD_BYTES = 512
"""What a record costs beside its strings: the dict, its keys' slots and small values."""
_SHOWN = 3
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class DocumentStore:
    """All columns of all documents, in the order of the collection; safe to use from many threads.

    Records handed out are shared with the cache and among callers: do not change them. A missing
    value of a metadata column comes back as None.

    Args:
        folder: The folder `build` wrote to.
        cache_bytes: About how much memory the cached records may take.

    Raises:
        DataError: The documents are missing or damaged.

    Example:
        >>> import tempfile
        >>> frame = pd.DataFrame({"docno": ["a/1", "b"], "text": ["red fox", None], "year": [2001, 2002]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     facts = DocumentStore.build(frame, folder)
        ...     store = DocumentStore(folder)
        ...     facts, len(store), store.fetch(["b", "a/1"])[0]
        ({'empty_texts': 1, 'lone_surrogates': 0}, 2, {'docno': 'b', 'text': '', 'year': 2002})
    """

    def __init__(self, folder: str | os.PathLike[str], *, cache_bytes: int = _CACHE_BYTES) -> None:
        self.folder = Path(folder)
        self.cache_bytes = cache_bytes
        self._file = self.folder / DOCUMENTS
        self._batches, schema = _open(self._file)
        self.columns: tuple[str, ...] = tuple(schema.names)
        self._json = tuple(_is_json(schema.field(name)) for name in schema.names)
        self._starts: list[int] = [0, *accumulate(batch.num_rows for batch in self._batches)]
        self._lock = threading.RLock()
        self._rows: dict[str, int] | None = None
        self._cache: dict[str, Record] = {}
        self._cached_bytes = 0
        self._statistics: dict[Analyzer, TermStatistics] = {}

    @staticmethod
    def build(documents: pd.DataFrame, folder: str | os.PathLike[str]) -> dict[str, int]:
        """Writes the documents into a folder; returns what was mended on the way.

        A missing text becomes "" (`empty_texts` counts these and the empty ones); half a surrogate
        pair, which no file can hold, becomes U+FFFD, so that offsets stay (`lone_surrogates` counts
        the values).

        Raises:
            DataError: A column `docno` or `text` is missing, a docno is missing, no text or there
                twice, or a value is nothing JSON knows.
        """
        file = Path(folder) / DOCUMENTS
        names = _ordered_columns(documents, where=str(file))
        facts = {"empty_texts": 0, "lone_surrogates": 0}
        arrays, schema = [], []
        for name in names:
            values = [_plain(value) for value in documents[name].tolist()]
            if name == "docno":
                _check_docnos(values)
            elif name in ("title", "text"):
                values = ["" if value is None else str(value) for value in values]
            if name == "text":
                facts["empty_texts"] = values.count("")
            array, encoding, mended = _arrow(values, name)
            facts["lone_surrogates"] += mended
            arrays.append(array)
            schema.append(pa.field(name, array.type, metadata={_ENCODING: encoding}))
        table = pa.Table.from_arrays(arrays, schema=pa.schema(schema))
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=_BLOCK_ROWS)
        return facts

    def __len__(self) -> int:
        """How many documents there are."""
        return self._starts[-1]

    def __contains__(self, docno: object) -> bool:
        """Whether there is a document of that docno."""
        return docno in self._row_map()

    def docnos(self) -> list[str]:
        """All docnos, in the order of the collection."""
        return list(self._row_map())

    def texts(self, with_title: bool = False) -> Iterator[str]:
        """All texts in order; with `with_title`, each behind its title and a newline."""
        titled = with_title and "title" in self.columns
        for batch in self._batches:
            texts = batch.column("text").to_pylist()
            if titled:
                titles = batch.column("title").to_pylist()
                yield from (f"{title}\n{text}" for title, text in zip(titles, texts, strict=True))
            else:
                yield from texts

    def fetch(self, docnos: Sequence[str]) -> list[Record]:
        """The documents in the order asked for; their records are shared, so do not change them.

        Raises:
            DataError: A docno is not in the collection; the first few are named.
        """
        get = self._cache.get
        records = [get(docno) for docno in docnos]
        if None not in records:
            return records  # type: ignore[return-value]
        return self._fill(docnos, records)

    def statistics(self, analyzer: Analyzer) -> TermStatistics:
        """Document frequencies and lengths of the texts, counted once and kept beside the store."""
        with self._lock:
            if analyzer not in self._statistics:
                self._statistics[analyzer] = self._load_statistics(analyzer)
            return self._statistics[analyzer]

    def _load_statistics(self, analyzer: Analyzer) -> TermStatistics:
        key = hashlib.sha256(repr(analyzer).encode()).hexdigest()[:16]
        file = self.folder / f"statistics-{key}.json"
        with suppress(DataError):  # not there yet, or damaged: the texts are what counts
            kept = TermStatistics.load(file)
            if kept.analyzer == analyzer and kept.n_documents == len(self):
                return kept
        counted = TermStatistics.from_texts(self.texts(), analyzer)
        with suppress(OSError):  # a folder that may not be written: this process keeps its own
            counted.save(file)
        return counted

    def _row_map(self) -> dict[str, int]:
        if self._rows is None:
            with self._lock:
                if self._rows is None:
                    names = (name for batch in self._batches for name in batch.column("docno").to_pylist())
                    self._rows = {name: row for row, name in enumerate(names)}
        return self._rows

    def _fill(self, docnos: Sequence[str], records: list[Record | None]) -> list[Record]:
        rows = self._row_map()
        unknown = [docno for docno in docnos if docno not in rows]
        if unknown:
            raise DataError("a docno of the collection is needed", _few(unknown), where=str(self._file))
        filled = []
        with self._lock:
            for docno, record in zip(docnos, records, strict=True):
                known = record or self._cache.get(docno)
                filled.append(known if known is not None else self._keep(docno, self._read(rows[docno])))
        return filled

    def _keep(self, docno: str, record: Record) -> Record:
        # Oldest out first: a hit then changes nothing, so that readers need no lock.
        self._cache[docno] = record
        self._cached_bytes += _size(record)
        while self._cached_bytes > self.cache_bytes and self._cache:
            oldest = next(iter(self._cache))
            self._cached_bytes -= _size(self._cache.pop(oldest))
        return record

    def _read(self, row: int) -> Record:
        at = bisect_right(self._starts, row) - 1
        batch, offset = self._batches[at], row - self._starts[at]
        record: Record = {}
        for name, is_json, column in zip(self.columns, self._json, batch.columns, strict=True):
            value = column[offset].as_py()
            record[name] = self._decode(value, name) if is_json and value is not None else value
        return record

    def _decode(self, value: str, name: str) -> Any:
        try:
            return json.loads(value)
        except ValueError as error:
            raise DataError(f"JSON in column {name!r} is needed", str(error), where=str(self._file)) from error


def _open(file: Path) -> tuple[list[pa.RecordBatch], pa.Schema]:
    """The batches, mapped and checked: damaged offsets would make Arrow read outside of the file."""
    try:
        with pa.memory_map(str(file)) as source, pa.ipc.open_file(source) as reader:
            batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
            schema = reader.schema
        for batch in batches:
            batch.validate(full=True)
        if not {"docno", "text"} <= set(schema.names):
            raise pa.ArrowInvalid(f"columns {schema.names}")
    except FileNotFoundError:
        raise DataError("the documents of an index are needed", "no such file", where=str(file)) from None
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise DataError(
            "a whole Arrow file of documents is needed",
            f"{type(error).__name__}: {str(error)[:200]}",
            where=str(file),
            hint="It is damaged: build the index anew with overwrite=True.",
        ) from error
    return batches, schema


def _is_json(field: pa.Field) -> bool:
    return (field.metadata or {}).get(_ENCODING) == b"json"


def _ordered_columns(documents: pd.DataFrame, where: str) -> list[str]:
    names = list(documents.columns)
    missing = [name for name in ("docno", "text") if name not in names]
    if missing:
        shown = ", ".join(map(str, names)) or "none"
        raise DataError(f"documents with a column {missing[0]!r} are needed", f"columns {shown}", where=where)
    first = [name for name in ("docno", "title", "text") if name in names]
    return first + [name for name in names if name not in first]


def _check_docnos(docnos: list[Any]) -> None:
    odd = [docno for docno in docnos if not isinstance(docno, str) or not docno]
    if odd:
        raise DataError("a docno that is text is needed for each document", _few(odd), where="documents")
    if len(set(docnos)) != len(docnos):
        seen: set[str] = set()
        doubled = dict.fromkeys(docno for docno in docnos if docno in seen or seen.add(docno))  # type: ignore[func-returns-value]
        raise DataError("docnos that differ are needed", f"more than one {_few(list(doubled))}", where="documents")


def _few(values: Sequence[Any]) -> str:
    shown = ", ".join(repr(value)[:80] for value in values[:_SHOWN])
    return shown + (f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else "")


def _plain(value: Any) -> Any:
    """The value as JSON knows it; what stands for a missing one becomes None."""
    if isinstance(value, str):
        return value
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and isnan(value)):
        return None
    if isinstance(value, date):  # datetimes and pandas' timestamps are dates too
        return value.isoformat()
    return value.tolist() if hasattr(value, "tolist") else value


def _arrow(values: list[Any], name: str) -> tuple[pa.Array, bytes, int]:
    """The values as an Arrow array, how they are encoded in it, and how many were mended."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {str}:
        try:
            return pa.array(values, pa.large_string()), b"plain", 0
        except UnicodeEncodeError:
            odd = sum(1 for value in values if value and _LONE_SURROGATE.search(value))
            mended = [value and _LONE_SURROGATE.sub("\ufffd", value) for value in values]
            return pa.array(mended, pa.large_string()), b"plain", odd
    for kind, arrow_type in ((bool, pa.bool_()), (int, pa.int64()), (float, pa.float64())):
        if kinds == {kind}:
            with suppress(OverflowError, pa.ArrowInvalid):
                return pa.array(values, arrow_type), b"plain", 0
    try:
        encoded = [None if value is None else json.dumps(value, default=_plain_or_fail) for value in values]
    except (TypeError, ValueError) as error:
        raise DataError("metadata that JSON can hold is needed", str(error), where=f"column {name!r}") from error
    return pa.array(encoded, pa.large_string()), b"json", 0


def _plain_or_fail(value: Any) -> Any:
    plain = _plain(value)
    if plain is value:
        raise TypeError(f"a value of type {type(value).__name__}")
    return plain


def _size(record: Record) -> int:
    return _RECORD_BYTES + sum(sys.getsizeof(value) for value in record.values() if isinstance(value, str))
