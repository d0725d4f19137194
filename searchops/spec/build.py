"""Nodes into stages: names resolved, arguments checked, constructors called, every problem placed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyterrier as pt

from searchops import registry
from searchops.errors import SearchopsError, SpecError, did_you_mean
from searchops.pipeline import Pipeline
from searchops.spec.beside import DEFAULT_SCORER, with_scorer_settings
from searchops.spec.nodes import Call, Node, Place, as_node
from searchops.spec.order import Order
from searchops.spec.problems import Problems, SpecErrors, shown
from searchops.spec.shapes import Shape
from searchops.spec.signatures import (
    DEFAULT_FUSION,
    REQUIRED,
    Parameter,
    Signature,
    engine_signature,
    signature_of,
)
from searchops.spec.text import parse_text
from searchops.spec.variables import FromEnvironment, read_scalar

__all__ = ["Building", "build_pipeline"]

# What a place in a file shows where something is wrong and reading goes on.
_WRONG: Final = object()


def build_pipeline(nodes: Any, engines: Mapping[str, Any] | None = None, *, where: str = "pipeline") -> pt.Transformer:
    """A pipeline from a text form, from the data of a file or from nodes.

    Args:
        nodes: `"retrieve(k=20) >> dedupe"`, or `[{"retrieve": {"k": 20}}, "dedupe"]`.
        engines: The open indexes by name; a stage that names none takes the first.
        where: What errors call the pipeline.

    Raises:
        SpecError: With every problem there is.

    Example:
        >>> build_pipeline([{"filter": "year >= 2019"}, "dedupe"])
        (Filter(field('year') >= 2019) >> Dedupe())
    """
    problems = Problems()
    if isinstance(nodes, str):
        node = parse_text(nodes, where, problems)
    else:
        node = nodes if isinstance(nodes, Node) else as_node(nodes, where)
    built = Building(problems, engines or {}).stages(node)
    problems.stop_if_any()
    assert isinstance(built, pt.Transformer)
    return built


class Building:
    """One building of nodes; what is wrong goes to `problems`, and reading goes on.

    Args:
        problems: Gathers them.
        engines: The indexes by name; the first is meant where none is named.
        order: Follows what goes from stage to stage, for whole pipelines.
    """

    def __init__(self, problems: Problems, engines: Mapping[str, Any], order: Order | None = None) -> None:
        self.problems = problems
        self.engines = engines
        self.order = order

    # -- stages --------------------------------------------------------------------------------

    def stages(self, node: Node) -> Any:
        """A pipeline: a list of stages, one stage, or a text form."""
        items = self.listed(node)
        if any(item.broken for item in items):
            return _WRONG
        if not items:
            self.problems.add(node.place, "a pipeline of at least one stage is needed", "an empty list")
            return _WRONG
        built = [self._ordered(item) for item in items]
        if any(stage is _WRONG for stage in built):
            return _WRONG
        return built[0] if len(built) == 1 else Pipeline(*built)

    def _ordered(self, node: Node) -> Any:
        stage = self._stage(node)
        if self.order is not None:
            self.order.behind(None if stage is _WRONG else stage, node.place)
        return stage

    def _branch(self, node: Node) -> Any:
        if self.order is None:
            return self.stages(node)
        with self.order.aside():
            return self.stages(node)

    def listed(self, node: Node) -> list[Node]:
        """The stages of a pipeline, each a node of its own, with text forms read."""
        if isinstance(node.value, str):
            read = self._text(node, node.value)
            return self.listed(read)
        if isinstance(node.value, tuple):
            return list(node.value)
        if isinstance(node.value, list):
            return [stage for item in node.value
                    for stage in (self.listed(item) if isinstance(item.value, (str, tuple)) else [item])]  # fmt: skip
        return [node]

    def _text(self, node: Node, text: str) -> Node:
        try:
            return parse_text(text, node.place, self.problems)
        except SpecErrors:
            # It is noted; the rest of the file is still worth reading.
            self.problems.stop_if_full()
            return Node(None, node.place, broken=True)

    def _stage(self, node: Node) -> Any:
        call = self.call(node, "stage")
        if call is None:
            return _WRONG
        if call.name == "fuse":
            return self._fused(call, node.place)
        cls = self._class("stage", call.name, node.place)
        return _WRONG if cls is None else self._made(cls, call, node.place)

    def _fused(self, call: Call, place: Place) -> Any:
        named = dict(call.named)
        positional = call.positional
        method = named.pop("method", None)
        if method is None and positional and positional[0].value in registry.names("fusion"):
            method, positional = positional[0], positional[1:]
        name = DEFAULT_FUSION if method is None else method.value
        cls = self._class("fusion", name, place if method is None else method.place)
        if cls is None:
            return _WRONG
        return self._made(cls, Call("fuse", positional, named, call.keys), place, also=("method",))

    def call(self, node: Node, kind: str) -> Call | None:
        """A node as a name with arguments: `dedupe`, `{filter: "…"}`, `{rerank: {k: 10}}`."""
        value = node.value
        if node.broken or isinstance(value, Call):
            return value if isinstance(value, Call) else None
        if isinstance(value, str):
            return Call(value)
        if not isinstance(value, dict) or not value:
            hint = "Branches stand under union or fuse." if isinstance(value, list) and kind == "stage" else ""
            article = "an" if kind in ("engine", "agent") else "a"
            self.problems.add(node.place, f"{article} {kind} is needed", shown(value) if value else "nothing", hint)
            return None
        (name, given), *others = value.items()
        if others:
            second = others[0][0]
            self.problems.add(node.key_place(second), f"{name[:40]}: one {kind} a mapping is needed",
                              f"{shown(second)} beside it",
                              "Indent what belongs to it; start another one with its own '-'.")  # fmt: skip
            return None
        if isinstance(given.value, dict):
            return Call(name, (), given.value, given.keys)
        return Call(name, () if given.value is None else (given,))

    def made(self, kind: str, call: Call, place: Place) -> Any:
        """What a registered name with arguments stands for; None behind noted problems."""
        cls = self._class(kind, call.name, place)
        built = _WRONG if cls is None else self._made(cls, call, place)
        return None if built is _WRONG else built

    def _class(self, kind: str, name: Any, place: Place) -> type | None:
        try:
            if not isinstance(name, str) or len(name) > 100:
                raise SpecError(f"a {kind}'s name is needed", shown(name))
            if kind == "stage" and name not in registry.names("stage"):
                raise SpecError(f"unknown stage {name!r}; {did_you_mean(name, [*registry.names('stage'), 'fuse'])}")
            found: type = registry.lookup(kind, name)
        except SpecError as error:
            self.problems.add(place, error.needed, error.found, error.hint)
            return None
        return found

    # -- arguments -----------------------------------------------------------------------------

    def _made(self, cls: type, call: Call, place: Place, *, also: Sequence[str] = ()) -> Any:
        """The object of a call, or `_WRONG` behind noted problems."""
        signature = signature_of(cls)
        call = with_scorer_settings(signature, call)
        before = len(self.problems)
        given = self.bound(signature, call, place, also)
        rest = given.pop(signature.rest.name, None) if signature.rest else None
        arguments = {name: self.value(_shape(signature, name), node, f"{call.name}: {name}")
                     for name, node in given.items()}  # fmt: skip
        branches = [self._branch(branch) for branch in self._branches(rest, call.name)] if rest is not None else []
        for name, parameter in signature.parameters.items():
            if parameter.default is REQUIRED and name not in arguments:
                arguments[name] = self._default(parameter, call, place)
        if signature.rest is not None and rest is None:
            self.problems.add(place, f"{call.name}: {signature.rest.name} are needed", "none",
                              f"List them: {call.name}: [[retrieve], [retrieve]].")  # fmt: skip
        if len(self.problems) > before or any(made is _WRONG for made in (*branches, *arguments.values())):
            return _WRONG
        return self._constructed(cls, branches, arguments, call, place)

    def _constructed(self, cls: type, branches: list[Any], arguments: dict[str, Any], call: Call, place: Place) -> Any:
        try:
            return cls(*branches, **arguments)
        except SearchopsError as error:
            at, error = _pointed(_blamed(call, error, place), error)
            self.problems.add_error(at, call.name, error)
        except Exception as error:  # a constructor of somebody else's may raise anything
            self.problems.add(place, f"{call.name}: cannot be made", f"{type(error).__name__}: {error}"[:200])
        return _WRONG

    def bound(self, signature: Signature, call: Call, place: Place, also: Sequence[str] = ()) -> dict[str, Node]:
        """The call's arguments by name; each one without a name goes to the first that takes such a value."""
        given: dict[str, Node] = {}
        known = [*signature.names, *also]
        for name, node in call.named.items():
            if name in signature.names or signature.open:
                given[name] = node
            else:
                at = call.keys.get(name, node.place)
                words = f"unknown field {shown(name)}; {did_you_mean(name[:60], known)}"
                self.problems.add(at, f"{(call.within or call.name)[:40]}: {words}")
        free = [parameter for name, parameter in signature.parameters.items() if name not in given]
        if signature.rest is not None and call.positional and signature.rest.name not in given:
            given[signature.rest.name] = _one_list(call.positional, place)
            return given
        for node in call.positional:
            place_of = next((n for n, parameter in enumerate(free) if parameter.shape.takes(node.value)), None)
            if place_of is None and node.broken:
                return {**given, **{parameter.name: node for parameter in free if parameter.default is REQUIRED}}
            if place_of is None:
                needed = free[0] if free else None
                words = f"{needed.name} must be {needed.shape.words()}" if needed else "fewer arguments are needed"
                self.problems.add(node.place, f"{call.name[:40]}: {words}", _shown(node))
                if needed:
                    given[needed.name] = Node(None, node.place, broken=True)
                return given
            given[free[place_of].name] = node
            free = free[place_of + 1 :]
        return given

    def _branches(self, node: Node, name: str) -> list[Node]:
        if isinstance(node.value, list):
            return node.value
        if not node.broken:
            self.problems.add(node.place, f"{name}: branches must be a list of pipelines", _shown(node))
        return []

    def _default(self, parameter: Parameter, call: Call, place: Place) -> Any:
        """What a required argument is where the file does not say."""
        if "engine" in parameter.shape.kinds:
            if self.engines:
                return next(iter(self.engines.values()))
            self.problems.add(place, f"{call.name}: an index is needed", "none", "Name one: index: lucene.")
        elif "scorer" in parameter.shape.kinds:
            return registry.lookup("scorer", DEFAULT_SCORER)()
        else:
            self.problems.add(place, f"{call.name}: {parameter.name} is needed", "none")
        return _WRONG

    def value(self, shape: Shape, node: Node, label: str) -> Any:
        """The value of an argument, or `_WRONG` behind a noted problem."""
        value = node.value
        if node.broken:
            return _WRONG
        if "any" in shape.types:
            return self._anything(node, label)
        if isinstance(value, FromEnvironment) and not shape.takes(value):
            # The environment holds texts only: what type is meant, the argument says.
            value = read_scalar(value)
        if not shape.takes(value):
            self.problems.add(node.place, f"{label} must be {shape.words()}", _shown(node))
            return _WRONG
        if "stages" in shape.kinds:
            return self._branch(node)
        if isinstance(value, str) and (shape.choices or "str" in shape.types):
            return value
        if shape.kinds and isinstance(value, (str, dict, Call)):
            return self._component(shape.kinds[0], node)
        if shape.parts and isinstance(value, (dict, Call)):
            return self._part(shape.parts[0], node, value)
        if isinstance(value, int) and not isinstance(value, bool) and "int" not in shape.types:
            return self._float(value, node, label)
        if isinstance(value, (list, tuple, dict)):
            return self._container(shape, node, label)
        return value

    def _float(self, value: int, node: Node, label: str) -> Any:
        try:
            return float(value)
        except OverflowError:
            self.problems.add(node.place, f"{label} must be a number that a float holds", shown(value))
            return _WRONG

    def _container(self, shape: Shape, node: Node, label: str) -> Any:
        assert shape.items is not None
        if isinstance(node.value, dict):
            return {key: self.value(shape.items, item, f"{label}.{key[:40]}") for key, item in node.value.items()}
        assert isinstance(node.value, (list, tuple))
        return [self.value(shape.items, item, f"{label}[{n}]") for n, item in enumerate(node.value)]

    def _anything(self, node: Node, label: str) -> Any:
        """Plain data; `{index: NAME}` is that index (for `lexical: {statistics: {index: bm25}}`)."""
        value = node.value
        if isinstance(value, dict):
            if list(value) == ["index"] and value["index"].value in self.engines:
                return self.engines[str(value["index"].value)]
            return {key: self._anything(item, label) for key, item in value.items()}
        if isinstance(value, list):
            return [self._anything(item, label) for item in value]
        if isinstance(value, (tuple, Call)):
            self.problems.add(node.place, f"{label} must be a value", "a call")
            return _WRONG
        return value

    def _component(self, kind: str, node: Node) -> Any:
        if kind == "engine":
            return self._engine(node)
        call = self.call(node, kind)
        cls = None if call is None else self._class(kind, call.name, node.place)
        return _WRONG if cls is None or call is None else self._made(cls, call, node.place)

    def _engine(self, node: Node) -> Any:
        name = node.value.name if isinstance(node.value, Call) else node.value
        if isinstance(name, str) and name in self.engines:
            return self.engines[name]
        if not isinstance(name, str):
            self.problems.add(node.place, "the name of an index is needed", shown(name), "Describe it under indexes.")
        elif not self.engines:
            self.problems.add(node.place, f"unknown index {shown(name)}; there is none")
        else:
            self.problems.add(node.place, f"unknown index {shown(name)}; {did_you_mean(name[:60], self.engines)}")
        return _WRONG

    def _part(self, part: str, node: Node, value: dict[str, Node] | Call) -> Any:
        call = value if isinstance(value, Call) else Call(part, (), value, node.keys)
        cls = self._class("part", call.name, node.place)
        return _WRONG if cls is None else self._made(cls, call, node.place)

    def settings(self, call: Call, node: Node) -> dict[str, Any] | None:
        """The settings of an index, checked against what its engine takes; nothing is opened."""
        cls = self._class("engine", call.name, node.place)
        if cls is None:
            return None
        signature = engine_signature(cls)
        given = self.bound(signature, call, node.place)
        return {name: self.value(_shape(signature, name), item, f"{call.name}: {name}") for name, item in given.items()}


def _shape(signature: Signature, name: str) -> Shape:
    parameter = signature.parameters.get(name)
    return parameter.shape if parameter is not None else Shape(frozenset({"any"}))


def _one_list(positional: Sequence[Node], place: Place) -> Node:
    only = positional[0]
    return only if len(positional) == 1 and isinstance(only.value, list) else Node(list(positional), place)


def _blamed(call: Call, error: SearchopsError, place: Place) -> Place:
    """The place of the argument that a constructor's error is about, or of the whole call."""
    for name, node in call.named.items():
        if error.needed.startswith((f"{name} ", f"a {name} ")) or error.where.endswith(f".{name}"):
            return node.place
    given = [*call.positional, *call.named.values()]
    return given[0].place if len(given) == 1 else place


def _pointed(place: Place, error: SearchopsError) -> tuple[Place, SearchopsError]:
    """The place within a text, where the error names line and column of it (`filter:1:8`)."""
    inner = re.fullmatch(r"(\w+):1:(\d+)", error.where)
    if inner is None or place.straight is None:
        return place, error
    moved = place._replace(column=place.column + place.straight + int(inner[2]) - 1, straight=None)
    return moved, SpecError(error.needed, error.found, where=inner[1], hint=error.hint)


def _shown(node: Node) -> str:
    return "a call" if isinstance(node.value, Call) else shown(node.value)
