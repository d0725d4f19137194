"""Laws of pipeline files and texts: what is written is read back as the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pyterrier as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyterrier._ops import RankCutoff

from searchops.errors import SpecError
from searchops.frames import Record
from searchops.fusion import RRF, Rewrite, Union
from searchops.pipeline import Pipeline
from searchops.predicates import field
from searchops.primitives import Dedupe, Extract, Filter, Rerank, Retrieve
from searchops.registry import register
from searchops.scorers.biencoder import BiEncoder
from searchops.scorers.crossencoder import CrossEncoder
from searchops.scorers.lexical import Lexical
from searchops.scorers.statistics import Analyzer
from searchops.spec import KEYS, build_pipeline, dump, parse_text, read_spec, to_nodes, to_text
from searchops.spec.document import read_document
from searchops.spec.problems import Problems
from searchops.spec.variables import escaped, substituted
from searchops.splitting import Given, Sentences, Words


class Shelf:
    """An engine over a few texts: a document matches as often as it holds the query."""

    columns = ("docno", "text")

    def __init__(self, path: str, size: int = 1) -> None:
        self.path = path
        self.size = size
        self._texts = {f"{path}-{n}": "one two " * n for n in range(size)}

    def __len__(self) -> int:
        return len(self._texts)

    def search(self, query: str, k: int) -> list[tuple[str, float]]:
        found = [(docno, float(text.count(query))) for docno, text in self._texts.items() if query in text]
        return sorted(found, key=lambda hit: -hit[1])[:k]

    def search_many(self, queries: Sequence[str], k: int) -> list[list[tuple[str, float]]]:
        return [self.search(query, k) for query in queries]

    def fetch(self, docnos: Sequence[str]) -> list[Record]:
        return [{"docno": docno, "text": self._texts[docno]} for docno in docnos]

    def statistics(self, analyzer: Analyzer) -> Any:
        raise SpecError("a shelf has no statistics")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shelf) and (self.path, self.size) == (other.path, other.size)

    def __hash__(self) -> int:
        return hash((self.path, self.size))

    def __repr__(self) -> str:
        return f"Shelf({self.path!r}, {self.size})"


register("engine", "shelf", Shelf)

SHELVES = {"shelf": Shelf("a"), "other": Shelf("b", 3)}
ks = st.integers(1, 10**6)
texts = st.text(min_size=1, max_size=20)
names = st.sampled_from(["year", "lang", "publication year", "meta.kind", "in", "título"])
values = st.one_of(st.integers(-(10**12), 10**12), st.booleans(), texts, st.floats(-1e9, 1e9))
maybe = lambda strategy: st.none() | strategy  # noqa: E731
shelves = st.sampled_from(list(SHELVES.values()))

leaves = st.one_of(
    st.builds(lambda name, value: field(name) == value, names, values),
    st.builds(lambda name, value: field(name) >= value, names, st.integers() | st.floats(-1e9, 1e9) | texts),
    st.builds(lambda name, items: field(name).isin(items), names, st.lists(texts, min_size=1, max_size=3)),
    st.builds(lambda name: field(name).exists(), names),
)
predicates = st.recursive(
    leaves,
    lambda inner: st.builds(lambda a, b: a & b, inner, inner) | st.builds(lambda a, b: a | b, inner, inner)
    | st.builds(lambda a: ~a, inner),
    max_leaves=5,
)  # fmt: skip

analyzers = st.builds(Analyzer, st.sampled_from(["lucene", "none"]), st.sampled_from(["porter", "english", None]))
lexical = st.builds(
    Lexical,
    statistics=st.none() | st.just("candidates") | shelves,
    k1=st.floats(0, 100),
    b=st.floats(0, 1),
    analyzer=analyzers,
    average_length=st.sampled_from(["statistics", "candidates"]) | st.floats(1e-6, 1e6),
)
sizes = st.integers(1, 64)
biencoders = st.builds(BiEncoder, texts, maybe(texts), batch_size=sizes, max_length=maybe(st.integers(1, 512)))
crossencoders = st.builds(CrossEncoder, texts, batch_size=sizes)
scorers = st.one_of(st.just(Lexical()), lexical, biencoders, crossencoders)
windows = st.integers(1, 50).flatmap(lambda size: st.tuples(st.just(size), maybe(st.integers(1, size))))
splitters = st.one_of(
    windows.map(lambda window: Words(*window)),
    windows.map(lambda window: Sentences(*window)),
    st.builds(Given, texts, maybe(st.builds(Words, st.integers(1, 9)))),
)
columns = st.lists(texts, max_size=3)

filters = st.builds(Filter, predicates)
reranks = st.builds(Rerank, scorers, maybe(ks), fields=columns)
extracts = st.builds(
    Extract, scorers, maybe(ks), instruction=maybe(texts), splitter=splitters,
    per_document=maybe(ks), depth=maybe(ks), size=maybe(ks), fields=columns,
)  # fmt: skip
dedupes = st.sampled_from([Dedupe(), Dedupe("passage_id")])
cutoffs = st.builds(RankCutoff, ks)
templates = texts.filter(lambda text: not set(text) & set("{}")).map(lambda text: text + "{query}")
rewrites = st.builds(Rewrite, templates)
retrieves = st.builds(Retrieve, shelves, ks)
later = st.one_of(filters, reranks, extracts, dedupes, cutoffs)


def _chained(stages: list[pt.Transformer]) -> pt.Transformer:
    return stages[0] if len(stages) == 1 else Pipeline(*stages)


def _behind(first: st.SearchStrategy[pt.Transformer]) -> st.SearchStrategy[pt.Transformer]:
    return st.tuples(first, st.lists(later, max_size=3)).map(lambda parts: _chained([parts[0], *parts[1]]))


def _joined(inner: st.SearchStrategy[pt.Transformer]) -> st.SearchStrategy[pt.Transformer]:
    branches = st.lists(inner, min_size=1, max_size=3)
    unions = branches.map(lambda found: Union(*found))
    fusions = st.builds(lambda found, k, c: RRF(*found, k=k, c=c), branches, maybe(ks), st.integers(1, 100))
    rewritten = st.tuples(rewrites, inner).map(lambda parts: Pipeline(*parts))
    return _behind(unions | fusions | rewritten)


pipelines = st.recursive(_behind(retrieves), _joined, max_leaves=4)


@given(pipelines)
@settings(max_examples=100, deadline=None)
def test_a_pipeline_read_from_its_dump_is_the_pipeline(pipeline: pt.Transformer) -> None:
    spec = read_spec(dump(pipeline, indexes=SHELVES), source="p.yaml")
    assert spec.build(lambda index: Shelf(**index.settings)) == {"p": pipeline}


@given(pipelines)
@settings(max_examples=100, deadline=None)
def test_a_pipeline_read_from_its_text_is_the_pipeline(pipeline: pt.Transformer) -> None:
    assert build_pipeline(to_text(pipeline, SHELVES), SHELVES) == pipeline


@given(pipelines)
@settings(max_examples=60, deadline=None)
def test_a_text_inside_a_file_is_the_pipeline_too(pipeline: pt.Transformer) -> None:
    assert build_pipeline([to_text(pipeline, SHELVES)], SHELVES) == pipeline
    assert build_pipeline(to_nodes(pipeline, SHELVES), SHELVES) == pipeline


def _outcome(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except SpecError as error:
        return error


@given(st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_text_form_or_a_spec_error(text: str) -> None:
    outcome = _outcome(lambda: parse_text(text))
    assert outcome.where.startswith("text") if isinstance(outcome, SpecError) else outcome.value


words = st.sampled_from([*"()=,[]{}:k", "retrieve", "20", ">>", "filter", '"a"', "union"])


@given(st.lists(words, max_size=14).map(" ".join))
@settings(max_examples=300, deadline=None)
def test_any_words_of_the_text_form_build_or_are_a_spec_error(text: str) -> None:
    outcome = _outcome(lambda: build_pipeline(text, SHELVES))
    if isinstance(outcome, SpecError):
        assert outcome.where.startswith("pipeline")
    else:
        assert build_pipeline(to_text(outcome, SHELVES), SHELVES) == outcome


@given(st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_an_escaped_text_is_read_as_it_is(text: str) -> None:
    root = read_document("vars: {}\ntext: placeholder", "p.yaml", Problems())
    node = root.value["text"]
    changed = type(node)(escaped(text), node.place, text=text)
    problems = Problems()
    read = substituted(type(root)({"text": changed}, root.place), problems)
    assert not problems.found
    assert read.value["text"].value == text


scalars = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False) | st.text(max_size=12)
keys = st.sampled_from([*KEYS, "other"]).filter(lambda key: key != "version")
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(min_size=1, max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(keys, documents)
@settings(max_examples=300, deadline=None)
def test_any_data_under_any_key_is_read_or_is_a_spec_error(key: str, data: Any) -> None:
    text = "version: 1\n" + ("" if key == "pipeline" else "pipeline: retrieve\n") + f"{key}: {json.dumps(data)}"
    outcome = _outcome(lambda: read_spec(text, source="p.yaml"))
    assert outcome.where.startswith("p.yaml") if isinstance(outcome, SpecError) else outcome.pipelines


@pytest.mark.parametrize(
    "text",
    ["1e5", "0x1F", "0o7", "yes", "~", "", " a", "a: b", "- a", "#", "null", ".inf", "2020-01-01", "\t", "\x85", "\n"],
)
def test_texts_that_look_like_something_else_stay_texts(text: str) -> None:
    pipeline = Retrieve(SHELVES["shelf"]) >> Extract(Lexical(), instruction=text)
    spec = read_spec(dump(pipeline), source="p.yaml")
    assert spec.build(lambda index: Shelf(**index.settings)) == {"p": pipeline}


def test_indexes_without_a_name_are_named_after_their_engine_and_never_alike() -> None:
    pipeline = Union(Retrieve(Shelf("x")), Retrieve(Shelf("y")), Retrieve(Shelf("x")))
    spec = read_spec(dump(pipeline, indexes={"shelf2": Shelf("z")}), source="p.yaml")
    assert [(name, index.settings["path"]) for name, index in spec.indexes.items()] == [
        ("shelf2", "z"), ("shelf", "x"), ("shelf3", "y"),
    ]  # fmt: skip
    assert spec.build(lambda index: Shelf(**index.settings)) == {"p": pipeline}
