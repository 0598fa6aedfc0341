"""Thoughts in JSON lists: the slot that each belongs to, and edits that touch nothing else."""

import json

import pytest

from thoughtline.dialects import splice
from thoughtline.dialects.base import PlacedThought
from thoughtline.dialects.list_patch import Existing, ListPatch, same_text, slots
from thoughtline.log.parts import Carrier
from thoughtline.log.turns import Place


def placed(kind, nth=0, raw='"t"'):
    return PlacedThought(carrier=Carrier.BLOCK, raw=raw, place=Place(kind, nth))


@pytest.mark.parametrize(
    ("kinds", "wanted", "found"),
    [
        (["text", "call"], [("text", 0), ("call", 0)], [0, 1]),
        (["call", "call"], [("call", 1)], [1]),
        (["call"], [("text", 0)], [0]),  # the text is gone: it stood beside the call
        (["text"], [("text", 1)], [0]),  # two texts became one
        (["text"], [("call", 0)], [1]),  # a call that is gone leaves nothing to stand before
        (["text", "call"], [("call", 0), ("text", 0)], [1, 1]),  # the order is never changed
        ([], [("text", 0)], [0]),
    ],
)
def test_slots(kinds, wanted, found):
    assert slots(kinds, [placed(*one) for one in wanted]) == found


BODY = b'[ "a" , {"t":1}, "b" ]'
WHOLE = splice.Span(0, 0, len(BODY))


def patched(wanted, **more):
    """The list with the thought at its second place among its other elements."""
    first, thought, last = spans = splice.elements(BODY, WHOLE)
    there = Existing(slot=1, spans=(thought,), raw=b'{"t":1}')
    patch = ListPatch()
    patch.put_thoughts([first, last], [there], wanted, **more)
    return splice.apply(BODY, patch.edits(spans, WHOLE))


def test_an_equal_thought_keeps_its_bytes():
    assert patched([(1, b'{"t": 1}')]) == BODY
    assert patched([(1, b'{"\\u0074":1}')], verbatim=True) == BODY
    assert patched([(1, b'{"t":1.0}')]) == b'[ "a", {"t":1.0},"b" ]'


@pytest.mark.parametrize(
    ("wanted", "made"),
    [
        ([], ["a", "b"]),
        ([(0, b'"x"')], ["x", "a", "b"]),
        ([(1, b'"x"'), (1, b'{"t":1}')], ["a", "x", {"t": 1}, "b"]),
        ([(1, b'{"t":1}'), (1, b'"x"')], ["a", {"t": 1}, "x", "b"]),
        ([(2, b'"x"')], ["a", "b", "x"]),
    ],
)
def test_thoughts_stand_where_they_are_wanted_and_no_others(wanted, made):
    assert json.loads(patched(wanted)) == made


def test_half_an_emoji_equals_itself_and_no_other_half():
    assert same_text(b'"\\ud83d"', b'"\\ud83d"')
    assert not same_text(b'"\\ud83d"', b'"\\ud83e"')
    assert same_text(b'"\\u0061"', b'"a"', verbatim=True)
