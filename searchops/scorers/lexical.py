"""BM25 on any texts with the collection's statistics: the relevance scorer that needs no model."""

from __future__ import annotations

import copy
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from searchops.errors import FrameError, SpecError
from searchops.scorers.base import Scorer, require_texts
from searchops.scorers.statistics import Analyzer, TermStatistics

__all__ = ["Lexical"]

_TERMS_KEPT = 1_000_000


class _Terms(NamedTuple):
    counts: dict[str, int]
    length: int


class _TermCache:
    """Text -> its terms, the texts used last kept: two generations, so a hit needs no lock.

    When the young generation holds half of the terms allowed, it becomes the old one; what is used
    again moves back. This is least-recently-used to within a generation.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._young: dict[str, _Terms] = {}
        self._old: dict[str, _Terms] = {}
        self._weight = 0
        self._lock = threading.Lock()

    def __call__(self, text: str) -> _Terms:
        found = self._young.get(text)
        if found is None:
            found = self._old.get(text) or self._read(text)
            with self._lock:
                self._keep(text, found)
        return found

    def _read(self, text: str) -> _Terms:
        tokens = self._analyzer.tokens(text)
        return _Terms(dict(Counter(tokens)), len(tokens))

    def _keep(self, text: str, terms: _Terms) -> None:
        if self._weight > _TERMS_KEPT // 2:
            self._old, self._young, self._weight = self._young, {}, 0
        if text not in self._young:
            self._young[text] = terms
            self._weight += len(terms.counts) + 1


@lru_cache(maxsize=4)
def _term_cache(analyzer: Analyzer) -> _TermCache:
    return _TermCache(analyzer)


class Lexical(Scorer):
    """BM25 of each text for its query, without an index over the texts.

    The formula is Lucene's: the sum over the query's terms (a repeated term counts as often as it
    stands there) of idf * tf / (tf + k1 * (1 - b + b * length / average length)). Lengths are exact,
    where Lucene rounds them to one byte. A text without a query term scores 0.

    Args:
        statistics: Where rarity and average length come from. None: the index of the pipeline the
            scorer stands in. "candidates": the texts scored for the same query in the same call.
            An engine or a `TermStatistics`: that.
        k1: Saturation of repeated terms.
        b: Strength of length normalisation.
        analyzer: What makes terms of a text.
        average_length: What a text's length is measured against. "statistics": the average document
            of the collection, as in BM25; passages are then all short, so length hardly matters among
            them and repeated terms saturate early. "candidates": the average text scored for the same
            query in the same call, which normalises among passages but makes a score depend on the
            pool. A number: that many terms.

    Raises:
        SpecError: An argument is out of range.

    Source: Robertson and Zaragoza 2009, The Probabilistic Relevance Framework; Lucene, BM25Similarity.

    Example:
        >>> scorer = Lexical("candidates")
        >>> [round(s, 3) for s in scorer.score([("red fox", "a red fox"), ("red fox", "a red hen"),
        ...                                     ("red fox", "")])]
        [0.698, 0.226, 0.0]
    """

    def __init__(
        self,
        statistics: Any = None,
        k1: float = 0.9,
        b: float = 0.4,
        analyzer: Analyzer = Analyzer(),  # noqa: B008  (frozen, and shown in the signature)
        average_length: str | float = "statistics",
    ) -> None:
        self.statistics = statistics
        self.k1 = _number(k1, "k1", lowest=0.0)
        self.b = _number(b, "b", lowest=0.0, highest=1.0)
        self.analyzer = analyzer
        self.average_length = average_length
        if average_length not in ("statistics", "candidates"):
            self.average_length = _number(average_length, "average_length", lowest=1e-9)
        self._check_statistics()
        self._engine: Any = None

    def _check_statistics(self) -> None:
        given = self.statistics
        if isinstance(given, TermStatistics) and given.analyzer != self.analyzer:
            raise SpecError(
                f"statistics made by the scorer's analyzer, {self.analyzer!r}, are needed",
                repr(given.analyzer),
                where="Lexical",
                hint="Give Lexical(analyzer=statistics.analyzer).",
            )
        usable = given is None or given == "candidates" or callable(getattr(given, "statistics", None))
        if not usable and not isinstance(given, TermStatistics):
            raise SpecError(
                "statistics as None, 'candidates', an engine or TermStatistics are needed",
                repr(given),
                where="Lexical",
            )

    def bind(self, engine: Any) -> Lexical:
        """A copy that takes the engine's statistics, equal to this scorer; itself where nothing is open."""
        if self.statistics is not None or engine is None:
            return self
        bound = copy.copy(self)
        bound._engine = engine
        return bound

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """BM25 of each pair.

        Raises:
            FrameError: A query or text is no string, or the scorer has no statistics.
        """
        require_texts(pairs, where="Lexical")
        terms_of = _term_cache(self.analyzer)
        places: dict[str, list[int]] = {}
        for place, (query, _) in enumerate(pairs):
            places.setdefault(query, []).append(place)
        scores = [0.0] * len(pairs)
        for query, ours in places.items():
            texts = [terms_of(pairs[place][1]) for place in ours]
            for place, score in zip(ours, self._score_one(terms_of(query), texts), strict=True):
                scores[place] = score
        return scores

    def _score_one(self, query: _Terms, texts: list[_Terms]) -> list[float]:
        if not query.counts:
            return [0.0] * len(texts)
        statistics = self._statistics(texts)
        weights = [(term, times * statistics.idf(term)) for term, times in query.counts.items()]
        flat = self.k1 * (1.0 - self.b)
        slope = self.k1 * self.b / (self._average(statistics, texts) or 1.0)
        scores = []
        for counts, length in texts:
            norm = flat + slope * length
            score = 0.0
            for term, weight in weights:
                times = counts.get(term)
                if times is not None:
                    score += weight * times / (times + norm)
            scores.append(score)
        return scores

    def _average(self, statistics: TermStatistics, texts: list[_Terms]) -> float:
        if isinstance(self.average_length, float):
            return self.average_length
        if self.average_length == "candidates":
            return sum(text.length for text in texts) / len(texts)
        return statistics.average_length

    def _statistics(self, texts: Iterable[_Terms]) -> TermStatistics:
        given = self.statistics if self.statistics is not None else self._engine
        if isinstance(given, TermStatistics):
            return given
        if given == "candidates":
            return _of_candidates(texts, self.analyzer)
        if given is None:
            raise FrameError(
                "statistics of a collection are needed",
                "none: no index stands before this scorer",
                where="Lexical",
                hint="Put a Retrieve before it, or give Lexical(index) or Lexical('candidates').",
            )
        found: TermStatistics = given.statistics(self.analyzer)
        return found


def _of_candidates(texts: Iterable[_Terms], analyzer: Analyzer) -> TermStatistics:
    frequencies: Counter[str] = Counter()
    n_documents = total_length = 0
    for counts, length in texts:
        frequencies.update(counts.keys())
        n_documents += 1
        total_length += length
    return TermStatistics(n_documents, total_length, frequencies, analyzer)


def _number(value: Any, name: str, *, lowest: float, highest: float = float("inf")) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not lowest <= value <= highest or value == float("inf"):
        bounds = f"from {lowest:g} to {highest:g}" if highest != float("inf") else f"of at least {lowest:g}"
        raise SpecError(f"{name} must be a number {bounds}", repr(value), where="Lexical")
    return float(value)
