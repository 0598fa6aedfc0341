from base64 import b64decode, urlsafe_b64encode

from hypothesis import given
from hypothesis import strategies as st

from thoughtline.log.handles import Handles, is_handle

TURN = "01a1e65af2b471b9b5a71621523c77b3"
HANDLES = Handles(b"s" * 32)


def test_a_handle_names_its_turn_to_its_tenant_alone():
    handle = HANDLES.make("alice", TURN, 2)
    assert HANDLES.turn("alice", handle) == TURN
    assert HANDLES.turn("bob", handle) == ""
    assert Handles(b"t" * 32).turn("alice", handle) == ""
    assert handle == HANDLES.make("alice", TURN, 2)
    assert handle != HANDLES.make("alice", TURN, 1)


def test_a_handle_is_short_plain_base64_in_either_alphabet():
    handle = HANDLES.make("alice", TURN, 0)
    assert len(handle) <= 120
    respelled = urlsafe_b64encode(b64decode(handle, validate=True)).decode()
    assert HANDLES.turn("alice", respelled) == TURN


def test_everybodys_handles_are_recognised():
    assert is_handle(Handles(b"t" * 32).make("bob", TURN, 0))
    assert not is_handle("EqoBCkYIARgCIkD" + "A" * 37)
    assert not is_handle("")


@given(st.text(max_size=80))
def test_anything_else_names_nothing(value):
    assert HANDLES.turn("alice", value) == ""
    assert not is_handle(value)


@given(st.integers(0, 51), st.characters(codec="ascii"))
def test_a_handle_that_was_tampered_with_names_nothing(at, character):
    handle = HANDLES.make("alice", TURN, 0)
    forged = handle[:at] + character + handle[at + 1 :]
    assert HANDLES.turn("alice", forged) in ("", TURN if forged == handle else "")
