"""JSON Schemas of tools, for APIs that do not take all of what JSON Schema can say."""

from collections.abc import Mapping
from typing import Any

_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
_OPENAPI = frozenset(
    {
        *("type", "format", "title", "description", "nullable", "enum", "pattern", "example"),
        *("items", "minItems", "maxItems", "properties", "minProperties", "maxProperties"),
        *("required", "minLength", "maxLength", "minimum", "maximum", "default", "anyOf"),
        "propertyOrdering",
    }
)
"""Keywords of the subset of OpenAPI that Google's `parameters` are."""


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has no alternatives at its root.

    Where it has some, the members of all are allowed, and those that all demand are demanded.
    """
    made = {"type": "object", **schema}
    found = [one for word in _ALTERNATIVES for one in _objects(made.pop(word, None))]
    if not found:
        return made
    every = len(_objects(schema.get("allOf"))) == len(found)
    properties, required = dict(made.get("properties") or {}), list(made.get("required") or ())
    demanded: list[set[str]] = []
    for one in map(object_schema, found):
        properties = {**_mapping(one.get("properties")), **properties}
        demanded.append(set(one.get("required") or ()))
    more = set.union(*demanded) if every else set.intersection(*demanded)
    required += sorted(more - set(required))
    made["properties"] = properties
    if required:
        made["required"] = required
    return made


def is_openapi(schema: Any) -> bool:
    """Whether a schema says nothing that the subset of OpenAPI has no words for."""
    if not isinstance(schema, dict):
        return False
    if not _OPENAPI.issuperset(schema) or isinstance(schema.get("type"), list):
        return False
    inner = [*_mapping(schema.get("properties")).values(), *(schema.get("anyOf") or ())]
    inner += [schema["items"]] if "items" in schema else []
    return all(map(is_openapi, inner))


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
