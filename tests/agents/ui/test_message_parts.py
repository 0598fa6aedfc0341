"""Parts of a message: one open at a time, calls beside it, and how many there are."""

from thoughtline.agents.ui.message_parts import OpenPart, ToolParts
from thoughtline.log.events import ToolCallDelta
from thoughtline.log.parts import Call


def test_a_part_ends_when_another_begins():
    part = OpenPart()
    assert part.start("text") == [{"type": "text-start", "id": "text-0"}]
    assert part.delta("a") == {"type": "text-delta", "id": "text-0", "delta": "a"}
    own = {"key": "rs_1", "itemId": "rs_1"}
    ended, begun = part.start("reasoning", own)
    assert ended == {"type": "text-end", "id": "text-0"}
    assert begun["providerMetadata"] == {"thoughtline": own}
    assert (part.kind, part.key, part.count) == ("reasoning", "rs_1", 2)
    (end,) = part.end({**own, "duration": 3})
    assert end["providerMetadata"]["thoughtline"]["duration"] == 3
    assert part.end() == []


def test_calls_are_counted_when_they_are_sent():
    tools = ToolParts()
    assert tools.delta(ToolCallDelta(0, "{", "", "")) == []  # nobody knows the tool yet
    assert tools.count == 0
    tools.delta(ToolCallDelta(0, "}", "run", "call_1"))
    tools.call(Call(name="run", arguments="{}", id="call_1"))
    tools.next_turn()
    tools.call(Call(name="run", arguments="{}", id="call_2"))
    assert tools.count == 2
