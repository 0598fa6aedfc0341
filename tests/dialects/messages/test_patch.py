"""Thinking blocks go into a client's body, and nothing else of it changes."""

import json

import pytest
from hypothesis import given

from support.histories import messages as histories
from support.revisions import revised_messages
from thoughtline.dialects import splice
from thoughtline.dialects.base import PlacedThought, Revision
from thoughtline.dialects.messages import Messages
from thoughtline.log.parts import Carrier, Thought
from thoughtline.log.turns import Place, output_shape
from thoughtline.log.turns import places as places_of

MESSAGES = Messages()


def blocks(body, at):
    """The blocks of one message as bytes."""
    message = splice.elements(body, splice.members(body)["messages"])[at]
    content = splice.members(body, message)["content"]
    return [body[s.value : s.end] for s in splice.elements(body, content)]


def is_thought(raw):
    value = splice.loads(raw)
    return isinstance(value, dict) and value.get("type") in ("thinking", "redacted_thinking")


def standing(turn):
    values = [splice.loads(thought.raw.encode()) for thought in turn.thoughts]
    return list(zip(places_of(output_shape(turn.output)), values, strict=True))


def said_aloud(turn):
    return [part for part in turn.output if not isinstance(part, Thought)]


@given(revised_messages())
def test_everything_else_keeps_its_bytes(case):
    body, revisions = case
    request = MESSAGES.read(body)
    patched = MESSAGES.patch(request, revisions)
    for key, span in splice.members(body).items():
        now = splice.members(patched)[key]
        if key != "messages":
            assert patched[now.value : now.end] == body[span.value : span.end]
    for at in request.anchors:
        if at >= 0:
            was, now = blocks(body, at), blocks(patched, at)
            assert [b for b in now if not is_thought(b)] == [b for b in was if not is_thought(b)]


@given(revised_messages())
def test_thoughts_are_put_in_to_the_byte(case):
    body, revisions = case
    request = MESSAGES.read(body)
    patched = MESSAGES.patch(request, revisions)
    for revision in revisions:
        there = [b for b in blocks(patched, request.anchors[revision.turn]) if is_thought(b)]
        assert there == [thought.raw.encode() for thought in revision.thoughts]


# -- one thing at a time -------------------------------------------------------------------------

T = '{"type":"thinking","thinking":"","signature":"%s"}'
X = '{"type":"text","text":"%s"}'
C = '{"type":"tool_use","id":"%s","name":"f","input":{}}'
B = '{"type":"server_tool_use","id":"%s"}'


def patched(content, *thoughts):
    """The content of a message after a revision; thoughts are (kind, nth, name)."""
    body = f'{{"messages":[{{"role":"assistant","content":{content}}}]}}'.encode()
    wanted = tuple(PlacedThought(Place(k, n), Carrier.BLOCK, T % name) for k, n, name in thoughts)
    result = MESSAGES.patch(MESSAGES.read(body), [Revision(turn=0, thoughts=wanted)])
    message = splice.elements(result, splice.members(result)["messages"])[0]
    span = splice.members(result, message)["content"]
    return result[span.value : span.end].decode()


def listed(*raws):
    return "[" + ",".join(raws) + "]"


def test_a_thought_in_the_wrong_place_is_moved():
    assert patched(listed(X % "x", T % "a"), ("text", 0, "a")) == listed(T % "a", X % "x")


def test_a_merged_run_of_thoughts_is_taken_apart():
    content = listed(T % "a", T % "b", X % "x", C % "1")
    assert patched(content, ("text", 0, "a"), ("call", 0, "b")) == listed(
        T % "a", X % "x", T % "b", C % "1"
    )


def test_a_thought_before_a_text_that_the_client_put_in_stays_there():
    content = listed(T % "a", X % histories.PLACEHOLDER, C % "1")
    assert patched(content, ("call", 0, "a")) == content


def test_an_altered_one_there_is_replaced_there():
    content = listed(T % "a", X % histories.PLACEHOLDER, C % "1")
    trimmed = content.replace('"thinking":""', '"thinking":"trimmed"')
    assert patched(trimmed, ("call", 0, "a")) == content


def test_another_one_there_is_not():
    content = listed(T % "b", X % "x", C % "1")
    assert patched(content, ("call", 0, "a")) == listed(X % "x", T % "a", C % "1")


@pytest.mark.parametrize(
    ("content", "thoughts", "expected"),
    [
        # A string becomes a list only when something must stand beside it.
        ('"a\\u0062 "', [], '"a\\u0062 "'),
        (
            '"a\\u0062 "',
            [("text", 0, "a")],
            listed(T % "a", '{"type":"text","text":"a\\u0062 "}'),
        ),
        ('"x"', [("text", 0, "a"), ("end", 0, "b")], listed(T % "a", X % "x", T % "b")),
        ('""', [("text", 0, "a")], listed(T % "a")),
        ("null", [("text", 0, "a")], listed(T % "a")),
        ("5", [("text", 0, "a")], "5"),
        ("[]", [("text", 0, "a")], listed(T % "a")),
        # The client dropped the text beside the call.
        (
            listed(C % "1"),
            [("text", 0, "a"), ("call", 0, "b")],
            listed(T % "a", T % "b", C % "1"),
        ),
        # It made one text of two; a thought is not put last.
        (
            listed(X % "xy"),
            [("text", 0, "a"), ("text", 1, "b")],
            listed(T % "a", T % "b", X % "xy"),
        ),
        # It dropped the tools of the server.
        (
            listed(X % "x"),
            [("blob", 0, "a"), ("text", 0, "b")],
            listed(T % "a", T % "b", X % "x"),
        ),
        (listed(B % "1", X % "x"), [("blob", 0, "a")], listed(T % "a", B % "1", X % "x")),
        # An order is an order, also where places are gone.
        (
            listed(C % "1", C % "2"),
            [("call", 1, "a"), ("text", 0, "b")],
            listed(C % "1", T % "a", T % "b", C % "2"),
        ),
        # Empty texts are nothing, and stay.
        (
            listed(X % "", X % "x"),
            [("text", 0, "a")],
            listed(X % "", T % "a", X % "x"),
        ),
        # Thoughts that are not asked for go.
        (listed(T % "a", X % "x", T % "b"), [], listed(X % "x")),
        (
            listed(T % "a", T % "b", X % "x"),
            [("text", 0, "b")],
            listed(T % "b", X % "x"),
        ),
        (
            listed(T % "b", X % "x"),
            [("text", 0, "a"), ("text", 0, "b")],
            listed(T % "a", T % "b", X % "x"),
        ),
        (listed(T % "z"), [("end", 0, "a")], listed(T % "a")),
    ],
)
def test_places(content, thoughts, expected):
    assert patched(content, *thoughts) == expected


def test_content_may_be_missing():
    body = b'{"messages":[{"role":"assistant"}]}'
    revision = Revision(turn=0, thoughts=(PlacedThought(Place("end", 0), Carrier.BLOCK, T % "a"),))
    made = json.loads(MESSAGES.patch(MESSAGES.read(body), [revision]))
    assert made["messages"][0]["content"] == [json.loads(T % "a")]


def test_a_message_of_which_nothing_is_left_goes():
    user = '{"role":"user","content":"?"}'
    empty = f'{{"role":"assistant","content":[{T % "a"}]}}'
    body = f'{{"messages":[{user}, {empty}, {user},{empty}]}}'.encode()
    revisions = [Revision(turn=0), Revision(turn=1)]
    assert MESSAGES.patch(MESSAGES.read(body), revisions) == (
        f'{{"messages":[{user}, {user}]}}'.encode()
    )


def test_other_carriers_have_no_place_here():
    content = listed(X % "x")
    body = f'{{"messages":[{{"role":"assistant","content":{content}}}]}}'.encode()
    thought = PlacedThought(Place("text", 0), Carrier.REASONING_CONTENT, '"a"')
    assert MESSAGES.patch(MESSAGES.read(body), [Revision(turn=0, thoughts=(thought,))]) is body


def test_half_an_emoji_is_not_another_half():
    raw = '{"type":"thinking","thinking":"%s","signature":"s"}'
    body = f'{{"messages":[{{"role":"assistant","content":[{raw % chr(0xFFFD)},{X % "x"}]}}]}}'
    thought = PlacedThought(Place("text", 0), Carrier.BLOCK, raw % "\\ud83d")
    request = MESSAGES.read(body.encode())
    made = MESSAGES.patch(request, [Revision(turn=0, thoughts=(thought,))])
    assert made == body.replace(chr(0xFFFD), "\\ud83d").encode()


def test_members_are_set_and_removed():
    body = b'{"thinking":{"type":"enabled"},"messages":[],"model":"m"}'
    request = MESSAGES.read(body)
    off = b'{"type":"disabled"}'
    assert MESSAGES.patch(request, [], {"thinking": off, "model": None}) == (
        b'{"thinking":{"type":"disabled"},"messages":[]}'
    )


# -- reading -------------------------------------------------------------------------------------


def is_output(message):
    return isinstance(message, dict) and message.get("role") == "assistant"
