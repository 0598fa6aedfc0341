"""Texts of an output, found and taken out, in every dialect."""

import json

import pytest

from thoughtline.dialects import DIALECTS
from thoughtline.dialects.output_texts import output_texts, without_texts

BODIES = {
    "messages": (
        {
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": [{"type": "text", "text": "a"}, "b"]},
            ]
        },
        ["a", "b"],
    ),
    "gemini": (
        {
            "contents": [
                {"role": "user", "parts": [{"text": "hi"}]},
                {"role": "model", "parts": [{"text": "a"}, {"text": "t", "thought": True}]},
                {"role": "model", "parts": [{"text": "b"}]},
            ]
        },
        ["a", "b"],
    ),
    "chat": (
        {
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": "ab"},
            ]
        },
        ["ab"],
    ),
    "responses": (
        {
            "input": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
                {"role": "assistant", "content": [{"type": "output_text", "text": "b"}]},
            ]
        },
        ["a", "b"],
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_texts_are_found_and_taken_out(name):
    document, texts = BODIES[name]
    dialect = DIALECTS[name]
    request = dialect.read(json.dumps(document).encode())
    assert output_texts(dialect, request, [0]) == {0: texts}
    made = dialect.read(without_texts(dialect, request, {0: ["a"]}))
    assert output_texts(dialect, made, [0]) == {0: ["b"]}
    assert without_texts(dialect, request, {0: ["c"]}) == request.body
    assert without_texts(dialect, request, {}) == request.body
