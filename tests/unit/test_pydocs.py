"""The embedded collection: what is read, what is left out, and that nothing of it is silent."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pandas as pd
import pytest

from searchops.corpus import misplaced_evidence
from searchops.datasets import cache
from searchops.datasets.docstrings import module_name, read_docstrings, source_files
from searchops.datasets.pydocs import load_pydocs
from searchops.datasets.quotes import locate
from searchops.errors import DataError

QUESTIONS = Path(__file__).resolve().parents[2] / "data" / "pydocs" / "questions.jsonl"
STDLIB = Path(sysconfig.get_path("stdlib"))
MEASURED = {(3, 11, 7), (3, 12, 1), (3, 13, 0)}
"""Pythons in which every quotation was found; texts of others may differ in a few places."""


@pytest.fixture(scope="module")
def pydocs():
    return load_pydocs()


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A library of three files, its topics, one question, and a cache of its own."""
    monkeypatch.setenv("SEARCHOPS_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "lib"
    for name, text in {
        "pydoc_data/topics.py": "topics = {'b': 'Loops\\n*****\\n\\nA loop repeats.', 'a': 'All\\n***'}",
        "knots.py": '"""Knots and\nsplices."""\n\ndef tie(rope, *, tight=True):\n    """Ties a rope."""\n',
        "pack/__init__.py": "class Box(dict):\n    'A box.'\n    async def shut(self): 'Shuts it.'\n",
        "pack/inner.py": "x = 1\n",
        "test/test_knots.py": "'Not part of the library.'\n",
        "site-packages/other.py": "'Not part of the library.'\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    questions = tmp_path / "questions.jsonl"
    write_questions(questions, {"docno": "knots", "quote": "Knots and splices."})
    return root, questions


def write_questions(path, *evidence):
    line = {"qid": "q1", "query": "?", "answer": "!", "hops": 1, "kind": "single", "evidence": list(evidence)}
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")


def lost(collection):
    return [note for note in collection.notes if note.startswith("question")]


def kept_file(tmp_path):
    [path] = (tmp_path / "cache").iterdir()
    return path


# --- the real collection ------------------------------------------------------------------------


def test_several_thousand_documents_of_every_kind_have_unique_names(pydocs):
    documents = pydocs.documents
    assert len(documents) > 5000
    assert documents["docno"].is_unique
    assert set(documents["kind"]) == {"topic", "module", "class", "function", "method"}
    assert {"topic/specialnames", "json", "json.dumps", "collections.OrderedDict.move_to_end"} <= set(
        documents["docno"]
    )
    assert (documents["text"].str.len() == documents["n_chars"]).all()
    assert documents["n_chars"].max() > 50_000


def test_a_docstring_is_the_one_that_python_itself_shows(pydocs):
    texts = pydocs.documents.set_index("docno")["text"]
    assert texts["textwrap"] == inspect.getdoc(textwrap)
    for item in (textwrap.TextWrapper, textwrap.dedent, textwrap.TextWrapper.wrap):
        assert texts[f"textwrap.{item.__qualname__}"] == inspect.getdoc(item)


def test_the_topics_are_those_that_pydoc_shows(pydocs):
    from pydoc_data.topics import topics

    texts = pydocs.documents.set_index("docno")["text"]
    assert texts["topic/assignment"] == topics["assignment"].strip()
    held = {name for name in topics if f"topic/{name}" in texts}
    assert 40 < len(held) < len(topics)
    specialnames = " ".join(topics["specialnames"].split())
    for left_out in ("callable-types", "context-managers"):
        assert left_out not in held
        assert " ".join(topics[left_out].split("\n\n", 2)[-1].split()) in specialnames
    assert any(f"{len(topics) - len(held)} topics left out" in note for note in pydocs.notes)


def test_every_quotation_is_found_here_or_its_question_is_named(pydocs):
    written = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    gone = {re.search(r"question (\S+) left out", note).group(1) for note in lost(pydocs)}
    assert {q["qid"] for q in written} - gone == set(pydocs.topics["qid"])
    assert len(gone) <= (0 if sys.version_info[:3] in MEASURED else len(written) // 10)


def test_there_are_ninety_questions_and_thirty_five_need_two_places(pydocs):
    topics = pydocs.topics
    assert len(topics) >= 90
    assert topics["qid"].is_unique
    assert topics["query"].is_unique
    assert (topics["hops"] == 2).sum() >= 35
    assert ((topics["hops"] == 2) == topics["kind"].isin(["distant", "multi-document"])).all()


def test_the_kind_of_a_question_agrees_with_where_its_evidence_stands(pydocs):
    kinds = pydocs.topics.set_index("qid")["kind"]
    for qid, labels in pydocs.evidence.groupby("qid"):
        apart = labels["start"].max() - labels["start"].min()
        if labels["docno"].nunique() > 1:
            kind = "multi-document"
        else:
            kind = "distant" if apart >= 1500 else "single"
        assert kinds[qid] == kind, qid


def test_each_label_is_the_slice_of_its_document_at_its_offsets(pydocs):
    assert misplaced_evidence(pydocs.evidence, pydocs.documents) == []
    lengths = pydocs.evidence["end"] - pydocs.evidence["start"]
    assert lengths.between(40, 400).all()
    assert (lengths == pydocs.evidence["text"].str.len()).all()
    assert (pydocs.evidence["text"] == pydocs.evidence["text"].str.strip()).all()


def test_no_supporting_text_stands_in_a_second_document(pydocs):
    texts = pydocs.documents.set_index("docno")["text"]
    plain = {docno: " ".join(text.split()) for docno, text in texts.items()}
    for row in pydocs.evidence.itertuples():
        quote = " ".join(row.text.split())
        assert [d for d, text in plain.items() if quote in text] == [row.docno], row.qid


def test_every_evidence_document_is_judged_relevant_once(pydocs):
    pairs = set(zip(pydocs.evidence["qid"], pydocs.evidence["docno"], strict=True))
    assert set(zip(pydocs.qrels["qid"], pydocs.qrels["docno"], strict=True)) == pairs
    assert len(pydocs.qrels) == len(pairs)
    assert set(pydocs.qrels["label"]) == {1}


def test_loading_imports_nothing_of_what_it_reads(tmp_path):
    code = (
        "import sys, json\n"
        "from searchops.datasets.pydocs import load_pydocs\n"
        "before = set(sys.modules)\n"
        "load_pydocs()\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))\n"
    )
    env = {**os.environ, "SEARCHOPS_CACHE": str(tmp_path)}
    env["PYTHONPATH"] = os.pathsep.join([str(QUESTIONS.parents[2]), env.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    new = json.loads(done.stdout)
    described = {module_name(path.relative_to(STDLIB)) for path in source_files(STDLIB)}
    assert {"this", "turtle", "antigravity"} <= described
    assert [name for name in new if name in described] == []
    assert "pydoc_data.topics" not in new


def test_a_second_load_reads_the_cache_and_gives_the_same_collection(pydocs, monkeypatch, tmp_path):
    again = load_pydocs()
    monkeypatch.setenv("SEARCHOPS_CACHE", str(tmp_path))
    afresh = load_pydocs()
    for other in (again, afresh):
        assert other.data_hash == pydocs.data_hash
        assert other.notes == pydocs.notes
        pd.testing.assert_frame_equal(other.documents, pydocs.documents)
        pd.testing.assert_frame_equal(other.evidence, pydocs.evidence)


# --- a tiny library -----------------------------------------------------------------------------


def test_a_library_is_read_in_the_order_of_its_files_topics_first(tiny):
    documents = load_pydocs(stdlib=tiny[0], questions=tiny[1]).documents
    rows = documents[["docno", "title", "kind", "package", "line"]].values.tolist()
    assert rows == [
        ["topic/a", "All", "topic", "", 1],
        ["topic/b", "Loops", "topic", "", 1],
        ["knots", "knots", "module", "knots", 1],
        ["knots.tie", "knots.tie(rope, *, tight=True)", "function", "knots", 4],
        ["pack.Box", "class pack.Box(dict)", "class", "pack", 1],
        ["pack.Box.shut", "async pack.Box.shut(self)", "method", "pack", 3],
    ]


def test_a_quotation_over_a_line_break_is_found(tiny):
    evidence = load_pydocs(stdlib=tiny[0], questions=tiny[1]).evidence
    assert evidence.values.tolist() == [["q1", "knots", 0, 18, "Knots and\nsplices."]]


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        ({"docno": "knots", "quote": "Knots or splices."}, "knots does not hold"),
        ({"docno": "knots", "quote": "splices", "occurrence": 2}, "knots does not hold"),
        ({"docno": "ropes", "quote": "Knots"}, "document ropes"),
    ],
)
def test_a_question_whose_quotation_vanished_is_named_and_left_out(tiny, evidence, said):
    write_questions(tiny[1], {"docno": "knots", "quote": "Knots and"}, evidence)
    collection = load_pydocs(stdlib=tiny[0], questions=tiny[1])
    [note] = lost(collection)
    assert "q1" in note
    assert said in note
    assert len(collection.topics) == len(collection.evidence) == len(collection.qrels) == 0
    assert list(collection.topics.columns) == ["qid", "query", "answer", "hops", "kind"]


def test_files_that_are_not_python_are_counted_and_named(tiny):
    (tiny[0] / "broken.py").write_text("def (:\n", encoding="utf-8")
    (tiny[0] / "nul.py").write_bytes(b"x = '\0'\n")
    (tiny[0] / "latin.py").write_bytes(b"'''caf\xe9'''\n")
    collection = load_pydocs(stdlib=tiny[0], questions=tiny[1])
    assert "3 source files do not parse: broken.py, latin.py, nul.py" in collection.notes
    assert "knots.tie" in set(collection.documents["docno"])


def test_a_library_without_topics_says_so(tiny):
    (tiny[0] / "pydoc_data" / "topics.py").write_text("topics = ('none',)\n", encoding="utf-8")
    collection = load_pydocs(stdlib=tiny[0], questions=tiny[1])
    assert any(note.startswith("no language-reference topics") for note in collection.notes)
    assert "topic" not in set(collection.documents["kind"])
    (tiny[0] / "pydoc_data" / "topics.py").unlink()
    assert load_pydocs(stdlib=tiny[0], questions=tiny[1]).notes == collection.notes


def test_of_two_equal_topics_and_of_part_and_whole_one_remains(tiny):
    topics = {"if": "If\n**\n\nTests.", "else": "If\n**\n\nTests.", "all": "All\n***\n\nIf\n==\n\nTests.\nMore."}
    (tiny[0] / "pydoc_data" / "topics.py").write_text(f"topics = {topics!r}\n", encoding="utf-8")
    collection = load_pydocs(stdlib=tiny[0], questions=tiny[1])
    kept = collection.documents.query("kind == 'topic'")["docno"].tolist()
    assert kept == ["topic/all"]
    assert any(note.startswith("2 topics left out") and "else in all" in note for note in collection.notes)


def test_the_first_documented_definition_of_a_name_wins_and_the_rest_is_counted(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(
        "try:\n    def f(): 'one'\nexcept ImportError:\n    def f(): 'two'\nelse:\n    def g(): 'else'\n"
        "if 1:\n    def h(): pass\nelif 2:\n    def h(): 'second has the words'\n"
        "class C:\n    @property\n    def p(self): 'gets'\n    @p.setter\n    def p(self, v): 'sets'\n"
        "    class _In:\n        def __call__(self): '  deep  '\n",
        encoding="utf-8",
    )
    walk = read_docstrings(tmp_path, [path])
    assert [(d["docno"], d["text"], d["public"]) for d in walk.documents] == [
        ("m.f", "one", True),
        ("m.g", "else", True),
        ("m.h", "second has the words", True),
        ("m.C.p", "gets", True),
        ("m.C._In.__call__", "deep", False),
    ]
    assert walk.repeated == 2


def test_a_folder_without_sources_is_a_clear_error(tmp_path):
    with pytest.raises(DataError, match=r"no \.py file"):
        load_pydocs(stdlib=tmp_path)
    with pytest.raises(DataError, match="source files of the standard library are needed"):
        load_pydocs(stdlib=tmp_path / "nowhere")


@pytest.mark.parametrize(
    "line",
    ["{", "[]", '{"qid": "q1"}', '{"qid": "q", "query": "", "answer": "", "hops": 1, "kind": "", "evidence": []}'],
)
def test_a_malformed_question_is_reported_with_its_line(tiny, line):
    good = tiny[1].read_text(encoding="utf-8")
    tiny[1].write_text(good + "\n" + line + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"questions\.jsonl:3: "):
        load_pydocs(stdlib=tiny[0], questions=tiny[1])


def test_a_missing_questions_file_is_a_data_error(tiny, tmp_path):
    with pytest.raises(DataError, match="readable questions file"):
        load_pydocs(stdlib=tiny[0], questions=tmp_path / "none.jsonl")


# --- the cache ----------------------------------------------------------------------------------


def test_what_is_cached_is_used_until_a_source_changes(tiny, tmp_path):
    load_pydocs(stdlib=tiny[0], questions=tiny[1])
    path = kept_file(tmp_path)
    first = path.read_bytes()
    load_pydocs(stdlib=tiny[0], questions=tiny[1])
    assert path.read_bytes() == first
    (tiny[0] / "knots.py").write_text("'Splices, and nothing else at all.'\n", encoding="utf-8")
    collection = load_pydocs(stdlib=tiny[0], questions=tiny[1])
    assert len(lost(collection)) == 1
    assert kept_file(tmp_path).read_bytes() != first


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b"Ties a rope.", b"Cuts a rope."),
        lambda content: b"\xff" + content,
    ],
    ids=["emptied", "cut short", "altered", "not text"],
)
def test_a_damaged_cache_is_built_again(tiny, tmp_path, damage):
    expected = load_pydocs(stdlib=tiny[0], questions=tiny[1]).data_hash
    path = kept_file(tmp_path)
    sound = path.read_bytes()
    path.write_bytes(damage(sound))
    assert load_pydocs(stdlib=tiny[0], questions=tiny[1]).data_hash == expected
    assert path.read_bytes() == sound


def test_a_cache_that_cannot_be_written_changes_nothing(tiny, tmp_path, monkeypatch):
    expected = load_pydocs(stdlib=tiny[0], questions=tiny[1]).data_hash
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    monkeypatch.setenv("SEARCHOPS_CACHE", str(tmp_path / "file" / "cache"))
    assert load_pydocs(stdlib=tiny[0], questions=tiny[1]).data_hash == expected


def test_a_write_that_breaks_off_leaves_no_file(tmp_path, monkeypatch):
    (tmp_path / "name.json").mkdir()  # a file cannot replace a folder
    slot = cache.Slot(tmp_path / "name.json", "f")
    slot.write({"a": 1})
    assert [path.name for path in tmp_path.iterdir()] == ["name.json"]
    assert slot.read() is None


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("SEARCHOPS_CACHE", "~/mine")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("SEARCHOPS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.cache_folder() == tmp_path / "xdg" / "searchops"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/paths/are/ignored")
    assert cache.cache_folder() == tmp_path / ".cache" / "searchops"


def test_without_a_home_nothing_is_cached_and_loading_works(tiny, monkeypatch):
    expected = load_pydocs(stdlib=tiny[0], questions=tiny[1]).data_hash
    monkeypatch.setenv("SEARCHOPS_CACHE", "~no-such-user-anywhere/cache")
    assert cache.cache_folder() is None
    assert load_pydocs(stdlib=tiny[0], questions=tiny[1]).data_hash == expected


# --- quotations ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quote", "text", "found"),
    [
        ("a b", "x a \n\t b", "a \n\t b"),
        ("well-known rule", "a well-\nknown rule", "well-\nknown rule"),
        ("left- hand", "the left-hand side", "left-hand"),
        ("x -- y", "x -- y", "x -- y"),
        ("ends with -", "ends with - \n", "ends with -"),
        ('it\'s "so"', "it’s “so”", "it’s “so”"),
        (".*", "a.*b", ".*"),
        ("A", "a", None),
        ("ab", "a b", None),
        ("a b", "ab", None),
        ("  ", "a  b", None),
    ],
)
def test_a_quotation_matches_but_for_white_space_and_quote_marks(quote, text, found):
    place = locate(quote, text)
    assert (None if place is None else text[slice(*place)]) == found


def test_an_occurrence_is_counted_from_one():
    assert locate("aa", "aa aa", 2) == (3, 5)
    assert locate("aa", "aa aa", 3) is None
    assert locate("aa", "aa aa", 0) is None
