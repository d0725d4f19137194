"""What files and texts are read into: values that know where they stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from searchops.errors import SpecError

__all__ = ["Call", "Node", "Place", "as_node"]

MAX_DEPTH = 40
MAX_NODES = 20_000


class Place(NamedTuple):
    """Where a value stands.

    Attributes:
        source: The file, or the path to the value in data that never was in one.
        line: From 1; 0 where there are no lines.
        column: From 1.
        straight: Columns from there to the value's first character, where the characters of the value
            stand one behind the other in the file; None where escapes or line breaks stand between them.

    Example:
        >>> str(Place("p.yaml", 8, 27)), Place("p.yaml", 8, 27, 1).at(4), Place("pipeline[0]").at(4)
        ('p.yaml:8:27', 'p.yaml:8:32', 'pipeline[0], column 5 of the text')
    """

    source: str
    line: int = 0
    column: int = 0
    straight: int | None = None

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source

    def at(self, offset: int) -> str:
        """Where a character of the value stands."""
        if self.straight is not None:
            return f"{self.source}:{self.line}:{self.column + self.straight + offset}"
        return f"{self}, column {offset + 1} of the text"


@dataclass(frozen=True)
class Call:
    """A name with arguments, such as a stage or a scorer.

    Attributes:
        name: The name.
        positional: Arguments without a name.
        named: Arguments by name.
        keys: Where the arguments' names stand.
        within: The stage it was written into, if its arguments stood among the stage's.
    """

    name: str
    positional: tuple[Node, ...] = ()
    named: Mapping[str, Node] = field(default_factory=dict)
    keys: Mapping[str, Place] = field(default_factory=dict, compare=False)
    within: str = field(default="", compare=False)


Value: TypeAlias = "bool | int | float | str | list[Node] | tuple[Node, ...] | dict[str, Node] | Call | None"
"""A tuple is a chain of stages (`a >> b` in a text); a list is a list of the file."""


@dataclass(frozen=True)
class Node:
    """A value and its place; two nodes are equal when their values are.

    Attributes:
        value: A scalar, a list, a mapping or a call.
        place: Where it stands.
        keys: Where the keys of a mapping stand.
        text: A scalar as the file writes it.
        plain: Whether a scalar is written without quotes.
        broken: Whether something wrong with it is noted already, so that nothing else is said of it.
    """

    value: Value
    place: Place = field(compare=False)
    keys: Mapping[str, Place] = field(default_factory=dict, compare=False)
    text: str = field(default="", compare=False)
    plain: bool = field(default=False, compare=False)
    broken: bool = field(default=False, compare=False)

    def moved(self, place: Place) -> Node:
        """The same value, said to stand elsewhere."""
        return replace(self, place=place)

    def key_place(self, key: str) -> Place:
        """Where a key of the mapping stands."""
        return self.keys.get(key, self.place)


def as_node(data: Any, where: str = "pipeline") -> Node:
    """Plain data (of JSON, of an agent's call) as nodes whose places are paths.

    Raises:
        SpecError: It holds what no file can hold, a key that is no text, or it is nested too deeply.

    Example:
        >>> node = as_node([{"retrieve": {"k": 20}}])
        >>> str(node.value[0].value["retrieve"].value["k"].place)
        'pipeline[0].retrieve.k'
    """
    return _Wrapping().wrap(data, where, 0)


class _Wrapping:
    def __init__(self) -> None:
        self.n_nodes = 0

    def wrap(self, data: Any, where: str, depth: int) -> Node:
        self.n_nodes += 1
        place = Place(where)
        if depth > MAX_DEPTH or self.n_nodes > MAX_NODES:
            needed = f"at most {MAX_DEPTH} levels and {MAX_NODES:,} values are needed"
            raise SpecError(needed, "more", where=where)
        if isinstance(data, Node):
            return data
        if isinstance(data, (list, tuple)):
            return Node([self.wrap(item, f"{where}[{n}]", depth + 1) for n, item in enumerate(data)], place)
        if isinstance(data, Mapping):
            return self._mapping(data, where, depth)
        if data is None or isinstance(data, (bool, int, float, str)):
            return Node(data, place, text=str(data))
        raise SpecError("data of a file (text, numbers, lists, mappings) is needed", type(data).__name__, where=where)

    def _mapping(self, data: Mapping[Any, Any], where: str, depth: int) -> Node:
        entries = {}
        for key, value in data.items():
            if not isinstance(key, str):
                raise SpecError("a key that is text is needed", type(key).__name__, where=where)
            entries[key] = self.wrap(value, f"{where}.{key[:40]}", depth + 1)
        return Node(entries, Place(where), {key: node.place for key, node in entries.items()})
