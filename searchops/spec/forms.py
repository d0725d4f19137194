"""How the data of pipelines looks: as block and flow of a YAML file, or as one line of text."""

from __future__ import annotations

import io
import json
import math
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from searchops.errors import SpecError
from searchops.spec.scalars import resolve
from searchops.spec.variables import FromEnvironment, escaped

__all__ = ["Called", "Named", "chain", "to_yaml"]

_WIDTH: Final = 100


class Named(str):
    """The name of a component, which a text writes without quotes."""


class Called(dict[str, Any]):
    """A component's name with its arguments, which a text writes as a call."""


def chain(stages: list[Any]) -> str:
    """Stages as one line of text.

    Example:
        >>> chain([{"retrieve": {"k": 20}}, {"filter": "year >= 2019"}, "dedupe"])
        'retrieve(k=20) >> filter("year >= 2019") >> dedupe'
    """
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
    return chain(branch) if isinstance(branch, list) else _call(branch)


def _value(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (Named, Called)):
        return _call(value)
    if isinstance(value, str):
        text = value.reference if isinstance(value, FromEnvironment) else str(value)
        return json.dumps(text, ensure_ascii=False)
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return "{" + ", ".join(f"{json.dumps(key)}: {_value(item)}" for key, item in value.items()) + "}"


def _number(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ("-.inf" if value < 0 else ".inf")
    return repr(value)


def to_yaml(content: dict[str, Any]) -> str:
    """Data as a YAML file that is read back as the same: what looks like a number or reference is marked.

    Example:
        >>> print(to_yaml({"version": 1, "record": "2020", "pipeline": [{"retrieve": {"k": 5}}]}), end="")
        version: 1
        record: "2020"
        pipeline:
        - retrieve:
            k: 5
    """
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
