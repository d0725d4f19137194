"""The JSON Schema of pipeline files, for editors: names, argument types and what each is for."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from searchops import registry
from searchops.errors import SpecError
from searchops.spec.reading import KEYS
from searchops.spec.shapes import Shape
from searchops.spec.signatures import REQUIRED, Parameter, Signature, engine_signature, signature_of, stage_class

__all__ = ["json_schema"]

_TYPES: Final = {
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "str": {"type": "string"},
    "null": {"type": "null"},
}
_REFERENCE: Final = {"$ref": "#/$defs/reference"}
_ANY: Final[dict[str, Any]] = {}


def json_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) of a pipeline file, with every registered name.

    Example:
        >>> schema = json_schema()
        >>> schema["properties"]["version"]
        {'const': 1, 'description': 'The version of this format: 1.'}
        >>> "rerank" in [list(form["properties"])[0] for form in schema["$defs"]["stage"]["oneOf"][1:]]
        True
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A searchops pipeline file",
        "type": "object",
        "required": ["version"],
        "oneOf": [{"required": ["pipeline"]}, {"required": ["pipelines"]}, {"required": ["agent"]}],
        "additionalProperties": False,
        "properties": {key: {**schema, "description": KEYS[key]} for key, schema in _keys().items()},
        "$defs": _definitions(),
    }


def _keys() -> dict[str, dict[str, Any]]:
    texts = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    pipelines = {"$ref": "#/$defs/pipeline"}
    agent = {"$ref": "#/$defs/agent"}
    return {
        "version": {"const": 1},
        "vars": {"type": "object"},
        "collection": {"type": "string", "examples": ["pydocs", "path/to/folder", "irds:beir/scifact/test"]},
        "index": {"$ref": "#/$defs/engine"},
        "indexes": {"type": "object", "minProperties": 1, "additionalProperties": {"$ref": "#/$defs/engine"}},
        "agent": {"anyOf": [agent, {"type": "array", "minItems": 1, "items": agent}]},
        "model": {"$ref": "#/$defs/model"},
        "budget": {"$ref": "#/$defs/budget"},
        "funnel": {"$ref": "#/$defs/funnel"},
        "pipeline": pipelines,
        "pipelines": {"anyOf": [{"type": "object", "minProperties": 1, "additionalProperties": pipelines},
                                {"type": "array", "minItems": 1, "items": pipelines}]},
        "measures": {**texts, "examples": [["nDCG@10", "R@100", "Delivered", "Delivered/Available"]]},
        "record": {"type": "string", "examples": ["runs/demo"]},
        "names": texts,
    }  # fmt: skip


def _definitions() -> dict[str, Any]:
    stage = {"$ref": "#/$defs/stage"}
    return {
        "reference": {
            "type": "string",
            "pattern": r"^\$\{(vars|env)\.[A-Za-z_][A-Za-z0-9_]*\}$",
            "description": "A value of vars or of the environment.",
        },
        "pipeline": {"anyOf": [{"type": "array", "minItems": 1, "items": stage}, stage]},
        "stage": _named("stage", [*registry.names("stage"), "fuse"]),
        **{kind: _named(kind, registry.names(kind)) for kind in ("scorer", "splitter", "model", "engine", "agent")},
        **{part: _arguments(_signature("part", part)) for part in registry.names("part")},
    }


def _signature(kind: str, name: str) -> Signature | None:
    with suppress(SpecError):
        cls = stage_class(name) if kind == "stage" else registry.lookup(kind, name)
        return engine_signature(cls) if kind == "engine" else signature_of(cls)
    return None


def _named(kind: str, names: list[str]) -> dict[str, Any]:
    """A thing by name: the name alone, or a mapping of the name to its arguments."""
    alone: dict[str, Any] = {"enum": names, "type": "string"}
    if kind == "stage":
        # Wherever a stage can stand, a text form can.
        alone = {"type": "string", "examples": ["dedupe", "retrieve(k=20) >> rerank(k=10)"]}
    forms = []
    for name in names:
        signature = _signature(kind, name)
        form = {"type": "object", "required": [name], "additionalProperties": False,
                "properties": {name: _given(name, signature)}}  # fmt: skip
        if signature is not None and signature.description:
            form["description"] = signature.description
        forms.append(form)
    return {"oneOf": [alone, *forms]}


def _given(name: str, signature: Signature | None) -> dict[str, Any]:
    """What stands behind a name: arguments, or the one value that stands for its argument."""
    if signature is None:
        return _ANY
    full = _arguments(signature, method=name == "fuse")
    if signature.rest is not None:
        return {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/pipeline"}}, full]}
    scalars: list[Any] = []
    for parameter in signature.parameters.values():
        scalars += [form for form in _forms(parameter.shape) if form not in scalars and _is_single(form)]
    return {"anyOf": [full, *scalars, {"type": "null"}]}


def _is_single(form: dict[str, Any]) -> bool:
    return form.get("type") in ("boolean", "integer", "number", "string") or "enum" in form or form is _REFERENCE


def _arguments(signature: Signature | None, *, method: bool = False) -> dict[str, Any]:
    if signature is None:
        return {"type": "object"}
    properties = {name: _argument(parameter) for name, parameter in signature.parameters.items()}
    if signature.rest is not None:
        rest = {"type": "array", "items": {"$ref": "#/$defs/pipeline"}, "minItems": 1}
        properties = {signature.rest.name: rest, **properties}
    if any("scorer" in parameter.shape.kinds for parameter in signature.parameters.values()):
        # What only a scorer takes may stand beside it; which one it is, a schema need not know.
        for name in registry.names("scorer"):
            scorer = _signature("scorer", name)
            for parameter in scorer.parameters.values() if scorer is not None else ():
                properties.setdefault(parameter.name, _argument(parameter))
    if method:
        properties["method"] = {"enum": registry.names("fusion"), "description": "How lists are fused."}
    return {"type": "object", "properties": properties, "additionalProperties": signature.open}


def _argument(parameter: Parameter) -> dict[str, Any]:
    forms = _forms(parameter.shape)
    schema: dict[str, Any] = {"anyOf": forms} if forms else {}
    if parameter.description:
        schema["description"] = parameter.description
    if parameter.default is None or isinstance(parameter.default, (bool, int, float, str)):
        schema["default"] = parameter.default
    elif parameter.default is not REQUIRED and parameter.default == ():
        schema["default"] = []
    return schema


def _forms(shape: Shape) -> list[dict[str, Any]]:
    """The alternatives of a shape; none is anything."""
    if "any" in shape.types:
        return []
    forms: list[dict[str, Any]] = [dict(_TYPES[name]) for name in sorted(shape.types) if name in _TYPES]
    if shape.choices:
        forms.append({"enum": list(shape.choices)})
    items = {"anyOf": _forms(shape.items)} if shape.items is not None and _forms(shape.items) else {}
    if "list" in shape.types:
        forms.append({"type": "array", "items": items})
    if "map" in shape.types:
        forms.append({"type": "object", "additionalProperties": items or True})
    for kind in shape.kinds:
        # An argument takes an index by the name the file gives it; elsewhere a thing is described.
        named = {"type": "string"} if kind == "engine" else {"$ref": f"#/$defs/{_definition(kind)}"}
        forms.append(named)
    forms += [{"$ref": f"#/$defs/{part}"} for part in shape.parts]
    return [*forms, _REFERENCE]


def _definition(kind: str) -> str:
    return "pipeline" if kind == "stages" else kind
