"""Thinking blocks go into a client's body, and nothing else of it changes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import messages_histories as histories
from alterations import brought_back
from junk import JUNK, places, put
from playbooks import play
from thoughtline import keys, splice
from thoughtline.dialects.base import Placed, Revision, Tool
from thoughtline.dialects.messages import Messages
from thoughtline.errors import Unreadable
from thoughtline.events import AssistantMessage, Reasoning, ToolCall
from thoughtline.parts import Blob, Call, Carrier, Origin, Result, Text, Thought
from thoughtline.testing import FrozenClock
from thoughtline.turns import Place, Turn, outline
from thoughtline.turns import places as places_of

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
    return list(zip(places_of(outline(turn.output)), values, strict=True))


def said_aloud(turn):
    return [part for part in turn.output if not isinstance(part, Thought)]


LETTERS = {"text": "x", "tool_use": "c", "server_tool_use": "b"}


@st.composite
def cases(draw):
    """A body, and for some of its outputs the thoughts they are to have, in order."""
    said, question = draw(histories.conversations())
    ids = histories.Ids()
    ids.count = 1 << 20
    revisions = []
    for index, (_, output) in enumerate(said):
        if not draw(st.booleans()):
            continue
        shape, raws = "", []
        for raw in output:
            kind = json.loads(raw)["type"]
            if kind not in LETTERS:
                if draw(st.booleans()):  # it keeps this one
                    shape, raws = shape + "t", [*raws, raw]
                continue
            new = draw(st.lists(histories.thoughts(ids), max_size=2))
            shape, raws = shape + "t" * len(new) + LETTERS[kind], raws + new
        wanted = [Placed(p, Carrier.BLOCK, r) for p, r in zip(places_of(shape), raws, strict=True)]
        revisions.append(Revision(turn=index, thoughts=tuple(wanted)))
    spelling = draw(st.booleans())
    return histories.body(said, question, spelling=spelling, stream=True, tools=[]), revisions


@given(cases())
def test_the_thoughts_are_those_asked_for_and_stand_where_they_should(case):
    body, revisions = case
    before = MESSAGES.read(body)
    patched = MESSAGES.read(MESSAGES.patch(before, revisions))
    revised = {revision.turn: revision for revision in revisions}
    for index, (was, now) in enumerate(zip(before.turns, patched.turns, strict=True)):
        if index in revised:
            wanted = [(p.place, splice.loads(p.raw.encode())) for p in revised[index].thoughts]
            assert standing(now) == wanted
            assert said_aloud(now) == said_aloud(was)
            assert now.input == was.input
        else:
            assert now == was


@given(cases())
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


@given(cases())
def test_thoughts_are_put_in_to_the_byte(case):
    body, revisions = case
    request = MESSAGES.read(body)
    patched = MESSAGES.patch(request, revisions)
    for revision in revisions:
        there = [b for b in blocks(patched, request.anchors[revision.turn]) if is_thought(b)]
        assert there == [thought.raw.encode() for thought in revision.thoughts]


@given(cases())
def test_patching_twice_is_patching_once(case):
    body, revisions = case
    once = MESSAGES.patch(MESSAGES.read(body), revisions)
    assert MESSAGES.patch(MESSAGES.read(once), revisions) is once


@given(histories.conversations(), st.booleans())
def test_nothing_to_do_gives_the_same_object(conversation, spelling):
    body = histories.body(*conversation, spelling=spelling)
    request = MESSAGES.read(body)
    assert MESSAGES.patch(request, []) is body
    assert MESSAGES.patch(request, [], {}) is body
    exact = [
        Revision(
            turn=index,
            thoughts=tuple(
                Placed(place, Carrier.BLOCK, json.dumps(value, indent=1))
                for place, value in standing(turn)
            ),
        )
        for index, turn in enumerate(request.turns)
        if turn.output
    ]
    assert MESSAGES.patch(request, exact) is body


# -- one thing at a time -------------------------------------------------------------------------

T = '{"type":"thinking","thinking":"","signature":"%s"}'
X = '{"type":"text","text":"%s"}'
C = '{"type":"tool_use","id":"%s","name":"f","input":{}}'
B = '{"type":"server_tool_use","id":"%s"}'


def patched(content, *thoughts):
    """The content of a message after a revision; thoughts are (kind, nth, name)."""
    body = f'{{"messages":[{{"role":"assistant","content":{content}}}]}}'.encode()
    wanted = tuple(Placed(Place(k, n), Carrier.BLOCK, T % name) for k, n, name in thoughts)
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
    revision = Revision(turn=0, thoughts=(Placed(Place("end", 0), Carrier.BLOCK, T % "a"),))
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
    thought = Placed(Place("text", 0), Carrier.REASONING_CONTENT, '"a"')
    assert MESSAGES.patch(MESSAGES.read(body), [Revision(turn=0, thoughts=(thought,))]) is body


def test_half_an_emoji_is_not_another_half():
    raw = '{"type":"thinking","thinking":"%s","signature":"s"}'
    body = f'{{"messages":[{{"role":"assistant","content":[{raw % chr(0xFFFD)},{X % "x"}]}}]}}'
    thought = Placed(Place("text", 0), Carrier.BLOCK, raw % "\\ud83d")
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


def read(**members):
    return MESSAGES.read(json.dumps({"messages": [], **members}).encode())


def test_what_a_request_says():
    request = read(
        model="claude",
        stream=True,
        system="Be brief.",
        tools=[{"name": "f"}],
        thinking={"type": "adaptive"},
        metadata={"user_id": "user_1_account__session_2"},
        messages=[
            {"role": "system", "content": "No part of a turn."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [json.loads(T % "a"), json.loads(C % "1")]},
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "1",
                        "is_error": True,
                        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                    },
                    {"type": "text", "text": "?", "cache_control": {"type": "ephemeral"}},
                    {"type": "image", "source": {"type": "base64", "data": "iVBO"}},
                ],
            },
            {"role": "assistant", "content": "One."},
            {"role": "assistant", "content": "Two."},
            {"role": "user", "content": None},
        ],
    )
    assert (request.model, request.stream, request.tools) == ("claude", True, True)
    assert (request.thinking, request.hints) == (True, ("user_1_account__session_2",))
    assert request.anchors == (2, 4, 5)
    first, second, third = request.turns
    assert first.input == (Text(text="Hi"),)
    thought, call = first.output
    assert (thought.carrier, thought.seals) == (Carrier.BLOCK, (keys.seal("a"),))
    assert call == Call(name="f", arguments="{}", id="1")
    result, text, blob = second.input
    assert result == Result(content="ab", call="1", error=True)
    assert text == Text(text="?")
    assert isinstance(blob, Blob)
    assert (second.output, third.input) == ((Text(text="One."),), ())


@pytest.mark.parametrize(
    ("thinking", "expected"),
    [
        (None, None),
        ({"type": "enabled", "budget_tokens": 1024}, True),
        ({"type": "adaptive"}, True),
        ({"type": "between_tools"}, True),
        ({"type": "disabled"}, False),
        ({"type": 5}, None),
        ([], None),
    ],
)
def test_thinking(thinking, expected):
    assert read(thinking=thinking).thinking is expected


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"messages":{}}', b'{"messages":[}', b"\xff", b'{"messages":"a"}']
)
def test_what_is_no_request(body):
    with pytest.raises(Unreadable):
        MESSAGES.read(body)


@pytest.mark.parametrize("depth", [100, 950, 990, 3000])
def test_depth_is_no_trap(depth):
    deep = "[" * depth + "]" * depth
    body = (
        f'{{"messages":[{{"role":"assistant","content":[{{"type":"thinking","content":{deep}}}]}}'
    )
    body += f',{{"role":"user","content":[{{"type":"tool_result","content":{deep}}}]}}]}}'
    try:
        request = MESSAGES.read(body.encode())
        MESSAGES.prefixes(request)
    except Unreadable:
        return
    assert len(request.turns) == 2


@given(cases(), st.data())
def test_wrong_types_never_break_a_patch(case, data):
    body, revisions = case
    document = json.loads(body)
    where = data.draw(st.sampled_from(list(places(document))))
    spoiled = json.dumps(put(document, where, data.draw(JUNK))).encode()
    try:
        request = MESSAGES.read(spoiled)
    except Unreadable:
        return
    assert MESSAGES.patch(request, []) is spoiled
    assert len(MESSAGES.prefixes(request)) == len(request.turns)
    usable = [r for r in revisions if r.turn < len(request.turns) and request.turns[r.turn].output]
    was, now = (
        splice.loads(body)["messages"] for body in (spoiled, MESSAGES.patch(request, usable))
    )
    assert [m for m in now if not is_output(m)] == [m for m in was if not is_output(m)]


def is_output(message):
    return isinstance(message, dict) and message.get("role") == "assistant"


def test_duplicate_keys_are_passed_on():
    body = b'{"messages":[{"role":"assistant","content":"a"}],"messages":[]}'
    request = MESSAGES.read(body)
    assert MESSAGES.patch(request, []) is body
    with pytest.raises(Unreadable):
        MESSAGES.patch(request, [], {"stream": b"true"})


# -- what stands before an output ----------------------------------------------------------------

SYSTEM = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
TOOLS = [
    {"name": "b", "input_schema": {"type": "object"}},
    {"name": "a", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}},
    {"name": "z", "defer_loading": True},
]


@given(histories.conversations(), st.data())
def test_a_prefix_is_blind_to_what_providers_are_blind_to(conversation, data):
    said, question = conversation
    plain = histories.body(said, question, system="Be brief.", tools=TOOLS[:2])
    changes = data.draw(st.lists(st.sampled_from([histories.no_thoughts, histories.cached])))
    other = histories.body(
        [
            ([{"type": "text", "text": asked}] if isinstance(asked, str) else asked, output)
            for asked, output in brought_back(said, changes)
        ],
        question,
        spelling=True,
        system=SYSTEM,
        tools=[TOOLS[1], TOOLS[2], TOOLS[0]],
        max_tokens=5,
        metadata={"user_id": "x"},
    )
    one, two = MESSAGES.prefixes(MESSAGES.read(plain)), MESSAGES.prefixes(MESSAGES.read(other))
    assert one == two
    assert len(set(one)) == len(said) + 1


@pytest.mark.parametrize(
    "change",
    [
        {"system": "Be long."},
        {"tools": TOOLS[:1]},
        {"messages": [{"role": "user", "content": "Hi!"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}] * 2}]},
    ],
)
def test_a_prefix_sees_an_edit(change):
    members = {
        "system": "Be brief.",
        "tools": TOOLS,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    assert MESSAGES.prefixes(read(**members)) != MESSAGES.prefixes(read(**members | change))


def test_markers_inside_of_results_do_not_count_and_inputs_do():
    def digest(result, input):
        call = {"type": "tool_use", "id": "1", "name": "f", "input": input}
        answer = {"type": "tool_result", "tool_use_id": "1", "content": result}
        messages = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
        return MESSAGES.prefixes(read(messages=messages))[-1]

    marked = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    assert digest("a", {}) == digest([marked], {})
    assert digest("a", {}) != digest("a", {"cache_control": 1})


# -- capture and look-up -------------------------------------------------------------------------


def captured(output, draw, *, stream):
    """What a reader tells of this output."""
    one = MESSAGES.reader(stream=stream, clock=FrozenClock(), origin=Origin(), sent=0)
    body = json.dumps({"content": [json.loads(raw) for raw in output]}).encode()
    parts = []
    for happening in play(one, [histories.streamed(output, draw) if stream else body]):
        match happening:
            case Reasoning(thought=thought):
                parts.append(thought)
            case AssistantMessage(parts=said):
                parts += said
            case ToolCall(call=call):
                parts.append(call)
    return tuple(parts)


@given(
    histories.conversations(hosted=False),
    st.lists(st.sampled_from(histories.ALTERATIONS), max_size=4),
    st.booleans(),
    st.data(),
)
def test_what_was_captured_is_found_in_what_is_echoed(conversation, changes, stream, data):
    said, question = conversation
    path = []
    for index, (_, output) in enumerate(said):
        heard = MESSAGES.read(histories.body(said[:index], said[index][0])).turns[-1].input
        path.append(Turn(input=heard, output=captured(output, data.draw, stream=stream)))
    echoed = MESSAGES.read(histories.body(brought_back(said, changes), question))
    assert keys.trail(path)[0] == keys.trail(echoed.turns)[0][: len(path)]


@given(histories.conversations(), st.booleans(), st.data())
def test_capture_and_echo_have_one_shape(conversation, stream, data):
    said, _ = conversation
    for (_, output), turn in zip(said, MESSAGES.read(histories.body(said)).turns, strict=True):
        parts = captured(output, data.draw, stream=stream)
        assert outline(parts) == outline(turn.output)
        echo = [t for t in turn.output if isinstance(t, Thought)]
        mine = [t for t in parts if isinstance(t, Thought)]
        assert [t.seals for t in mine] == [t.seals for t in echo]
        assert [json.loads(t.raw) for t in mine] == [json.loads(t.raw) for t in echo]
        assert [p.digest for p in parts if isinstance(p, Blob)] == [
            p.digest for p in turn.output if isinstance(p, Blob)
        ]


# -- writing -------------------------------------------------------------------------------------


def test_a_request_of_our_own():
    raw = '{"type": "thinking", "thinking": "x", "signature": "s", "odd": 1E+2}'
    blob = '{"type":"server_tool_use","id":"s1"}'
    turns = [
        Turn(
            input=(Text(text="Hi"),),
            output=(
                Thought(carrier=Carrier.BLOCK, raw=raw),
                Thought(carrier=Carrier.REASONING_CONTENT, raw='"no place here"'),
                Text(text="Let me."),
                Blob(kind="server_tool_use", digest="d", raw=blob),
                Call(name="f", arguments='{"a": 5.0}', id="c1"),
                Call(name="g", arguments="not JSON"),
            ),
        ),
        Turn(
            input=(
                Text(text="And?"),
                Result(content="g said", name="g"),
                Result(content="f said", call="c1", error=True),
            )
        ),
    ]
    tool = Tool(name="f", description="does f")
    body = MESSAGES.write(turns, model="claude", system="Be brief.", tools=[tool])
    assert raw.encode() in body
    assert b'"input":{"a": 5.0}' in body
    document = json.loads(body)
    assert document["max_tokens"] == 8192
    assert document["system"] == "Be brief."
    assert document["stream"] is True
    assert document["tools"] == [
        {"name": "f", "description": "does f", "input_schema": {"type": "object"}}
    ]
    asked, answered, results = document["messages"]
    assert asked == {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    assert [b["type"] for b in answered["content"]] == [
        "thinking",
        "text",
        "server_tool_use",
        "tool_use",
        "tool_use",
    ]
    assert answered["content"][-1]["input"] == {}
    assert results["content"] == [
        {"type": "tool_result", "tool_use_id": answered["content"][-1]["id"], "content": "g said"},
        {"type": "tool_result", "tool_use_id": "c1", "content": "f said", "is_error": True},
        {"type": "text", "text": "And?"},
    ]


def test_blobs_of_other_dialects_are_not_written():
    blob = Blob(kind="inlineData", digest="d", raw='{"inlineData":{}}')
    turn = Turn(output=(blob, Text(text="x")), target=Origin(dialect="gemini"))
    body = MESSAGES.write([turn], model="m", stream=False, fields={"max_tokens": 5})
    assert json.loads(body) == {
        "model": "m",
        "max_tokens": 5,
        "messages": [{"role": "assistant", "content": [{"type": "text", "text": "x"}]}],
    }


@given(histories.conversations(hosted=False))
def test_what_is_written_is_read_again(conversation):
    turns = MESSAGES.read(histories.body(*conversation)).turns
    assert MESSAGES.read(MESSAGES.write(turns, model="m")).turns == turns
