"""Pipelines as files and as texts, so that reading them gives the same pipeline."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final

import pyterrier as pt
from pyterrier._ops import Compose

from searchops import registry
from searchops.engines.base import Engine
from searchops.errors import SpecError
from searchops.pipeline import normalise
from searchops.predicates import Predicate
from searchops.spec.forms import Called, Named, chain, to_yaml
from searchops.spec.signatures import DEFAULT_FUSION, arguments_of, signature_of
from searchops.spec.variables import FromEnvironment

__all__ = ["agent_node", "dump", "to_nodes", "to_text"]

_COMPONENTS: Final = ("scorer", "splitter", "model")


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

    A value of the environment is written as its reference, which only a file resolves.

    Raises:
        SpecError: As `to_nodes`.

    Example:
        >>> from searchops.primitives import Dedupe, Filter
        >>> to_text(Filter("year >= 2019") >> Dedupe("passage_id"))
        'filter("year >= 2019") >> dedupe("passage_id")'
    """
    return chain(to_nodes(pipeline, indexes))


def agent_node(agent: Any, indexes: Mapping[str, Any] | None = None) -> Any:
    """An agent as the data of a file: what stands under `agent`, with its model and limits.

    Raises:
        SpecError: The agent, its model or a value has no form in files; the text names it.
    """
    return _Writing(indexes or {}).agent(agent)


def dump(
    pipeline: pt.Transformer | Mapping[str, pt.Transformer],
    *,
    indexes: Mapping[str, Any] | None = None,
    collection: str | None = None,
    measures: Sequence[str] = (),
    record: str | None = None,
) -> str:
    """A pipeline or an agent, or several by name, as a pipeline file that reads back as the same.

    Args:
        pipeline: Made of registered stages; or an agent.
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
    systems = list(pipeline.values()) if isinstance(pipeline, Mapping) else [pipeline]
    stages: dict[str, Any]
    if any(registry.name_of("agent", type(system)) for system in systems):
        stages = {"agent": [writing.agent(system) for system in systems]}
        stages |= {"names": list(pipeline)} if isinstance(pipeline, Mapping) else {}
    elif isinstance(pipeline, Mapping):
        stages = {"pipelines": {name: writing.stages(each) for name, each in pipeline.items()}}
    else:
        stages = {"pipeline": writing.stages(pipeline)}
    described = {name: writing.index(engine) for name, engine in writing.indexes.items()}
    rest = {"measures": list(measures) or None, "record": record}
    content = {"version": 1, "collection": collection, "indexes": described or None, **stages, **rest}
    return to_yaml({key: value for key, value in content.items() if value is not None})


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

    def agent(self, agent: Any) -> Any:
        name = registry.name_of("agent", type(agent))
        if name is None:
            raise SpecError("agents alone, or pipelines alone, are needed", repr(agent)[:200], where="dump")
        return self.call(name, self.arguments(agent), signature_of(type(agent)))

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
                return Called(call) if isinstance(call, dict) else Named(call)
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
        free = (kind if number == 1 else f"{kind}{number}" for number in count(1))
        name = next(name for name in free if name not in self.indexes)
        self.indexes[name] = engine
        return name

    def index(self, engine: Any) -> Any:
        """An index as files describe it."""
        kind = registry.name_of("engine", type(engine))
        if kind is None:
            raise SpecError("an index of a registered engine is needed", repr(engine)[:200], where="dump")
        return self.call(kind, self.arguments(engine), signature_of(type(engine)))
