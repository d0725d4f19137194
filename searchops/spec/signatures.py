"""What a registered class takes: the arguments of its constructor, with types and descriptions."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from searchops import registry
from searchops.spec.shapes import ANYTHING, Shape, shape_of

__all__ = ["REQUIRED", "Parameter", "Signature", "arguments_of", "engine_signature", "signature_of", "stage_class"]

REQUIRED: Final = inspect.Parameter.empty
DEFAULT_FUSION: Final = "rrf"
# What building is told by whoever builds, not by the file.
_NOT_IN_FILES: Final = frozenset({"collection", "overwrite", "progress"})


@dataclass(frozen=True)
class Parameter:
    """One argument of a constructor."""

    name: str
    shape: Shape
    default: Any
    description: str = ""


@dataclass(frozen=True)
class Signature:
    """The arguments of a class.

    Attributes:
        parameters: By name, in order.
        rest: The one that takes any number of values (the branches of a union), if there is one.
        open: Whether unknown names are passed on.
        description: The first line of the class's docstring.
    """

    parameters: Mapping[str, Parameter]
    rest: Parameter | None
    open: bool
    description: str

    @property
    def names(self) -> list[str]:
        """Every name a file may give."""
        return [*self.parameters, *([self.rest.name] if self.rest else [])]


def signature_of(cls: Any) -> Signature:
    """The signature of a class's constructor.

    Example:
        >>> from searchops.primitives import Rerank
        >>> list(signature_of(Rerank).parameters)
        ['scorer', 'k', 'fields']
    """
    return _signature(cls)


def engine_signature(cls: Any) -> Signature:
    """What an index of a file may be given: how it is built and how it is searched."""
    opened = signature_of(cls)
    build = getattr(cls, "build", None)
    if build is None:
        return opened
    built = _read(cls, build)
    merged = {**built.parameters, **opened.parameters}
    return Signature({name: parameter for name, parameter in merged.items() if name not in _NOT_IN_FILES},
                     None, opened.open or built.open, opened.description)  # fmt: skip


def stage_class(name: str, method: str = DEFAULT_FUSION) -> type:
    """The class of a stage's name; `fuse` is the class of its method.

    Raises:
        SpecError: No such stage or method.
    """
    found: type = registry.lookup("fusion", method) if name == "fuse" else registry.lookup("stage", name)
    return found


def arguments_of(thing: Any) -> dict[str, Any]:
    """The constructor arguments of an object that keeps them under their names, those at their default left out.

    Example:
        >>> from searchops.splitting import Words
        >>> arguments_of(Words(size=100))
        {'size': 100}
    """
    signature = signature_of(type(thing))
    found = {}
    for name, parameter in signature.parameters.items():
        default = parameter.default
        # An index may keep an argument in another form; it is then told by those it keeps.
        value = getattr(thing, name, default)
        if default is REQUIRED or type(value) is not type(default) or value != default:
            found[name] = value
    if signature.rest is not None:
        found[signature.rest.name] = getattr(thing, signature.rest.name)
    return found


@cache
def _signature(cls: Any) -> Signature:
    return _read(cls, cls.__init__)


def _read(cls: type, function: Any) -> Signature:
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # an annotation that cannot be read checks nothing
        hints = {}
    docs = _argument_docs(inspect.getdoc(cls) or "") | _argument_docs(inspect.getdoc(function) or "")
    parameters, rest, is_open = {}, None, False
    for name, given in inspect.signature(function).parameters.items():
        if name in ("self", "cls") or name.startswith("_"):
            continue
        shape = shape_of(hints[name]) if name in hints else ANYTHING
        parameter = Parameter(name, shape, given.default, docs.get(name, ""))
        if given.kind is inspect.Parameter.VAR_POSITIONAL:
            rest = parameter
        elif given.kind is inspect.Parameter.VAR_KEYWORD:
            is_open = True
        else:
            parameters[name] = parameter
    return Signature(parameters, rest, is_open, (inspect.getdoc(cls) or "").partition("\n")[0])


def _argument_docs(text: str) -> dict[str, str]:
    """The Args section of a Google docstring."""
    _, found, after = text.partition("\nArgs:\n")
    if not found:
        return {}
    section = re.split(r"\n(?=\S)", after, maxsplit=1)[0]
    entries = re.findall(r"^    (\w+): (.*(?:\n     +.*)*)", section, flags=re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in entries}
