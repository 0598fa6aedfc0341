import json

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.json_spellings import RANDOMS, VALUES, spell
from thoughtline.errors import Ephemeral, ThoughtlineError, Unreadable
from thoughtline.log import events
from thoughtline.log.events import (
    AssistantMessage,
    EndpointLearned,
    Event,
    Keepalive,
    Outcome,
    PermissionDecision,
    Quarantined,
    Reasoning,
    ReasoningDelta,
    SessionForked,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    TurnEnded,
    TurnStarted,
    UserMessage,
    decode,
    draft,
    upcast,
)
from thoughtline.log.parts import (
    Blob,
    Call,
    Carrier,
    Decision,
    Origin,
    Result,
    Text,
    Thought,
    Timing,
)
from thoughtline.log.quirks import Quirk
from thoughtline.log.usage import Usage

TEXT = st.text(max_size=12)
CLOCK = st.none() | st.integers(0, 2**63 - 1)
ORIGINS = st.builds(Origin, dialect=TEXT, provider=TEXT, endpoint=TEXT, account=TEXT, model=TEXT)
TIMINGS = st.builds(
    Timing, sent=CLOCK, opened=CLOCK, first=CLOCK, last=CLOCK, closed=CLOCK, aborted=st.booleans()
)
THOUGHTS = st.builds(
    Thought,
    carrier=st.sampled_from(Carrier),
    raw=st.builds(spell, VALUES, RANDOMS),
    text=TEXT,
    id=TEXT,
    seals=st.lists(TEXT, max_size=2).map(tuple),
    origin=st.none() | ORIGINS,
    timing=st.none() | TIMINGS,
)
TEXTS = st.builds(Text, text=TEXT, id=TEXT, raw=TEXT)
BLOBS = st.builds(Blob, kind=TEXT, digest=TEXT, raw=TEXT)
PARTS = st.lists(TEXTS | BLOBS, max_size=3).map(tuple)
CALLS = st.builds(Call, name=TEXT, arguments=TEXT, id=TEXT, item=TEXT)
RESULTS = st.builds(Result, content=TEXT, call=TEXT, name=TEXT, error=st.booleans())
COUNT = st.none() | st.integers(0, 2**63 - 1)
BODIES = st.one_of(
    st.builds(UserMessage, parts=PARTS),
    st.builds(Reasoning, thought=THOUGHTS),
    st.builds(AssistantMessage, parts=PARTS),
    st.builds(ToolCall, call=CALLS),
    st.builds(ToolResult, result=RESULTS),
    st.builds(PermissionDecision, decision=st.builds(Decision, call=TEXT, verdict=TEXT)),
    st.builds(TurnStarted, target=st.none() | ORIGINS),
    st.builds(
        TurnEnded,
        outcome=st.sampled_from(Outcome),
        reason=TEXT,
        usage=st.none()
        | st.builds(Usage, input=COUNT, output=COUNT, reasoning=COUNT, cached=COUNT),
        response=TEXT,
        model=TEXT,
    ),
    st.builds(Quarantined, turn=TEXT, thoughts=st.lists(st.integers(0, 9)).map(tuple)),
    st.builds(SessionForked, session=TEXT, turn=TEXT),
    st.builds(EndpointLearned, endpoint=TEXT, dialect=TEXT, model=TEXT, quirk=st.builds(Quirk)),
)


def numbered(made, seq=0, session="s"):
    return Event(session=session, seq=seq, **msgspec.structs.asdict(made))


# --- round trips -------------------------------------------------------------------------------


@given(BODIES)
def test_every_body_comes_back_as_it_was(body):
    event = numbered(draft(body, id="i", parent="p", at=1.5))
    assert event.body() == body
    assert events.TYPES[event.type] is type(body)
    # through any JSON in between, as an export would take it
    copy = msgspec.json.decode(json.dumps(msgspec.to_builtins(event)), type=Event)
    assert copy == event
    assert copy.data == event.data


ODD = [
    '{"type": "reasoning",\n\t"summary":[ ]  ,"encrypted_content":"gAAA\\u003d\\/==" }',
    '{"z":1,"a":2,"m":{"b":1,"a":1.10}}',
    "[1.10, 1e3, 1E+3, -0, -0.0, 100000000000000000000000, 0.1e-7]",
    '"caf\\u00e9 \\ud83d\\ude00 \\ud83d \\u2028 \u2028 \\n \\/"',
    '""',
    '" "',
    "null",
    '  {"leading": true}  ',
]


@given(st.builds(spell, VALUES, RANDOMS) | TEXT)
@example(ODD[0])
@example(ODD[1])
@example(ODD[2])
@example(ODD[3])
@example(ODD[4])
@example(ODD[5])
@example(ODD[7])
def test_a_raw_item_is_kept_to_the_byte(raw):
    body = Reasoning(thought=Thought(carrier=Carrier.ITEM, raw=raw))
    stored = draft(body, id="i", parent="p", at=0.0).data
    again = decode("reasoning", 1, json.dumps(json.loads(stored), indent=2))  # even re-spelled
    assert again.thought.raw.encode() == decode("reasoning", 1, stored).thought.raw.encode()
    assert again.thought.raw.encode() == raw.encode()


def test_every_canonical_and_bookkeeping_body_has_a_name():
    assert {cls.__name__ for cls in events.TYPES.values()} == {
        cls.__name__ for cls in events.Body.__args__
    }
    assert set(events.VERSIONS) == set(events.TYPES)
    assert list(events.TYPES) == [
        "user_message",
        "reasoning",
        "assistant_message",
        "tool_call",
        "tool_result",
        "permission_decision",
        "turn_started",
        "turn_ended",
        "quarantined",
        "session_forked",
        "endpoint_learned",
        "request_failed",
        "deletion_done",
    ]


# --- ephemeral ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "delta", [ReasoningDelta("a"), TextDelta("a"), ToolCallDelta(0, "{"), Keepalive()]
)
def test_what_is_only_shown_live_cannot_be_written(delta):
    with pytest.raises(Ephemeral, match=type(delta).__name__) as caught:
        draft(delta, id="i", parent="p", at=0.0)
    assert "turn_started" in str(caught.value)  # says what can be
    assert isinstance(caught.value, ThoughtlineError)


def test_anything_else_cannot_be_written_either():
    with pytest.raises(Ephemeral):
        draft("words", id="i", parent="p", at=0.0)


# --- versions ----------------------------------------------------------------------------------


@given(st.text(min_size=1).filter(lambda t: t not in events.TYPES), VALUES)
def test_unknown_types_are_no_error(type, value):
    event = Event(
        session="s", seq=0, id="i", parent="", at=0, type=type, version=3, data=json.dumps(value)
    )
    assert event.body() is None
    assert json.loads(event.data) == value


@given(BODIES, st.dictionaries(st.text(min_size=30, max_size=32), VALUES, max_size=3))
def test_unknown_fields_are_skipped(body, more):
    made = draft(body, id="i", parent="p", at=0.0)
    data = json.dumps(more | json.loads(made.data))
    for version in (1, 7):
        assert decode(made.type, version, data) == body


def test_a_newer_version_that_cannot_be_read_is_skipped():
    assert decode("tool_call", 2, '{"calls": []}') is None
    assert decode("user_message", 9, '{"parts": [{"type": "smell", "of": "roses"}]}') is None


@pytest.mark.parametrize(
    ("type", "data"),
    [
        ("tool_call", '{"calls": []}'),
        ("tool_call", "{"),
        ("tool_call", "[]"),
        ("turn_ended", '{"outcome": "confused"}'),
        ("reasoning", '{"thought": {"type": "thought", "carrier": "pigeon", "raw": ""}}'),
        ("user_message", '{"parts": [{"type": "smell"}]}'),
        ("user_message", '{"parts": ' + "[" * 100_000),
    ],
)
def test_damaged_data_of_a_known_version_is_a_clear_error(type, data):
    with pytest.raises(Unreadable, match=f"'{type}' event, version 1"):
        decode(type, 1, data)


STEPS = {
    ("note", 1): lambda data: {"text": data["words"]},
    ("note", 2): lambda data: data | {"lang": "en"},
    ("note", 4): lambda data: data | {"unreached": True},
}


@pytest.mark.parametrize(
    ("version", "data", "lifted"),
    [
        (1, '{"words":"a"}', {"text": "a", "lang": "en"}),
        (2, '{"text":"a"}', {"text": "a", "lang": "en"}),
        (4, '{"text":"a"}', {"text": "a", "unreached": True}),
    ],
)
def test_old_data_is_lifted_one_version_at_a_time(version, data, lifted):
    assert json.loads(upcast("note", version, data, STEPS)) == lifted


@pytest.mark.parametrize("version", [0, 3, 5, 99])
def test_what_needs_no_step_is_the_same_text(version):
    data = ' {"text" : "a", "n": 1.10}'
    assert upcast("note", version, data, STEPS) is data
    assert upcast("other", version, data, STEPS) is data


def test_a_step_runs_when_old_data_is_read(monkeypatch):
    monkeypatch.setitem(events.VERSIONS, "tool_call", 2)
    monkeypatch.setitem(
        events.UPCASTS,
        ("tool_call", 1),
        lambda data: {"call": {"type": "call", "name": data["tool"], "arguments": "{}"}},
    )
    assert decode("tool_call", 1, '{"tool": "ls"}') == ToolCall(
        call=Call(name="ls", arguments="{}")
    )
    with pytest.raises(Unreadable, match="'tool_call' event, version 1"):
        decode("tool_call", 1, '{"no tool": 1}')


def test_every_step_leads_to_a_version_that_exists():
    for type, version in events.UPCASTS:
        assert 0 < version < events.VERSIONS[type]
