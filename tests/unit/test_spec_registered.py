"""What other packages register: stages, fusions and settings of every kind of argument."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import pyterrier as pt
import pytest

from searchops import registry
from searchops.errors import SpecError
from searchops.frames import Record
from searchops.fusion import Branches
from searchops.primitives import Dedupe, Retrieve
from searchops.primitives.base import Primitive
from searchops.scorers.base import Scorer
from searchops.spec import PlannedIndex, SpecErrors, build_pipeline, dump, read_spec, to_nodes, to_text
from searchops.spec.shapes import shape_of

LUCENE = PlannedIndex("lucene")
ENGINES = {"lucene": LUCENE}


class WebSearch(Primitive):
    """Candidates that come from no index."""

    needs = ("qid", "query")

    def __init__(self, region: Literal["de", "en"] = "en", n_pages: int | None = None) -> None:
        self.region = region
        self.n_pages = n_pages

    def transform_outputs(self, input_columns: list[str]) -> list[str]:
        return [*input_columns, "docno", "text"]


class Guarded(Primitive):
    """A stage around others, with settings of all sorts."""

    needs = ("qid", "query")

    def __init__(
        self,
        inner: pt.Transformer,
        folder: str | os.PathLike[str] = ".",
        limits: Mapping[str, int] | None = None,
        tags: Annotated[Sequence[str], "sorted"] = (),
        ratio: float = 0.5,
        extra: Any = None,
        safe: bool = True,
    ) -> None:
        self.inner = inner
        self.folder = folder
        self.limits = limits
        self.tags = tags
        self.ratio = ratio
        self.extra = extra
        self.safe = safe

    def transform_outputs(self, input_columns: list[str]) -> list[str]:
        raise ValueError("known when it runs")


class Choosy(Primitive):
    """A stage whose constructor fails in its own way."""

    def __init__(self, size: int = 1, *, other: Any = None) -> None:
        if size > 3:
            raise RuntimeError(f"no size {size}")
        self.size = size
        self.other = other


class Open(Primitive):
    """A stage that takes any setting."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings


class Foreign(pt.Transformer):
    """Somebody's transformer."""

    def __init__(self, n: int = 1) -> None:
        self.n = n

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        return inp


class Borda(Branches):
    """Another fusion."""

    def __init__(self, *branches: pt.Transformer, k: int | None = None) -> None:
        self.branches = branches
        self.k = k

    def join(self, lists: list[list[Record]]) -> list[Record]:
        return [row for rows in lists for row in rows]


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    stages = {"websearch": WebSearch, "guarded": Guarded, "choosy": Choosy, "open": Open, "foreign": Foreign}
    for name, cls in stages.items():
        registry.register("stage", name, cls)
    registry.register("fusion", "borda", Borda)
    yield
    for name in stages:
        registry._tables["stage"].targets.pop(name)
    registry._tables["fusion"].targets.pop("borda")


def errors_of(pipeline: str) -> str:
    with pytest.raises(SpecErrors) as caught:
        read_spec(f"version: 1\npipeline: {pipeline}", source="p.yaml")
    return str(caught.value)


# -- where they may stand --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pipeline",
    ["websearch >> dedupe", "foreign >> dedupe", "guarded(retrieve) >> dedupe", "retrieve >> foreign >> retrieve",
     "retrieve >> websearch >> dedupe", "union(websearch, retrieve) >> dedupe"],
)  # fmt: skip
def test_a_stage_that_puts_out_candidates_or_may_do_so_can_stand_first(pipeline: str) -> None:
    assert list(read_spec(f"version: 1\npipeline: {pipeline}").pipelines) == ["pipeline"]


def test_what_stands_behind_a_stage_that_gives_queries_on_is_checked_still() -> None:
    assert "open: " not in errors_of("open >> dedupe")
    assert "dedupe: a retrieve stage before it is needed" in errors_of("open >> dedupe")


# -- their arguments -------------------------------------------------------------------------------


def test_arguments_of_every_kind_are_read_and_written_back() -> None:
    nodes = {"guarded": {
        "inner": ["retrieve", "dedupe"], "folder": "a/b", "limits": {"x": 1}, "tags": ["a", "b"], "ratio": 2,
        "extra": {"list": [1, None, True, {"deep": float("-inf")}], "index": "lucene"}, "safe": False,
    }}  # fmt: skip
    stage = build_pipeline([nodes], ENGINES)
    assert stage == Guarded(
        Retrieve(LUCENE) >> Dedupe(), "a/b", {"x": 1}, ["a", "b"], 2.0,
        {"list": [1, None, True, {"deep": float("-inf")}], "index": "lucene"}, False,
    )  # fmt: skip
    assert build_pipeline(to_nodes(stage, ENGINES), ENGINES) == stage
    assert build_pipeline(to_text(stage, ENGINES), ENGINES) == stage


def test_an_index_can_be_meant_where_anything_can_stand() -> None:
    assert build_pipeline([{"guarded": {"inner": "retrieve", "extra": {"index": "lucene"}}}], ENGINES).extra is LUCENE


def test_a_path_is_written_as_text() -> None:
    assert to_nodes(Guarded(Dedupe(), Path("a/b"))) == [{"guarded": {"inner": ["dedupe"], "folder": "a/b"}}]


def test_a_set_is_written_in_order() -> None:
    assert to_nodes(Guarded(Dedupe(), tags=frozenset("cab")))[0]["guarded"]["tags"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("pipeline", "error"),
    [
        ("[{websearch: {region: fr}}]", "2:33: websearch: region must be one of de, en; found 'fr'"),
        ("[{websearch: fr}]", "2:24: websearch: region must be one of de, en; found 'fr'"),
        ("[{guarded: {inner: retrieve, limits: {a: b}}}]",
         "2:52: guarded: limits.a must be a whole number; found 'b'"),
        ("[{guarded: {inner: retrieve, safe: 1}}]", "2:46: guarded: safe must be true or false; found 1"),
        ("[{guarded: {inner: 5}}]", "2:30: guarded: inner must be a stage or a list of stages; found 5"),
        ("[retrieve, {choosy: {size: 4, other: x}}]", "2:22: choosy: cannot be made; found RuntimeError: no size 4"),
    ],
)  # fmt: skip
def test_their_wrong_arguments_are_placed(pipeline: str, error: str) -> None:
    assert errors_of(pipeline) == f"p.yaml:{error}"


def test_a_stage_that_takes_any_setting_gets_it() -> None:
    assert build_pipeline([{"open": {"a": 1, "b": [2]}}]).settings == {"a": 1, "b": [2]}


def test_another_fusion_is_named_by_its_method() -> None:
    fused = build_pipeline("fuse(retrieve, retrieve(5), method=borda, k=3)", ENGINES)
    assert fused == Borda(Retrieve(LUCENE), Retrieve(LUCENE, 5), k=3)
    assert to_text(fused, ENGINES) == 'fuse(retrieve, retrieve(5), method="borda", k=3)'
    assert build_pipeline(to_nodes(fused, ENGINES), ENGINES) == fused


def test_the_settings_of_a_scorer_may_stand_beside_it_in_every_form() -> None:
    forms: list[Any] = [
        {"rerank": {"scorer": "biencoder", "model": "m", "batch_size": 2}},
        {"rerank": {"scorer": {"biencoder": None}, "model": "m", "batch_size": 2}},
        {"rerank": {"scorer": {"biencoder": "m"}, "batch_size": 2}},
        {"rerank": {"scorer": {"biencoder": {"model": "m"}}, "batch_size": 2}},
        "rerank(scorer=biencoder('m'), batch_size=2)",
    ]
    built = [build_pipeline([form]) for form in forms]
    assert [stage.scorer.batch_size for stage in built] == [2] * 5
    assert all(stage == built[0] for stage in built)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            "scorer: {biencoder: {batch_size: 2}}, batch_size: 3",
            "rerank: unknown field 'batch_size'; known: fields, k, scorer",
        ),
        ("scorer: [biencoder], batch_size: 3", "rerank: unknown field 'batch_size'; known: fields, k, scorer"),
        ("scorer: bienc, batch_size: 3", "unknown scorer 'bienc'; did you mean 'biencoder'?"),
        ("kk: 3", "rerank: unknown field 'kk'; did you mean 'k'?"),
    ],
)
def test_settings_that_are_no_scorers_stay_errors_of_the_stage(arguments: str, error: str) -> None:
    assert error in errors_of(f"[retrieve, {{rerank: {{{arguments}}}}}]")


def test_a_transformer_of_no_registered_class_is_named() -> None:
    class Nameless(Foreign):
        pass

    with pytest.raises(SpecError, match="stages that files can name are needed"):
        dump(Dedupe() >> Nameless())


# -- annotations -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "takes", "refuses"),
    [
        (int, [1], [True, 1.0, "1", None]),
        (float, [1, 1.5], [True, "1"]),
        (bool, [True], [1]),
        (str | None, ["a", None], [1]),
        (None, [None], [0]),
        (list[int], [[1]], [1, "a"]),
        (dict[str, int], [{"a": 1}], ["a"]),
        (tuple[str, ...], [["a"]], ["a"]),
        (Literal["a", "b"], ["a"], ["c", 1]),
        (Annotated[int, "positive"], [1], ["a"]),
        (os.PathLike[str], ["a"], [1]),
        (Scorer, ["lexical", {"lexical": None}], [1, None]),
        (pt.Transformer | None, ["dedupe", ["dedupe"], None], [1]),
        (Any, [1, "a", None, {}], []),
        ("unread", [1, "a"], []),
        (object, [1, "a"], []),
    ],
)
def test_an_annotation_says_what_a_file_may_give(annotation: Any, takes: list[Any], refuses: list[Any]) -> None:
    shape = shape_of(annotation)
    assert [value for value in takes if not shape.takes(value)] == []
    assert [value for value in refuses if shape.takes(value)] == []


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (int | None, "a whole number or null"),
        (Scorer, "a scorer"),
        (str | list[int], "text or a list"),
        (Any, "a value"),
    ],
)
def test_a_shape_says_in_words_what_is_needed(annotation: Any, words: str) -> None:
    assert shape_of(annotation).words() == words
