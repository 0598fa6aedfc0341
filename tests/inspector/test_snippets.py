"""The words around what was searched for."""

import pytest

from thoughtline.inspector.snippets import find_snippet
from thoughtline.log.events import AssistantMessage, Event, Reasoning, ToolCall, ToolResult, draft
from thoughtline.log.parts import Call, Carrier, Result, Text, Thought


def event(body, **damage):
    made = draft(body, id="e", parent="t1", at=0.0)
    fields = {name: getattr(made, name) for name in ("id", "parent", "at", "type", "version", "data")}  # fmt: skip
    return Event(session="s", seq=0, **{**fields, **damage})


@pytest.mark.parametrize(
    ("body", "role"),
    [
        (AssistantMessage(parts=(Text(text="The LINKER fails"),)), "assistant"),
        (ToolCall(call=Call(name="run", arguments='{"x": "linker"}', id="c")), "call"),
        (ToolResult(result=Result(call="c", content="no linker")), "result"),
    ],
)
def test_where_it_stands(body, role):
    found = find_snippet(event(body), "linker")
    assert (found.turn, found.role, found.match.lower()) == ("t1", role, "linker")


def test_long_texts_are_cut_on_both_sides():
    found = find_snippet(event(AssistantMessage(parts=(Text(text="a\n" * 500 + "X" + "b" * 500),))), "x")  # fmt: skip
    assert found.before == "…" + "a " * 20
    assert found.after == "b" * 120 + "…"


def test_thoughts_are_not_searched_and_damage_is_nothing():
    thought = Thought(carrier=Carrier.BLOCK, raw="linker", text="linker")
    assert find_snippet(event(Reasoning(thought=thought)), "linker") is None
    broken = event(AssistantMessage(parts=(Text(text="linker"),)), data=b"{")
    assert find_snippet(broken, "linker") is None
