"""The JSON of the inspector's API: its names and types, for the page and for everybody's scripts."""

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from msgspec import inspect

import thoughtline.inspector
from thoughtline.inspector import shapes

PAGE = Path(thoughtline.inspector.__file__).parent / "page"

PARTS = get_args(shapes.PartShape)

READ = {
    "turn": [shapes.TurnShape],
    "part": [*PARTS, shapes.ThoughtChange],
    "decision": [shapes.DecisionShape],
    "message": [shapes.MessageShape],
    "change": [shapes.ThoughtChange],
    "duration": [shapes.Duration],
    "session": [shapes.SessionShape],
    "bucket": [shapes.Bucket],
}
"""Names of variables in the page's modules → what is in them."""

ELSEWHERE = {"part.isEqualNode", "session.js"}
"""What is read of other things under these names: an element of the page, a module."""


def keys(shape):
    """The keys of a shape in JSON."""
    kind = inspect.type_info(shape)
    tag = {kind.tag_field} if kind.tag_field else set()
    return {field.encode_name for field in kind.fields} | tag


def structs():
    found = [one for one in vars(shapes).values() if isinstance(one, type)]
    return [one for one in found if one.__module__ == shapes.__name__]


def read_by_the_page(variable):
    """The keys that the page's modules read of a variable of this name."""
    texts = [path.read_text("utf-8") for path in sorted(PAGE.glob("*.js"))]
    found = re.findall(rf"(?<![\w\"])({variable})\??\.(\w+)", "\n".join(texts))
    return {key for name, key in found if f"{name}.{key}" not in ELSEWHERE}


@pytest.mark.parametrize("variable", READ)
def test_the_page_reads_keys_that_are_answered(variable):
    answered = set().union(*map(keys, READ[variable]))
    read = read_by_the_page(variable)
    assert read, f"no module of the page has a variable {variable!r} any more"
    assert read <= answered


@pytest.mark.parametrize("shape", structs(), ids=lambda shape: shape.__name__)
def test_keys_are_in_camel_case(shape):
    assert all(re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", key) for key in keys(shape))


def test_keys_that_are_not_named_after_their_field():
    """They were published under these names before the field was called otherwise."""
    renamed = {
        (shape.__name__, field.name): field.encode_name
        for shape in structs()
        for field in inspect.type_info(shape).fields
        if field.encode_name != msgspec.structs.fields(camel_of(field.name))[0].encode_name
    }
    assert renamed == {
        ("DecisionShape", "level"): "rung",
        ("ReplayShape", "decisions"): "rulings",
        ("MessageShape", "decision"): "ruling",
    }


def camel_of(name):
    """A struct with one field of this name, in the spelling that all the shapes have."""
    return msgspec.defstruct("One", [(name, int)], rename="camel")


def test_kinds_of_parts():
    tags = {shape.__name__: inspect.type_info(shape).tag for shape in PARTS}
    assert tags == {
        "TextPart": "text",
        "CallPart": "call",
        "ResultPart": "result",
        "BlobPart": "blob",
        "DecisionPart": "decision",
        "ThoughtPart": "thought",
    }
    assert {inspect.type_info(shape).tag_field for shape in PARTS} == {"type"}


# -- answers -------------------------------------------------------------------------------------


def held_against(shape, answer):
    """An answer has every key of its shape, nothing else, and values of the promised types."""
    told = msgspec.convert(answer, shape, strict=True)
    assert msgspec.to_builtins(told) == answer
    return told


def test_the_listing_is_what_its_shape_promises(get):
    page = held_against(shapes.Sessions, get("sessions"))
    assert len(page.sessions) == 9


@pytest.mark.parametrize("thoughts", ["0", "1"])
def test_sessions_and_turns_are_what_their_shapes_promise(get, thoughts):
    kinds = set()
    for listed in get("sessions")["sessions"]:
        page = held_against(shapes.SessionPage, get(f"sessions/{listed['id']}", thoughts=thoughts))
        kinds |= {type(part) for turn in page.turns for part in (*turn.input, *turn.output)}
        for turn in page.turns:
            place = f"sessions/{listed['id']}/turns/{turn.id}"
            held_against(shapes.TurnPage, get(place, thoughts=thoughts))
    assert kinds >= set(PARTS) - {shapes.BlobPart}


def test_counts_over_time_are_what_their_shape_promises(get):
    held_against(shapes.Continuity, get("continuity"))
