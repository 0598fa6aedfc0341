"""Blocks come one after another, whatever a provider interleaves."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.translation import CONVERSATION, blocks_of, spoken
from thoughtline.clock import SystemClock
from thoughtline.dialects import DIALECTS
from thoughtline.dialects.answer_blocks import AnswerBlocks
from thoughtline.dialects.answers import BlockCitation, BlockDelta, BlockEnd, BlockStart
from thoughtline.dialects.params import ToolSpec
from thoughtline.dialects.tool_names import ToolNames
from thoughtline.log.events import (
    AssistantMessage,
    Citation,
    ReasoningDelta,
    ReasoningEnd,
    RefusalDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from thoughtline.log.parts import Call, Origin, Text, Timing, ToolKind


def told(events, *, tools=(), complete=True):
    """What a client sees of these events: kind and content of every block."""
    blocks = AnswerBlocks(ToolNames(tools), lambda nth: f"id-{nth}")
    made = [*blocks.feed(events), *blocks.end(complete=complete)]
    assert_in_order(made)
    return [(e.block.kind, e.block.text) for e in made if isinstance(e, BlockEnd)]


def assert_in_order(events):
    opened = None
    for event in events:
        if isinstance(event, BlockStart):
            assert opened is None
            opened = event.block
        else:
            assert event.block is opened
        if isinstance(event, BlockEnd):
            opened = None


END = ReasoningEnd(Timing())


def test_thought_text_and_calls_follow_one_another():
    events = [
        ReasoningDelta("Hm"),
        ReasoningDelta("."),
        END,
        TextDelta("Let me"),
        TextDelta(" see."),
        ToolCallDelta(0, '{"a":', "run", "c0"),
        ToolCallDelta(0, "1}"),
        ToolCallDelta(1, "{}", "run", "c1"),
    ]
    calls = [("call", '{"a":1}'), ("call", "{}")]
    assert told(events) == [("thought", "Hm."), ("text", "Let me see."), *calls]


def test_fragments_of_parallel_calls_that_mix_are_sorted():
    events = [
        ToolCallDelta(0, '{"a":', "run", "c0"),
        ToolCallDelta(1, '{"b":', "look", "c1"),
        ToolCallDelta(0, "1}"),
        ToolCallDelta(1, "2}"),
    ]
    assert told(events) == [("call", '{"a":1}'), ("call", '{"b":2}')]


def test_a_name_that_comes_after_its_id_is_waited_for():
    events = [
        ToolCallDelta(0, "", "", "c0"),
        ToolCallDelta(0, "", "run"),
        ToolCallDelta(0, '{"a":1}'),
    ]
    assert told(events) == [("call", '{"a":1}')]


def test_a_thought_after_text_is_a_block_of_its_own():
    events = [TextDelta("One."), ReasoningDelta("Hm."), END, TextDelta("Two.")]
    assert told(events) == [("text", "One."), ("thought", "Hm."), ("text", "Two.")]


def test_a_sealed_thought_without_words_is_an_empty_block():
    assert told([END, TextDelta("Yes.")]) == [("thought", ""), ("text", "Yes.")]


def test_two_thoughts_with_ids_are_two_blocks():
    events = [ReasoningDelta("One.", "rs_1"), ReasoningDelta("Two.", "rs_2")]
    assert told(events) == [("thought", "One."), ("thought", "Two.")]


def test_text_amid_a_call_waits_for_its_end():
    events = [
        ToolCallDelta(0, '{"a":', "run", "c0"),
        TextDelta("Also."),
        ToolCallDelta(0, "1}"),
    ]
    assert told(events) == [("call", '{"a":1}'), ("text", "Also.")]


def test_a_thought_amid_a_call_does_not_cut_it():
    events = [
        ToolCallDelta(0, '{"a":', "run"),
        ReasoningDelta("Hm."),
        TextDelta("One."),
        ToolCallDelta(0, "1}"),
        TextDelta(" Two."),
    ]
    assert told(events) == [("call", '{"a":1}'), ("thought", "Hm."), ("text", "One. Two.")]


def test_a_cut_call_is_not_completed_by_text_that_waits_for_it():
    events = [ToolCallDelta(0, '{"a":', "run"), TextDelta("One.")]
    assert told(events, complete=False) == []


def ids_of(events):
    blocks = AnswerBlocks(ToolNames([]), lambda position: f"id-{position}")
    made = [*blocks.feed(events), *blocks.end(complete=True)]
    ended = [e.block for e in made if isinstance(e, BlockEnd)]
    return [(block.id, block.tool.name, block.text) for block in ended if block.kind == "call"]


def test_an_id_is_made_from_the_place_that_a_call_has_in_the_log():
    late = [ToolCallDelta(1, "{}", "search"), ToolCallDelta(0, '{"a":1}', "run")]
    assert ids_of(late) == [("id-0", "run", '{"a":1}'), ("id-1", "search", "{}")]
    nameless = [ToolCallDelta(0, "{}"), ToolCallDelta(1, "{}", "search")]
    assert ids_of(nameless) == [("id-1", "search", "{}")]


def test_calls_that_a_server_gives_one_index_are_told_apart():
    calls = [("c0", "run", '{"a":1}'), ("c1", "search", '{"b":2}'), ("c2", "run", None)]
    deltas = [
        {"tool_calls": [{"index": 0, "id": id, "function": {"name": name, "arguments": arguments}}]}
        for id, name, arguments in calls
    ]
    chunks = [{"choices": [{"delta": delta}]} for delta in deltas]
    chunks[-1]["choices"][0]["finish_reason"] = "tool_calls"
    reader = DIALECTS["chat"].reader(stream=True, clock=SystemClock(), origin=Origin(), sent=0)
    data = b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks)
    assert ids_of([*reader.feed(data), *reader.close()]) == [
        ("id-0", "run", '{"a":1}'),
        ("id-1", "search", '{"b":2}'),
        ("id-2", "run", "{}"),
    ]


def test_no_arguments_are_an_empty_object_for_the_client():
    assert told([ToolCallDelta(0, "", "run", "c0")]) == [("call", "{}")]


def test_a_call_of_an_answer_that_was_cut_is_not_completed():
    assert told([ToolCallDelta(0, '{"a":', "run", "c0")], complete=False) == []


def test_free_text_comes_unwrapped():
    tool = ToolSpec(name="patch", kind=ToolKind.CUSTOM)
    pieces = [ToolCallDelta(0, piece, "patch", "c0") for piece in '{"input":"a\\n\\"b"}']
    assert told(pieces, tools=[tool]) == [("call", 'a\n"b')]


def test_free_text_comes_while_the_model_writes_it():
    tool = ToolSpec(name="patch", kind=ToolKind.CUSTOM)
    blocks = AnswerBlocks(ToolNames([tool]), str)
    pieces = ['{"input":"One', " and", ' two"}']
    made = [blocks.feed([ToolCallDelta(0, piece, "patch", "c0")]) for piece in pieces]
    assert [[e.text for e in one if isinstance(e, BlockDelta)] for one in made] == [
        *(["One"], [" and"], [" two"])
    ]
    (end,) = blocks.end(complete=True)
    assert end.block.text == "One and two"


def test_calls_have_ids_that_are_unique_for_the_client():
    blocks = AnswerBlocks(ToolNames([]), lambda nth: f"id-{nth}")
    events = [ToolCallDelta(n, "{}", "ls", "ls:0") for n in range(3)]
    made = [*blocks.feed(events), *blocks.end(complete=True)]
    assert [e.block.id for e in made if isinstance(e, BlockStart)] == ["id-0", "id-1", "id-2"]
    assert blocks.called


# -- every pair of dialects ----------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("provider", CONVERSATION)
def test_streamed_and_whole_answers_agree(provider, dialect):
    streamed = blocks_of(dialect, spoken(provider, dialect, stream=True), stream=True)
    whole = blocks_of(dialect, spoken(provider, dialect, stream=False), stream=False)
    assert streamed == whole
    assert {kind for kind, _ in whole} == {"thought", "text", "call"}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("provider", CONVERSATION)
@given(data=st.data())
def test_the_same_bytes_come_out_for_any_chunking(provider, dialect, data):
    size = data.draw(st.integers(1, 400))
    expected = spoken(provider, dialect, stream=True)
    assert spoken(provider, dialect, stream=True, size=size) == expected


def test_deltas_add_up_to_their_block():
    blocks = AnswerBlocks(ToolNames([]), str)
    made = [*blocks.feed([TextDelta("a"), TextDelta("b")]), *blocks.end(complete=True)]
    assert "".join(e.text for e in made if isinstance(e, BlockDelta)) == "ab"


def test_a_refusal_is_a_block_of_its_own():
    events = [TextDelta("Well. "), RefusalDelta("I can"), RefusalDelta("not."), TextDelta("Else?")]
    refused = AssistantMessage(parts=(Text(text="I cannot.", refused=True),))
    assert told(events) == [("text", "Well. "), ("refusal", "I cannot."), ("text", "Else?")]
    assert told([refused]) == told([*events[1:3], refused]) == [("refusal", "I cannot.")]


def test_a_call_that_was_cut_in_a_whole_answer_is_left_out():
    def said(arguments):
        return [ToolCall(call=Call(name="run", arguments=arguments))]

    assert told(said('{"a": "'), complete=False) == []
    assert told(said('{"a": 1}'), complete=False) == [("call", '{"a": 1}')]


def linked(events):
    """The blocks of links, and where they say that they begin."""
    blocks = AnswerBlocks(ToolNames(()), lambda nth: f"id-{nth}")
    made = [*blocks.feed(events), *blocks.end(complete=True)]
    links = [event for event in made if isinstance(event, BlockCitation)]
    return [(link.block.text, link.citation.start, link.citation.url) for link in links]


def test_a_link_stands_with_the_text_that_it_is_of():
    one, two = Citation("a", start=0, end=3), Citation("b", start=5, end=7)
    texts = [TextDelta("One. "), END, ReasoningDelta("Hm."), TextDelta("Two.")]
    assert linked([*texts, two, one, two]) == [("Two.", 5, "b"), ("One. ", 0, "a")]
    whole = [AssistantMessage(parts=(Text(text=text),)) for text in ("One. ", "Two.")]
    assert linked([one, two, *whole]) == [("One. ", 0, "a"), ("Two.", 5, "b")]


def test_a_link_of_which_it_is_not_known_where_stands_with_the_last_text():
    texts = [TextDelta("One. "), ToolCallDelta(0, "{}", "run", "c"), TextDelta("Two.")]
    assert linked([*texts, Citation("a")]) == [("Two.", 5, "a")]
    assert linked([Citation("a")]) == []


@given(
    st.lists(st.sampled_from(["One. ", "é🎉", "x"]), min_size=1, max_size=5),
    st.lists(st.integers(0, 20), max_size=5),
)
def test_no_link_stands_before_its_text_or_behind_the_next(texts, starts):
    said = [event for text in texts for event in (TextDelta(text), ReasoningDelta("Hm."))]
    whole = "".join(texts)
    links = [Citation(f"{at}", start=at, end=at + 1) for at in starts if at < len(whole)]
    for text, start, url in linked([*said, *links]):
        assert int(url) == start
        assert whole[start] in text
