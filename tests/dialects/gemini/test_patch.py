"""Signatures and thought parts go into a client's body, and nothing else of it changes."""

import json

import pytest
from hypothesis import given

from support.histories import gemini as histories
from support.revisions import revised_gemini
from thoughtline.dialects import splice
from thoughtline.dialects.base import PlacedThought, Revision
from thoughtline.dialects.gemini import Gemini
from thoughtline.log.parts import Carrier, Thought
from thoughtline.log.turns import Place, output_shape
from thoughtline.log.turns import places as places_of

GEMINI = Gemini()


def contents(body):
    """The contents of a body, each as the bytes of its parts."""
    found = []
    for content in splice.elements(body, splice.members(body)["contents"]):
        parts = splice.members(body, content)["parts"]
        found.append([body[s.value : s.end] for s in splice.elements(body, parts)])
    return found


def standing(turn):
    """The thoughts of an output: place, carrier, value."""
    found = zip(places_of(output_shape(turn.output)), turn.thoughts, strict=True)
    return [(place, t.carrier, splice.loads(t.raw.encode())) for place, t in found]


def said_aloud(turn):
    return [part for part in turn.output if not isinstance(part, Thought)]


@given(revised_gemini())
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


# -- one thing at a time -------------------------------------------------------------------------

T = '{"text":"%s","thought":true}'
X = '{"text":"%s"}'
C = '{"functionCall":{"name":"%s","args":{}}}'
B = '{"inlineData":{"data":"%s"}}'


def signed(raw, name, key="thoughtSignature"):
    return f'{raw[:-1]},"{key}":"{name}"}}'


def part(kind, nth, name):
    return PlacedThought(Place(kind, nth), Carrier.PART, T % name)


def sig(kind, nth, name):
    return PlacedThought(Place(kind, nth), Carrier.SIGNATURE, f'"{name}"')


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
    thought = PlacedThought(Place("text", 0), Carrier.REASONING_CONTENT, '"a"')
    assert GEMINI.patch(GEMINI.read(body), [Revision(turn=0, thoughts=(thought,))]) is body
