"""What a flood costs: memory in proportion to its size, whatever its shape."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.dialects import DIALECTS, limits
from thoughtline.dialects.limits import TooComplex, check_parts, check_text, is_heavy, max_parts
from thoughtline.errors import Unreadable
from thoughtline.log.parts import Origin
from thoughtline.testing import FrozenClock
from thoughtline.testing.floods import ANSWERS, REQUESTS, STREAMS, floods, streams

SIZE = 450_000
FREE = 3 << 20
"""Bytes that anything may take, whatever its size."""
ORIGIN = Origin(dialect="chat", provider="p", endpoint="e", model="m")


def _peak(work):
    """The most memory that something takes while it runs, in bytes."""
    tracemalloc.start()
    try:
        kept = work()
        return tracemalloc.get_traced_memory()[1], kept
    finally:
        tracemalloc.stop()


def _read(dialect, body):
    try:
        return DIALECTS[dialect].read(body)
    except Unreadable:
        return None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dialect", "place"), [(name, place) for name, places in REQUESTS.items() for place in places]
)
def test_a_request_takes_at_most_ten_times_its_size(dialect, place):
    for name, body in floods(REQUESTS[dialect][place], SIZE):
        peak, _ = _peak(lambda body=body: _read(dialect, body))
        assert peak < 10 * len(body) + FREE, name


def _captured(dialect, pieces, *, stream):
    reader = DIALECTS[dialect].reader(stream=stream, clock=FrozenClock(), origin=ORIGIN, sent=0)
    try:
        for piece in pieces:
            reader.feed(piece)
        return reader, reader.close()
    except TooComplex:
        return None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dialect", "place"), [(name, place) for name, places in ANSWERS.items() for place in places]
)
def test_so_does_an_answer(dialect, place):
    for name, body in floods(ANSWERS[dialect][place], SIZE):
        peak, _ = _peak(lambda body=body: _captured(dialect, [body], stream=False))
        assert peak < 10 * len(body) + FREE, name


@pytest.mark.slow
@pytest.mark.parametrize("dialect", STREAMS)
@pytest.mark.parametrize("each", [50_000, SIZE])
def test_so_does_a_stream(dialect, each):
    for name, body in streams(STREAMS[dialect], SIZE, each=each):
        pieces = [body[at : at + 200_000] for at in range(0, len(body), 200_000)]
        peak, _ = _peak(lambda pieces=pieces: _captured(dialect, pieces, stream=True))
        assert peak < 10 * len(body) + FREE, name


def test_a_small_text_is_read_whatever_it_holds():
    check_text(b"[" + b"{}," * (limits.CHECKED_SIZE // 3) + b"0]")
    with pytest.raises(TooComplex):
        check_text(b"[" + b"{}," * limits.CHECKED_SIZE + b"0]")


@pytest.mark.parametrize("dense", [",", ":", "{", "[[", '\\"', '"', "\\", '\\",{'])
def test_what_stands_in_a_string_does_not_count(dense):
    text = json.dumps({"messages": [{"role": "user", "content": dense * 400_000}]})
    check_text(text.encode())


@pytest.mark.parametrize("space", ["", " ", "\n\t"])
@pytest.mark.parametrize(("more", "read"), [(0, True), (1, False)])
def test_a_text_may_have_so_many_members(space, more, read):
    members = [f'"{n:024}"{space}:1' for n in range(limits.MAX_KEYS - 3 + more)]
    said = '{"messages":[{"role":"user","content":"a:b",' + ",".join(members) + "}]}"
    if read:
        check_text(said.encode())
        return
    with pytest.raises(TooComplex, match="members"):
        check_text(said.encode())


@given(
    st.recursive(st.text('",{[\\a') | st.none(), lambda x: st.lists(x, max_size=4)),
    st.integers(1, 9),
)
def test_strings_are_told_from_what_is_outside(value, size):
    text = json.dumps(value).encode()
    expected = json.dumps(value, default=str)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "_SLICE", size)
        outside = b"".join(limits._outside_strings(text))
    assert b'"' not in outside
    assert outside.count(b"[") == _lists(value)
    assert expected


def _lists(value):
    return 1 + sum(map(_lists, value)) if isinstance(value, list) else 0


def test_an_honest_history_is_read():
    """Tools with large schemas, code, JSON in arguments, thousands of short messages."""
    schema = {
        "type": "object",
        "properties": {
            f"p{n}": {"type": "string", "description": "what it is for"} for n in range(40)
        },
    }
    tools = [
        {
            "type": "function",
            "function": {"name": f"t{n}", "description": "does it", "parameters": schema},
        }
        for n in range(200)
    ]
    arguments = json.dumps({"edits": [{"line": n, "old": "a,b", "new": "{c}"} for n in range(50)]})
    messages = [
        {"role": "user", "content": "go on"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "t1", "arguments": arguments}}
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "if (a[0]) { f(a, b, c); }\n" * 20},
    ]
    body = json.dumps({"model": "m", "tools": tools, "messages": messages * 1500}).encode()
    assert len(DIALECTS["chat"].read(body).turns) == 1501
    short = json.dumps(
        {
            "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
            * 5000
        }
    )
    assert len(DIALECTS["chat"].read(short.encode()).turns) == 5000


PLAIN = b"a text of some forty letters, and more. " * 25_000
FACE = "\N{GRINNING FACE}".encode()


@pytest.mark.parametrize(
    ("limit", "unit"),
    [
        ("beyond_ascii", "ä".encode() * (1 << 15)),
        ("wide", b"a" * 60_000 + FACE),
        ("wide", b"a" * 60_000 + b"\\ud83d\\ude00"),
        ("escapes", b"\\n" * 1000),
    ],
)
def test_a_text_may_have_so_many_letters_that_cost_more(limit, unit):
    """A string with one letter beyond ASCII takes up to 4 times its size, and its escapes more."""
    per_unit = unit.count(b"\\") if limit == "escapes" else len(unit)
    for limits_of in (limits.MAX_LETTERS, limits.MAX_ANSWER_LETTERS):
        most = getattr(limits_of, limit)
        limits.check_letters(PLAIN * 2 + unit * (most // 2 // per_unit), limits_of)
        with pytest.raises(TooComplex):
            limits.check_letters(PLAIN * 2 + unit * (most * 3 // 2 // per_unit), limits_of)


def test_pictures_beside_a_long_talk_of_any_language_are_read():
    picture = {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64," + "iVBORw0" * 200_000},
    }
    talk = [{"role": "user", "content": "中文 \N{GRINNING FACE}\n" * 2000}] * 50
    messages = [*talk, {"role": "user", "content": [picture] * 20}]
    body = json.dumps({"model": "m", "messages": messages}, ensure_ascii=False).encode()
    assert len(body) > 25 << 20
    assert DIALECTS["chat"].read(body).turns


def test_parts_are_counted_by_size():
    assert max_parts(1000) == 62
    assert max_parts(1 << 20) == 16_384
    assert max_parts(1 << 30) == limits.MAX_PARTS
    check_parts([{}] * 1000, 1000)  # so small a body is not counted
    with pytest.raises(TooComplex):
        check_parts([{"content": [0] * 50_000}], 100_000)


def test_what_is_heavy_is_told_by_size_and_marks():
    assert not is_heavy(b"{," * 30_000)
    assert not is_heavy(b"a" * (1 << 19))
    assert is_heavy(b"a" * (5 << 20))
    assert is_heavy(b"{}," * 40_000)
