"""Signatures and thought parts go into a client's body, and nothing else of it changes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gemini_histories as histories
from alterations import brought_back
from junk import JUNK, places, put
from playbooks import play
from thoughtline import keys, splice
from thoughtline.dialects.base import Placed, Revision, Tool
from thoughtline.dialects.gemini import Gemini
from thoughtline.errors import Unreadable
from thoughtline.events import AssistantMessage, Reasoning, ToolCall
from thoughtline.parts import Blob, Call, Carrier, Origin, Result, Text, Thought
from thoughtline.testing import FrozenClock
from thoughtline.turns import Place, Turn, outline
from thoughtline.turns import places as places_of

GEMINI = Gemini()
BYPASS = histories.BYPASS


def contents(body):
    """The contents of a body, each as the bytes of its parts."""
    found = []
    for content in splice.elements(body, splice.members(body)["contents"]):
        parts = splice.members(body, content)["parts"]
        found.append([body[s.value : s.end] for s in splice.elements(body, parts)])
    return found


def standing(turn):
    """The thoughts of an output: place, carrier, value."""
    found = zip(places_of(outline(turn.output)), turn.thoughts, strict=True)
    return [(place, t.carrier, splice.loads(t.raw.encode())) for place, t in found]


def said_aloud(turn):
    return [part for part in turn.output if not isinstance(part, Thought)]


def letter(part):
    return "c" if "functionCall" in part else "x" if part.get("text") else "b"


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
        shape, wanted = "", []
        for raw in output:
            part = json.loads(raw)
            if part.get("thought") or part.get("text") == "":
                if draw(st.booleans()):  # it keeps this one
                    shape, wanted = shape + "t", [*wanted, (Carrier.PART, raw)]
                continue
            new = [(Carrier.PART, r) for r in draw(st.lists(histories.thoughts(ids), max_size=2))]
            if draw(st.booleans()):  # the old signature, or a new one
                value = draw(st.sampled_from([part.get("thoughtSignature"), ids("sig")]))
                new += [(Carrier.SIGNATURE, json.dumps(value))] if value else []
            shape, wanted = shape + "t" * len(new) + letter(part), wanted + new
        placed = [Placed(p, *thought) for p, thought in zip(places_of(shape), wanted, strict=True)]
        revisions.append(Revision(turn=index, thoughts=tuple(placed)))
    spelling = draw(st.booleans())
    return histories.body(said, question, spelling=spelling, tools=[], labels={"a": "b"}), revisions


@given(cases())
def test_the_thoughts_are_those_asked_for_and_stand_where_they_should(case):
    body, revisions = case
    before = GEMINI.read(body)
    patched = GEMINI.read(GEMINI.patch(before, revisions))
    revised = {revision.turn: revision for revision in revisions}
    for index, (was, now) in enumerate(zip(before.turns, patched.turns, strict=True)):
        if index in revised:
            thoughts = revised[index].thoughts
            wanted = [(p.place, p.carrier, splice.loads(p.raw.encode())) for p in thoughts]
            assert standing(now) == wanted
            assert said_aloud(now) == said_aloud(was)
            assert now.input == was.input
        else:
            assert now == was


@given(cases())
def test_everything_else_keeps_its_bytes(case):
    body, revisions = case
    request = GEMINI.read(body)
    patched = GEMINI.patch(request, revisions)
    for key, span in splice.members(body).items():
        now = splice.members(patched)[key]
        if key != "contents":
            assert patched[now.value : now.end] == body[span.value : span.end]
    revised = {at for r in revisions for at in request.anchors[r.turn]}
    pairs = enumerate(zip(contents(body), contents(patched), strict=True))
    for at, (was, now) in pairs:
        if at not in revised:
            assert was == now
        else:
            assert unsigned(was) == unsigned(now)


def unsigned(raws):
    parts = [json.loads(raw) for raw in raws]
    return histories.no_thoughts(parts)


@given(cases())
def test_thoughts_are_put_in_to_the_byte(case):
    body, revisions = case
    request = GEMINI.read(body)
    patched = contents(GEMINI.patch(request, revisions))
    for revision in revisions:
        (at,) = request.anchors[revision.turn]
        for thought in revision.thoughts:
            raw = thought.raw.encode()
            if thought.carrier is Carrier.PART:
                assert raw in patched[at]
            else:
                assert any(raw in part for part in patched[at])


@given(cases())
def test_patching_twice_is_patching_once(case):
    body, revisions = case
    once = GEMINI.patch(GEMINI.read(body), revisions)
    assert GEMINI.patch(GEMINI.read(once), revisions) is once


@given(histories.conversations(), st.booleans(), st.booleans(), st.data())
def test_nothing_to_do_gives_the_same_object(conversation, spelling, in_chunks, data):
    said, question = conversation
    if in_chunks:
        said = [(asked, histories.chunked(output, data.draw)) for asked, output in said]
    body = histories.body(said, question, spelling=spelling)
    request = GEMINI.read(body)
    assert GEMINI.patch(request, []) is body
    assert GEMINI.patch(request, [], {}) is body
    exact = [
        Revision(
            turn=index,
            thoughts=tuple(
                Placed(place, carrier, json.dumps(value, indent=1))
                for place, carrier, value in standing(turn)
            ),
        )
        for index, turn in enumerate(request.turns)
        if turn.output
    ]
    assert GEMINI.patch(request, exact) is body


# -- one thing at a time -------------------------------------------------------------------------

T = '{"text":"%s","thought":true}'
X = '{"text":"%s"}'
C = '{"functionCall":{"name":"%s","args":{}}}'
B = '{"inlineData":{"data":"%s"}}'


def signed(raw, name, key="thoughtSignature"):
    return f'{raw[:-1]},"{key}":"{name}"}}'


def part(kind, nth, name):
    return Placed(Place(kind, nth), Carrier.PART, T % name)


def sig(kind, nth, name):
    return Placed(Place(kind, nth), Carrier.SIGNATURE, f'"{name}"')


def patched(outputs, *thoughts):
    """The parts of each content of an output after a revision."""
    models = [f'{{"role":"model","parts":[{",".join(parts)}]}}' for parts in outputs]
    body = f'{{"contents":[{",".join(models)}]}}'.encode()
    request = GEMINI.read(body)
    result = GEMINI.patch(request, [Revision(turn=0, thoughts=thoughts)])
    return [[raw.decode() for raw in parts] for parts in contents(result)]


@pytest.mark.parametrize(
    ("parts", "thoughts", "expected"),
    [
        # Only the first of parallel calls is signed; steps before and after have their own.
        ([C % "f", C % "g"], [sig("call", 0, "s")], [signed(C % "f", "s"), C % "g"]),
        (
            [signed(C % "f", "skip_thought_signature_validator"), C % "g"],
            [sig("call", 0, "s")],
            [signed(C % "f", "s"), C % "g"],
        ),
        ([C % "f", signed(C % "g", "s")], [sig("call", 0, "s")], [signed(C % "f", "s"), C % "g"]),
        ([signed(C % "f", "s")], [], [C % "f"]),
        # A key is spelled as the client spells it.
        (
            ['{"function_call":{"name":"f"}}'],
            [sig("call", 0, "s")],
            [signed('{"function_call":{"name":"f"}}', "s", "thought_signature")],
        ),
        (
            [signed(X % "x", "old", "thought_signature")],
            [sig("text", 0, "s")],
            [signed(X % "x", "s", "thought_signature")],
        ),
        # Texts that the client joined.
        ([X % "xy"], [sig("text", 1, "s")], [signed(X % "xy", "s")]),
        (
            [signed(X % "xy", "s"), C % "f", X % "z"],
            [sig("text", 1, "s"), part("text", 2, "t")],
            [signed(X % "xy", "s"), T % "t", C % "f", X % "z"],
        ),
        # What has nothing to stand on is not sent.
        ([signed(C % "f", "old")], [sig("text", 0, "s")], [C % "f"]),
        ([C % "f"], [sig("text", 0, "s")], [C % "f"]),
        ([X % "x"], [sig("call", 0, "s"), sig("blob", 0, "s")], [X % "x"]),
        # Pictures and code.
        ([X % "x", B % "d"], [sig("blob", 0, "s")], [X % "x", signed(B % "d", "s")]),
        # Parts of their own.
        (
            [X % "x", C % "f"],
            [part("text", 0, "a"), part("call", 0, "b"), sig("call", 0, "s"), part("end", 0, "c")],
            [T % "a", X % "x", T % "b", signed(C % "f", "s"), T % "c"],
        ),
        ([T % "z", X % "x", X % ""], [], [X % "x", X % ""]),
        ([T % "z"], [part("end", 0, "a")], [T % "a"]),
        ([], [part("end", 0, "a")], [T % "a"]),
    ],
)
def test_places(parts, thoughts, expected):
    assert patched([parts], *thoughts) == [expected]


def test_an_output_in_several_contents():
    """Google's SDK sends every chunk of a stream as a content of its own."""
    chunks = [[T % "A"], [T % "B"], [X % "x"], [X % "y"], [signed(C % "f", "s")]]
    assert patched(chunks, part("text", 0, "AB"), sig("call", 0, "s")) == chunks
    assert patched(chunks, sig("call", 0, "s")) == chunks[2:]
    assert patched(chunks, part("text", 0, "C")) == [
        [T % "C", X % "x"],
        [X % "y"],
        [C % "f"],
    ]
    assert patched(chunks[2:4], sig("text", 0, "s")) == [[signed(X % "x", "s")], [X % "y"]]


def test_a_content_of_which_nothing_is_left_goes():
    user = '{"role":"user","parts":[{"text":"?"}]}'
    empty = f'{{"role":"model","parts":[{T % "a"}]}}'
    body = f'{{"contents":[{user}, {empty}, {user}]}}'.encode()
    made = GEMINI.patch(GEMINI.read(body), [Revision(turn=0)])
    assert made == f'{{"contents":[{user}, {user}]}}'.encode()


@pytest.mark.parametrize("content", ['{"role":"model"}', '{"role":"model","parts":5}'])
def test_parts_may_be_missing(content):
    body = f'{{"contents":[{content}]}}'.encode()
    thought = part("end", 0, "a")
    made = GEMINI.patch(GEMINI.read(body), [Revision(turn=0, thoughts=(thought,))])
    parts = json.loads(made)["contents"][0]["parts"]
    assert parts == (5 if b"5" in body else [json.loads(T % "a")])


def test_other_carriers_have_no_place_here():
    body = f'{{"contents":[{{"role":"model","parts":[{X % "x"}]}}]}}'.encode()
    thought = Placed(Place("text", 0), Carrier.REASONING_CONTENT, '"a"')
    assert GEMINI.patch(GEMINI.read(body), [Revision(turn=0, thoughts=(thought,))]) is body


# -- reading -------------------------------------------------------------------------------------


def read(**members):
    return GEMINI.read(json.dumps({"contents": [], **members}).encode())


def test_what_a_request_says():
    request = read(
        systemInstruction={"parts": [{"text": "Be brief."}]},
        tools=[{"googleSearch": {}}, {"functionDeclarations": [{"name": "f"}]}],
        contents=[
            {"parts": [{"text": "Hi"}, {"inlineData": {"mimeType": "image/png", "data": "iVBO"}}]},
            {
                "role": "model",
                "parts": [
                    json.loads(T % "a"),
                    {"text": "Let me.", "thoughtSignature": "s1"},
                    {"functionCall": {"name": "f", "args": {"a": 1}, "id": "c1"}},
                    {"thoughtSignature": "s2"},
                ],
            },
            {
                "role": "function",
                "parts": [
                    {"functionResponse": {"id": "c1", "name": "f", "response": {"output": "a"}}},
                    {"functionResponse": {"name": "g", "response": {"error": "b"}}},
                    {"functionResponse": {"name": "h", "response": {"b": 1, "a": [2]}}},
                    {"function_response": {"name": "i", "response": {"result": {"x": 1}}}},
                ],
            },
            {"role": "model", "parts": [{"text": "One."}]},
            {"role": "model", "parts": [{"text": " Two."}]},
            {"role": "user", "parts": []},
        ],
    )
    assert (request.model, request.stream, request.tools) == ("", False, True)
    assert request.anchors == ((1,), (3, 4))
    first, second = request.turns
    text, blob = first.input
    assert text == Text(text="Hi")
    assert blob.kind == "inlineData"
    assert outline(first.output) == "ttxct"
    summary, signature, _, call, seal = first.output
    assert [t.carrier for t in (summary, signature, seal)] == ["part", "signature", "part"]
    assert [t.seals for t in (summary, signature, seal)] == [
        (),
        (keys.seal("s1"),),
        (keys.seal("s2"),),
    ]
    assert call == Call(name="f", arguments='{"a":1}', id="c1")
    assert second.input == (
        Result(content="a", call="c1", name="f"),
        Result(content="b", name="g", error=True),
        Result(content='{"a":[2],"b":1}', name="h"),
        Result(content='{"result":{"x":1}}', name="i"),
    )
    assert second.output == (Text(text="One. Two."),)


def test_a_bypass_is_no_seal():
    request = read(contents=[{"role": "model", "parts": [json.loads(signed(C % "f", BYPASS))]}])
    (thought,) = request.turns[0].thoughts
    assert thought.carrier is Carrier.SIGNATURE
    assert not thought.sealed


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, None),
        ({"thinkingConfig": {"thinkingBudget": 0}}, False),
        ({"thinkingConfig": {"thinkingBudget": -1}}, True),
        ({"thinkingConfig": {"thinkingLevel": "low"}}, True),
        ({"thinkingConfig": {"includeThoughts": True}}, True),
        ({"thinking_config": {"thinking_budget": 0}}, False),
        ({"thinkingConfig": {"thinkingBudget": False}}, None),
        ({"thinkingConfig": []}, None),
        ([], None),
    ],
)
def test_thinking(config, expected):
    assert read(generationConfig=config).thinking is expected
    assert read(generation_config=config).thinking is expected


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        (None, False),
        ([], False),
        ([{"googleSearch": {}}], False),
        ([{"functionDeclarations": []}], False),
        ([{"function_declarations": [{"name": "f"}]}], True),
        ({"functionDeclarations": [{"name": "f"}]}, True),
        ([5], False),
    ],
)
def test_tools(tools, expected):
    assert read(tools=tools).tools is expected


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"contents":{}}', b'{"contents":[}', b"\xff"]
)
def test_what_is_no_request(body):
    with pytest.raises(Unreadable):
        GEMINI.read(body)


@pytest.mark.parametrize("depth", [100, 950, 990, 3000])
def test_depth_is_no_trap(depth):
    deep = "[" * depth + "]" * depth
    parts = f'[{{"thought":true,"odd":{deep}}},{{"functionCall":{{"args":{deep}}}}}]'
    body = f'{{"contents":[{{"role":"model","parts":{parts}}},{{"parts":[{{"odd":{deep}}}]}}]}}'
    try:
        request = GEMINI.read(body.encode())
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
        request = GEMINI.read(spoiled)
    except Unreadable:
        return
    assert GEMINI.patch(request, []) is spoiled
    usable = [r for r in revisions if r.turn < len(request.turns) and request.turns[r.turn].output]
    json.loads(GEMINI.patch(request, usable))


# -- capture and look-up -------------------------------------------------------------------------


def captured(chunks, *, array=False, stream=True):
    """What a reader tells of this output."""
    one = GEMINI.reader(stream=stream, clock=FrozenClock(), origin=Origin(), sent=0)
    parts = []
    for happening in play(one, [histories.streamed(chunks, array=array)]):
        match happening:
            case Reasoning(thought=thought):
                parts.append(thought)
            case AssistantMessage(parts=said):
                parts += said
            case ToolCall(call=call):
                parts.append(call)
    return tuple(parts)


@given(
    histories.conversations(pictures=False),
    st.lists(st.sampled_from(histories.ALTERATIONS), max_size=4),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_what_was_captured_is_found_in_what_is_echoed(conversation, changes, array, snake, data):
    said, question = conversation
    path = []
    for index, (asked, output) in enumerate(said):
        heard = GEMINI.read(histories.body(said[:index], asked)).turns[-1].input
        chunks = histories.chunked(output, data.draw)
        path.append(Turn(input=heard, output=captured(chunks, array=array)))
    spell = histories.snake if snake else None
    echoed = GEMINI.read(histories.body(brought_back(said, changes, spell=spell), question))
    assert keys.trail(path)[0] == keys.trail(echoed.turns)[0][: len(path)]


@given(histories.conversations(), st.booleans(), st.data())
def test_capture_and_echo_of_chunks_have_one_shape(conversation, array, data):
    said = [(asked, histories.chunked(output, data.draw)) for asked, output in conversation[0]]
    for (_, chunks), turn in zip(said, GEMINI.read(histories.body(said)).turns, strict=True):
        parts = captured(chunks, array=array)
        assert outline(parts) == outline(turn.output)
        mine = [t for t in parts if isinstance(t, Thought)]
        assert [(t.carrier, t.seals, t.text) for t in mine] == [
            (t.carrier, t.seals, t.text) for t in turn.thoughts
        ]
        assert [json.loads(t.raw) for t in mine] == [json.loads(t.raw) for t in turn.thoughts]
        assert [p.digest for p in parts if isinstance(p, Blob)] == [
            p.digest for p in turn.output if isinstance(p, Blob)
        ]


@given(histories.conversations())
def test_a_whole_body_keeps_its_parts_apart_and_to_the_byte(conversation):
    for _, output in conversation[0]:
        parts = captured([output], array=True, stream=False)
        raws = [t.raw for t in parts if isinstance(t, Thought) and t.carrier is Carrier.PART]
        assert raws == [
            raw
            for raw in output
            if json.loads(raw).get("thought") or json.loads(raw).get("text") == ""
        ]


# -- writing -------------------------------------------------------------------------------------


def test_a_request_of_our_own():
    raw = '{"text": "x", "thought": true, "odd": 1E+2}'
    blob = '{"executableCode": {"code":"1"}}'
    turns = [
        Turn(
            input=(Text(text="Hi"),),
            output=(
                Thought(carrier=Carrier.PART, raw=raw),
                Thought(carrier=Carrier.REASONING_CONTENT, raw='"no place here"'),
                Text(text="Let me."),
                Thought(carrier=Carrier.SIGNATURE, raw='"s1"'),
                Blob(kind="executableCode", digest="d", raw=blob),
                Thought(carrier=Carrier.SIGNATURE, raw='"s2"'),
                Call(name="f", arguments='{"a": 5.0}', id="c1"),
                Call(name="g", arguments="not JSON"),
            ),
        ),
        Turn(
            input=(
                Result(content="g said", name="g"),
                Result(content="f said", call="c1", error=True),
                Text(text="And?"),
            )
        ),
    ]
    tools = [Tool(name="f", description="does f", parameters={"type": "object"}), Tool(name="g")]
    body = GEMINI.write(turns, model="gemini", system="Be brief.", tools=tools)
    assert raw.encode() in body
    assert b'"args":{"a": 5.0}' in body
    document = json.loads(body)
    assert set(document) == {"contents", "systemInstruction", "tools"}
    assert document["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert document["tools"] == [
        {
            "functionDeclarations": [
                {"name": "f", "description": "does f", "parameters": {"type": "object"}},
                {"name": "g", "description": ""},
            ]
        }
    ]
    asked, answered, results = document["contents"]
    assert asked == {"role": "user", "parts": [{"text": "Hi"}]}
    assert answered["parts"] == [
        json.loads(raw),
        {"text": "Let me."},
        {"executableCode": {"code": "1"}, "thoughtSignature": "s1"},
        {
            "functionCall": {"id": "c1", "name": "f", "args": {"a": 5.0}},
            "thoughtSignature": "s2",
        },
        {"functionCall": {"name": "g", "args": {}}},
    ]
    assert results["parts"] == [
        {"functionResponse": {"name": "g", "response": {"result": "g said"}}},
        {"functionResponse": {"id": "c1", "name": "f", "response": {"error": "f said"}}},
        {"text": "And?"},
    ]


@given(histories.conversations(pictures=False))
def test_what_is_written_is_read_again(conversation):
    turns = GEMINI.read(histories.body(*conversation)).turns
    again = GEMINI.read(GEMINI.write(turns, model="m")).turns
    assert [turn.output for turn in again] == [turn.output for turn in turns]
    assert keys.trail(again)[0] == keys.trail(turns)[0]
