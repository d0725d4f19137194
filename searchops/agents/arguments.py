"""The arguments of a tool call, checked against the tool's schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from searchops.errors import ToolError, did_you_mean, sentence
from searchops.models.protocol import Tool

__all__ = ["read_arguments"]

_WORDS: Final = {"string": "text", "integer": "a whole number", "array": "a list"}


def read_arguments(tool: Tool, text: str) -> dict[str, Any]:
    """The arguments by name. Null is no argument; a number written as text or as 5.0 is taken as meant.

    Raises:
        ToolError: The text is no JSON object, or an argument is missing, unknown or of another kind.

    Example:
        >>> from searchops.agents.schemas import QUERY_TOOLS
        >>> read_arguments(QUERY_TOOLS[0], '{"query": "lakes", "k": "5"}')
        {'query': 'lakes', 'k': 5}
        >>> read_arguments(QUERY_TOOLS[0], '{"querry": "lakes"}')
        Traceback (most recent call last):
        searchops.errors.ToolError: search: unknown argument 'querry'. Did you mean 'query'?
    """
    given = _object(tool, text)
    properties: Mapping[str, Any] = tool.parameters["properties"]
    for name in given:
        if name not in properties:
            hint = sentence(did_you_mean(name, properties))
            raise ToolError(f"unknown argument {name[:60]!r}", where=tool.name, hint=hint)
    arguments = {
        name: _value(f"{tool.name}: {name}", properties[name], value)
        for name, value in given.items()
        if value is not None
    }
    missing = [name for name in tool.parameters["required"] if name not in arguments]
    if missing:
        raise ToolError("the argument " + " and ".join(missing) + " is needed", "none", where=tool.name)
    return arguments


def _object(tool: Tool, text: str) -> dict[str, Any]:
    try:
        given = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise ToolError("arguments that are a JSON object are needed", str(error)[:120], where=tool.name) from None
    if not isinstance(given, dict):
        raise ToolError("arguments that are a JSON object are needed", type(given).__name__, where=tool.name)
    return given


def _value(where: str, schema: Mapping[str, Any], value: Any) -> Any:
    kind = schema["type"]
    if kind == "integer":
        value = _whole(value)
    elif kind == "array" and isinstance(value, str):
        value = [value]
    fits = {"string": str, "integer": int, "array": list}[kind]
    if not isinstance(value, fits) or isinstance(value, bool):
        raise ToolError(f"{_WORDS[kind]} is needed", type(value).__name__, where=where)
    if isinstance(value, list):
        if not value:
            raise ToolError("a list of at least one is needed", "none", where=where)
        return [_value(where, schema["items"], item) for item in value]
    _check(where, schema, value)
    return value


def _check(where: str, schema: Mapping[str, Any], value: Any) -> None:
    """What a schema says beyond the type. Sizes above its maximum are left to the funnel, which says so."""
    if "enum" in schema and value not in schema["enum"]:
        raise ToolError("one of " + ", ".join(schema["enum"]) + " is needed", repr(value)[:60], where=where)
    if "minimum" in schema and value < schema["minimum"]:
        raise ToolError(f"at least {schema['minimum']} is needed", str(value)[:60], where=where)
    if "pattern" in schema and not re.search(schema["pattern"], value):
        raise ToolError("a name of letters, digits and _ is needed", repr(value)[:60], where=where)


def _whole(value: Any) -> Any:
    """The whole number that is meant, or the value as it is."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"\s*-?\d{1,9}\s*", value):
        return int(value)
    return value
