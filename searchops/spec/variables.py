"""`${vars.x}` and `${env.X}`, and nothing else: no expression is ever evaluated.

A scalar that is one reference takes the variable's value with its type (the environment's are read as the
type that the argument asks for); within a longer text its characters are put in. `$${` writes a `${` that
stays. Values of the environment may be secret: they are `FromEnvironment`, which repr, records and dumps
show as the reference they came from.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, Self

from searchops.errors import SpecError, did_you_mean
from searchops.spec.document import read_document
from searchops.spec.nodes import MAX_NODES, Node, Place, as_node
from searchops.spec.problems import Problems, shown
from searchops.spec.scalars import resolve

__all__ = ["FromEnvironment", "escaped", "overridden", "read_scalar", "substituted"]

_MAX_CHARACTERS: Final = 100_000
_MAX_TOTAL: Final = 2_000_000
_SHORTEST_SECRET: Final = 4
_REFERENCE: Final = re.compile(r"\$\$\{|\$\{([^}]*)\}?")
_NAME: Final = re.compile(r"(vars|env)\.([A-Za-z_][A-Za-z0-9_]*)")
_SETTABLE: Final = ("collection", "record")


class FromEnvironment(str):
    """A text out of the environment that shows itself as the reference it was read by.

    Example:
        >>> url = FromEnvironment("http://10.0.0.7/v1", "${env.CHAT_URL}")
        >>> url == "http://10.0.0.7/v1", repr(url)
        (True, "'${env.CHAT_URL}'")
    """

    reference: str

    def __new__(cls, value: str, reference: str) -> Self:
        """The value, with the text that referred to it."""
        made = super().__new__(cls, value)
        made.reference = reference
        return made

    @property
    def secrets(self) -> list[str]:
        """The environment's values in it that are long enough to tell anything."""
        found = [match[1].strip() for match in _REFERENCE.finditer(self.reference) if match[1] is not None]
        values = [os.environ.get(name.removeprefix("env."), "") for name in found if name.startswith("env.")]
        return [value for value in values if len(value) >= _SHORTEST_SECRET]

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return (str(self), self.reference)

    def __repr__(self) -> str:
        return repr(self.reference)


def escaped(text: str) -> str:
    """A text as a file must write it, so that it is read as it is.

    Example:
        >>> escaped("costs ${5}"), escaped(FromEnvironment("s3cret", "${env.KEY}"))
        ('costs $${5}', '${env.KEY}')
    """
    return text.reference if isinstance(text, FromEnvironment) else re.sub(r"\$+\{", _doubled, text)


def _doubled(match: re.Match[str]) -> str:
    # Of `$$${` the last two signs are the escape, so one more sign is enough for any number of them.
    return "$" + match[0]


def overridden(root: Node, overrides: Mapping[str, Any] | Iterable[str], problems: Problems) -> Node:
    """The document with `vars.k=5` and the like applied.

    Args:
        root: The document.
        overrides: Texts such as `vars.k=5`, whose values are read as YAML, or a mapping `{"vars.k": 5}`.
        problems: Gets what is wrong with them.
    """
    assert isinstance(root.value, dict)
    document = dict(root.value)
    for path, node in _pairs(overrides, problems):
        head, _, name = path.partition(".")
        variables = document.get("vars")
        known = variables.value if variables is not None and isinstance(variables.value, dict) else {}
        if head == "vars" and variables is not None and name in known:
            document["vars"] = replace(variables, value={**known, name: node})
        elif path in _SETTABLE:
            document[path] = node
        else:
            names = [f"vars.{known_name}" for known_name in known] + list(_SETTABLE)
            problems.add("--set", f"unknown {shown(path)}; {did_you_mean(path[:60], names)}")
    return replace(root, value=document)


def _pairs(overrides: Mapping[str, Any] | Iterable[str], problems: Problems) -> Iterator[tuple[str, Node]]:
    if isinstance(overrides, Mapping):
        for path, value in overrides.items():
            yield path, as_node(value, f"--set {path}")
        return
    for text in overrides:
        path, sign, value = text.partition("=")
        if not sign or not path.strip():
            problems.add("--set", "NAME=VALUE such as vars.k=5 is needed", shown(text))
        else:
            yield path.strip(), _value(value.strip(), f"--set {path.strip()[:60]}", problems)


def _value(text: str, where: str, problems: Problems) -> Node:
    if text.startswith(("'", '"', "[", "{")):
        return read_document(text, where, problems)
    # Anything else is a plain scalar, also what YAML would take for something else (`> 3`, `a: b`).
    try:
        return Node(resolve(text), Place(where), text=text, plain=True)
    except SpecError as error:
        problems.refuse(where, error.needed, error.found)


def substituted(root: Node, problems: Problems) -> Node:
    """The document with its references replaced; `vars` may refer to the environment only."""
    assert isinstance(root.value, dict)
    given = root.value.get("vars")
    values: dict[str, Node] = {}
    if given is not None and given.value is not None:
        if isinstance(given.value, dict):
            read = _Substitution({}, problems, within_vars=True).node(given)
            assert isinstance(read.value, dict)
            values = read.value
        else:
            problems.add(given.place, "vars must be a mapping of names and values", shown(given.value))
    substitution = _Substitution(values, problems)
    rest = {key: node if key == "vars" else substitution.node(node) for key, node in root.value.items()}
    if given is not None:
        rest["vars"] = replace(given, value=values)
    return replace(root, value=rest)


class _Substitution:
    def __init__(self, values: dict[str, Node], problems: Problems, *, within_vars: bool = False) -> None:
        self.values = values
        self.problems = problems
        self.within_vars = within_vars
        self.n_nodes = 0
        self.n_characters = 0

    def node(self, node: Node) -> Node:
        """The node with all that is below it replaced."""
        self._count(node)
        if isinstance(node.value, list):
            return replace(node, value=[self.node(item) for item in node.value])
        if isinstance(node.value, dict):
            return replace(node, value={key: self.node(item) for key, item in node.value.items()})
        if isinstance(node.value, str) and "${" in node.value:
            return self._text(node, node.value)
        return node

    def _count(self, node: Node) -> None:
        self.n_nodes += 1
        if self.n_nodes > MAX_NODES:
            self.problems.refuse(node.place, f"at most {MAX_NODES:,} values are needed", "more, with variables put in")

    def _text(self, node: Node, text: str) -> Node:
        whole = _REFERENCE.fullmatch(text)
        if whole and whole[1] is not None:
            return self._whole(node, whole)
        noted = len(self.problems)
        parts: list[str] = []
        shape: list[str] = []
        end = 0
        for match in _REFERENCE.finditer(text):
            before = text[end : match.start()]
            put, reference = ("${", "$${") if match[1] is None else self._put(node, match)
            parts += [before, put]
            shape += [before, reference]
            end = match.end()
            self._bound(node, sum(map(len, parts)))
        parts.append(text[end:])
        shape.append(text[end:])
        made = "".join(parts)
        if len(self.problems) > noted:
            return replace(node, value=None, broken=True)
        self.n_characters += len(made)
        self._bound(node, len(made))
        secret = "".join(shape)
        value = FromEnvironment(made, secret) if _names_environment(secret) else made
        # With something put in, its characters do not stand one behind the other in the file.
        return replace(node, value=value, text=made, place=node.place._replace(straight=None))

    def _bound(self, node: Node, length: int) -> None:
        if length > _MAX_CHARACTERS or self.n_characters > _MAX_TOTAL:
            needed = f"a text of at most {_MAX_CHARACTERS:,} characters is needed"
            self.problems.refuse(node.place, needed, "more, with variables put in")

    def _whole(self, node: Node, match: re.Match[str]) -> Node:
        found = self._found(node, match)
        if isinstance(found, str):
            value = FromEnvironment(found, match[0])
            return replace(node, value=value, text=found, place=node.place._replace(straight=None))
        if found is None:
            return replace(node, value=None, broken=True)
        self.n_nodes += _size(found)
        self._count(node)
        if isinstance(found.value, str):
            return found.moved(node.place._replace(straight=None))
        return found if isinstance(found.value, (list, dict)) else found.moved(node.place)

    def _put(self, node: Node, match: re.Match[str]) -> tuple[str, str]:
        """The characters for a reference within a text, and how a dump may write them."""
        found = self._found(node, match)
        if found is None:
            return "", ""
        if isinstance(found, str):
            return found, match[0]
        if isinstance(found.value, (list, dict)):
            self.problems.add(node.place, f"{match[0]} within a text must be a single value", shown(found.value))
            return "", ""
        text = found.value if isinstance(found.value, str) else found.text
        return str(text), escaped(found.value) if isinstance(found.value, str) else text

    def _found(self, node: Node, match: re.Match[str]) -> Node | str | None:
        """A variable's node, an environment variable's text, or None behind a noted problem."""
        where = node.place.at(match.start()) if node.place.straight is not None else node.place
        name = _NAME.fullmatch(match[1].strip())
        if name is None or not match[0].endswith("}"):
            self.problems.add(where, "${vars.NAME} or ${env.NAME} is needed", shown(match[0]),
                              "Write $${ for the characters themselves.")  # fmt: skip
            return None
        kind, key = name.groups()
        if kind == "env":
            value = os.environ.get(key)
            if value is None:
                self.problems.add(where, f"the environment variable {shown(key)} is needed", "none",
                                  f"Set it: export {key[:60]}=…")  # fmt: skip
            return value
        if self.within_vars:
            self.problems.add(where, "vars may refer to ${env.NAME} only", shown(match[0]))
            return None
        found = self.values.get(key)
        if found is None:
            hint = did_you_mean(key[:60], self.values) if self.values else "there are no vars"
            self.problems.add(where, f"unknown variable {shown(key)}; {hint}")
        return found


def read_scalar(text: str) -> Any:
    """A text as a file without quotes would be read; what no file can hold stays text."""
    try:
        return resolve(text)
    except SpecError:
        return text


def _names_environment(text: str) -> bool:
    return any(match[1] is not None and match[1].strip().startswith("env.") for match in _REFERENCE.finditer(text))


def _size(node: Node) -> int:
    below = node.value if isinstance(node.value, list) else node.value.values() if isinstance(node.value, dict) else ()
    return 1 + sum(map(_size, below))
