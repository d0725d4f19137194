"""Laws of lexical scoring, and agreement with an independent BM25 on random texts with ties."""

from __future__ import annotations

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchops.scorers.lexical import Lexical
from searchops.scorers.statistics import Analyzer, TermStatistics

PLAIN = Analyzer(stopwords="none", stemmer=None)
WORDS = st.sampled_from(["red", "hen", "fox", "barn", "blue", "cat"])  # few words: many ties
TEXTS = st.lists(st.lists(WORDS, min_size=1, max_size=12).map(" ".join), min_size=2, max_size=20)
QUERY = st.lists(WORDS, min_size=1, max_size=5, unique=True).map(" ".join)
ANY_TEXT = st.text(max_size=60)


@given(texts=TEXTS, query=QUERY, k1=st.floats(0.1, 3), b=st.floats(0, 1))
def test_scores_agree_with_bm25s_on_random_texts(texts: list[str], query: str, k1: float, b: float) -> None:
    theirs = bm25s.BM25(method="lucene", k1=k1, b=b)
    theirs.index([text.split() for text in texts], show_progress=False)
    known = {word for text in texts for word in text.split()}
    query = " ".join(word for word in query.split() if word in known) or texts[0].split()[0]
    expected = theirs.get_scores(query.split())
    scorer = Lexical(TermStatistics.from_texts(texts, PLAIN), k1=k1, b=b, analyzer=PLAIN)
    found = scorer.score([(query, text) for text in texts])
    assert found == pytest.approx(expected.tolist(), rel=1e-4, abs=1e-6)


@given(query=ANY_TEXT, texts=st.lists(ANY_TEXT, max_size=8))
def test_any_text_gets_a_finite_score_that_is_not_negative(query: str, texts: list[str]) -> None:
    scores = Lexical("candidates").score([(query, text) for text in texts])
    assert len(scores) == len(texts)
    assert all(np.isfinite(score) and score >= 0 for score in scores)


@given(texts=TEXTS, queries=st.lists(QUERY, min_size=1, max_size=4))
def test_scoring_together_is_scoring_one_by_one(texts: list[str], queries: list[str]) -> None:
    scorer = Lexical(TermStatistics.from_texts(texts, PLAIN), analyzer=PLAIN)
    pairs = [(query, text) for text in texts for query in queries]
    assert scorer.score(pairs) == [scorer.score([pair])[0] for pair in pairs]


@given(texts=TEXTS, query=QUERY, data=st.data())
def test_one_more_query_term_in_place_of_another_word_never_lowers_a_score(
    texts: list[str], query: str, data: st.DataObject
) -> None:
    scorer = Lexical(TermStatistics.from_texts(texts, PLAIN), analyzer=PLAIN)
    words = [*texts[0].split(), "other"]
    words[-1] = data.draw(st.sampled_from(query.split()))
    before, after = scorer.score([(query, f"{texts[0]} other"), (query, " ".join(words))])
    assert after > before


@given(text=ANY_TEXT)
def test_analysis_knows_no_case(text: str) -> None:
    assert Analyzer().tokens(text) == Analyzer().tokens(text.lower())
