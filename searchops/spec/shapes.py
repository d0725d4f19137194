"""What a value of a file may be where an argument is annotated: the annotation, read once."""

from __future__ import annotations

import collections.abc
import os
import types
import typing
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final, Literal, Union, get_args, get_origin

import pyterrier as pt

__all__ = ["ANYTHING", "Shape", "shape_of"]

_BASES: Final = {
    "scorer": "searchops.scorers.base:Scorer",
    "splitter": "searchops.splitting:Splitter",
    "engine": "searchops.engines.base:Engine",
    "model": "searchops.models:ChatModel",
}
_PARTS: Final = {
    "analyzer": "searchops.scorers.statistics:Analyzer",
    "encoder": "searchops.scorers.encoder:Encoder",
    "prices": "searchops.models:Prices",
}
# Parts of floors above this one; they are known by their names, not imported to be compared.
_PARTS_ABOVE: Final = {
    "budget": "searchops.agents.budget:Budget",
    "funnel": "searchops.substrate:Funnel",
    "limits": "searchops.cells.limits:Limits",
}
_SCALARS: Final = {bool: "bool", int: "int", float: "float", str: "str", type(None): "null"}
_WORDS: Final = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "null": "null",
    "list": "a list",
    "map": "a mapping",
}


@dataclass(frozen=True)
class Shape:
    """The values an argument takes.

    Attributes:
        types: Of bool, int, float, str, null, list, map; "any" for whatever a file can hold.
        kinds: Registered kinds that may stand there by name (`scorer`), or `stages` for a pipeline.
        parts: Settings objects that a mapping of their arguments stands for.
        choices: The texts there are, where it is one of a few.
        items: What a list or the values of a mapping hold.

    Example:
        >>> shape_of(int | None).words()
        'a whole number or null'
    """

    types: frozenset[str] = frozenset()
    kinds: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    items: Shape | None = None

    def takes(self, value: Any) -> bool:
        """Whether a value may stand here, judged from outside."""
        if "any" in self.types:
            return True
        if isinstance(value, str) and self.choices:
            return value in self.choices
        if isinstance(value, str) and self.kinds:
            return True
        if isinstance(value, dict):
            return bool(self.kinds or self.parts) or "map" in self.types
        if isinstance(value, (list, tuple)):
            return "stages" in self.kinds or "list" in self.types
        name = "str" if isinstance(value, str) else _SCALARS.get(type(value))
        if name is None:  # a call out of a text
            return bool(self.kinds or self.parts)
        return name in self.types or (name == "int" and "float" in self.types)

    def words(self) -> str:
        """What is needed, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        named = [f"a {part}'s settings" for part in self.parts]
        named += ["a stage or a list of stages" if kind == "stages" else f"a {kind}" for kind in self.kinds]
        scalars = [words for name, words in _WORDS.items() if name in self.types]
        null = [scalars.pop()] if scalars and scalars[-1] == "null" else []
        return " or ".join(named + scalars + null) or "a value"


ANYTHING: Final = Shape(frozenset({"any"}))
_TEXT: Final = Shape(frozenset({"str"}))


def shape_of(annotation: Any) -> Shape:
    """The shape of an annotation; what says nothing to a file takes anything.

    Example:
        >>> shape_of(float).takes(3), shape_of(int).takes(True), shape_of(Literal["a"]).takes("b")
        (True, False, False)
    """
    return _joined(_alternatives(annotation))


def _alternatives(annotation: Any) -> list[Shape]:
    if hasattr(annotation, "__value__"):  # an alias of the `type` statement
        return _alternatives(annotation.__value__)
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return [shape for member in get_args(annotation) for shape in _alternatives(member)]
    if origin is typing.Annotated:
        return _alternatives(get_args(annotation)[0])
    if origin is Literal:
        return [Shape(choices=tuple(map(str, get_args(annotation))))]
    if annotation is None:
        annotation = type(None)
    return [_one(annotation, origin)]


def _one(annotation: Any, origin: Any) -> Shape:
    scalar = _SCALARS.get(annotation) if isinstance(annotation, type) else None
    if scalar:
        return Shape(frozenset({scalar}))
    kind = origin or annotation
    if not isinstance(kind, type):
        return ANYTHING
    if kind in (os.PathLike,):
        return _TEXT
    if kind in (list, tuple, set, frozenset) or kind in (collections.abc.Sequence, collections.abc.Iterable):
        members = [member for member in get_args(annotation) if member is not ...]
        return Shape(frozenset({"list"}), items=shape_of(Union[tuple(members)]) if members else ANYTHING)  # noqa: UP007
    if issubclass(kind, collections.abc.Mapping):
        members = list(get_args(annotation))
        return Shape(frozenset({"map"}), items=shape_of(members[1]) if len(members) == 2 else ANYTHING)
    return _registered(kind)


def _registered(kind: type) -> Shape:
    """A class that files can make or name; any other one is left out of the alternatives."""
    if issubclass(kind, pt.Transformer):
        return Shape(kinds=("stages",))
    for name, target in _PARTS_ABOVE.items():
        if f"{kind.__module__}:{kind.__qualname__}" == target:
            return Shape(parts=(name,))
    for name, target in (*_BASES.items(), *_PARTS.items()):
        base = _imported(target)
        # Protocols are compared by identity: they take no part in issubclass.
        if kind is base or (name in _BASES and not getattr(base, "_is_protocol", False) and issubclass(kind, base)):
            return Shape(kinds=(name,)) if name in _BASES else Shape(parts=(name,))
    return Shape()


@cache
def _imported(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def _joined(shapes: list[Shape]) -> Shape:
    types_of = frozenset().union(*(shape.types for shape in shapes))
    items = [shape.items for shape in shapes if shape.items is not None]
    joined = Shape(
        types_of,
        tuple(dict.fromkeys(kind for shape in shapes for kind in shape.kinds)),
        tuple(dict.fromkeys(part for shape in shapes for part in shape.parts)),
        tuple(dict.fromkeys(choice for shape in shapes for choice in shape.choices)),
        items[0] if len(items) == 1 else ANYTHING if items else None,
    )
    return joined if joined != Shape() else ANYTHING
