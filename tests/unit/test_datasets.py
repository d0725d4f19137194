"""Collections by name, folder and ir_datasets; every broken file is named with its line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from searchops.datasets import load
from searchops.datasets.folder import load_folder
from searchops.errors import DataError
from searchops.splitting import Given, passages

DOCUMENTS = [
    {"docno": "d1", "title": "Ada", "text": "Ada was born. She died.", "year": 1815},
    {"docno": "d2", "title": "Bob", "text": None},
]


def _write(folder: Path, **files: Any) -> Path:
    """Writes name_ext=content; lists become JSON lines."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {"corpus_jsonl": DOCUMENTS, **files}.items():
        if isinstance(content, list):
            content = "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in content)
        if content is not None:
            path = folder / name.replace("_", ".")
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def test_a_folder_with_all_files_is_read(tmp_path: Path) -> None:
    folder = _write(
        tmp_path / "mine",
        topics_jsonl=[{"qid": 1, "query": "who", "answer": "Ada"}],
        topics_tsv="9\tnot this\n",
        qrels_txt="1 0 d1 1\n",
        evidence_jsonl=[
            "\n",
            {"qid": 1, "docno": "d1", "start": 14, "end": 23, "text": "She died.", "sent": 1},
        ],
        sents_jsonl=[{"docno": "d1", "spans": [[0, 13], [14, 23], [24, 24]]}],
        meta_json="{}",
    )
    c = load(folder)
    assert repr(c) == "Collection('mine': 2 documents, 1 topic, 1 qrel, 1 evidence label; 3 notes)"
    assert c.topics is not None
    assert c.topics.to_dict("records") == [{"qid": "1", "query": "who", "answer": "Ada"}]
    assert c.documents["year"].tolist() == [1815, None]
    assert isinstance(c.documents["year"][0], int)
    assert c.notes == (
        "1 of 2 documents have no spans in sents.jsonl",
        "1 empty spans of sents.jsonl left out",
        "1 of 2 documents has no text",
    )
    assert [p["text"] for p in passages(c.documents.to_dict("records")[0], Given())] == [
        "Ada was born. ",
        "She died.",
    ]


def test_files_that_are_not_there_give_none(tmp_path: Path) -> None:
    c = load_folder(_write(tmp_path / "x"), name="other")
    assert (c.name, c.topics, c.qrels, c.evidence) == ("other", None, None, None)
    assert "spans" not in c.documents.columns


def test_topics_may_be_tab_separated_and_qrels_another_file(tmp_path: Path) -> None:
    folder = _write(tmp_path, topics_tsv="1\tq\n", qrels_txt="1 0 d1 1\n")
    (folder / "qrels.all.txt").write_text("1 0 d1 3\n")
    c = load(folder, qrels="qrels.all.txt")
    assert c.topics is not None
    assert c.qrels is not None
    assert c.topics["query"].tolist() == ["q"]
    assert c.qrels["label"].tolist() == [3]
    with pytest.raises(DataError, match=r"qrels\.none\.txt: a file that can be read is needed"):
        load(folder, qrels="qrels.none.txt")


def test_line_separators_inside_a_text_do_not_end_a_line(tmp_path: Path) -> None:
    text = "a\u2028b\u0085c\x0cd"
    line = json.dumps({"docno": "d", "text": text}, ensure_ascii=False)
    c = load(_write(tmp_path, corpus_jsonl="\ufeff" + line + "\r\n\r\n"))
    assert c.documents["text"].tolist() == [text]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"corpus_jsonl": '{"docno": "a", "text": ""}\n\n{"docno" "b"}\n'},
            "corpus.jsonl:3:10: JSON is needed",
        ),
        ({"corpus_jsonl": b'{"docno": "\xff"}\n'}, "corpus.jsonl:1: UTF-8 is needed"),
        ({"corpus_jsonl": "[1]\n"}, "corpus.jsonl:1: a JSON object is needed; found list"),
        ({"corpus_jsonl": "{}\n"}, "corpus.jsonl:1: a key 'docno' is needed"),
        ({"corpus_jsonl": '{"docno": "a", "txt": ""}\n'}, "corpus.jsonl:1: a key 'text' is needed"),
        (
            {"corpus_jsonl": '{"docno": ["a"], "text": ""}\n'},
            "corpus.jsonl:1: a docno that is text is needed",
        ),
        (
            {"corpus_jsonl": '{"docno": "a", "text": 3}\n'},
            "corpus.jsonl:1: a text that is text or null is needed",
        ),
        (
            {"corpus_jsonl": [*DOCUMENTS, *DOCUMENTS]},
            "every docno once is needed; found 2 duplicates: 'd1', 'd2'",
        ),
        ({"topics_jsonl": [{"qid": 1}]}, "topics.jsonl:1: a key 'query' is needed"),
        ({"topics_tsv": "1\n"}, "topics.tsv:1: a line 'qid TAB query' is needed"),
        ({"qrels_txt": "1 0 d1\n"}, "qrels.txt:1: four fields"),
        ({"sents_jsonl": [{"docno": "d9", "spans": []}]}, "sents.jsonl:1: a docno of corpus.jsonl is needed"),
        (
            {"sents_jsonl": [{"docno": "d1", "spans": [[0, 24]]}]},
            "sents.jsonl:1: spans [start, end] by start",
        ),
        ({"sents_jsonl": [{"docno": "d1", "spans": [[5, 6], [0, 1]]}]}, "found [0, 1]"),
        ({"sents_jsonl": [{"docno": "d1", "spans": "all"}]}, "found 'all'"),
        ({"evidence_jsonl": [{"docno": "d1"}]}, "evidence.jsonl:1: a key 'qid' is needed"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(files: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        load(_write(tmp_path, **files))
    assert message in str(caught.value)


def test_labels_whose_text_is_not_at_their_offsets_are_refused_with_the_first_line(tmp_path: Path) -> None:
    good = {"qid": "1", "docno": "d1", "start": 0, "end": 3, "text": "Ada"}
    folder = _write(tmp_path, evidence_jsonl=[good, "\n", {**good, "start": 1}, {**good, "end": 99}])
    with pytest.raises(DataError) as caught:
        load(folder)
    assert "evidence.jsonl:3: the label's text at its offsets" in str(caught.value)
    assert "'Ada' not at 1-3 of 'd1' (2 such labels)" in str(caught.value)
    (folder / "evidence.jsonl").write_text(json.dumps({"qid": "1", "docno": "d1", "start": 0, "end": 99}))
    with pytest.raises(DataError, match="not at 0-99 of 'd1'"):
        load(folder)


def test_a_folder_without_a_corpus_names_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(DataError, match=r"a folder with corpus\.jsonl is needed; found notes\.txt"):
        load(tmp_path)
    with pytest.raises(DataError, match="found none"):
        load_folder(tmp_path / "gone")


def test_a_bare_name_is_looked_for_here_first_and_then_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path / "data" / "mine")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("SEARCHOPS_DATA", str(tmp_path / "data"))
    assert len(load("mine")) == 2
    _write(tmp_path / "here" / "mine", corpus_jsonl=DOCUMENTS[:1])
    assert len(load("mine")) == 1
    assert len(load("../data/mine")) == 2
    assert len(load(Path("mine"))) == 1


def test_an_unknown_name_lists_the_names_and_says_that_folders_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path / "hotpotqa")
    monkeypatch.setenv("SEARCHOPS_DATA", str(tmp_path))
    with pytest.raises(DataError) as caught:
        load("hotpotq")
    assert "Known names: pydocs, hotpotqa; did you mean 'hotpotqa'?" in str(caught.value)
    assert "a path to a folder with corpus.jsonl works" in str(caught.value)
    with pytest.raises(DataError) as caught:
        load("no/such/folder")
    assert "did you mean" not in str(caught.value)
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="the folder of a collection is needed"):
        load(tmp_path / "file")


def test_the_name_pydocs_loads_the_shipped_collection_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pydocs").mkdir()
    monkeypatch.chdir(tmp_path)
    c = load("pydocs")
    assert c.name == "pydocs"
    assert len(c) > 1000
    assert c.topics is not None


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("hotpotqa", (3930, 398, 796, 945)),
        ("2wikimultihopqa", (9616, 764, 1842, 1592)),
        ("scifact", (5183, 1109, 339, 1391)),
        ("cacm", (3204, 64, 796, 0)),
        ("cranfield", (1400, 225, 1837, 0)),
        ("vaswani", (11429, 93, 2083, 0)),
    ],
)
def test_real_collections_have_the_counts_of_their_meta_files(
    name: str, counts: tuple[int, ...], shared_data: Callable[[str], Path]
) -> None:
    c = load(shared_data(name))
    frames = (c.documents, c.topics, c.qrels, c.evidence)
    assert tuple(0 if frame is None else len(frame) for frame in frames) == counts


@pytest.fixture
def local_irds(tmp_path: Path) -> Any:
    """A small data set registered with ir_datasets, so that no network is needed."""
    ir_datasets = pytest.importorskip("ir_datasets")
    (tmp_path / "docs.tsv").write_text("d1\tfirst text\nd2\tsecond text\n")
    (tmp_path / "queries.tsv").write_text("1\twhich\n")
    (tmp_path / "qrels.txt").write_text("1 0 d1 1\n1 0 d2 0\n1 0 d1 1\n")
    names = []

    def register(name: str, **files: str) -> None:
        paths = {kind: str(tmp_path / file) for kind, file in files.items()}
        ir_datasets.registry.register(name, ir_datasets.create_dataset(**paths))
        names.append(name)

    yield register
    for name in names:
        del ir_datasets.registry._registered[name]


def test_an_ir_datasets_data_set_is_read_into_our_columns(local_irds: Any) -> None:
    local_irds("searchops-local", docs_tsv="docs.tsv", queries_tsv="queries.tsv", qrels_trec="qrels.txt")
    c = load("irds:searchops-local")
    assert c.name == "irds:searchops-local"
    assert c.documents.to_dict("records") == [
        {"docno": "d1", "title": "", "text": "first text"},
        {"docno": "d2", "title": "", "text": "second text"},
    ]
    assert c.topics is not None
    assert c.qrels is not None
    assert c.topics.to_dict("records") == [{"qid": "1", "query": "which"}]
    assert c.qrels.to_dict("records") == [
        {"qid": "1", "docno": "d1", "label": 1},
        {"qid": "1", "docno": "d2", "label": 0},
    ]
    assert c.notes == ("1 repeated qrels kept once",)


def test_an_ir_datasets_data_set_of_documents_alone_has_no_topics(local_irds: Any) -> None:
    local_irds("searchops-docs", docs_tsv="docs.tsv")
    c = load("irds:searchops-docs")
    assert (len(c), c.topics, c.qrels) == (2, None, None)


def test_an_ir_datasets_data_set_without_documents_is_refused(local_irds: Any) -> None:
    local_irds("searchops-queries", queries_tsv="queries.tsv")
    with pytest.raises(DataError, match="a data set with documents is needed"):
        load("irds:searchops-queries")


def test_files_that_ir_datasets_cannot_get_are_a_data_error(local_irds: Any) -> None:
    local_irds("searchops-gone", docs_tsv="gone.tsv")
    with pytest.raises(DataError, match=r"irds:searchops-gone: the data set's files are needed"):
        load("irds:searchops-gone")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("irds:beir/scifac", "found 'beir/scifac'. Did you mean 'beir/scifact'"),
        ("irds:qqqqqqqqqqqq", "See https://ir-datasets.com."),
        ("irds:", "the name of an ir_datasets data set is needed"),
    ],
)
def test_an_unknown_ir_datasets_name_is_refused_with_near_names(name: str, message: str) -> None:
    pytest.importorskip("ir_datasets")
    with pytest.raises(DataError) as caught:
        load(name)
    assert message in str(caught.value)


def test_without_ir_datasets_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(DataError, match="pip install ir_datasets"):
        load("irds:beir/scifact")


def test_documents_with_fields_other_than_text_keep_them() -> None:
    irds = pytest.importorskip("searchops.datasets.irds")
    formats = pytest.importorskip("ir_datasets.formats")
    trec = formats.TrecDoc("t1", "body text", "<DOC>")
    query = formats.TrecQuery("301", "the title", "the description", "the narrative")
    assert irds._records([trec], "text") == [{"docno": "t1", "text": "body text", "marked_up_doc": "<DOC>"}]
    assert irds._records([query], "query") == [
        {
            "qid": "301",
            "query": "the title",
            "title": "the title",
            "description": "the description",
            "narrative": "the narrative",
        }
    ]
