"""Names that files may use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from searchops import registry
from searchops.errors import SpecError
from searchops.primitives import Dedupe, Retrieve
from searchops.splitting import Sentences, Words


class Lines(Words):
    """Another splitter."""


def test_every_built_in_name_stands_for_a_class_that_is_named_back() -> None:
    for kind in ("stage", "fusion", "scorer", "splitter", "engine", "model", "part"):
        for name in registry._BUILT_IN[kind]:
            assert registry.name_of(kind, registry.lookup(kind, name)) == name


def test_the_stages_are_the_five_primitives_and_what_composes_them() -> None:
    built_in = {"retrieve", "filter", "rerank", "extract", "dedupe", "union", "rewrite", "cutoff"}
    assert built_in <= set(registry.names("stage"))


def test_an_alias_is_the_same_class() -> None:
    assert registry.lookup("scorer", "bi-encoder") is registry.lookup("scorer", "biencoder")


def test_an_unknown_name_says_which_is_nearest() -> None:
    with pytest.raises(SpecError, match=r"unknown stage 'retreive'; did you mean 'retrieve'\?"):
        registry.lookup("stage", "retreive")


def test_an_unknown_kind_says_which_is_nearest() -> None:
    with pytest.raises(SpecError, match=r"unknown kind 'scorers'; did you mean 'scorer'\?"):
        registry.names("scorers")


def test_a_registered_class_is_found_by_its_name_and_names_it_back() -> None:
    registry.register("splitter", "lines-of-a-test", Lines)
    registry.register("splitter", "lines-of-a-test", Lines)
    assert registry.lookup("splitter", "lines-of-a-test") is Lines
    assert registry.name_of("splitter", Lines) == "lines-of-a-test"


@pytest.mark.parametrize("name", ["words", "sentences"])
def test_a_name_that_is_taken_stays_what_it_is(name: str) -> None:
    with pytest.raises(SpecError, match="not taken"):
        registry.register("splitter", name, Lines)
    assert registry.lookup("splitter", name) in (Words, Sentences)


def test_an_alias_cannot_be_taken() -> None:
    with pytest.raises(SpecError, match="not taken"):
        registry.register("scorer", "cross-encoder", Lines)


@pytest.mark.parametrize("name", ["", "Rerank", "a b", "os.system", "a:b", "-a", "a-"])
def test_a_malformed_name_is_refused(name: str) -> None:
    with pytest.raises(SpecError, match="lowercase"):
        registry.register("stage", name, Dedupe)


@pytest.mark.parametrize("target", ["no_such_package.module:Thing", "searchops.primitives:NoSuchStage"])
def test_a_target_that_cannot_be_imported_is_an_error_when_it_is_named(target: str) -> None:
    name = f"gone-{len(target)}"
    registry.register("stage", name, target)
    try:
        with pytest.raises(SpecError, match="cannot be imported"):
            registry.lookup("stage", name)
        assert registry.name_of("stage", Retrieve) == "retrieve"
        assert registry.name_of("stage", type("NoSuchStage", (), {})) is None
    finally:
        registry._tables["stage"].targets.pop(name)


def test_installed_packages_add_names_by_entry_points_and_replace_none(tmp_path: Path) -> None:
    (tmp_path / "shouting.py").write_text(
        "from searchops.primitives.base import Primitive\n"
        "class Shout(Primitive):\n"
        "    '''Writes texts in capitals.'''\n"
        "    def __init__(self, times: int = 1): self.times = times\n"
        "    def kernel(self, rows): return [{**row, 'text': row['text'].upper()} for row in rows]\n"
    )
    meta = tmp_path / "shouting-1.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (meta / "entry_points.txt").write_text(
        "[searchops.stages]\nshout = shouting:Shout\ndedupe = shouting:Shout\nBad.Name = shouting:Shout\n"
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from searchops.spec import build_pipeline, to_text\n"
        "from searchops import registry\n"
        "pipeline = build_pipeline('shout(times=2) >> dedupe')\n"
        "print(pipeline, to_text(pipeline), 'Bad.Name' in registry.names('stage'))\n"
        "print(pipeline.transform_iter([{'qid': '1', 'docno': 'd', 'text': 'a'}]).__next__()['text'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          cwd=Path(__file__).parents[2])  # fmt: skip
    assert done.stdout.splitlines() == ["(Shout(times=2) >> Dedupe()) shout(2) >> dedupe False", "A"]
