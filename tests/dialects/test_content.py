import pytest
from hypothesis import given

from support.alterations import backwards
from support.json_spellings import VALUES
from thoughtline.dialects.content import (
    blob,
    content_parts,
    joined_text,
    session_hints,
    whole_numbers,
)
from thoughtline.log import keys
from thoughtline.log.parts import Blob, Text

PNG = "iVBORw0KGgo="


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a", "a"),
        (None, ""),
        ([], ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
        (["a", {"text": "b"}], "ab"),
        ({"b": 1, "a": [True]}, '{"a":[true],"b":1}'),
        (5, "5"),
        ([{"type": "x", "n": 1, "cache_control": {}}], '{"n":1,"type":"x"}'),
    ],
)
def test_joined(content, text):
    assert joined_text(content) == text


def test_texts():
    assert content_parts("a") == [Text(text="a")]
    assert content_parts(None) == []
    image = {"type": "image_url", "image_url": {"url": "http://x/a.png"}}
    assert content_parts(["a", {"type": "input_text", "text": "b"}, image]) == [
        Text(text="a"),
        Text(text="b"),
        Blob(kind="image_url", digest=keys.json_digest("http://x/a.png")),
    ]
    assert [part.kind for part in content_parts([5, {"no": "type"}, {"type": 7}])] == [
        "unknown",
        "unknown",
        "7",
    ]
    assert len(content_parts({"type": "image"})) == 1


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        {
            "type": "image_url",
            "image_url": {"detail": "high", "url": f"data:image/png;base64,{PNG}"},
        },
        {"image_url": f"data:image/png;base64,{PNG}", "type": "input_image", "detail": "auto"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {
            "cache_control": {"type": "ephemeral"},
            "source": {"data": PNG, "type": "base64", "media_type": "image/png"},
            "type": "image",
        },
        {"inlineData": {"mimeType": "image/png", "data": PNG}},
        {"type": "file", "file": {"filename": "a.png", "file_data": PNG}},
    ],
)
def test_a_picture_is_the_same_everywhere(part):
    assert blob("any", part).digest == keys.json_digest(PNG)


def test_different_things_are_different():
    values = [{"type": "a"}, {"type": "b"}, {}, {"x": 1}, {"x": 2}, [1], 1, "1", None, True]
    assert len({blob("k", value).digest for value in values}) == len(values)


@given(VALUES)
def test_any_content_can_be_read(value):
    assert isinstance(joined_text(value), str)
    assert all(isinstance(part, Text | Blob) for part in content_parts(value))
    assert blob("k", value) == blob("k", backwards(value))


def test_the_order_of_keys_does_not_count():
    part = {"type": "file", "file": {"file_id": "file-1", "file_data": PNG, "url": "http://x"}}
    assert blob("file", part) == blob("file", backwards(part))


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ({}, ()),
        ({"prompt_cache_key": "a", "session_id": "b"}, ("a", "b")),
        ({"prompt_cache_key": "a", "metadata": {"session_id": "a"}}, ("a",)),
        ({"client_metadata": {"session_id": "a", "thread_id": "b", "turn_id": "c"}}, ("a", "b")),
        ({"metadata": {"user_id": "user_1_account__session_2"}}, ("user_1_account__session_2",)),
        ({"metadata": {"user_id": "alice"}}, ()),
        ({"prompt_cache_key": "", "session_id": None, "metadata": [], "client_metadata": 5}, ()),
        ({"metadata": {"session_id": 5, "user_id": ["session"]}}, ()),
        ({"session_id": "a\ufffd", "prompt_cache_key": "\ufffd"}, ()),  # which one it was is lost
    ],
)
def test_hints(document, found):
    assert session_hints(document) == found


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"a":5.0,"b":[-1.00, 2.50]}', '{"a":5,"b":[-1, 2.50]}'),
        ('{"a":"5.0","b\\"1.0":1.0e3}', '{"a":"5.0","b\\"1.0":1.0e3}'),
        ('{"a":0.05,"b":10.01}', '{"a":0.05,"b":10.01}'),
        ('{"a":"5.0', '{"a":"5.0'),
    ],
)
def test_whole_numbers(arguments, told):
    assert whole_numbers(arguments) == told
