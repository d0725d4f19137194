"""A pipeline file as a Spec: which collection, indexes, pipelines, measures and record it asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import pyterrier as pt

from searchops.errors import SpecError, did_you_mean
from searchops.spec.agents import SHARED, agent_nodes, build_agent
from searchops.spec.build import Building
from searchops.spec.document import read_document, read_text
from searchops.spec.nodes import Node
from searchops.spec.order import QUERIES, Order
from searchops.spec.planned import PlannedIndex
from searchops.spec.problems import Problems, SpecErrors, shown
from searchops.spec.variables import FromEnvironment, overridden, substituted

__all__ = ["KEYS", "IndexSpec", "Spec", "read_spec"]

KEYS: Final[dict[str, str]] = {
    "version": "The version of this format: 1.",
    "vars": "Values for `${vars.NAME}`; `--set vars.NAME=VALUE` replaces them.",
    "collection": "What is searched: pydocs, a folder, or irds:NAME.",
    "index": "The index: an engine's name, alone or with settings: `lucene`, `lucene: {k1: 1.2}`.",
    "indexes": "Several indexes by name; a retrieve stage that names none takes the first.",
    "pipeline": "The stages, or their one-line text.",
    "pipelines": "Several pipelines by name, to be compared.",
    "agent": "A search agent in place of a pipeline: query, tool or program, alone or with settings; or a list.",
    "model": "The agent's model: keyword, or `openai: {model: NAME}`.",
    "budget": "The agent's limits: decisions, repairs, max_tokens, temperature, finalizer_chars.",
    "funnel": "The limits of one call of an agent: retrieve, rerank, extract, …",
    "measures": "What is measured, as ir_measures writes it, and Retrieved, Available, Delivered, Delivered/Available.",
    "record": "The folder the record of the run is written to.",
    "names": "Names of the pipelines or agents, in their order, where they are a list.",
}
_DEFAULT_INDEX: Final = "lucene"


@dataclass(frozen=True)
class IndexSpec:
    """An index that a file asks for.

    Attributes:
        name: What retrieve stages call it.
        engine: The registered name of its engine, such as `lucene`.
        settings: Arguments for building and opening it.
        where: Where the file asks for it.

    Example:
        >>> IndexSpec("bm25", "lucene", {"k1": 1.2}).settings
        {'k1': 1.2}
    """

    name: str
    engine: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    where: str = field(default="", compare=False)


@dataclass(frozen=True)
class Spec:
    """What a pipeline file asks for, checked as far as it can be without opening anything.

    Attributes:
        source: The file, or what errors call the text.
        text: The file as it stands: references are not replaced, so no secret is in it.
        collection: What is searched; None where the file leaves it to the caller.
        indexes: The indexes by name.
        pipelines: The stages of each pipeline by name, as nodes.
        measures: What is measured, as written.
        record: The folder of the record.
        agents: The agents by name, as nodes; there are pipelines or agents.
        shared: What the file says of model, budget and funnel.
    """

    source: str
    text: str = field(repr=False)
    collection: str | None
    indexes: Mapping[str, IndexSpec]
    pipelines: Mapping[str, Node] = field(repr=False)
    measures: tuple[str, ...]
    record: str | None
    root: Node = field(repr=False, compare=False)
    agents: Mapping[str, Node] = field(default_factory=dict, repr=False)
    shared: Mapping[str, Node] = field(default_factory=dict, repr=False)

    def build(self, engines: Callable[[IndexSpec], Any]) -> dict[str, pt.Transformer]:
        r"""The pipelines or agents by name, over indexes that the caller opens or builds.

        Args:
            engines: Gives the open engine of each index; it is asked once an index, and only for
                those that a pipeline uses.

        Raises:
            SpecError: A constructor refuses its arguments.

        Example:
            >>> spec = read_spec("version: 1\nindex: lucene\npipeline: retrieve(k=5) >> dedupe", source="p.yaml")
            >>> from searchops.spec import PlannedIndex
            >>> spec.build(lambda index: PlannedIndex(index.name))
            {'p': (Retrieve(PlannedIndex('lucene'), k=5) >> Dedupe())}
        """
        problems = Problems()
        building = Building(problems, _Opened(self.indexes, engines))
        built = {name: building.stages(node) for name, node in self.pipelines.items()}
        built |= {name: build_agent(building, node, self.shared) for name, node in self.agents.items()}
        problems.stop_if_any()
        return built

    def where(self, *path: str | int) -> str:
        """Where something stands in the file: `spec.where("measures", 0)` -> `p.yaml:9:12`.

        What is not in the file is said to be where the path ends in it.
        """
        node = self.root
        for step in path:
            value = node.value
            if isinstance(value, dict) and step in value:
                node = value[str(step)]
            elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
                node = value[step]
            elif not isinstance(value, list):
                break
        return str(node.place)

    def error(self, *path: str | int, needed: str, found: str = "", hint: str = "") -> SpecErrors:
        """An error about something in the file, for those who know more than the file's form."""
        return SpecErrors([SpecError(needed, found, where=self.where(*path), hint=hint)])


class _Opened(Mapping[str, Any]):
    """The indexes by name, each opened when a stage first asks for it."""

    def __init__(self, indexes: Mapping[str, IndexSpec], engines: Callable[[IndexSpec], Any]) -> None:
        self.indexes = indexes
        self.engines = engines
        self.opened: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.opened:
            self.opened[name] = self.engines(self.indexes[name])
        return self.opened[name]

    def __contains__(self, name: object) -> bool:
        return name in self.indexes

    def __iter__(self) -> Any:
        return iter(self.indexes)

    def __len__(self) -> int:
        return len(self.indexes)


def read_spec(path_or_text: str | Path, overrides: Mapping[str, Any] | Iterable[str] = (), *, source: str = "") -> Spec:
    r"""Reads and checks a pipeline file; opens no index, loads no model, touches no network.

    Args:
        path_or_text: The file; a text with a line break, or with `source` given, is the document itself.
        overrides: Such as `["vars.k=5"]`.
        source: What errors call the text.

    Raises:
        SpecError: With every problem of the file, a line each (`errors` has them apart).

    Example:
        >>> spec = read_spec("version: 1\ncollection: pydocs\npipeline: [retrieve, {rerank: {k: 5}}]")
        >>> spec.collection, list(spec.pipelines), list(spec.indexes)
        ('pydocs', ['pipeline'], ['lucene'])
        >>> read_spec("version: 1\npipeline: [retrieve, {rerank: {batch_sise: 5}}]", source="p.yaml")
        Traceback (most recent call last):
        searchops.spec.problems.SpecErrors: p.yaml:2:32: rerank: unknown field 'batch_sise'; known: fields, k, scorer
    """
    problems = Problems()
    is_text = isinstance(path_or_text, str) and (bool(source) or "\n" in path_or_text)
    source = source or ("text" if is_text else str(path_or_text))
    text = str(path_or_text) if is_text else read_text(path_or_text, problems)
    root = read_document(text, source, problems)
    if not isinstance(root.value, dict):
        problems.refuse(root.place, "a mapping with version, collection and pipeline is needed", shown(root.value))
    root = substituted(overridden(root, overrides, problems), problems)
    spec = _Reading(root, source, text, problems).spec()
    problems.found.sort(key=_position)
    problems.stop_if_any()
    return spec


def _position(error: SpecError) -> tuple[int, int]:
    line, column = ([0, 0, *(int(part) for part in error.where.split(":") if part.isdigit())])[-2:]
    return line, column


class _Reading:
    def __init__(self, root: Node, source: str, text: str, problems: Problems) -> None:
        assert isinstance(root.value, dict)
        self.root = root
        self.keys: dict[str, Node] = root.value
        self.source = source
        self.text = text
        self.problems = problems

    def spec(self) -> Spec:
        self._known_keys()
        self._version()
        indexes = self._indexes()
        shared: dict[str, Node] = {key: self.keys[key] for key in SHARED if key in self.keys}
        agents = self._agents(shared)
        pipelines = {} if "agent" in self.keys else self._pipelines()
        self._check(pipelines, indexes)
        self._check_agents(agents, shared, indexes)
        return Spec(
            source=self.source,
            text=self.text,
            collection=self._text("collection"),
            indexes=indexes,
            pipelines=pipelines,
            measures=self._texts("measures"),
            record=self._text("record"),
            root=self.root,
            agents=agents,
            shared=shared,
        )

    def _known_keys(self) -> None:
        for key in self.keys:
            if key not in KEYS:
                near = get_close_matches(key[:60], KEYS, n=1)
                words = did_you_mean(key[:60], KEYS) if near else "known: " + ", ".join(KEYS)
                self.problems.add(self.root.key_place(key), f"unknown key {shown(key)}; {words}")

    def _version(self) -> None:
        version = self.keys.get("version")
        if version is None:
            self.problems.add(self.root.place, "version: 1 is needed", "no version")
        elif version.value != 1 or isinstance(version.value, (bool, float)):
            self.problems.add(version.place, "version 1 is needed", shown(version.value))

    def _text(self, key: str) -> str | None:
        node = self.keys.get(key)
        if node is None or (node.value is None and (node.broken or node.plain)):
            return None
        if not isinstance(node.value, str) or not node.value.strip():
            self.problems.add(node.place, f"{key} must be text", shown(node.value))
            return None
        return node.value

    def _texts(self, key: str) -> tuple[str, ...]:
        node = self.keys.get(key)
        if node is None or node.value is None:
            return ()
        items = node.value if isinstance(node.value, list) else [node]
        texts = []
        for item in items:
            if isinstance(item.value, str) and item.value.strip():
                texts.append(item.value)
            elif not item.broken:
                self.problems.add(item.place, f"{key} must be a list of texts", shown(item.value))
        return tuple(texts)

    # -- indexes -------------------------------------------------------------------------------

    def _indexes(self) -> dict[str, IndexSpec]:
        one, several = self.keys.get("index"), self.keys.get("indexes")
        if one is not None and several is not None:
            self.problems.add(self.root.key_place("indexes"), "either index or indexes is needed", "both")
        if several is not None:
            if isinstance(several.value, dict) and several.value:
                return self._named(several, several.value)
            self.problems.add(several.place, "indexes must be a mapping of names and indexes", shown(several.value))
        if one is None or one.value is None:
            return {_DEFAULT_INDEX: IndexSpec(_DEFAULT_INDEX, _DEFAULT_INDEX, {}, str(self.root.place))}
        index = self._index(None, one) or IndexSpec(_DEFAULT_INDEX, "", {}, str(one.place))
        return {index.name: index}

    def _named(self, node: Node, given: dict[str, Node]) -> dict[str, IndexSpec]:
        found = {}
        for name, item in given.items():
            index = self._index(name, item)
            # One that is wrong still has its name, so that its uses are not errors too.
            found[name] = index or IndexSpec(name, "", {}, str(node.place))
        return found

    def _index(self, name: str | None, node: Node) -> IndexSpec | None:
        building = Building(self.problems, {})
        call = building.call(node, "engine")
        settings = None if call is None else building.settings(call, node)
        if call is None or settings is None:
            return None
        return IndexSpec(name or call.name, call.name, settings, str(node.place))

    # -- pipelines -----------------------------------------------------------------------------

    def _agents(self, shared: Mapping[str, Node]) -> dict[str, Node]:
        node = self.keys.get("agent")
        if node is None:
            for key in shared:
                self.problems.add(self.root.key_place(key), f"{key} is an agent's; an agent is needed", "none")
            return {}
        for key in ("pipeline", "pipelines"):
            if key in self.keys:
                self.problems.add(self.root.key_place(key), f"either agent or {key} is needed", "both")
        return agent_nodes(Building(self.problems, {}), node, self._texts("names"))

    def _pipelines(self) -> dict[str, Node]:
        one, several = self.keys.get("pipeline"), self.keys.get("pipelines")
        if one is not None and several is not None:
            self.problems.add(self.root.key_place("pipelines"), "either pipeline or pipelines is needed", "both")
            return {}
        if several is not None:
            if isinstance(several.value, dict) and several.value:
                if "names" in self.keys:
                    self.problems.add(self.root.key_place("names"), "names are given by the keys of pipelines")
                return dict(several.value)
            if isinstance(several.value, list) and several.value:
                return self._paired(several.value)
            self.problems.add(several.place, "pipelines must be a mapping of names and pipelines", shown(several.value))
            return {}
        if one is None:
            self.problems.add(self.root.place, "a pipeline is needed", "none", "Write pipeline: [retrieve, …].")
            return {}
        return self._paired([one])

    def _paired(self, nodes: list[Node]) -> dict[str, Node]:
        names = self._texts("names") or self._default_names(len(nodes))
        if len(set(names)) != len(nodes) or len(names) != len(nodes):
            place = self.root.key_place("names")
            self.problems.add(place, f"{len(nodes)} different names are needed", f"{len(set(names))}")
            names = self._default_names(len(nodes))
        return dict(zip(names, nodes, strict=True))

    def _default_names(self, n: int) -> tuple[str, ...]:
        stem = Path(self.source).stem if self.source.endswith((".yaml", ".yml")) else "pipeline"
        return (stem or "pipeline",) if n == 1 else tuple(f"pipeline {number}" for number in range(1, n + 1))

    def _check(self, pipelines: dict[str, Node], indexes: dict[str, IndexSpec]) -> None:
        """Builds every pipeline over indexes that are planned only, so that constructors have their say."""
        order = Order(self.problems)
        building = Building(self.problems, {name: PlannedIndex(name) for name in indexes}, order)
        for node in pipelines.values():
            if node.value is None:
                self.problems.add(node.place, "a pipeline of at least one stage is needed", "nothing")
                continue
            before = len(self.problems)
            built = building.stages(node)
            if len(self.problems) == before:
                order.end(node.place)
                self._no_secrets(node, repr(built))
            order.rows = QUERIES

    def _check_agents(self, agents: dict[str, Node], shared: dict[str, Node], indexes: dict[str, IndexSpec]) -> None:
        building = Building(self.problems, {name: PlannedIndex(name) for name in indexes})
        for node in agents.values():
            told = repr(build_agent(building, node, shared))
            for part in (node, *shared.values()):
                self._no_secrets(part, told)

    def _no_secrets(self, node: Node, told: str) -> None:
        """Refuses a value of the environment that a stage would tell whoever asks for its repr."""
        value = node.value
        below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for item in below:
            self._no_secrets(item, told)
        if isinstance(value, FromEnvironment) and any(part in told for part in value.secrets):
            self.problems.add(node.place, f"{value!r} would be written into records", "it where a stage shows it",
                              "Use vars and --set for what is no secret.")  # fmt: skip
