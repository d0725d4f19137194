"""What a model says of a passage, held against the passage and against a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from searchops.errors import FrameError, did_you_mean, sentence

__all__ = ["NoteSchema", "exact_quote"]

JSON_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")


def exact_quote(quote: str | None, passage: str) -> str | None:
    r"""The words in the passage's own characters, if they stand there (white space aside); else None.

    Example:
        >>> exact_quote("Ada wrote", "It was Ada\n wrote it.")
        'Ada\n wrote'
        >>> exact_quote("Bob wrote", "It was Ada.") is None
        True
    """
    words = (quote or "").split()
    found = re.search(r"\s+".join(map(re.escape, words)), passage) if words else None
    return found.group() if found else None


@dataclass(frozen=True)
class NoteSchema:
    """A JSON Schema that structured notes must satisfy; `json` is its text.

    Schemas may come from a model, so those that could reach the network or run a pattern without an end
    are refused: references elsewhere, `pattern`, `patternProperties`.
    """

    json: str

    @classmethod
    def of(cls, schema: Mapping[str, Any]) -> NoteSchema:
        r"""A schema from a JSON Schema of an object, or from a mapping of field names to types.

        Raises:
            FrameError: It is no valid schema, or uses what is refused.

        Example:
            >>> NoteSchema.of({"year": "integer"}).what_is_wrong({"year": "soon"})
            '"note.year": \'soon\' is not of type \'integer\''
        """
        full = dict(schema) if _is_json_schema(schema) else _from_fields(schema)
        for refused in _refused(full):
            hint = "Describe the field, or use enum."
            raise FrameError("a schema of plain types is needed", refused, where="schema", hint=hint)
        from jsonschema import Draft202012Validator, SchemaError

        try:
            Draft202012Validator.check_schema(full)
            return cls(json.dumps(full, ensure_ascii=False))
        except (SchemaError, TypeError, ValueError, RecursionError) as error:
            found = getattr(error, "message", str(error))
            raise FrameError("a valid JSON Schema is needed", found, where="schema") from None

    def what_is_wrong(self, note: Any) -> str | None:
        """The first thing about a note that breaks the schema; None where it fits."""
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import best_match
        from referencing import Registry
        from referencing.exceptions import Unresolvable

        # An empty registry: without one, jsonschema downloads what a reference names.
        validator = Draft202012Validator(json.loads(self.json), registry=Registry())
        try:
            error = best_match(validator.iter_errors(note))
        except (Unresolvable, RecursionError) as broken:
            found = f"{type(broken).__name__} {str(broken)[:120]}"
            raise FrameError("references within the schema are needed", found, where="schema") from None
        if error is None:
            return None
        path = ".".join(["note", *map(str, error.absolute_path)])
        return f'"{path}": {error.message}'

    def text(self, note: Any) -> str:
        """A note as JSON text, fields in the order of the model."""
        return json.dumps(note, ensure_ascii=False)


def _is_json_schema(schema: Mapping[str, Any]) -> bool:
    return "properties" in schema or "$schema" in schema or schema.get("type") == "object"


def _from_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for name, kind in fields.items():
        if isinstance(kind, str) and kind not in JSON_TYPES:
            hint = sentence(did_you_mean(kind, JSON_TYPES))
            raise FrameError("a JSON type is needed", repr(kind), where=f"schema, field {name!r}", hint=hint)
        properties[name] = {"type": kind} if isinstance(kind, str) else kind
    if not properties:
        raise FrameError("at least one field is needed", "none", where="schema")
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _refused(schema: Any) -> Iterator[str]:
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, Mapping):
            for key, value in node.items():
                # As the name of a field, `pattern` stands before a schema, not before a text.
                if key == "patternProperties" or (key == "pattern" and isinstance(value, str)):
                    yield repr(key)
                if key in ("$ref", "$dynamicRef") and isinstance(value, str) and not value.startswith("#"):
                    yield f"a reference to {value!r}"
                stack.append(value)
        elif isinstance(node, (list, tuple)):
            stack.extend(node)
