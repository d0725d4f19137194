"""Cross-encoders of both kinds against formulas computed here from the bare weights."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

from searchops.errors import DataError, FrameError, SpecError
from searchops.scorers.crossencoder import CrossEncoder
from searchops.scorers.encoder import DEFAULT_INSTRUCTION
from tests import tiny_models

PAIRS = [
    ("red fox", "the red fox runs"),
    ("lake", "deep lake"),
    ("red fox", "cold"),
    ("where does the seal live", "a seal lives in the cold lake north of the old barn"),
    ("lake", ""),
]
PROMPT = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
    "<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {text}<|im_end|>\n"
    "<|im_start|>assistant\n<think>\n\n</think>\n\n"
)


@pytest.fixture(scope="module", params=["left", "right"])
def qwen3(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_models.qwen3(tmp_path_factory.mktemp("qwen3"), ends=False, side=request.param)


@pytest.fixture(scope="module")
def ranker(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_models.bert_ranker(tmp_path_factory.mktemp("ranker"), labels=1)


def yes_no(folder: str, pairs: list[tuple[str, str]], instruction: str = DEFAULT_INSTRUCTION) -> list[float]:
    """The model card's score of each pair by itself: no batch, no padding, the whole prompt as one text."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    yes, no = (tokenizer.convert_tokens_to_ids(word) for word in ("yes", "no"))
    scores = []
    for query, text in pairs:
        ids = tokenizer(
            PROMPT.format(instruction=instruction, query=query, text=text),
            add_special_tokens=False,
            return_tensors="pt",
        )["input_ids"]
        with torch.inference_mode():
            logits = model(input_ids=ids).logits[0, -1]
        both = torch.nn.functional.log_softmax(torch.stack([logits[no], logits[yes]]), dim=0)
        scores.append(float(both[1].exp()))
    return scores


def classified(folder: str, pairs: list[tuple[str, str]]) -> torch.Tensor:
    """The logits of each pair by itself."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        return torch.stack([model(**tokenizer(*pair, return_tensors="pt")).logits[0] for pair in pairs])


def test_a_qwen3_score_is_the_share_of_yes_after_the_model_card_s_prompt(qwen3: str) -> None:
    found = CrossEncoder(qwen3).score(PAIRS)
    assert found == pytest.approx(yes_no(qwen3, PAIRS), abs=1e-5)
    assert len({round(score, 4) for score in found}) == len(PAIRS)


def test_the_instruction_stands_in_the_prompt(qwen3: str) -> None:
    found = CrossEncoder(qwen3, instruction="Find seals").score(PAIRS)
    assert found == pytest.approx(yes_no(qwen3, PAIRS, "Find seals"), abs=1e-5)
    assert found != pytest.approx(CrossEncoder(qwen3).score(PAIRS), abs=1e-5)


@pytest.mark.filterwarnings("ignore:.*queries are longer")
@pytest.mark.parametrize("batch_size", [1, 2, 8])
def test_batching_and_padding_change_no_score(qwen3: str, ranker: str, batch_size: int) -> None:
    for model in (qwen3, ranker):
        scorer = CrossEncoder(model, batch_size=batch_size)
        alone = [CrossEncoder(model).score([pair])[0] for pair in PAIRS]
        assert scorer.score(PAIRS) == pytest.approx(alone, abs=1e-5)


def test_a_long_text_counts_by_its_best_window_in_qwen3(qwen3: str) -> None:
    around = len(AutoTokenizer.from_pretrained(qwen3)(PROMPT.format(instruction="i", query="", text=""))["input_ids"])
    scorer = CrossEncoder(qwen3, instruction="i", max_length=around + 40)
    text = "nile cold old barn. " * 10
    (found,) = scorer.score([("fox", text)])
    # Every window is a slice of the text; the score is the best of the slices of one length or less.
    slices = [text[start : start + size] for start in range(20) for size in range(1, 36)]
    possible = yes_no(qwen3, [("fox", piece) for piece in dict.fromkeys(slices)], "i")
    assert any(abs(found - score) < 1e-5 for score in possible)
    (whole,) = CrossEncoder(qwen3, instruction="i").score([("fox", text)])
    assert abs(found - whole) > 1e-5


def test_a_head_with_one_output_scores_by_its_sigmoid(ranker: str) -> None:
    expected = torch.sigmoid(classified(ranker, PAIRS[:3])[:, 0]).tolist()
    assert CrossEncoder(ranker).score(PAIRS[:3]) == pytest.approx(expected, abs=1e-5)


def test_a_head_of_two_classes_scores_by_the_second(tmp_path: Path) -> None:
    model = tiny_models.bert_ranker(tmp_path, labels=2)
    expected = torch.softmax(classified(model, PAIRS[:3]), dim=1)[:, 1].tolist()
    assert CrossEncoder(model).score(PAIRS[:3]) == pytest.approx(expected, abs=1e-5)
    assert len(CrossEncoder(model).score(PAIRS[:1])) == 1


def test_a_head_of_three_classes_has_no_relevance(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="3 classes"):
        CrossEncoder(tiny_models.bert_ranker(tmp_path, labels=3)).score(PAIRS)


def test_a_long_text_counts_by_its_best_window_in_a_classifier(ranker: str) -> None:
    text = "nile cold old barn " * 8 + "the red fox sleeps"
    windows = [text[start:] for start in range(len(text))]
    (found,) = CrossEncoder(ranker).score([("fox", text)])
    first = CrossEncoder(ranker).score([("fox", "nile cold old barn " * 2)])[0]
    assert len(windows[0].split()) > tiny_models.BERT_LENGTH
    pieces = [" ".join(text.split()[a:b]) for a in range(36) for b in range(a + 1, min(a + 21, 37))]
    possible = CrossEncoder(ranker).score([("fox", piece) for piece in pieces])
    assert any(abs(found - score) < 1e-5 for score in possible)
    assert found != first


def test_a_query_that_would_leave_no_room_is_cut_with_a_warning(ranker: str) -> None:
    with pytest.warns(UserWarning, match="1 of 2 queries are longer than half"):
        scores = CrossEncoder(ranker).score([("fox " * 40, "hen"), ("fox", "hen")])
    assert len(scores) == 2


def test_each_distinct_pair_is_read_once(ranker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from searchops.scorers import crossencoder

    seen: list[Any] = []
    read = crossencoder._Classifier.read

    def watched(self: Any, pairs: Any, *more: Any) -> Any:
        seen.extend(pairs)
        return read(self, pairs, *more)

    monkeypatch.setattr(crossencoder._Classifier, "read", watched)
    scores = CrossEncoder(ranker).score([("a", "x"), ("b", "x"), ("a", "x")])
    assert sorted(seen) == [("a", "x"), ("b", "x")]
    assert scores[0] == scores[2]


def test_a_max_length_the_prompt_fills_is_refused(qwen3: str) -> None:
    with pytest.raises(DataError, match="of which the prompt takes"):
        CrossEncoder(qwen3, max_length=50).score(PAIRS)


def test_a_nan_is_never_a_score(tmp_path: Path) -> None:
    broken = tiny_models.qwen3(tmp_path / "q", ends=False, broken=True)
    with pytest.raises(DataError, match="nan for the query 'fox' and the text 'hen'"):
        CrossEncoder(broken).score([("fox", "hen")])
    broken = tiny_models.bert_ranker(tmp_path / "b", labels=1, broken=True)
    with pytest.raises(DataError, match="nan for the query 'fox' and the text 'the seal'"):
        CrossEncoder(broken).score([("fox", "hen"), ("fox", "the seal")])


def test_a_language_model_without_the_answers_is_refused(tmp_path: Path) -> None:
    model = tiny_models.qwen3(tmp_path, ends=False, answers=False)
    with pytest.raises(DataError, match="the token 'yes'"):
        CrossEncoder(model).score(PAIRS)


def test_the_default_model_is_told_missing_where_it_is() -> None:
    with pytest.raises(DataError, match=r"hf download Qwen/Qwen3-Reranker-0\.6B"):
        CrossEncoder().score(PAIRS)


def test_no_pairs_load_no_model() -> None:
    assert CrossEncoder().score([]) == []


def test_a_pair_without_text_is_refused_before_a_model_loads() -> None:
    with pytest.raises(FrameError, match="pair 0"):
        CrossEncoder().score([("q", 3)])  # type: ignore[list-item]


def test_lower_precision_stays_near(qwen3: str) -> None:
    exact, rough = CrossEncoder(qwen3).score(PAIRS), CrossEncoder(qwen3, dtype="bfloat16").score(PAIRS)
    assert rough == pytest.approx(exact, abs=0.1)
    assert rough != exact


def test_a_scorer_is_its_arguments(ranker: str) -> None:
    one = CrossEncoder(ranker, batch_size=2)
    assert one == CrossEncoder(ranker, batch_size=2) != CrossEncoder(ranker)
    assert repr(CrossEncoder("m", instruction="Find")) == "CrossEncoder(model='m', instruction='Find')"
    assert pickle.loads(pickle.dumps(one)).score(PAIRS[:2]) == one.score(PAIRS[:2])
    with pytest.raises(SpecError, match="Did you mean"):
        CrossEncoder("m", dtype="bfloat61")
