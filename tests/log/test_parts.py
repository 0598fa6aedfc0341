"""Parts in the log: the keys that they are stored under never change."""

import msgspec
import pytest

from thoughtline.log.parts import (
    Blob,
    Call,
    Carrier,
    Decision,
    Origin,
    Result,
    Text,
    Thought,
    Timing,
)

STORED = [
    (Text(text="hi"), {"type": "text", "text": "hi"}),
    (
        Text(text="hi", id="msg_1", phase="final", raw="{}"),
        {"type": "text", "text": "hi", "id": "msg_1", "phase": "final", "raw": "{}"},
    ),
    (
        Call(name="ls", arguments="{}", id="c", item="fc"),
        {"type": "call", "name": "ls", "arguments": "{}", "id": "c", "item": "fc"},
    ),
    (
        Result(content="ok", call="c", name="ls", error=True),
        {"type": "result", "content": "ok", "call": "c", "name": "ls", "error": True},
    ),
    (
        Thought(carrier=Carrier.BLOCK, raw="{}", seals=("s",), prefix="p", forgotten=True),
        {
            "type": "thought",
            "carrier": "block",
            "raw": "{}",
            "seals": ["s"],
            "prefix": "p",
            "forgotten": True,
        },
    ),
]


@pytest.mark.parametrize(("part", "stored"), STORED)
def test_a_part_is_stored_under_these_keys_and_read_from_them(part, stored):
    assert msgspec.json.decode(msgspec.json.encode(part)) == stored
    assert msgspec.convert(stored, type(part)) == part


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (Origin, "dialect provider endpoint account model asked"),
        (Timing, "sent opened first last closed at aborted"),
        (Decision, "call verdict reason"),
        (Blob, "kind digest raw sealed mime data url name detail"),
    ],
)
def test_the_keys_of_the_others(kind, keys):
    assert {field.encode_name for field in msgspec.structs.fields(kind)} == set(keys.split())


def test_what_is_sealed():
    assert Thought(carrier=Carrier.ITEM, raw="{}", seals=("s",)).sealed
    assert not Thought(carrier=Carrier.ITEM, raw="{}").sealed
