"""Schemas of tools for APIs that take only some of JSON Schema."""

import pytest

from thoughtline.dialects.schemas import is_openapi, object_schema

STRING = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({}, {"type": "object"}),
        ({"properties": {"a": STRING}}, {"type": "object", "properties": {"a": STRING}}),
        (
            {
                "anyOf": [
                    {"properties": {"a": STRING, "id": STRING}, "required": ["a", "id"]},
                    {"properties": {"b": STRING, "id": STRING}, "required": ["b", "id"]},
                ]
            },
            {
                "type": "object",
                "properties": {"a": STRING, "b": STRING, "id": STRING},
                "required": ["id"],
            },
        ),
        (
            {
                "type": "object",
                "properties": {"c": STRING},
                "required": ["c"],
                "allOf": [{"properties": {"a": STRING}, "required": ["a"]}],
            },
            {
                "type": "object",
                "properties": {"a": STRING, "c": STRING},
                "required": ["c", "a"],
            },
        ),
    ],
)
def test_the_root_is_an_object_without_alternatives(schema, made):
    assert object_schema(schema) == made


@pytest.mark.parametrize(
    ("schema", "plain"),
    [
        ({"type": "object", "properties": {"a": {"type": "array", "items": STRING}}}, True),
        ({"type": "object", "additionalProperties": False}, False),
        ({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}, False),
        ({"type": "object", "properties": {"a": {"const": 1}}}, False),
        ({"properties": {"a": {"anyOf": [STRING, {"$ref": "#/x"}]}}}, False),
        ({"properties": {"a": True}}, False),
    ],
)
def test_what_the_subset_of_openapi_has_words_for(schema, plain):
    assert is_openapi(schema) is plain
