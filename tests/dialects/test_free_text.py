import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.dialects.free_text import FreeTextStream, free_text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"input": "a"}', "a"),
        ('{"patch": "a"}', "a"),
        ('"a"', "a"),
        ('{"input": "two\nlines"}', "two\nlines"),  # against the grammar of JSON, but models do it
        ("*** Begin Patch", "*** Begin Patch"),
        ('{"other": 1}', '{"other": 1}'),
        ('{"input": "\\ud800"}', '{"input": "\\ud800"}'),
    ],
)
def test_it_is_found_however_the_model_wrapped_it(arguments, text):
    assert free_text(arguments) == text


def told(pieces):
    stream = FreeTextStream()
    return [stream.feed(piece) for piece in pieces], stream.arguments


def test_it_is_told_as_it_comes():
    deltas, arguments = told(['{"in', 'put": "Hel', "lo\\", "n \\ud83d", "\\ude00 wor", 'ld"', "}"])
    assert deltas == ["", "Hel", "lo", "\n ", "\U0001f600 wor", "ld", ""]
    assert free_text(arguments) == "".join(deltas)


@given(st.text(), st.booleans(), st.lists(st.integers(1, 7), max_size=40))
def test_its_pieces_add_up_at_every_split(text, escaped, sizes):
    arguments = json.dumps({"input": text}, ensure_ascii=escaped)
    pieces = []
    for size in sizes:
        pieces.append(arguments[:size])
        arguments = arguments[size:]
    deltas, arguments = told([*pieces, arguments])
    assert "".join(deltas) == free_text(arguments) == text


@pytest.mark.parametrize(
    "arguments",
    ['{"patch": "a"}', "*** Begin Patch", '{"input": 5}', '[{"input": "a"}]', " " * 100 + "{}"],
)
def test_any_other_wrapping_waits_for_the_end(arguments):
    deltas, whole = told(arguments)
    assert not any(deltas)
    assert whole == arguments


def test_half_a_character_is_not_told():
    deltas, _ = told('{"input": "a\\ud800b and more than an escape"}')
    assert "".join(deltas) == "a"
