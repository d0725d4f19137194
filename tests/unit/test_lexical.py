"""Lexical scoring: BM25 by hand, where statistics come from, and what it refuses."""

from __future__ import annotations

import math
import pickle
import threading
from typing import Any

import pytest

from searchops.errors import FrameError, SpecError
from searchops.scorers import lexical
from searchops.scorers.lexical import Lexical
from searchops.scorers.statistics import Analyzer, TermStatistics

PLAIN = Analyzer(stopwords="none", stemmer=None)
COLLECTION = ["red fox", "red hen red barn", "blue hen", "a b c d e f"]
STATISTICS = TermStatistics.from_texts(COLLECTION, PLAIN)


class TinyEngine:
    """An engine as far as a scorer sees it: statistics of its texts, equal by its name."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def statistics(self, analyzer: Analyzer) -> TermStatistics:
        return TermStatistics.from_texts(self.texts, analyzer)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TinyEngine) and self.texts == other.texts

    def __hash__(self) -> int:
        return hash(tuple(self.texts))

    def __repr__(self) -> str:
        return "TinyEngine()"


def test_a_score_is_bm25_worked_out_by_hand() -> None:
    # N=4, average length (2+4+2+6)/4 = 3.5; df(red)=2, df(hen)=2; "red red hen" has length 3.
    idf = math.log(1 + 2.5 / 2.5)
    norm = 0.9 * (0.6 + 0.4 * 3 / 3.5)
    expected = idf * 2 / (2 + norm) + idf * 1 / (1 + norm)
    assert Lexical(STATISTICS, analyzer=PLAIN).score([("red hen", "red red hen")]) == [pytest.approx(expected)]


def test_a_query_term_said_twice_counts_twice() -> None:
    scorer = Lexical(STATISTICS, analyzer=PLAIN)
    once, twice = scorer.score([("red", "red hen"), ("red red", "red hen")])
    assert twice == pytest.approx(2 * once)


def test_a_term_in_no_document_of_the_collection_counts_most_and_stays_finite() -> None:
    scorer = Lexical(STATISTICS, analyzer=PLAIN)
    known, unknown = scorer.score([("red wolf", "red cat"), ("red wolf", "wolf cat")])
    assert known < unknown < math.inf


@pytest.mark.parametrize("text", ["", "...", "   ", "entirely other words"])
def test_a_text_without_a_query_term_scores_zero(text: str) -> None:
    assert Lexical(STATISTICS, analyzer=PLAIN).score([("red hen", text)]) == [0.0]


def test_a_query_without_terms_scores_every_text_zero() -> None:
    assert Lexical(STATISTICS, analyzer=PLAIN).score([("?!", "red hen"), ("", "")]) == [0.0, 0.0]


def test_no_pairs_are_no_work_even_without_statistics() -> None:
    assert Lexical().score([]) == []


def test_scores_come_in_the_order_of_the_pairs_when_queries_alternate() -> None:
    scorer = Lexical("candidates", analyzer=PLAIN)
    pairs = [("red", "red x"), ("hen", "a hen"), ("red", "no"), ("hen", "hen hen")]
    separate = scorer.score(pairs[0::2]), scorer.score(pairs[1::2])
    assert scorer.score(pairs) == [separate[0][0], separate[1][0], separate[0][1], separate[1][1]]


def test_statistics_of_the_candidates_are_those_of_a_query_s_texts() -> None:
    scorer = Lexical("candidates", analyzer=PLAIN)
    given = Lexical(TermStatistics.from_texts(COLLECTION, PLAIN), analyzer=PLAIN)
    pairs = [("red hen", text) for text in COLLECTION]
    assert scorer.score([*pairs, ("other", "red red red")])[:4] == given.score(pairs)


def test_an_unbound_scorer_says_what_to_do() -> None:
    with pytest.raises(FrameError, match=r"Put a Retrieve before it, or give Lexical\(index\)"):
        Lexical().score([("red", "red")])


def test_a_bound_scorer_equals_the_unbound_one_and_scores_by_the_engine() -> None:
    unbound = Lexical(analyzer=PLAIN)
    bound = unbound.bind(TinyEngine(COLLECTION))
    assert bound == unbound
    assert hash(bound) == hash(unbound)
    assert repr(bound) == repr(unbound)
    pairs = [("red hen", "red hen x")]
    assert bound.score(pairs) == Lexical(STATISTICS, analyzer=PLAIN).score(pairs)
    with pytest.raises(FrameError):
        unbound.score(pairs)


def test_binding_does_not_replace_statistics_that_were_given() -> None:
    pairs = [("red hen", "red hen x")]
    scorer = Lexical(TinyEngine(COLLECTION), analyzer=PLAIN)
    assert scorer.bind(TinyEngine(["x"])).score(pairs) == Lexical(STATISTICS, analyzer=PLAIN).score(pairs)
    assert Lexical().bind(None) == Lexical()


def test_the_average_length_decides_how_hard_long_passages_are_pressed() -> None:
    # The hand norm is k1 * (1 - b + b * length / average); lengths 2 and 6, pool average 4.
    pairs = [("red", "red a"), ("red", "red a b c d e")]
    idf = math.log(1 + 2.5 / 2.5)

    def expected(average: float) -> list[Any]:
        return [pytest.approx(idf / (1 + 0.9 * (0.6 + 0.4 * n / average))) for n in (2, 6)]

    assert Lexical(STATISTICS, analyzer=PLAIN).score(pairs) == expected(3.5)
    assert Lexical(STATISTICS, analyzer=PLAIN, average_length="candidates").score(pairs) == expected(4)
    assert Lexical(STATISTICS, analyzer=PLAIN, average_length=10).score(pairs) == expected(10)


def test_an_empty_collection_gives_finite_scores() -> None:
    empty = TermStatistics.from_texts([], PLAIN)
    (score,) = Lexical(empty, analyzer=PLAIN).score([("red", "red")])
    assert 0 < score < math.inf


def test_repr_shows_only_what_was_changed() -> None:
    assert repr(Lexical()) == "Lexical()"
    assert repr(Lexical("candidates", b=0.75)) == "Lexical(statistics='candidates', b=0.75)"
    assert repr(Lexical(average_length=20)) == "Lexical(average_length=20.0)"


def test_equality_goes_by_arguments() -> None:
    assert Lexical(k1=1) == Lexical(k1=1.0)
    assert Lexical() != Lexical(b=0.5)
    assert Lexical(STATISTICS, analyzer=PLAIN) == Lexical(TermStatistics.from_texts(COLLECTION, PLAIN), analyzer=PLAIN)
    assert Lexical() != "Lexical()"


def test_a_bound_scorer_survives_pickling() -> None:
    bound = Lexical(analyzer=PLAIN).bind(TinyEngine(COLLECTION))
    pairs = [("red hen", "red hen x")]
    assert pickle.loads(pickle.dumps(bound)).score(pairs) == bound.score(pairs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k1": -0.1}, "k1 must be a number of at least 0; found -0.1"),
        ({"k1": math.nan}, "k1 must be"),
        ({"k1": math.inf}, "k1 must be"),
        ({"b": 1.5}, "b must be a number from 0 to 1; found 1.5"),
        ({"b": "high"}, "b must be"),
        ({"k1": True}, "k1 must be"),
        ({"average_length": 0}, "average_length must be"),
        ({"average_length": "pool"}, "average_length must be"),
        ({"statistics": "index"}, "statistics as None"),
        ({"statistics": Lexical()}, "statistics as None"),
        ({"statistics": STATISTICS}, r"Lexical\(analyzer=statistics.analyzer\)"),
    ],
)
def test_an_argument_out_of_range_is_refused_when_given(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Lexical(**arguments)


@pytest.mark.parametrize(
    ("pair", "message"), [(("q", None), "a text that is a string"), ((math.nan, "t"), "a query that is a string")]
)
def test_a_missing_text_or_query_is_an_error_that_says_which_pair(pair: Any, message: str) -> None:
    with pytest.raises(FrameError, match=f"{message}.*pair 1"):
        Lexical("candidates").score([("red", "red"), pair])


def test_a_full_term_cache_forgets_and_scores_on_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [("red hen", f"red hen number {i} {'pad ' * (i % 5)}") for i in range(200)] * 2
    expected = Lexical("candidates", analyzer=PLAIN).score(pairs)
    monkeypatch.setattr(lexical, "_TERMS_KEPT", 40)
    lexical._term_cache.cache_clear()
    assert Lexical("candidates", analyzer=PLAIN).score(pairs) == expected
    cache = lexical._term_cache(PLAIN)
    assert 0 < len(cache._young) + len(cache._old) < 20


def test_a_text_used_again_outlives_a_generation_of_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexical, "_TERMS_KEPT", 40)
    cache = lexical._TermCache(PLAIN)
    kept = cache("the one used again")
    for i in range(50):
        cache(f"passing text {i}")
        assert cache("the one used again") is kept


def test_threads_that_share_a_scorer_get_its_scores() -> None:
    scorer = Lexical(STATISTICS, analyzer=PLAIN)
    pairs = [("red hen barn", f"red {'hen ' * (i % 7)} barn {i}") for i in range(300)]
    lexical._term_cache.cache_clear()
    expected = Lexical(STATISTICS, analyzer=PLAIN).score(pairs)
    lexical._term_cache.cache_clear()
    found: list[list[float]] = []
    threads = [threading.Thread(target=lambda: found.append(scorer.score(pairs))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 6
