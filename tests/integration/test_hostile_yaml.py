"""Pipeline files are written by anybody: whatever they hold, the answer is a SpecError, and soon."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from searchops.errors import SpecError
from searchops.spec import SpecErrors, build_pipeline, read_spec

HEAD = "version: 1\n"
PIPE = "pipeline: [retrieve]\n"
# Reading is pure Python: nothing here takes longer than a few seconds on a slow machine.
BOUND_S = 60.0

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
)
GROWING = "vars: {a: " + "x" * 90_000 + "}\n"

HOSTILE = {
    "nothing": "",
    "white space": " \n\n ",
    "a comment": "# nothing\n",
    "an empty document": "---\n...\n",
    "a scalar": "retrieve\n",
    "a number": "42\n",
    "a list": "- retrieve\n- rerank\n",
    "two documents": HEAD + PIPE + "---\n" + HEAD + PIPE,
    "a duplicate key": HEAD + PIPE + "version: 1\n",
    "a duplicate key deep inside": HEAD + "pipeline: [{retrieve: {k: 1, k: 2}}]\n",
    "a tab": HEAD + "pipeline:\n\t- retrieve\n",
    "an alias bomb": HEAD + BOMB + PIPE,
    "an alias bomb in vars": HEAD + "vars:\n" + "".join(f"  {line}\n" for line in BOMB.splitlines()) + PIPE,
    "an alias bomb as pipeline": HEAD + BOMB.replace("x", "retrieve") + "pipeline: *i\n",
    "a list that holds itself": HEAD + "pipeline: &p [retrieve, *p]\n",
    "a mapping that holds itself": HEAD + "pipeline: &p {union: *p}\n",
    "an alias without an anchor": HEAD + "pipeline: *nowhere\n",
    "a merge key": HEAD + "base: &b {k: 1}\npipeline: [{retrieve: {<<: *b}}]\n",
    "a Python object": HEAD + "pipeline: !!python/object/apply:os.system ['true']\n",
    "a Python name": HEAD + "collection: !!python/name:os.system ''\n" + PIPE,
    "a tag of its own": HEAD + "pipeline: [!stage retrieve]\n",
    "a known tag": HEAD + "pipeline: [{retrieve: {k: !!int '5'}}]\n",
    "a tag directive": "%TAG ! tag:example.org,2000:\n---\n" + HEAD + PIPE,
    "YAML 1.1": "%YAML 1.1\n---\n" + HEAD + PIPE,
    "an unknown directive": "%FOO bar\n" + HEAD,
    "an import path": HEAD + "pipeline: [os.system]\n",
    "an import path with a colon": HEAD + "pipeline: ['os:system']\n",
    "an import path as scorer": HEAD + "pipeline: [retrieve, {rerank: {scorer: 'builtins:eval'}}]\n",
    "a dunder field": HEAD + "pipeline: [{retrieve: {__class__: x}}]\n",
    "self as a field": HEAD + "pipeline: [retrieve, {dedupe: {self: x}}]\n",
    "an engine as a stage": HEAD + "pipeline: [lucene]\n",
    "an expression": HEAD + "pipeline: [{retrieve: {k: '${1 + 1}'}}]\n",
    "an attribute of a variable": HEAD + "vars: {a: 1}\npipeline: [{retrieve: {k: '${vars.a.__class__}'}}]\n",
    "a reference that does not end": HEAD + "vars: {a: 1}\npipeline: [{filter: 'a == ${vars.a'}]\n",
    "a reference in a reference": HEAD + "vars: {a: b, b: 1}\npipeline: [{retrieve: {k: '${vars.${vars.a}}'}}]\n",
    "vars that refer to vars": HEAD + "vars: {a: 1, b: '${vars.a}'}\n" + PIPE,
    "an unknown variable": HEAD + "pipeline: [{retrieve: {k: '${vars.k}'}}]\n",
    "an unset environment variable": HEAD + "collection: ${env.SEARCHOPS_NO_SUCH}\n" + PIPE,
    "a shell command": HEAD + "collection: $(id)\npipeline: [{retrieve: {k: '${env.$(id)}'}}]\n",
    "a variable that grows": HEAD + GROWING + "pipeline: [{filter: '" + "${vars.a}" * 50 + "'}]\n",
    "many variables that grow": HEAD + GROWING + "measures: [" + ", ".join(["'x${vars.a}'"] * 500) + "]\n" + PIPE,
    "a list put in often": HEAD + "vars: {a: [" + "1, " * 900 + "]}\nmeasures: [" + "'${vars.a}', " * 900 + "]\n",
    "vars that are a list": HEAD + "vars: [1]\n" + PIPE,
    "deep flow nesting": HEAD + "pipeline: " + "[" * 5_000 + "]" * 5_000 + "\n",
    "deep mappings": HEAD + "pipeline: " + "{union: [" * 500 + "retrieve" + "]}" * 500 + "\n",
    "deep block nesting": HEAD + "pipeline:\n" + "".join(" " * n + "-\n" for n in range(1, 1_000)),
    "deep compact nesting": HEAD + "pipeline:\n  " + "- " * 5_000 + "x\n",
    "deep questions": "? " * 5_000 + "x\n",
    "deep text form": HEAD + "pipeline: " + "union(" * 2_000 + "retrieve" + ")" * 2_000 + "\n",
    "deep brackets in a text form": HEAD + "pipeline: 'rerank(fields=" + "[" * 3_000 + "]" * 3_000 + ")'\n",
    "a long text form": HEAD + "pipeline: " + " >> ".join(["retrieve"] * 50_000) + "\n",
    "a text form that does not end": HEAD + "pipeline: 'retrieve(k=20'\n",
    "a quote that does not end": HEAD + 'pipeline: "retrieve\n',
    "a quote that does not end in a text form": HEAD + 'pipeline: retrieve >> filter("a > 1\n',
    "a NUL byte": HEAD + PIPE + "record: 'a\0b'\n",
    "an escape character": HEAD + PIPE + "record: '\x1b[2J'\n",
    "half a surrogate pair": HEAD + PIPE + "record: '\ud800'\n",
    "version 2": "version: 2\n" + PIPE,
    "version 1.0": "version: 1.0\n" + PIPE,
    "version true": "version: true\n" + PIPE,
    "version as text": "version: '1'\n" + PIPE,
    "no version": PIPE,
    "no pipeline": HEAD,
    "an empty pipeline": HEAD + "pipeline: []\n",
    "a null pipeline": HEAD + "pipeline:\n",
    "an empty text form": HEAD + "pipeline: ''\n",
    "a number as pipeline": HEAD + "pipeline: 5\n",
    "an empty stage": HEAD + "pipeline: [{}]\n",
    "a null stage": HEAD + "pipeline: [~]\n",
    "two stages in one mapping": HEAD + "pipeline: [{retrieve: 5, rerank: 5}]\n",
    "a list inside a pipeline": HEAD + "pipeline: [retrieve, [rerank, dedupe]]\n",
    "pipeline and pipelines": HEAD + PIPE + "pipelines: {a: retrieve}\n",
    "pipelines as text": HEAD + "pipelines: retrieve\n",
    "an empty mapping of pipelines": HEAD + "pipelines: {}\n",
    "names that are too many": HEAD + PIPE + "names: [a, b]\n",
    "names that are the same": HEAD + "pipelines: [retrieve, retrieve]\nnames: [a, a]\n",
    "names beside keys": HEAD + "pipelines: {a: retrieve}\nnames: [a]\n",
    "index and indexes": HEAD + PIPE + "index: lucene\nindexes: {a: lucene}\n",
    "an unknown engine": HEAD + PIPE + "index: lucen\n",
    "an index without a name": HEAD + PIPE + "index: [lucene]\n",
    "no index under indexes": HEAD + PIPE + "indexes: {}\n",
    "an index of nothing": HEAD + PIPE + "indexes: {a: }\n",
    "an unknown index": HEAD + "pipeline: [{retrieve: {index: other}}]\n",
    "an index setting of another type": HEAD + PIPE + "index: {lucene: {k1: high}}\n",
    "an unknown index setting": HEAD + PIPE + "index: {lucene: {kl: 0.9}}\n",
    "k of zero": HEAD + "pipeline: [{retrieve: {k: 0}}]\n",
    "k below zero": HEAD + "pipeline: [{retrieve: -5}]\n",
    "k as text": HEAD + "pipeline: [{retrieve: {k: ten}}]\n",
    "k as true": HEAD + "pipeline: [{retrieve: {k: true}}]\n",
    "k as a fraction": HEAD + "pipeline: [{retrieve: {k: 2.5}}]\n",
    "k of a million digits": HEAD + "pipeline: [{retrieve: {k: " + "9" * 900_000 + "}}]\n",
    "k1 beyond all numbers": HEAD + "pipeline: [retrieve, {rerank: {scorer: {lexical: {k1: " + "9" * 390 + "}}}}]\n",
    "k1 that is no number": HEAD + "pipeline: [retrieve, {rerank: {scorer: {lexical: {k1: .nan}}}}]\n",
    "a predicate that calls": HEAD + "pipeline: [retrieve, {filter: '__import__(\"os\")'}]\n",
    "a predicate that is deep": HEAD + "pipeline: [retrieve, {filter: '" + "(" * 500 + "a > 1" + ")" * 500 + "'}]\n",
    "a predicate that is a list": HEAD + "pipeline: [retrieve, {filter: [a]}]\n",
    "a template with an attribute": HEAD + "pipeline: [{rewrite: '{query.__class__}'}, retrieve]\n",
    "a template that does not end": HEAD + "pipeline: [{rewrite: '{query'}, retrieve]\n",
    "no retrieve": HEAD + "pipeline: [dedupe]\n",
    "only a rewrite": HEAD + "pipeline: [{rewrite: '{query} x'}]\n",
    "a rerank first": HEAD + "pipeline: [rerank, retrieve]\n",
    "two retrieves": HEAD + "pipeline: [retrieve, dedupe, retrieve]\n",
    "a branch without a retrieve": HEAD + "pipeline: [{union: [[retrieve], [dedupe]]}]\n",
    "no branches": HEAD + "pipeline: [union]\n",
    "a fusion without branches": HEAD + "pipeline: [{fuse: rrf}]\n",
    "an unknown fusion": HEAD + "pipeline: [{fuse: {method: borda, branches: [retrieve]}}]\n",
    "branches that are a number": HEAD + "pipeline: [{fuse: {branches: 3}}]\n",
    "a stage's name of a million letters": HEAD + "pipeline: [" + "r" * 900_000 + "]\n",
    "a key of many letters": HEAD + PIPE + "p" * 1_000 + ": 1\n",
    "a hundred unknown keys": HEAD + PIPE + "".join(f"key{n}: 1\n" for n in range(100)),
    "thousands of wrong stages": HEAD + "pipeline: [" + "retriev, " * 9_000 + "]\n",
    "too many values": HEAD + "pipeline: [" + "dedupe, " * 30_000 + "]\n",
    "a list as key": HEAD + PIPE + "[1, 2]: 3\n",
    "a mapping as key": HEAD + PIPE + "{a: b}: 3\n",
    "an empty key": HEAD + PIPE + "'': 3\n",
    "a collection that is a list": HEAD + PIPE + "collection: [pydocs]\n",
    "a record that is a number": HEAD + PIPE + "record: 5\n",
    "measures that are numbers": HEAD + PIPE + "measures: [1, 2]\n",
    "binary": "\x7fELF\x02\x01\x01",
    "JSON that is cut": '{"version": 1, "pipeline": ["retrieve"',
    "a closing bracket": HEAD + "pipeline: ]\n",
    "quotes of quotes": HEAD + "pipeline: \"''\"\n",
    "a template of another language": HEAD + "pipeline: {{ stages }}\n",
}


def _refused(text: str) -> SpecErrors:
    with pytest.raises(SpecError) as caught:
        read_spec(text, source="p.yaml")
    assert isinstance(caught.value, SpecErrors)
    return caught.value


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_gives_placed_errors_and_nothing_else(name: str) -> None:
    found: list[SpecErrors] = []
    worker = threading.Thread(target=lambda: found.append(_refused(HOSTILE[name])), daemon=True)
    worker.start()
    worker.join(BOUND_S)
    assert found, "no SpecError, or none in time"
    for error in found[0].errors:
        assert error.where.startswith("p.yaml")
        assert len(str(error)) < 600
        assert str(error).isprintable()
    assert len(found[0].errors) <= 50


@pytest.mark.parametrize(
    ("content", "needed"),
    [
        (b"version: 1\npipeline: \xff\xfe\n", "UTF-8"),
        (b"\xff\xfev\x00e\x00r\x00", "UTF-8"),
        (b"version: 1\n" + b"#" * 1_000_001, "at most 1,000,000 bytes"),
        (b"", "a pipeline file is needed"),
        (b"\x00" * 100, "printable text"),
    ],
)
def test_a_file_that_is_no_text_of_a_pipelines_size_is_refused(tmp_path: Path, content: bytes, needed: str) -> None:
    file = tmp_path / "p.yaml"
    file.write_bytes(content)
    with pytest.raises(SpecError, match=needed):
        read_spec(file)


@pytest.mark.parametrize("name", ["", ".", "no/such/file.yaml", "a\0b", "x" * 5_000, "\x1b[2J"])
def test_a_path_that_is_no_file_is_refused_and_shown_printably(name: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_spec(name)
    assert str(caught.value).isprintable()


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_bytes(b"\xef\xbb\xbfversion: 1\r\npipeline: [retrieve]\r\n")
    assert list(read_spec(file).pipelines) == ["p"]


@pytest.mark.parametrize(
    "data",
    [
        None, 5, [], {}, [[]], {1: 2}, {"retrieve": {1: 2}}, [object()], {"retrieve": {"k": b"x"}}, "retrieve(",
        "retrieve; import os", "retrieve(k=__import__)", "().__class__", [{"union": {"branches": {"a": 1}}}],
    ],
)  # fmt: skip
def test_a_pipeline_of_somebodys_data_gives_spec_errors_only(data: object) -> None:
    with pytest.raises(SpecError):
        build_pipeline(data)


def test_data_that_holds_itself_is_refused() -> None:
    loop: list[object] = ["retrieve"]
    loop.append(loop)
    with pytest.raises(SpecError, match="at most 40 levels"):
        build_pipeline(loop)


def test_reading_every_file_of_pipelines_loads_no_model_library_and_no_jvm() -> None:
    code = (
        "import sys, pathlib\n"
        "from searchops.spec import read_spec, json_schema\n"
        "files = sorted(pathlib.Path('pipelines').glob('*.yaml'))\n"
        "assert len(files) >= 7\n"
        "[read_spec(file) for file in files]\n"
        "json_schema()\n"
        "heavy = 'torch transformers sentence_transformers faiss jnius openai matplotlib ir_datasets'.split()\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
