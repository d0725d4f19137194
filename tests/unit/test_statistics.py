"""Analyzer and TermStatistics against hand counts and Lucene's formulas."""

from __future__ import annotations

import json
import math
import pickle
import sys
import threading
import unicodedata
from pathlib import Path

import pytest

from searchops.errors import DataError, SpecError
from searchops.scorers import statistics
from searchops.scorers.statistics import Analyzer, TermStatistics

PLAIN = Analyzer(stopwords="none", stemmer=None)


def test_the_default_analyzer_agrees_with_lucenes_english_analyzer_on_plain_sentences() -> None:
    # Terms as Anserini's default English analyzer gives them for this sentence.
    text = "City buses are running on time; the ponies' caresses, the company's relational databases."
    assert Analyzer().tokens(text) == [
        "citi",
        "buse",
        "run",
        "time",
        "poni",
        "caress",
        "compani",
        "relat",
        "databas",
    ]


def test_the_stopwords_are_lucenes_thirty_three() -> None:
    assert len(statistics.LUCENE_STOPWORDS) == 33
    assert Analyzer().tokens("To be, or not to be: that is the") == []
    assert PLAIN.tokens("not that") == ["not", "that"]


def test_an_apostrophe_inside_a_word_stays_and_a_possessive_goes() -> None:
    assert PLAIN.tokens("Don't touch Ann's or O\u2019Neil\u2019s 'quoted' toys'") == [
        "don't", "touch", "ann", "or", "o\u2019neil", "quoted", "toys",
    ]  # fmt: skip


def test_words_of_any_script_are_whole() -> None:
    assert PLAIN.tokens("Größe naïve привет हिन्दी") == ["größe", "naïve", "привет", "हिन्दी"]


def test_han_and_hiragana_give_one_token_a_character_and_katakana_words() -> None:
    assert PLAIN.tokens("東京 タワー tower と") == ["東", "京", "タワー", "tower", "と"]
    assert PLAIN.tokens("abc東京x") == ["abc", "東", "京", "x"]


def test_composed_and_decomposed_letters_are_one_term() -> None:
    word = "crème brûlée"
    assert PLAIN.tokens(unicodedata.normalize("NFD", word)) == PLAIN.tokens(unicodedata.normalize("NFC", word))


def test_punctuation_and_emptiness_have_no_terms() -> None:
    assert Analyzer().tokens("") == Analyzer().tokens("?!… — ***") == []


def test_the_second_porter_stemmer_differs_where_it_should() -> None:
    assert Analyzer(stemmer="english").tokens("generously") == ["generous"]
    assert Analyzer(stemmer="porter").tokens("generously") == ["gener"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"stopwords": "lucen"}, "Did you mean 'lucene'"),
        ({"stemmer": "portr"}, "Did you mean 'porter'"),
    ],
)
def test_an_unknown_setting_is_named_with_the_nearest_known(arguments: dict[str, str], expected: str) -> None:
    with pytest.raises(SpecError, match=expected):
        Analyzer(**arguments)


def test_the_stem_cache_stays_bounded_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "_STEMS_KEPT", 10)
    statistics._stems.cache_clear()
    words = [f"word{i}s" for i in range(100)]
    assert Analyzer().tokens(" ".join(words)) == [f"word{i}" for i in range(100)]
    assert len(statistics._stems("lucene", "porter")) <= 10


def test_many_threads_stem_as_one_does() -> None:
    words = [f"{a}{b}ations" for a in "bcdfghklmn" for b in "aeiouprst" for _ in range(3)]
    text = " ".join(words)
    expected = Analyzer().tokens(text)
    statistics._stems.cache_clear()
    found: list[list[str]] = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=lambda: found.append(Analyzer().tokens(text))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert found == [expected] * 8


def test_statistics_count_documents_not_occurrences() -> None:
    counted = TermStatistics.from_texts(iter(["red red fox", "", "red hen house"]), PLAIN)
    assert counted.n_documents == 3
    assert counted.average_length == 2.0
    assert counted.n_terms == 4
    assert [counted.document_frequency(t) for t in ("red", "fox", "wolf")] == [2, 1, 0]


def test_idf_is_lucenes_and_finite_for_an_unseen_term() -> None:
    counted = TermStatistics.from_texts(["red fox", "red hen", "blue hen", "x"], PLAIN)
    assert counted.idf("red") == pytest.approx(math.log(1 + (4 - 2 + 0.5) / (2 + 0.5)))
    assert counted.idf("wolf") == pytest.approx(math.log(1 + 4.5 / 0.5))


def test_an_empty_collection_has_statistics_too() -> None:
    empty = TermStatistics.from_texts([], PLAIN)
    assert (empty.n_documents, empty.average_length) == (0, 0.0)
    assert math.isfinite(empty.idf("any"))


def test_what_is_saved_is_loaded_equal(tmp_path: Path) -> None:
    counted = TermStatistics.from_texts(["Größe 東京 fox", "hen's"], Analyzer(stemmer=None))
    counted.save(tmp_path / "s.json")
    loaded = TermStatistics.load(tmp_path / "s.json")
    assert loaded == counted
    assert hash(loaded) == hash(counted)
    assert loaded.analyzer == Analyzer(stemmer=None)
    assert pickle.loads(pickle.dumps(counted)) == counted
    assert [p.name for p in tmp_path.iterdir()] == ["s.json"]


def test_statistics_of_other_texts_are_not_equal() -> None:
    one = TermStatistics.from_texts(["red fox"], PLAIN)
    assert one != TermStatistics.from_texts(["red hen"], PLAIN)
    assert one != "red fox"


@pytest.mark.parametrize("change", [
    {"format": 99}, {"n_documents": -1}, {"n_documents": "2"}, {"document_frequency": {"red": 9}},
    {"document_frequency": 3}, {"analyzer": {"stemmer": "no"}}, {"analyzer": {"unknown": 1}},
])  # fmt: skip
def test_a_file_whose_numbers_cannot_be_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "s.json"
    TermStatistics.from_texts(["red fox", "hen"], PLAIN).save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DataError, match="term statistics") as caught:
        TermStatistics.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 1, "analy', "null"])
def test_a_damaged_or_missing_file_is_a_data_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "s.json").write_text(content)
    with pytest.raises(DataError):
        TermStatistics.load(tmp_path / "s.json")
    with pytest.raises(DataError, match="FileNotFoundError"):
        TermStatistics.load(tmp_path / "none.json")


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.json"
    old = TermStatistics.from_texts(["red"], PLAIN)
    old.save(path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        TermStatistics.from_texts(["blue"], PLAIN).save(path)
    assert TermStatistics.load(path) == old
    assert [p.name for p in tmp_path.iterdir()] == ["s.json"]
