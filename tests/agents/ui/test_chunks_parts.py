"""Parts of a UI message while they stream."""

import pytest

from support.ui_chunks import DONE, told
from thoughtline.agents.ui.chunks import ToolParts
from thoughtline.log.events import (
    Outcome,
    ToolCall,
    ToolCallDelta,
    TurnEnded,
    TurnStarted,
)
from thoughtline.log.parts import Call


def test_calls_side_by_side_without_ids_and_with_bad_input():
    chunks, _ = told(
        TurnStarted(),
        ToolCallDelta(0, '{"a"', "one"),
        ToolCallDelta(1, "{", "two"),
        ToolCallDelta(0, ":1}"),
        ToolCall(call=Call(name="one", arguments='{"a":1}')),
        ToolCall(call=Call(name="two", arguments="{")),
        DONE,
    )
    assert len({c["toolCallId"] for c in chunks if c["type"] == "tool-input-start"}) == 2
    assert [c["type"] for c in chunks if c["type"].startswith("tool-input-")][-2:] == [
        "tool-input-available",
        "tool-input-error",
    ]


def test_a_call_that_breaks_off_does_not_spin_for_ever():
    failed = TurnEnded(outcome=Outcome.FAILED, reason="cut")
    chunks, _ = told(TurnStarted(), ToolCallDelta(0, "{", "one", "c1"), failed)
    assert [c["type"] for c in chunks][-3:] == ["tool-input-error", "finish-step", "error"]


@pytest.mark.parametrize(
    ("content", "output"),
    [
        ('{"rows": [1, 2]}', {"rows": [1, 2]}),
        ("[]", []),
        ("plain words", "plain words"),
        ("12", "12"),
        ('"quoted"', '"quoted"'),
        ("true", "true"),
        ('{"cut": [1, 2\n[cut: 12 of 40 characters are shown]', None),
        ("[binary data, 12 bytes, not shown]", None),
        ('{"n": NaN}', None),
        ("[" * 100_000, None),
        ("", ""),
    ],
)
def test_a_result_that_is_an_object_or_a_list_arrives_as_one(content, output):
    tools = ToolParts()
    tools.call(Call(name="look", arguments="{}", id="c"))
    [chunk] = tools.result("c", content, error=False)
    assert chunk["output"] == (content if output is None else output)
