"""Words of a text and how rare they are: the analyzer and the statistics lexical scoring stands on."""

from __future__ import annotations

import json
import math
import os
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from searchops.errors import DataError, SpecError, did_you_mean, sentence

__all__ = ["Analyzer", "TermStatistics"]

_LUCENE = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there "
    "these they this to was will with"
)
LUCENE_STOPWORDS = frozenset(_LUCENE.split(" "))
"""Source: Lucene, EnglishAnalyzer.ENGLISH_STOP_WORDS_SET (33 words)."""

STOPWORDS: Mapping[str, frozenset[str]] = {"lucene": LUCENE_STOPWORDS, "none": frozenset()}
STEMMERS = ("porter", "english")
_STEMS_KEPT = 200_000
_FORMAT = 1

_POSSESSIVE = re.compile(r"(?<=\w)['\u2019]s\b")
_ASCII_WORD = re.compile(r"\w+(?:'\w+)*", re.ASCII)


@lru_cache(maxsize=1)
def _unicode_word() -> Any:
    # `re` leaves combining marks out of \w and so breaks Indic and decomposed words; `regex` does not.
    # Han and hiragana have no spaces: one character, one token, as Lucene's StandardTokenizer has it.
    import regex

    spaced = r"[\w--[\p{Han}\p{Hiragana}]]+"
    return regex.compile(rf"[\p{{Han}}\p{{Hiragana}}]|{spaced}(?:['\u2019]{spaced})*", regex.V1)


class _Stems(dict[str, str]):
    """Word -> stem ('' for a stopword), worked out once a process; bounded."""

    def __init__(self, stopwords: frozenset[str], stemmer: str | None) -> None:
        super().__init__()
        self._stopwords = stopwords
        self._lock = threading.Lock()
        self._stem: Any = None
        if stemmer is not None:
            import Stemmer

            self._stem = Stemmer.Stemmer(stemmer, 0).stemWord

    def __missing__(self, word: str) -> str:
        stem = word
        if word in self._stopwords:
            stem = ""
        elif self._stem is not None:
            with self._lock:  # a Snowball stemmer is not safe to share between threads
                stem = self._stem(word)
        if len(self) >= _STEMS_KEPT:
            self.clear()
        self[word] = stem
        return stem


@lru_cache(maxsize=16)
def _stems(stopwords: str, stemmer: str | None) -> _Stems:
    return _Stems(STOPWORDS[stopwords], stemmer)


@dataclass(frozen=True)
class Analyzer:
    """Turns a text into index terms: lowercase words, without stopwords, stemmed.

    Words are runs of letters, digits, marks and underscores of any script; an apostrophe inside a word
    belongs to it and a possessive 's is dropped; Han and hiragana give one token a character. Text beyond
    ASCII is brought to NFKC first, so composed and decomposed letters agree. Unlike Lucene's, a dotted
    name is its parts.

    Args:
        stopwords: "lucene" (the 33 English words of Lucene's EnglishAnalyzer) or "none".
        stemmer: "porter" (Lucene's English stemmer), "english" (Porter 2) or None.

    Raises:
        SpecError: No such stopword list or stemmer.

    Example:
        >>> Analyzer().tokens("The runner's dogs are running")
        ['runner', 'dog', 'run']
        >>> Analyzer(stopwords="none", stemmer=None).tokens("os.path.join(self.my_dir)")
        ['os', 'path', 'join', 'self', 'my_dir']
    """

    stopwords: str = "lucene"
    stemmer: str | None = "porter"

    def __post_init__(self) -> None:
        if self.stopwords not in STOPWORDS:
            raise SpecError("a known stopword list is needed", repr(self.stopwords), where="Analyzer",
                            hint=sentence(did_you_mean(str(self.stopwords), STOPWORDS)))  # fmt: skip
        if self.stemmer is not None and self.stemmer not in STEMMERS:
            raise SpecError("a known stemmer or None is needed", repr(self.stemmer), where="Analyzer",
                            hint=sentence(did_you_mean(str(self.stemmer), STEMMERS)))  # fmt: skip

    def tokens(self, text: str) -> list[str]:
        """The index terms of a text, in order, repeats kept."""
        text = text.lower()
        if text.isascii():
            if "'s" in text:
                text = _POSSESSIVE.sub("", text)
            words = _ASCII_WORD.findall(text)
        else:
            text = _POSSESSIVE.sub("", unicodedata.normalize("NFKC", text))
            words = _unicode_word().findall(text)
        return list(filter(None, map(_stems(self.stopwords, self.stemmer).__getitem__, words)))


class TermStatistics:
    """How many documents hold each term, how many there are and how long they are.

    Args:
        n_documents: Documents of the collection, empty ones included.
        total_length: Terms of all documents together.
        frequencies: Term -> number of documents that hold it.
        analyzer: What made the terms.

    Example:
        >>> statistics = TermStatistics.from_texts(["red fox", "red hen red"], Analyzer())
        >>> statistics.document_frequency("red"), statistics.average_length
        (2, 2.5)
        >>> statistics
        TermStatistics(n_documents=2, average_length=2.5, n_terms=3)
    """

    def __init__(self, n_documents: int, total_length: int, frequencies: Mapping[str, int], analyzer: Analyzer) -> None:
        self.n_documents = n_documents
        self.total_length = total_length
        self.analyzer = analyzer
        self._frequencies = dict(frequencies)

    @classmethod
    def from_texts(cls, texts: Iterable[str], analyzer: Analyzer) -> TermStatistics:
        """Counts the texts of a collection, one pass, one text in memory at a time."""
        frequencies: Counter[str] = Counter()
        n_documents = total_length = 0
        for text in texts:
            terms = analyzer.tokens(text)
            n_documents += 1
            total_length += len(terms)
            frequencies.update(set(terms))
        return cls(n_documents, total_length, frequencies, analyzer)

    @property
    def average_length(self) -> float:
        """Terms a document, 0.0 for an empty collection."""
        return self.total_length / self.n_documents if self.n_documents else 0.0

    @property
    def n_terms(self) -> int:
        """Distinct terms of the collection."""
        return len(self._frequencies)

    def document_frequency(self, term: str) -> int:
        """How many documents hold the term (already analyzed)."""
        return self._frequencies.get(term, 0)

    def idf(self, term: str) -> float:
        """Lucene's inverse document frequency: positive, and finite for a term in no document.

        Source: Lucene, BM25Similarity.idf: log(1 + (N - df + .5) / (df + .5)).
        """
        frequency = self._frequencies.get(term, 0)
        return math.log(1.0 + (self.n_documents - frequency + 0.5) / (frequency + 0.5))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes one JSON file; a reader never sees half of it."""
        path = Path(path)
        record = {
            "format": _FORMAT,
            "analyzer": asdict(self.analyzer),
            "n_documents": self.n_documents,
            "total_length": self.total_length,
            "document_frequency": self._frequencies,
        }
        unfinished = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
        try:
            unfinished.write_text(json.dumps(record, ensure_ascii=False), encoding="utf-8")
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TermStatistics:
        """Reads what `save` wrote.

        Raises:
            DataError: The file is missing, damaged or of another format.
        """
        try:
            record = json.loads(Path(path).read_text(encoding="utf-8"))
            if record["format"] != _FORMAT:
                raise ValueError(f"format {record['format']!r}")
            return _from_record(record)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, SpecError) as error:
            raise DataError(
                "a file of term statistics is needed",
                f"{type(error).__name__}: {error}",
                where=str(path),
                hint="Delete it; it is built again from the documents.",
            ) from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TermStatistics):
            return NotImplemented
        return self._key() == other._key() and self._frequencies == other._frequencies

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[int, int, int, Analyzer]:
        return (self.n_documents, self.total_length, self.n_terms, self.analyzer)

    def __repr__(self) -> str:
        shown = f"n_documents={self.n_documents}, average_length={self.average_length:.1f}"
        return f"TermStatistics({shown}, n_terms={self.n_terms})"


def _from_record(record: dict[str, Any]) -> TermStatistics:
    n_documents, total_length = record["n_documents"], record["total_length"]
    frequencies = record["document_frequency"]
    whole = all(isinstance(n, int) and n >= 0 for n in (n_documents, total_length, *frequencies.values()))
    if not whole or any(n > n_documents for n in frequencies.values()):
        raise ValueError("counts that cannot be")
    return TermStatistics(n_documents, total_length, frequencies, Analyzer(**record["analyzer"]))
