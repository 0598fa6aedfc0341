"""Thoughts go into a client's body, and nothing else of it changes."""

import json

import pytest
from hypothesis import given

from support.revisions import revised_responses
from thoughtline.dialects import splice
from thoughtline.dialects.base import PlacedThought, Revision
from thoughtline.dialects.responses import Responses
from thoughtline.dialects.responses.items import item_type
from thoughtline.errors import Unreadable
from thoughtline.log.parts import Call, Carrier, Text, Thought
from thoughtline.log.turns import Place, output_shape
from thoughtline.log.turns import places as places_of

RESPONSES = Responses()


def elements(body, key="input"):
    """The items of a body as bytes."""
    return [body[s.value : s.end] for s in splice.elements(body, splice.members(body)[key])]


def others(body):
    """The items that are no thoughts, as bytes."""
    return [raw for raw in elements(body) if item_type(json.loads(raw)) != "reasoning"]


def standing(turn):
    values = [splice.loads(thought.raw.encode()) for thought in turn.thoughts]
    return list(zip(places_of(output_shape(turn.output)), values, strict=True))


def placed(place, raw):
    return PlacedThought(Place(*place), Carrier.ITEM, raw)


@given(revised_responses())
def test_everything_else_keeps_its_bytes(case):
    body, revisions = case
    request = RESPONSES.read(body)
    patched = RESPONSES.patch(request, revisions)
    for key, span in splice.members(body).items():
        if key != "input":
            now = splice.members(patched)[key]
            assert patched[now.value : now.end] == body[span.value : span.end]
    nameless = {i for r in revisions if r.anonymous for i in request.anchors[r.turn]}
    expected = []
    for index, raw in enumerate(elements(body)):
        value = json.loads(raw)
        if value.get("type") == "reasoning":
            continue
        if index in nameless and value["type"] in (
            "message",
            "function_call",
            "custom_tool_call",
        ):
            del value["id"]
            expected.append(value)
        else:
            expected.append(raw)
    for was, now in zip(expected, others(patched), strict=True):
        assert was == (now if isinstance(was, bytes) else json.loads(now))


# -- one thing at a time -------------------------------------------------------------------------

RS = '{"type":"reasoning","summary":[],"id":"%s"}'
FC = '{"type":"function_call","id":"fc_%s","call_id":"call_%s","name":"f","arguments":"{}"}'
MSG = '{"type":"message","id":"msg_%s","role":"assistant","content":"%s"}'
WS = '{"type":"web_search_call","id":"ws_%s"}'
USER = '{"role":"user","content":"?"}'


def made(*items):
    return ('{"input":[' + ", ".join(items) + "]}").encode()


def patched(items, *thoughts, turn=0, **more):
    request = RESPONSES.read(made(*items))
    revision = Revision(turn=turn, thoughts=tuple(thoughts), **more)
    return [raw.decode() for raw in elements(RESPONSES.patch(request, [revision]))]


def fc(name):
    return FC % (name, name)


def test_a_thought_goes_right_before_what_it_led_to():
    items = [USER, MSG % ("1", "x"), fc("1"), fc("2")]
    thoughts = [
        placed(("text", 0), RS % "a"),
        placed(("call", 1), RS % "b"),
        placed(("call", 1), RS % "c"),
    ]
    assert patched(items, *thoughts) == [
        USER,
        RS % "a",
        MSG % ("1", "x"),
        fc("1"),
        RS % "b",
        RS % "c",
        fc("2"),
    ]


def test_a_thought_in_the_wrong_place_is_moved():
    assert patched([USER, fc("1"), RS % "a"], placed(("call", 0), RS % "a")) == [
        USER,
        RS % "a",
        fc("1"),
    ]


def test_an_equal_thought_keeps_its_spelling():
    there = '{"id" : "a", "summary" : [] ,"type":"reasoning"}'
    assert patched([USER, there, fc("1")], placed(("call", 0), RS % "a")) == [USER, there, fc("1")]


def test_where_it_is_to_be_verbatim_another_spelling_gives_way():
    for there in (
        '{"id":"a","summary":[],"type":"reasoning","n":1.0}',
        '{"type":"reasoning","summary":[],"id":"a","n":1E+0}',
    ):
        kept = '{"type":"reasoning", "summary":[],"id":"\\u0061","n":1.0}'
        wanted = placed(("call", 0), kept)
        assert patched([USER, there, fc("1")], wanted, verbatim=True) == [USER, kept, fc("1")]
        plain = kept.replace(", ", ",").replace("\\u0061", "a")
        assert patched([USER, plain, fc("1")], wanted, verbatim=True) == [USER, plain, fc("1")]


def test_a_thought_told_as_a_message_gives_way_to_the_thought():
    told = '{"role":"assistant","content":"<think>\\nhm\\n</think>"}'
    said = '{"role":"assistant","content":"<think>hm</think> yes"}'
    wanted = placed(("call", 0), RS % "a")
    assert patched([USER, told, fc("1")], wanted) == [USER, RS % "a", fc("1")]
    assert patched([USER, said, fc("1")], wanted) == [USER, said, RS % "a", fc("1")]
    assert patched([USER, told, fc("1")]) == [USER, told, fc("1")]  # nothing known: left alone
    texts = [MSG % ("1", "x"), MSG % ("2", "y")]
    assert patched([USER, told, *texts], placed(("text", 1), RS % "a")) == [
        USER,
        texts[0],
        RS % "a",
        texts[1],
    ]


def test_half_an_emoji_is_not_another_half():
    raw = '{"type":"reasoning","summary":["%s"]}'
    items = [USER, raw % "\\ud83d", fc("1")]
    assert patched(items, placed(("call", 0), raw % "\\ud83e")) == [USER, raw % "\\ud83e", fc("1")]


def test_no_thoughts_takes_all_of_them_out_references_too():
    reference = '{"type":"item_reference","id":"rs_1"}'
    items = [USER, RS % "a", reference, fc("1"), RS % "b", USER]
    assert patched(items) == [USER, fc("1"), USER]


def test_references_to_other_things_stay_and_count():
    message = '{"type":"item_reference","id":"msg_1"}'
    call = '{"type":"item_reference","id":"fc_1"}'
    other = '{"id":"xyz"}'
    items = [USER, message, call, other, fc("2")]
    thoughts = [
        placed(("text", 0), RS % "a"),
        placed(("call", 0), RS % "b"),
        placed(("call", 1), RS % "c"),
    ]
    assert patched(items, *thoughts) == [
        USER,
        RS % "a",
        message,
        RS % "b",
        call,
        other,
        RS % "c",
        fc("2"),
    ]


def test_a_thought_before_a_tool_of_the_server_stands_before_that():
    items = [USER, WS % "1", WS % "2", MSG % ("1", "x")]
    thoughts = [
        placed(("blob", 0), RS % "a"),
        placed(("blob", 1), RS % "b"),
        placed(("text", 0), RS % "c"),
    ]
    assert patched(items, *thoughts) == [
        USER,
        RS % "a",
        WS % "1",
        RS % "b",
        WS % "2",
        RS % "c",
        MSG % ("1", "x"),
    ]


@pytest.mark.parametrize(
    ("items", "thoughts", "expected"),
    [
        # The client dropped the text beside the call.
        ([fc("1")], [(("text", 0), "a"), (("call", 0), "b")], [RS % "a", RS % "b", fc("1")]),
        ([fc("1")], [(("text", 0), "a")], [RS % "a", fc("1")]),
        # It dropped the tools of the server.
        (
            [MSG % ("1", "x")],
            [(("blob", 0), "a"), (("text", 0), "b")],
            [RS % "a", RS % "b", MSG % ("1", "x")],
        ),
        ([MSG % ("1", "x")], [(("blob", 0), "a")], [RS % "a", MSG % ("1", "x")]),
        # It made one text of two.
        (
            [MSG % ("1", "xy")],
            [(("text", 0), "a"), (("text", 1), "b")],
            [RS % "a", RS % "b", MSG % ("1", "xy")],
        ),
        # There is nothing but thoughts.
        ([RS % "z"], [(("text", 0), "a")], [RS % "a"]),
        ([RS % "z"], [(("end", 0), "z"), (("end", 0), "a")], [RS % "z", RS % "a"]),
        ([fc("1")], [(("end", 0), "a")], [fc("1"), RS % "a"]),
    ],
)
@pytest.mark.parametrize(
    ("before", "after"), [([], []), ([USER], []), ([], [USER]), ([USER], [USER])]
)
def test_a_place_that_is_gone(before, after, items, thoughts, expected):
    wanted = [placed(place, RS % name) for place, name in thoughts]
    assert patched([*before, *items, *after], *wanted) == [*before, *expected, *after]


def test_item_ids_go_and_call_ids_stay():
    custom = '{"call_id":"c","type":"custom_tool_call","name":"p","input":"","id":"ctc_1"}'
    items = [USER, RS % "rs_1", MSG % ("1", "x"), fc("1"), custom, WS % "1"]
    assert patched(items, anonymous=True) == [
        USER,
        '{"type":"message","role":"assistant","content":"x"}',
        '{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}"}',
        '{"call_id":"c","type":"custom_tool_call","name":"p","input":""}',
        WS % "1",
    ]


def test_only_the_named_output_is_revised():
    items = [USER, RS % "a", fc("1"), USER, RS % "b", fc("2")]
    assert patched(items, anonymous=True, turn=1)[:4] == items[:4]


def test_carriers_of_other_shapes_have_no_place_here():
    thought = PlacedThought(Place("call", 0), Carrier.REASONING_CONTENT, '"text"')
    assert patched([USER, fc("1")], thought) == [USER, fc("1")]


@pytest.mark.parametrize(
    "body", [b'{"input":"Hi","model":"m"}', b'{"input":[],"model":"m"}', b'{"prompt":{"id":"p"}}']
)
def test_without_outputs_only_members_can_be_set(body):
    request = RESPONSES.read(body)
    revisions = [Revision(turn=i, anonymous=True) for i in range(len(request.turns))]
    assert RESPONSES.patch(request, revisions) is body
    changed = json.loads(RESPONSES.patch(request, revisions, {"store": b"false", "model": None}))
    assert changed == {k: v for k, v in json.loads(body).items() if k != "model"} | {"store": False}


def test_members_are_set_and_outputs_revised_at_once():
    request = RESPONSES.read(made(USER, fc("1")))
    revision = Revision(turn=0, thoughts=(placed(("call", 0), RS % "a"),))
    made_new = RESPONSES.patch(request, [revision], {"store": b"false"})
    assert json.loads(made_new) == {
        "input": [json.loads(USER), json.loads(RS % "a"), json.loads(fc("1"))],
        "store": False,
    }


# -- references ----------------------------------------------------------------------------------


def test_references_are_expanded_to_the_byte():
    items = [
        USER,
        '{"type":"item_reference","id":"rs_1"}',
        '{"id":"msg_1"}',
        '{"type":"item_reference","id":"rs_unknown"}',
        USER,
    ]
    body = made(*items)
    known = {"rs_1": RS % "rs_1", "msg_1": MSG % ("1", "x"), "rs_2": RS % "rs_2"}
    request = RESPONSES.read(body)
    expanded = RESPONSES.expand(request, known)
    assert expanded == made(USER, RS % "rs_1", MSG % ("1", "x"), items[3], USER)
    kinds = [type(part) for part in RESPONSES.read(expanded).turns[0].output]
    assert kinds == [Thought, Text, Thought]
    assert RESPONSES.expand(request, {}) is body
    assert RESPONSES.expand(request, {"rs_3": "{}"}) is body


def test_a_body_without_references_is_not_touched():
    body = made(USER, RS % "rs_1", fc("1"))
    assert RESPONSES.expand(RESPONSES.read(body), {"rs_1": "{}"}) is body


# -- bad input -----------------------------------------------------------------------------------


def test_duplicate_keys_are_passed_on():
    body = b'{"input":[{"role":"assistant","content":"a"}],"input":[]}'
    request = RESPONSES.read(body)
    assert RESPONSES.patch(request, []) is body
    with pytest.raises(Unreadable):
        RESPONSES.patch(request, [], {"store": b"false"})


def test_calls_of_other_kinds_have_places_too():
    shell = '{"type":"local_shell_call","id":"lsh_1","call_id":"c1","action":{"command":["ls"]}}'
    request = RESPONSES.read(made(USER, shell))
    assert isinstance(request.turns[0].output[0], Call)
    assert patched([USER, shell], placed(("call", 0), RS % "a")) == [USER, RS % "a", shell]
