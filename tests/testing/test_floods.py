"""Floods are valid JSON of the size that was asked for."""

import json

import pytest

from thoughtline.testing.floods import (
    ANSWERS,
    REQUESTS,
    STREAM_SHAPES,
    STREAMS,
    floods,
    stream,
)

TEMPLATES = [
    template for places in (*REQUESTS.values(), *ANSWERS.values()) for template in places.values()
]


@pytest.mark.parametrize("template", [*TEMPLATES, *STREAMS.values()])
def test_a_flood_is_json_of_about_its_size(template):
    for shape, body in floods(template, 1000):
        assert abs(len(body) - 1000) < 250, shape
        if shape != "nested":
            json.loads(body)


@pytest.mark.parametrize("shape", STREAM_SHAPES)
def test_a_stream_has_events_of_floods(shape):
    for template in STREAMS.values():
        made = stream(template, shape, 5000, each=1000)
        assert made.endswith(b"\n\n")
        assert 3000 < len(made) < 5500
