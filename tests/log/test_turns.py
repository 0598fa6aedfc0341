from hypothesis import given
from hypothesis import strategies as st

from thoughtline.log.parts import Blob, Call, Carrier, Decision, Result, Text, Thought
from thoughtline.log.turns import Place, Turn, output_shape, places

THOUGHT = Thought(carrier=Carrier.REASONING, raw='"t"')
TEXT = Text(text="x")
CALL = Call(name="f", arguments="{}")
BLOB = Blob(kind="image", digest="00")
LETTERS = {"t": THOUGHT, "x": TEXT, "c": CALL, "b": BLOB}


def test_an_outline_has_one_letter_a_part():
    assert output_shape([THOUGHT, TEXT, CALL, CALL, BLOB]) == "txccb"
    assert output_shape([Result(content=""), Decision(call="", verdict="allow")]) == "bb"
    assert output_shape(()) == ""


@given(st.text("txcb", max_size=12))
def test_thoughts_and_places_pair_up(shape):
    turn = Turn(output=tuple(LETTERS[letter] for letter in shape))
    assert output_shape(turn.output) == shape
    assert len(turn.thoughts) == len(places(shape)) == shape.count("t")
    assert len(turn.calls) == shape.count("c")


@given(st.text("txcb", max_size=12))
def test_a_place_says_what_the_thought_led_to(shape):
    kinds = {"x": "text", "c": "call", "b": "blob"}
    found = iter(places(shape))
    for index, letter in enumerate(shape):
        if letter != "t":
            continue
        rest = shape[index:].lstrip("t")
        if not rest:
            assert next(found) == Place("end", 0)
        else:
            before = shape[: len(shape) - len(rest)]
            assert next(found) == Place(kinds[rest[0]], before.count(rest[0]))


def test_interleaved():
    assert places("tctxtc") == (Place("call", 0), Place("text", 0), Place("call", 1))
    assert places("ttx") == (Place("text", 0),) * 2
    assert places("xt") == (Place("end", 0),)
