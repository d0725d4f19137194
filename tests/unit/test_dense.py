"""The dense engine: the same rows as faiss, builds that resume, folders that are told apart."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchops.corpus import Collection
from searchops.engines import encoded, inner_product, vectors
from searchops.engines.base import Engine
from searchops.engines.dense import DenseIndex
from searchops.engines.inner_product import Exact, Half
from searchops.errors import DataError, FrameError, SpecError
from searchops.scorers.encoder import Encoder
from searchops.scorers.statistics import Analyzer
from tests import tiny_models

QUERIES = ["red fox", "deep lake", "", "the seal lives in the north", " \n", "red fox"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_models.bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def collection() -> Collection:
    words = tiny_models.WORDS
    texts = [" ".join(words[(i * step) % len(words)] for step in range(1, 8)) for i in range(40)]
    texts[7] = texts[3]  # equal documents tie
    texts[9] = ""
    documents = pd.DataFrame(
        {"docno": [f"d {i:02d}/x" for i in range(40)], "title": ["", "seal"] * 20, "text": texts, "year": range(40)}
    )
    documents.loc[7, "title"] = documents.loc[3, "title"]
    return Collection("forty", documents)


@pytest.fixture(scope="module")
def index(collection: Collection, bert: str, tmp_path_factory: pytest.TempPathFactory) -> DenseIndex:
    return build(collection, tmp_path_factory.mktemp("dense") / "ix", bert)


def build(collection: Collection, path: Path, model: str, **more: Any) -> DenseIndex:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return DenseIndex.build(collection, path, model=model, progress=False, **more)


def expected_hits(collection: Collection, bert: str, query: str, k: int) -> list[tuple[str, float]]:
    """Every document scored by itself and ordered as trec_eval does."""
    encoder = Encoder(bert)
    rows = zip(collection.documents["title"], collection.documents["text"], strict=True)
    matrix = encoder.encode_documents([f"{title} {text}".strip() for title, text in rows])
    scores = matrix.astype(np.float64) @ encoder.encode_queries([query])[0].astype(np.float64)
    pairs = zip(collection.documents["docno"], scores, strict=True)
    return sorted(sorted(pairs, reverse=True), key=lambda pair: -round(pair[1], 5))[:k]


def test_it_is_an_engine(index: DenseIndex, collection: Collection) -> None:
    assert isinstance(index, Engine)
    assert len(index) == 40
    assert index.columns == ("docno", "title", "text", "year")
    assert index.fetch(["d 03/x"])[0]["text"] == collection.documents["text"][3]
    assert list(index.texts()) == collection.documents["text"].tolist()
    assert index.statistics(Analyzer()).n_documents == 40
    with pytest.raises(DataError, match="nothing"):
        index.fetch(["nothing"])


@pytest.mark.parametrize("k", [1, 5, 40, 1000])
def test_hits_are_every_document_scored_and_ordered_by_hand(
    index: DenseIndex, collection: Collection, bert: str, k: int
) -> None:
    expected = expected_hits(collection, bert, "red fox", k)
    found = index.search("red fox", k)
    assert [docno for docno, _ in found] == [docno for docno, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=1e-5)


def test_equal_documents_have_equal_scores_and_stand_in_trec_order(index: DenseIndex) -> None:
    found = dict(index.search("red fox", 40))
    assert found["d 03/x"] == found["d 07/x"]
    order = [docno for docno, _ in index.search("red fox", 40)]
    assert order.index("d 07/x") + 1 == order.index("d 03/x")


def test_a_shorter_list_is_the_head_of_a_longer_one(index: DenseIndex) -> None:
    longest = index.search("red fox", 40)
    assert all(index.search("red fox", k) == longest[:k] for k in range(41))


def test_many_queries_give_what_each_gives(index: DenseIndex) -> None:
    together = index.search_many(QUERIES, 10)
    for query, hits in zip(QUERIES, together, strict=True):
        alone = index.search(query, 10)
        assert [docno for docno, _ in hits] == [docno for docno, _ in alone]
        assert [score for _, score in hits] == pytest.approx([score for _, score in alone], abs=1e-5)
    assert together[0] == together[5]
    assert together[2] == together[4] == []


def test_nothing_asked_loads_no_model(index: DenseIndex) -> None:
    gone = DenseIndex(index.path)
    gone.encoder = Encoder("nobody/no-such-model")
    assert gone.search_many([], 5) == []
    assert gone.search("  ", 5) == []
    assert gone.search("fox", 0) == []


@pytest.mark.parametrize(("query", "k"), [(None, 5), (3, 5), ("fox", -1)])
def test_a_query_that_is_no_text_or_a_negative_k_is_refused(index: DenseIndex, query: Any, k: int) -> None:
    with pytest.raises(FrameError, match=r"DenseIndex\.search"):
        index.search(query, k)


def test_all_queries_of_a_call_are_encoded_together(index: DenseIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    encode = Encoder.encode_queries

    def watched(self: Encoder, queries: Any) -> Any:
        calls.append(len(queries))
        return encode(self, queries)

    monkeypatch.setattr(Encoder, "encode_queries", watched)
    index.search_many(QUERIES, 3)
    assert calls == [4]


def test_many_threads_search_one_index(index: DenseIndex) -> None:
    expected = index.search_many(QUERIES, 5)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(index.search_many(QUERIES, 5))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 6


def test_an_index_is_its_folder_and_settings(index: DenseIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    again = DenseIndex(index.path)
    assert again == index
    assert hash(again) == hash(index)
    assert again != DenseIndex(index.path, ef_search=7)
    assert again != index.path
    assert repr(again) == f"DenseIndex({index.path!r})"
    assert repr(DenseIndex(index.path, ef_search=7)) == f"DenseIndex({index.path!r}, ef_search=7)"
    monkeypatch.chdir(Path(index.path).parent)
    assert DenseIndex("ix") == index
    assert pickle.loads(pickle.dumps(index)) == index
    assert pickle.loads(pickle.dumps(index)).search("red fox", 3) == index.search("red fox", 3)


def test_an_encoder_on_other_hardware_opens_the_index_and_another_model_does_not(index: DenseIndex, bert: str) -> None:
    assert "device='cpu'" in repr(DenseIndex(index.path, encoder=Encoder(bert, device="cpu")))
    with pytest.raises(DataError, match=r"max_length=5.*max_length=None"):
        DenseIndex(index.path, encoder=Encoder(bert, max_length=5))
    with pytest.raises(DataError, match="other"):
        DenseIndex(index.path, model="other")
    with pytest.raises(DataError, match="float16"):
        DenseIndex(index.path, dtype="float16")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("hnsw", [False, True, {"m": 8, "ef_construction": 60}])
def test_every_form_of_storage_finds_the_same(
    collection: Collection, bert: str, index: DenseIndex, tmp_path: Path, dtype: str, hnsw: Any
) -> None:
    other = build(collection, tmp_path / "ix", bert, dtype=dtype, hnsw=hnsw)
    queries = ["red fox", "deep lake", "seal"]
    for ours, exact in zip(other.search_many(queries, 40), index.search_many(queries, 40), strict=True):
        assert {docno for docno, _ in ours[:10]} <= {docno for docno, _ in exact[:13]}
        assert dict(ours) == pytest.approx(dict(exact), abs=2e-3)
    assert other.search("", 3) == []
    reopened = DenseIndex(tmp_path / "ix")
    assert reopened.search("red fox", 3) == other.search("red fox", 3)
    assert reopened.manifest.settings["dtype"] == dtype


def test_documents_cut_by_the_model_are_counted_and_told(bert: str, tmp_path: Path) -> None:
    documents = pd.DataFrame({"docno": ["a", "b"], "text": ["fox " * 100, "hen"]})
    with pytest.warns(UserWarning, match="1 of 2 documents are longer"):
        index = DenseIndex.build(Collection("two", documents), tmp_path / "ix", model=bert, progress=False)
    assert index.manifest.facts["truncated"] == 1
    assert index.manifest.facts["dimensions"] == 16


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_collection_of_nothing_has_no_hits(bert: str, tmp_path: Path, dtype: str) -> None:
    empty = Collection("none", pd.DataFrame({"docno": pd.Series([], dtype=str), "text": pd.Series([], dtype=str)}))
    index = build(empty, tmp_path / "ix", bert, dtype=dtype)
    assert len(index) == 0
    assert index.search_many(["fox", "hen"], 3) == [[], []]


def test_progress_is_shown_when_asked(
    collection: Collection, bert: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    DenseIndex.build(collection, tmp_path / "ix", model=bert)
    assert "dense forty" in capsys.readouterr().err
    DenseIndex.build(collection, tmp_path / "ix2", model=bert, progress=False)
    assert capsys.readouterr().err == ""


def test_an_index_that_is_there_is_opened_not_built(
    collection: Collection, bert: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = build(collection, tmp_path / "ix", bert)
    monkeypatch.setattr(Encoder, "encode_documents", None)
    assert build(collection, tmp_path / "ix", bert, batch_size=3) == built
    with pytest.raises(DataError, match="overwrite=True"):
        build(collection, tmp_path / "ix", bert, dtype="float16")


def test_another_index_is_replaced_only_when_told(collection: Collection, bert: str, tmp_path: Path) -> None:
    build(collection, tmp_path / "ix", bert)
    new = build(collection, tmp_path / "ix", bert, dtype="float16", overwrite=True)
    assert new.manifest.settings["dtype"] == "float16"
    assert [path.name for path in tmp_path.iterdir()] == ["ix"]


KILLED = """
    import os, signal, sys
    import pandas as pd
    from searchops.corpus import Collection
    from searchops.engines import encoded
    from searchops.engines.dense import DenseIndex
    from searchops.scorers.encoder import Encoder
    encoded.BLOCK_TEXTS = 8
    encode, calls = Encoder.encode_documents, []
    def dying(self, texts):
        calls.append(1)
        if len(calls) == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        return encode(self, texts)
    Encoder.encode_documents = dying
    documents = pd.read_json(sys.argv[1], dtype={"docno": str})
    DenseIndex.build(Collection("forty", documents), sys.argv[2], model=sys.argv[3], progress=False)
"""


def test_a_killed_build_leaves_no_folder_that_opens_and_goes_on_from_its_blocks(
    collection: Collection, bert: str, index: DenseIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection.documents.to_json(tmp_path / "documents.json", orient="records")
    arguments = [str(tmp_path / "documents.json"), str(tmp_path / "ix"), bert]
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), *arguments], check=False)
    assert killed.returncode == -9
    with pytest.raises(DataError, match="Build the index first"):
        DenseIndex(tmp_path / "ix")
    for left in tmp_path.iterdir():
        if left.is_dir():
            with pytest.raises(DataError):
                DenseIndex(left)
    monkeypatch.setattr(encoded, "BLOCK_TEXTS", 8)
    n_encoded: list[int] = []
    encode = Encoder.encode_documents

    def watched(self: Encoder, texts: Any) -> Any:
        n_encoded.append(len(texts))
        return encode(self, texts)

    monkeypatch.setattr(Encoder, "encode_documents", watched)
    resumed = build(collection, tmp_path / "ix", bert)
    assert n_encoded == [8, 8]  # three blocks of five were there
    monkeypatch.undo()
    assert [hit[0] for hit in resumed.search("red fox", 40)] == [hit[0] for hit in index.search("red fox", 40)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["documents.json", "ix"]


def test_blocks_of_other_data_or_another_model_are_not_used(tmp_path: Path) -> None:
    def killed(identity: str) -> list[str]:
        with encoded.kept_blocks(tmp_path / "ix", identity) as folder:
            found = [file.name for file in folder.iterdir()]
            (folder / f"block of {identity}").write_bytes(b"")
            raise KeyboardInterrupt(found)

    for identity, expected in (("a", []), ("b", []), ("a", ["block of a"])):
        with pytest.raises(KeyboardInterrupt) as caught:
            killed(identity)
        assert caught.value.args == (expected,)
    with encoded.kept_blocks(tmp_path / "ix", "c"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_blocks_of_a_build_that_still_runs_are_left_alone(tmp_path: Path) -> None:
    with encoded.kept_blocks(tmp_path / "ix", "running") as running:
        with encoded.kept_blocks(tmp_path / "ix", "quick"):
            (tmp_path / "other").mkdir()
        assert sorted(tmp_path.iterdir()) == sorted([running, tmp_path / "other"])


def test_a_second_build_of_the_same_waits_for_the_first(tmp_path: Path) -> None:
    order: list[str] = []
    inside = threading.Event()

    def second() -> None:
        inside.wait()
        with encoded.kept_blocks(tmp_path / "ix", "same"):
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with encoded.kept_blocks(tmp_path / "ix", "same"):
        inside.set()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


@pytest.mark.parametrize("content", [b"", b"damaged"])
def test_a_damaged_block_says_which_file_to_delete(bert: str, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "00000000.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"00000000.npz.*Delete the file"):
        list(encoded.EncodedBlocks(tmp_path, Encoder(bert), ["a"], ["b"]))
    np.savez(tmp_path / "00000000.npz", vectors=np.zeros((5, 16), np.float32), n_truncated=0)
    with pytest.raises(DataError, match="5 vectors for 1 documents"):
        list(encoded.EncodedBlocks(tmp_path, Encoder(bert), ["a"], ["b"]))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("change", ["cut", "empty", "gone", "other"])
def test_a_damaged_file_of_vectors_does_not_open(
    collection: Collection, bert: str, tmp_path: Path, dtype: str, change: str
) -> None:
    index = build(collection, tmp_path / "ix", bert, dtype=dtype)
    (file,) = Path(index.path).glob("vectors.*")
    if change == "cut":
        file.write_bytes(file.read_bytes()[:-100])
    elif change == "empty":
        file.write_bytes(b"")
    elif change == "gone":
        file.unlink()
    else:
        few = Collection("few", collection.documents.head(9))
        (other,) = Path(build(few, tmp_path / "few", bert, dtype=dtype).path).glob("vectors.*")
        shutil.copy(other, file)
    with pytest.raises(DataError, match=r"vectors\..*overwrite=True"):
        DenseIndex(index.path)


def test_a_model_that_is_not_here_leaves_nothing_behind(collection: Collection, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="hf download"):
        build(collection, tmp_path / "ix", "nobody/no-such-model")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_gives_nan_builds_nothing(collection: Collection, tmp_path: Path) -> None:
    broken = tiny_models.bert(tmp_path / "model", broken=True)
    with pytest.raises(DataError, match="NaN"):
        build(collection, tmp_path / "ix", broken)
    assert not (tmp_path / "ix").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dtype": "float61"}, "Did you mean 'float16'"),
        ({"hnsw": {"links": 3}}, "known: ef_construction, m"),
        ({"hnsw": {"m": 1}}, "at least 2"),
        ({"encoder": Encoder("m"), "model": "m"}, "either an encoder or a model"),
    ],
)
def test_a_setting_out_of_range_is_refused(
    collection: Collection, tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(SpecError, match=f"(?i){message}"):
        DenseIndex.build(collection, tmp_path / "ix", **{"model": None, **settings})
    assert list(tmp_path.iterdir()) == []


def test_opening_refuses_what_cannot_be(index: DenseIndex, bert: str) -> None:
    with pytest.raises(SpecError, match="either"):
        DenseIndex(index.path, encoder=Encoder(bert), model=bert)
    with pytest.raises(SpecError, match="ef_search"):
        DenseIndex(index.path, ef_search=0)


def random_rows(seed: int, n: int, ties: bool) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    if ties:  # few distinct values: many rows share a score
        return rng.integers(-1, 2, (n, 8)).astype(np.float32)
    return rng.standard_normal((n, 8), dtype=np.float32)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 700),
    k=st.integers(1, 60),
    n_queries=st.integers(1, 40),
    block=st.sampled_from([64, 100, 65_536]),
    ties=st.booleans(),
    half=st.booleans(),
)
@settings(deadline=None)
def test_exact_search_finds_what_faiss_finds_and_all_ties(
    seed: int, n: int, k: int, n_queries: int, block: int, ties: bool, half: bool
) -> None:
    rows = random_rows(seed, n, ties)
    queries = random_rows(seed + 1, n_queries, ties)
    nearest: Exact = Exact(rows)
    if half:
        rows = rows.astype(np.float16).astype(np.float32)
        store = faiss.IndexScalarQuantizer(8, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
        store.add(rows)
        nearest = Half(store, 8)
    reference = faiss.IndexFlatIP(8)
    reference.add(rows)
    scores, ids = reference.search(queries, min(k, n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inner_product, "BLOCK_ROWS", block * 8 if half else block)
        patch.setattr(inner_product, "_QUERIES_TOGETHER", 7)
        found = nearest(queries, k)
    for ours, their_scores, their_ids in zip(found, scores, ids, strict=True):
        order = np.argsort(-ours.scores, kind="stable")
        np.testing.assert_allclose(ours.scores[order][: len(their_scores)], their_scores, atol=1e-4)
        above = their_ids[their_scores > their_scores[-1] + 1e-4]
        assert set(above) <= set(ours.rows)
        assert len(set(ours.rows.tolist())) == len(ours.rows) >= min(k, n)


def test_no_rows_are_found_among_none() -> None:
    query = np.ones((2, 4), np.float32)
    assert [len(found.rows) for found in Exact(np.empty((0, 4), np.float32))(query, 3)] == [0, 0]
    graph = vectors._empty_index(4, False, {"m": 4, "ef_construction": 10})
    assert [len(found.rows) for found in inner_product.Graph(graph, 8)(query, 3)] == [0, 0]


def test_all_that_tie_with_the_last_are_found() -> None:
    rows = np.zeros((500, 4), np.float32)
    rows[::5, 0] = 1
    query = np.array([[1, 0, 0, 0]], np.float32)
    for found in (*Exact(rows)(query, 3), *Exact(rows)(np.repeat(query, 3, axis=0), 3)):
        assert sorted(found.rows.tolist()) == list(range(0, 500, 5))
    store = faiss.IndexScalarQuantizer(4, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    store.add(rows)
    assert sorted(Half(store, 4)(query, 3)[0].rows.tolist()) == list(range(0, 500, 5))


def test_a_graph_finds_nearly_all_of_the_best() -> None:
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((2000, 16), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    graph = vectors._empty_index(16, False, {"m": 32, "ef_construction": 200})
    graph.add(rows)
    queries = rows[:50]
    ours = inner_product.Graph(graph, 128)(queries, 10)
    exact = np.argsort(-(queries @ rows.T), axis=1)[:, :10]
    shared = sum(len(set(found.rows) & set(best)) for found, best in zip(ours, exact, strict=True))
    assert shared / exact.size > 0.95
    assert [len(found.rows) for found in inner_product.Graph(graph, 1)(queries[:2], 3000)] == [2000, 2000]
