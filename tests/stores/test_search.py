"""Which sessions match a query: by how they ended, by whom they asked, and by what was said."""

import pytest

from stores.samples import turn
from thoughtline.log.events import (
    AssistantMessage,
    ToolCall,
    ToolResult,
    TurnStarted,
    UserMessage,
    draft,
)
from thoughtline.log.parts import Call, Result, Text
from thoughtline.stores.base import SessionQuery
from thoughtline.stores.rules import number_events
from thoughtline.stores.search import contains_text, session_matches, spellings, status

EVENTS = number_events(turn("s", "t1", '"a thought about Zurich"'), 0)


def test_how_the_last_turn_ended():
    assert status([]) is None
    assert status(EVENTS) == "completed"
    running = draft(TurnStarted(), id="t2", parent="t1", at=2.0)
    more = number_events(turn("s", "t1", '"hm"', drafts=(running,)), 0)
    assert status(more) == "running"


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        (SessionQuery(provider="deepseek"), True),
        (SessionQuery(provider="openai"), False),
        (SessionQuery(model="v4"), True),
        (SessionQuery(model="v4", status="failed"), False),
        (SessionQuery(text="Zurich"), False),  # a match would reveal what thoughts say
    ],
)
def test_a_session_matches_all_conditions(query, matches):
    assert session_matches(query, EVENTS) is matches


@pytest.mark.parametrize(
    "body",
    [
        UserMessage(parts=(Text(text='In "Z\u00dcRICH"\n'),)),
        AssistantMessage(parts=(Text(text="z\u00fcrich it is"),)),
        ToolCall(call=Call(name="look", arguments='{"city": "Z\u00fcrich"}')),
        ToolResult(result=Result(content="Z\u00fcrich")),
    ],
)
def test_text_is_found_as_it_reads_whatever_its_case(body):
    made = draft(body, id="e", parent="", at=0.0)
    assert contains_text(made.type, made.version, made.data, "z\u00fcrich")
    assert not contains_text(made.type, made.version, made.data, "parts")


def test_spellings_are_those_of_json():
    assert spellings('say "hi"') == [
        'say \\"hi\\"',
        'SAY \\"HI\\"',
        'Say \\"hi\\"',
        'Say \\"Hi\\"',
    ]
