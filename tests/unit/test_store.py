"""Documents come back as they went in, from a file that is mapped and checked."""

from __future__ import annotations

import threading
from collections import Counter

import pandas as pd
import pytest

from searchops.engines.store import DOCUMENTS, DocumentStore
from searchops.errors import DataError
from searchops.scorers.statistics import Analyzer, TermStatistics

HOSTILE = ["a b", "a/b/../c", "doc%p3", "日本", "😀", "", "x\ty\nz", "a\0b", "-1", "None", "é", "e\u0301"]


def frame(**columns):
    return pd.DataFrame(columns)


@pytest.fixture
def store_of(tmp_path):
    def build(documents, **options):
        DocumentStore.build(documents, tmp_path)
        return DocumentStore(tmp_path, **options)

    return build


def test_hostile_docnos_come_back_letter_by_letter(store_of):
    docnos = [docno for docno in HOSTILE if docno]
    store = store_of(frame(docno=docnos, text=[f"text of {docno}" for docno in docnos]))
    assert [r["text"] for r in store.fetch(docnos[::-1])] == [f"text of {d}" for d in docnos[::-1]]
    assert store.docnos() == docnos
    assert all(docno in store for docno in docnos)
    assert "nowhere" not in store


def test_metadata_of_any_json_type_comes_back_as_it_was(store_of):
    mixed = [1, "1", 1.5, True, None, [1, {"a": None}], {"b": [2]}, 10**30]
    store = store_of(frame(docno=list("abcdefgh"), text=["t"] * 8, mixed=pd.Series(mixed, dtype=object)))
    found = [record["mixed"] for record in store.fetch(list("abcdefgh"))]
    assert found == mixed
    assert [type(value) for value in found] == [type(value) for value in mixed]


@pytest.mark.parametrize("values", [[1, 2], [1.5, -0.0], [True, False], ["x", "y"], [2**70, 1], [[1], [2]]])
def test_a_column_of_one_type_keeps_it(store_of, values):
    store = store_of(frame(docno=["a", "b"], text=["", ""], meta=pd.Series(values, dtype=object)))
    found = [record["meta"] for record in store.fetch(["a", "b"])]
    assert found == values
    assert [type(v) for v in found] == [type(v) for v in values]


def test_dates_become_iso_text_and_missing_values_none(store_of):
    day = pd.to_datetime(["2026-01-02", None])
    store = store_of(frame(docno=["a", "b"], text=["", ""], day=day, year=[2026, float("nan")], n=[pd.NA, 3]))
    assert store.fetch(["a", "b"]) == [
        {"docno": "a", "text": "", "day": "2026-01-02T00:00:00", "year": 2026.0, "n": None},
        {"docno": "b", "text": "", "day": None, "year": None, "n": 3},
    ]


def test_columns_begin_with_docno_title_and_text(store_of):
    store = store_of(frame(url=["u"], text=["t"], title=[None], docno=["a"]))
    assert store.columns == ("docno", "title", "text", "url")
    assert store.fetch(["a"]) == [{"docno": "a", "title": "", "text": "t", "url": "u"}]


def test_missing_texts_are_empty_and_counted(tmp_path):
    documents = frame(docno=list("abcd"), text=["x", None, float("nan"), ""])
    assert DocumentStore.build(documents, tmp_path) == {"empty_texts": 3, "lone_surrogates": 0}
    assert list(DocumentStore(tmp_path).texts()) == ["x", "", "", ""]


def test_half_a_surrogate_pair_keeps_the_offsets_and_is_counted(tmp_path):
    documents = frame(docno=["a", "b"], text=pd.Series(["x\ud83dy", "fine 😀"], dtype=object))
    assert DocumentStore.build(documents, tmp_path) == {"empty_texts": 0, "lone_surrogates": 1}
    assert list(DocumentStore(tmp_path).texts()) == ["x\ufffdy", "fine 😀"]


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        (frame(docno=["a", "b", "a", "c", "b"], text=[""] * 5), "more than one 'a', 'b'"),
        (frame(docno=list("aabbccddee"), text=[""] * 10), "and 2 more"),
        (frame(docno=["a", None], text=["", ""]), "docno that is text"),
        (frame(docno=["a", ""], text=["", ""]), "docno that is text"),
        (frame(docno=[1, 2], text=["", ""]), "found 1, 2"),
        (frame(docno=["a"]), "'text' are needed; found columns docno"),
        (frame(), "'docno' are needed; found columns none"),
        (frame(docno=["a"], text=[""], meta=[{1, 2}]), "column 'meta'"),
        (frame(docno=["a"], text=[""], meta=[object()]), "type object"),
    ],
)
def test_documents_that_cannot_be_stored_are_named(tmp_path, documents, words):
    with pytest.raises(DataError) as error:
        DocumentStore.build(documents, tmp_path)
    assert words in str(error.value)


def test_an_unknown_docno_is_an_error_that_names_it(store_of):
    store = store_of(frame(docno=["a"], text=["t"]))
    with pytest.raises(DataError, match="found 'z'"):
        store.fetch(["a", "z"])
    assert store.fetch([]) == []


def test_a_collection_without_documents_is_a_store_without_documents(store_of):
    store = store_of(frame(docno=[], text=[]))
    assert (len(store), store.docnos(), list(store.texts())) == (0, [], [])


def test_texts_come_in_order_and_with_titles_when_asked(store_of):
    n = 20_000  # more than one batch of the file
    store = store_of(frame(docno=[f"d{i}" for i in range(n)], title=["T"] * n, text=[f"t{i}" for i in range(n)]))
    assert list(store.texts()) == [f"t{i}" for i in range(n)]
    assert next(iter(store.texts(with_title=True))) == "T\nt0"
    assert [r["text"] for r in store.fetch(["d19999", "d8192", "d8191", "d0"])] == [
        "t19999",
        "t8192",
        "t8191",
        "t0",
    ]


def test_titles_are_left_out_where_there_are_none(store_of):
    assert list(store_of(frame(docno=["a"], text=["t"])).texts(with_title=True)) == ["t"]


def test_a_text_of_five_megabytes_comes_back_whole(store_of):
    text = "wörter " * 700_000
    assert store_of(frame(docno=["a"], text=[text])).fetch(["a"])[0]["text"] == text


def test_a_record_is_shared_while_it_is_cached(store_of):
    store = store_of(frame(docno=["a", "b"], text=["t", "u"]))
    first = store.fetch(["a", "a", "b"])
    assert first[0] is first[1]
    assert store.fetch(["a"])[0] is first[0]


def test_the_cache_stays_below_its_bound(store_of):
    n, size = 200, 10_000
    documents = frame(docno=[f"d{i}" for i in range(n)], text=["x" * size] * n)
    store = store_of(documents, cache_bytes=20 * size)
    records = [store.fetch([docno])[0] for docno in store.docnos()]
    again = [store.fetch([docno])[0] for docno in store.docnos()]
    assert [r["docno"] for r in again] == store.docnos()
    assert sum(a is b for a, b in zip(records, again, strict=True)) < 20
    assert store.fetch(["d199"])[0] is again[-1]


def test_a_cache_of_nothing_still_answers(store_of):
    store = store_of(frame(docno=["a", "b"], text=["t", "u"]), cache_bytes=0)
    assert [r["text"] for r in store.fetch(["b", "a", "b"])] == ["u", "t", "u"]


def test_many_threads_read_the_same(store_of):
    n = 3000
    documents = frame(docno=[f"d{i}" for i in range(n)], text=[f"t{i} " * 20 for i in range(n)])
    store = store_of(documents, cache_bytes=200_000)
    wrong: Counter[str] = Counter()

    def read(offset):
        for i in range(0, n, 7):
            docnos = [f"d{(i * 13 + j + offset) % n}" for j in range(10)]
            for docno, record in zip(docnos, store.fetch(docnos), strict=True):
                wrong[docno] += record["text"] != f"t{docno[1:]} " * 20

    threads = [threading.Thread(target=read, args=(i * 11,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong.total() == 0
    assert len(wrong) > 1000


def test_statistics_are_those_of_the_texts_and_are_kept_on_disk(store_of, tmp_path):
    store = store_of(frame(docno=["a", "b"], title=["owls", "owls"], text=["red fox", "red hen red"]))
    analyzer = Analyzer()
    expected = TermStatistics.from_texts(["red fox", "red hen red"], analyzer)
    assert store.statistics(analyzer) == expected
    assert store.statistics(analyzer) is store.statistics(analyzer)
    (kept,) = tmp_path.glob("statistics-*.json")
    assert TermStatistics.load(kept) == expected
    store.statistics(Analyzer(stemmer=None))
    assert len(list(tmp_path.glob("statistics-*.json"))) == 2


def test_statistics_on_disk_are_read_and_not_counted_again(store_of, tmp_path):
    store = store_of(frame(docno=["a", "b"], text=["red fox", "red hen red"]))
    store.statistics(Analyzer())
    (kept,) = tmp_path.glob("statistics-*.json")
    TermStatistics(2, 9, {"marked": 1}, Analyzer()).save(kept)
    assert DocumentStore(tmp_path).statistics(Analyzer()).document_frequency("marked") == 1


@pytest.mark.parametrize("content", ["{", '{"format": 99}'])
def test_damaged_statistics_are_counted_again(store_of, tmp_path, content):
    store = store_of(frame(docno=["a"], text=["red fox"]))
    expected = store.statistics(Analyzer())
    (kept,) = tmp_path.glob("statistics-*.json")
    kept.write_text(content)
    assert DocumentStore(tmp_path).statistics(Analyzer()) == expected
    assert TermStatistics.load(kept) == expected


def test_statistics_of_other_documents_are_counted_again(store_of, tmp_path):
    store = store_of(frame(docno=["a"], text=["red fox"]))
    store.statistics(Analyzer())
    (kept,) = tmp_path.glob("statistics-*.json")
    TermStatistics(7, 9, {"marked": 1}, Analyzer()).save(kept)
    assert DocumentStore(tmp_path).statistics(Analyzer()).n_documents == 1


def test_statistics_need_no_folder_that_can_be_written(store_of, tmp_path):
    store = store_of(frame(docno=["a"], text=["red fox"]))
    # A file that cannot be made, also for root, who may write into any folder: its folder is gone.
    store.folder = tmp_path / "gone"
    assert store.statistics(Analyzer()).document_frequency("fox") == 1


def test_a_store_that_is_not_there_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        DocumentStore(tmp_path)


def complaint(folder):
    """What opening and reading a store complains about; nothing where all can be read."""
    try:
        store = DocumentStore(folder)
        store.fetch(store.docnos())
    except DataError as error:
        return str(error)
    return None


def test_damage_at_any_place_of_the_file_is_a_data_error_or_another_value(store_of, tmp_path):
    n = 50
    texts = [f"text number {i} " * 3 for i in range(n)]
    store_of(frame(docno=[f"d{i}" for i in range(n)], text=texts, meta=[[i] for i in range(n)]))
    file = tmp_path / DOCUMENTS
    whole = file.read_bytes()
    complaints = []
    for at in range(0, len(whole), max(1, len(whole) // 60)):
        for damaged in (whole[:at], whole[:at] + b"\xff" * 16 + whole[at + 16 :]):
            (tmp_path / "new").write_bytes(damaged)  # a mapped file may be replaced, not changed
            (tmp_path / "new").replace(file)
            complaints.append(complaint(tmp_path))
    assert all(complaints[::2]), "a file that was cut was read"
    assert len([said for said in complaints[1::2] if said]) > 20
    assert all(str(file) in said for said in complaints if said)


def test_an_arrow_file_of_something_else_is_a_data_error(tmp_path):
    import pyarrow as pa

    table = pa.table({"x": [1]})
    with pa.ipc.new_file(str(tmp_path / DOCUMENTS), table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(DataError, match="columns"):
        DocumentStore(tmp_path)


def test_damaged_metadata_is_a_data_error_that_names_the_column(store_of, tmp_path):
    store_of(frame(docno=["a"], text=["t"], meta=[["marked"]]))
    file = tmp_path / DOCUMENTS
    file.write_bytes(file.read_bytes().replace(b'["marked"]', b'["marked"}'))
    with pytest.raises(DataError, match="JSON in column 'meta'"):
        DocumentStore(tmp_path).fetch(["a"])
