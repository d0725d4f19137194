"""Pipelines as files and as texts, so that reading them gives the same pipeline."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyterrier as pt
from pyterrier._ops import Compose
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from searchops import registry
from searchops.engines.base import Engine
from searchops.errors import SpecError
from searchops.pipeline import normalise
from searchops.predicates import Predicate
from searchops.spec.scalars import resolve
from searchops.spec.signatures import DEFAULT_FUSION, arguments_of, signature_of
from searchops.spec.variables import FromEnvironment, escaped

__all__ = ["dump", "to_nodes", "to_text"]

_COMPONENTS: Final = ("scorer", "splitter", "model")
_WIDTH: Final = 100


def to_nodes(pipeline: pt.Transformer, indexes: Mapping[str, Any] | None = None) -> list[Any]:
    """The stages of a pipeline as the data of a file.

    Args:
        pipeline: Made of registered stages.
        indexes: The indexes by name; a retrieve stage over the first one does not name it.

    Raises:
        SpecError: A stage, a scorer or a value has no form in files; the text names it.

    Example:
        >>> from searchops.primitives import Dedupe, Filter
        >>> to_nodes(Filter("year >= 2019") >> Dedupe())
        [{'filter': 'year >= 2019'}, 'dedupe']
    """
    return _Writing(indexes or {}).stages(pipeline)


def to_text(pipeline: pt.Transformer, indexes: Mapping[str, Any] | None = None) -> str:
    """The one-line text form of a pipeline.

    Raises:
        SpecError: As `to_nodes`.

    Example:
        >>> from searchops.primitives import Dedupe, Filter
        >>> to_text(Filter("year >= 2019") >> Dedupe("passage_id"))
        'filter("year >= 2019") >> dedupe("passage_id")'
    """
    return _chain(to_nodes(pipeline, indexes))


def dump(
    pipeline: pt.Transformer | Mapping[str, pt.Transformer],
    *,
    indexes: Mapping[str, Any] | None = None,
    collection: str | None = None,
    measures: Sequence[str] = (),
    record: str | None = None,
) -> str:
    """A pipeline, or several by name, as a pipeline file that reads back as the same.

    Args:
        pipeline: Made of registered stages.
        indexes: The indexes by name; those that are missing are named after their engine.
        collection: What is searched.
        measures: What is measured.
        record: The folder of the record.

    Raises:
        SpecError: A stage, a scorer or a value has no form in files; the text names it.

    Example:
        >>> from searchops.primitives import Dedupe, Filter
        >>> print(dump(Filter("year >= 2019") >> Dedupe(), collection="pydocs"))
        version: 1
        collection: pydocs
        pipeline:
        - filter: year >= 2019
        - dedupe
        <BLANKLINE>
    """
    writing = _Writing(indexes or {})
    if isinstance(pipeline, Mapping):
        stages: dict[str, Any] = {"pipelines": {name: writing.stages(each) for name, each in pipeline.items()}}
    else:
        stages = {"pipeline": writing.stages(pipeline)}
    described = {name: writing.index(engine) for name, engine in writing.indexes.items()}
    rest = {"measures": list(measures) or None, "record": record}
    content = {"version": 1, "collection": collection, "indexes": described or None, **stages, **rest}
    return _yaml({key: value for key, value in content.items() if value is not None})


class _Name(str):
    """The name of a component, which a text writes without quotes."""


class _Call(dict[str, Any]):
    """A component's name with its arguments, which a text writes as a call."""


class _Writing:
    def __init__(self, indexes: Mapping[str, Any]) -> None:
        self.indexes = dict(indexes)

    def stages(self, pipeline: pt.Transformer) -> list[Any]:
        pipeline = normalise(pipeline)
        return [self.stage(stage) for stage in (pipeline if isinstance(pipeline, Compose) else [pipeline])]

    def stage(self, stage: pt.Transformer) -> Any:
        name = registry.name_of("stage", type(stage))
        method = None if name else registry.name_of("fusion", type(stage))
        if name is None and method is None:
            raise SpecError("stages that files can name are needed", repr(stage)[:200], where="dump",
                            hint="Register its class (searchops.registry.register, or an entry point).")  # fmt: skip
        arguments = self.arguments(stage)
        if method not in (None, DEFAULT_FUSION):
            arguments = {"method": method, **arguments}
        return self.call(name or "fuse", arguments, signature_of(type(stage)))

    def arguments(self, thing: Any) -> dict[str, Any]:
        signature = signature_of(type(thing))
        found = arguments_of(thing)
        if signature.rest is not None:
            branches = found.pop(signature.rest.name)
            written = [self.branch(branch) for branch in branches]
            return {signature.rest.name: written, **self.values(found, thing)}
        return self.values(found, thing)

    def values(self, found: dict[str, Any], thing: Any) -> dict[str, Any]:
        written = {}
        for name, value in found.items():
            if isinstance(value, Engine) and name == "index":
                index = self.index_name(value)
                if index != next(iter(self.indexes)):
                    written[name] = index
            else:
                written[name] = self.value(value, f"{type(thing).__name__}.{name}")
        default = "scorer" in written and written["scorer"] == "lexical"
        return {name: value for name, value in written.items() if not (default and name == "scorer")}

    def branch(self, branch: pt.Transformer) -> Any:
        stages = self.stages(branch)
        return stages[0] if len(stages) == 1 else stages

    def call(self, name: str, arguments: dict[str, Any], signature: Any) -> Any:
        """The shortest form: the name alone, the one value that stands for its argument, or a mapping."""
        if not arguments:
            return name
        if len(arguments) == 1:
            only, value = next(iter(arguments.items()))
            if signature.rest is not None and only == signature.rest.name:
                return {name: value}
            first = next((p.name for p in signature.parameters.values() if p.shape.takes(value)), None)
            if first == only and isinstance(value, (str, int, float)) and name != "fuse":
                return {name: value}
        return {name: arguments}

    def value(self, value: Any, where: str) -> Any:
        if value is None or type(value) in (bool, int, float, str, FromEnvironment):
            return value
        if isinstance(value, Predicate):
            return str(value)
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        if isinstance(value, (list, tuple, set, frozenset)):
            items = sorted(value) if isinstance(value, (set, frozenset)) else value
            return [self.value(item, where) for item in items]
        if isinstance(value, Mapping):
            return {self.key(key, where): self.value(item, where) for key, item in value.items()}
        if isinstance(value, pt.Transformer):
            return self.stages(value)
        return self.component(value, where)

    def key(self, key: Any, where: str) -> str:
        if isinstance(key, str) and key:
            return key
        raise SpecError("keys that are text are needed", repr(key)[:60], where=where)

    def component(self, value: Any, where: str) -> Any:
        for kind in _COMPONENTS:
            name = registry.name_of(kind, type(value))
            if name is not None:
                call = self.call(name, self.arguments(value), signature_of(type(value)))
                return _Call(call) if isinstance(call, dict) else _Name(call)
        if registry.name_of("part", type(value)) is not None:
            return self.arguments(value)
        if registry.name_of("engine", type(value)) is not None or value in self.indexes.values():
            return {"index": self.index_name(value)}
        raise SpecError("values that files can write are needed", repr(value)[:200], where=where)

    # -- indexes -------------------------------------------------------------------------------

    def index_name(self, engine: Any) -> str:
        """The name of an index; one that has none yet is named after its engine."""
        for name, known in self.indexes.items():
            if known == engine:
                return name
        kind = registry.name_of("engine", type(engine))
        if kind is None:
            raise SpecError("indexes by name are needed", repr(engine)[:200], where="dump",
                            hint="Give dump(pipeline, indexes={'NAME': index}).")  # fmt: skip
        taken = sum(name.rstrip("0123456789") == kind for name in self.indexes)
        name = kind if not taken else f"{kind}{taken + 1}"
        self.indexes[name] = engine
        return name

    def index(self, engine: Any) -> Any:
        """An index as files describe it."""
        kind = registry.name_of("engine", type(engine))
        if kind is None:
            raise SpecError("an index of a registered engine is needed", repr(engine)[:200], where="dump")
        return self.call(kind, self.arguments(engine), signature_of(type(engine)))


# -- the text form -----------------------------------------------------------------------------


def _chain(stages: list[Any]) -> str:
    return " >> ".join(map(_call, stages))


def _call(node: Any) -> str:
    if isinstance(node, str):
        return node
    ((name, given),) = node.items()
    if isinstance(given, dict):
        branches = given.get("branches") if "branches" in given else None
        first = [_branch(branch) for branch in branches] if isinstance(branches, list) else []
        rest = [f"{key}={_value(value)}" for key, value in given.items() if not (first and key == "branches")]
        return f"{name}({', '.join(first + rest)})"
    if isinstance(given, list):
        return f"{name}({', '.join(map(_branch, given))})"
    return f"{name}({_value(given)})"


def _branch(branch: Any) -> str:
    return _chain(branch) if isinstance(branch, list) else _call(branch)


def _value(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (_Name, _Call)):
        return _call(value)
    if isinstance(value, str):
        return json.dumps(str(value), ensure_ascii=False)
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return "{" + ", ".join(f"{json.dumps(key)}: {_value(item)}" for key, item in value.items()) + "}"


def _number(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ("-.inf" if value < 0 else ".inf")
    return repr(value)


# -- YAML --------------------------------------------------------------------------------------


def _yaml(content: dict[str, Any]) -> str:
    writer = YAML()
    writer.width = 1_000_000  # a folded text reads worse than a long line
    writer.default_flow_style = False
    stream = io.StringIO()
    writer.dump(_styled(content, block=True), stream)
    return stream.getvalue()


def _styled(value: Any, *, block: bool = False) -> Any:
    """The data with the style of each part: what fits on a line stands on one, what must be quoted is."""
    if isinstance(value, str):
        return _scalar(escaped(value))
    if isinstance(value, list):
        made = CommentedSeq(_styled(item) for item in value)
        if not any(isinstance(item, (dict, list)) for item in value) and _is_short(value):
            made.fa.set_flow_style()
        return made
    if isinstance(value, dict):
        mapping = CommentedMap((_scalar(key), _styled(item)) for key, item in value.items())
        if not block and _is_short(value) and not _is_call(value):
            mapping.fa.set_flow_style()
        return mapping
    return value


def _scalar(text: str) -> Any:
    plain = text.isprintable() and _is_read_as_text(text)
    return text if plain else DoubleQuotedScalarString(text)


def _is_read_as_text(text: str) -> bool:
    """Whether a text without quotes is read as text."""
    try:
        return isinstance(resolve(text), str)
    except SpecError:
        return False


def _is_call(value: dict[str, Any]) -> bool:
    return len(value) == 1


def _is_short(value: Any) -> bool:
    """Whether it holds single values only (lists of them too) and fits on a line."""
    items = value.values() if isinstance(value, dict) else value
    if any(isinstance(item, (dict, list)) and len(item) > 0 and not _is_small(item) for item in items):
        return False
    return len(json.dumps(value, default=str)) <= _WIDTH


def _is_small(value: Any) -> bool:
    items = value.values() if isinstance(value, dict) else value
    return not any(isinstance(item, (dict, list)) for item in items)


