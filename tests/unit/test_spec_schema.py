"""The JSON Schema of pipeline files, judged by an independent validator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from searchops import registry
from searchops.spec import KEYS, json_schema

PIPELINES = sorted((Path(__file__).parents[2] / "pipelines").glob("*.yaml"))


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def _file(**more: Any) -> dict[str, Any]:
    return {"version": 1, "pipeline": ["retrieve"], **more}


@pytest.mark.parametrize("file", PIPELINES, ids=lambda file: file.stem)
def test_every_shipped_file_satisfies_the_schema(validator: Any, file: Path) -> None:
    validator.validate(YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "document",
    [
        _file(vars={"k": 5}, pipeline=[{"retrieve": {"k": "${vars.k}"}}, {"rerank": "${env.SCORER}"}]),
        _file(index={"lucene": {"k1": 1}}),
        _file(index="dense"),
        _file(pipeline="retrieve(k=20) >> dedupe"),
        _file(pipeline=[{"extract": {"schema": {"year": "integer"}, "splitter": {"words": {"stride": None}}}}]),
        _file(pipeline=[{"rerank": {"scorer": {"biencoder": {"model": {"normalize": False}}}}}]),
        _file(pipeline=[{"fuse": {"method": "rrf", "branches": [["retrieve"], {"retrieve": 5}]}}, {"dedupe": None}]),
        _file(pipeline=["retrieve", {"rerank": {"scorer": "biencoder", "batch_size": 16, "k": 5}}]),
        {"version": 1, "pipelines": {"a": "retrieve", "b": ["retrieve"]}},
    ],
)
def test_what_files_may_say_satisfies_the_schema(validator: Any, document: Any) -> None:
    validator.validate(document)


@pytest.mark.parametrize(
    "document",
    [
        {"version": 1},
        {"version": 2, "pipeline": ["retrieve"]},
        _file(pipelines={"a": "retrieve"}),
        _file(measurs=["nDCG@10"]),
        _file(index="lucen"),
        _file(index={"lucene": {"kl": 1}}),
        _file(pipeline=[]),
        _file(pipeline=[{"retreive": {}}]),
        _file(pipeline=[{"retrieve": {"k": "ten"}}]),
        _file(pipeline=[{"retrieve": {"k": 2.5}}]),
        _file(pipeline=[{"retrieve": 5, "rerank": 5}]),
        _file(pipeline=[{"rerank": {"scorer": {"lexcal": {}}}}]),
        _file(pipeline=[{"rerank": {"scorer": {"lexical": {"k1": "high"}}}}]),
        _file(pipeline=[{"fuse": {"method": "borda", "branches": ["retrieve"]}}]),
        _file(pipeline=[{"union": 5}]),
    ],
)
def test_what_files_may_not_say_does_not(validator: Any, document: Any) -> None:
    assert not validator.is_valid(document)


def test_every_key_every_name_and_every_argument_is_there_with_its_description() -> None:
    schema = json_schema()
    assert {key: value["description"] for key, value in schema["properties"].items()} == KEYS
    for kind in ("stage", "scorer", "splitter", "engine", "model"):
        forms = {next(iter(form["properties"])): form for form in schema["$defs"][kind]["oneOf"][1:]}
        assert set(forms) - {"fuse"} == set(registry.names(kind))
    rerank = next(form for form in schema["$defs"]["stage"]["oneOf"] if "rerank" in form.get("properties", {}))
    arguments = rerank["properties"]["rerank"]["anyOf"][0]["properties"]
    assert rerank["description"] == "Orders the candidates by a scorer's relevance and keeps the k best."
    assert arguments["k"]["description"] == "Rows a task; None keeps all."
    assert arguments["k"]["default"] == 10
    assert {"type": "integer"} in arguments["k"]["anyOf"]


def test_a_name_whose_package_is_gone_takes_anything() -> None:
    registry.register("scorer", "gone-scorer", "no_such_package:Scorer")
    try:
        validator = jsonschema.Draft202012Validator(json_schema())
        assert validator.is_valid(_file(pipeline=[{"rerank": {"scorer": {"gone-scorer": {"a": 1}}}}]))
    finally:
        registry._tables["scorer"].targets.pop("gone-scorer")
