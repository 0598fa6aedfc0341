"""Events in, chunks of a UI message stream out."""

import json

from support.ui_chunks import DONE, thought, told
from thoughtline.agents.ui.chunks import MessageEncoder
from thoughtline.log.events import (
    AssistantMessage,
    ReasoningDelta,
    TextDelta,
    TurnStarted,
)
from thoughtline.log.parts import Text


def test_what_was_not_streamed_is_shown_when_it_is_written():
    chunks, metadata = told(
        TurnStarted(), thought("rs_1"), AssistantMessage(parts=(Text(text="Hi"),)), DONE
    )
    kinds = [c["type"] for c in chunks]
    assert kinds[2:8] == [
        f"{k}-{s}" for k in ("reasoning", "text") for s in ("start", "delta", "end")
    ]
    assert metadata["reasoningDurations"] == {"rs_1": 3}


def test_an_id_that_changes_on_the_way_keeps_its_duration():
    _, metadata = told(TurnStarted(), ReasoningDelta("hm", "rs_live"), thought("rs_stored"), DONE)
    assert metadata["reasoningDurations"] == {"rs_live": 3, "rs_stored": 3}


def test_two_items_are_two_parts_and_overlap_counts_once():
    chunks, metadata = told(
        TurnStarted(),
        ReasoningDelta("a", "rs_1"),
        ReasoningDelta("b", "rs_2"),
        thought("rs_1", start=0, end=5),
        thought("rs_2", start=3, end=7),
        DONE,
    )
    assert [c["type"] for c in chunks].count("reasoning-start") == 2
    assert metadata["reasoningDurations"] == {"rs_1": 5, "rs_2": 4}
    assert metadata["reasoningTotal"] == 7


def test_a_message_ends_once_and_nothing_comes_after():
    encoder = MessageEncoder("m")
    encoder.feed(TextDelta("Hi"), 5.0)
    assert encoder.end()[-1]["type"] == "abort"
    assert (encoder.feed(TextDelta("!"), 6.0), encoder.end("late")) == ([], [])


def test_half_an_emoji_is_still_a_stream():
    from thoughtline.agents.ui.stream import encode_sse

    assert json.loads(encode_sse([{"type": "x", "delta": "\ud83d"}])[6:])["delta"] == "\ud83d"
