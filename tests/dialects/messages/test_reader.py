"""The Messages reader: recorded streams and bodies in, happenings out."""

import json

import pytest

from support.reader_contract import play, show
from support.recordings import messages as rec
from thoughtline.dialects.messages import Messages
from thoughtline.log import keys
from thoughtline.log.events import Outcome, Reasoning, TurnEnded
from thoughtline.log.parts import Carrier, Origin, Timing
from thoughtline.log.usage import Usage
from thoughtline.testing import FrozenClock

ORIGIN = Origin(dialect="messages", provider="anthropic", account="a1", model="claude-opus-4-6")
USAGE = Usage(input=2520, output=89, cached=2048)
BEGUN = Usage(input=2520, output=2, cached=2048)


def reader(name="x.sse", clock=None):
    clock = clock or FrozenClock()
    return Messages().reader(stream=name.endswith(".sse"), clock=clock, origin=ORIGIN, sent=10)


PING = ("ping",)
FILLED = ("think", "block", rec.FILLED)
OMITTED = ("think", "block", rec.OMITTED)
SEALED = ("think", "block", rec.SEALED)
COMPLETED = ("end", "completed", "hung up", USAGE)
READ = ("call", "read_file", '{"path": "a.txt", "limit": 5.0}', "toolu_01A")
HALVES = rec.ODD % (rec.SIGNATURE, '"a\\ud83d\\ude00b\\ud83d"')

PLAYBOOK = {
    "messages-interleaved.sse": [
        PING,
        ("think~", "Two files\u2028to"),
        ("think~", " read — first a.txt.\n"),
        PING,
        ("text~", " Let me"),
        ("text~", " look. "),
        ("call~", 0, "", "read_file", "toolu_01A"),
        ("call~", 0, '{"path": "a', "", ""),
        ("call~", 0, '.txt", "limit": 5.0}', "", ""),
        ("call~", 1, "", "run", "toolu_01B"),
        FILLED,
        ("text", " Let me look. "),
        OMITTED,
        READ,
        ("call", "run", "{}", "toolu_01B"),
        COMPLETED,
    ],
    "messages-redacted.sse": [
        PING,
        ("text~", "It is done. 🎉"),
        SEALED,
        OMITTED,
        ("text", "It is done. 🎉"),
        COMPLETED,
    ],
    "messages-server-tools.sse": [
        PING,
        ("think~", "Search."),
        ("text~", "Found "),
        ("text~", "it."),
        ("think", "block", rec.ODD % (rec.SIGNATURE, '"Search."')),
        ("blob", "server_tool_use", rec.SEARCH),
        ("blob", "web_search_tool_result", rec.FOUND),
        ("text", "Found it."),
        COMPLETED,
    ],
    "messages-halves.sse": [
        PING,
        ("think~", "a"),
        ("think~", "😀b"),  # the half at the end of all is nothing to show
        ("text~", "c"),
        ("text~", "🎉"),
        ("think", "block", HALVES),
        ("text", "c🎉"),
        COMPLETED,
    ],
    "messages-capped.sse": [
        PING,
        ("think~", rec.THOUGHT),
        ("text~", "It is"),
        FILLED,
        ("text", "It is"),
        ("end", "capped", "max_tokens", USAGE),
    ],
    "messages-refused.sse": [
        PING,
        ("think~", rec.THOUGHT),
        ("text~", "I"),
        FILLED,
        ("text", "I"),
        ("end", "completed", "refusal", USAGE),
    ],
    "messages-unsigned.sse": [
        PING,
        ("think~", "Hm."),
        ("text~", "Yes."),
        ("think", "block", rec.ODD % ("", '"Hm."')),
        ("text", "Yes."),
        COMPLETED,
    ],
    "messages-failed.sse": [
        PING,
        ("think~", rec.THOUGHT),
        ("text~", "Let me."),
        ("call~", 0, "", "run", "toolu_01A"),
        ("call~", 0, '{"pa', "", ""),
        FILLED,
        ("end", "failed", "Overloaded", BEGUN),
    ],
    "messages-cut.sse": [
        PING,
        ("think~", rec.THOUGHT),
        ("think~", "Half a"),
        FILLED,
        ("think", "block", rec.PLAIN % ('"Half a"', ""), "cut"),
        ("end", "aborted", "hung up", BEGUN),
    ],
    "messages-odd.sse": [
        ("think~", "Hm."),
        ("text~", "Yes."),
        ("think", "block", '{"type":"thinking","thinking":"Hm."}'),
        ("text", "Yes."),
        ("end", "completed", "hung up", None),
    ],
    "messages-whole.json": [
        FILLED,
        SEALED,
        ("text", " Let me look. "),
        OMITTED,
        ("call", "read_file", '{"path": "a.txt" , "limit": 5.0}', "toolu_01A"),
        COMPLETED,
    ],
    "messages-error.json": [
        ("end", "failed", "Invalid `signature` in `thinking` block", None),
    ],
}

each_recording = pytest.mark.parametrize("name", PLAYBOOK)


@pytest.mark.parametrize("name", rec.RECORDINGS)
def test_recordings_are_what_their_maker_makes(name):
    assert rec.read(name) == rec.RECORDINGS[name]().encode()


@each_recording
def test_playbook(name):
    assert [show(h) for h in play(reader(name), [rec.read(name)])] == PLAYBOOK[name]


def test_a_thought_knows_where_it_was_made_and_what_seals_it():
    told = play(reader(), [rec.read("messages-redacted.sse")])
    redacted, omitted = [h.thought for h in told if isinstance(h, Reasoning)]
    assert redacted.carrier is omitted.carrier is Carrier.BLOCK
    assert redacted.seals == (keys.string_digest(json.loads(rec.SEALED)["data"]),)
    assert omitted.seals == (keys.string_digest("EuYBCkQYAiJAomitted"),)
    assert omitted.text == ""
    assert (omitted.origin.model, omitted.origin.asked) == (rec.MODEL, "claude-opus-4-6")
    assert omitted.origin.account == "a1"


def test_without_its_signature_a_thought_is_plain():
    told = play(reader(), [rec.read("messages-unsigned.sse")])
    (plain,) = [h.thought for h in told if isinstance(h, Reasoning)]
    assert not plain.sealed
    assert plain.text == "Hm."


def test_timing():
    clock = FrozenClock()
    one = reader(clock=clock)
    at = []
    for event in rec.thinking(0, "a", "b").encode().split(b"\n\n")[:-1]:
        clock.advance(1)
        at.append(clock.mono())
        one.feed(event + b"\n\n")
    clock.advance(1)
    one.feed(rec.ended("end_turn").encode())
    (thought,) = [h.thought for h in one.close() if isinstance(h, Reasoning)]
    opened, first, _, last, closed = at  # the signature is a delta, too
    assert thought.timing == Timing(
        sent=10, opened=opened, first=first, last=last, closed=closed, at=1_800_000_001.0
    )


def test_the_end_is_told_once():
    one = reader()
    body = rec.read("messages-interleaved.sse")
    one.feed(body[:-3])
    assert not one.done
    one.feed(body[-3:])
    assert one.done
    assert isinstance(one.close()[-1], TurnEnded)
    assert one.close() == []


def test_a_stop_reason_without_its_last_event_is_an_end_all_the_same():
    body = rec.read("messages-interleaved.sse").removesuffix(rec.event("message_stop").encode())
    told = play(reader(), [body])
    assert [show(h) for h in told] == PLAYBOOK["messages-interleaved.sse"]


def test_an_error_after_the_stop_reason_is_an_error():
    body = rec.begun() + rec.saying(0, "Yes.") + rec.stopped("end_turn")
    body += rec.event("error", error={"type": "api_error", "message": "No."}) + rec.stopped("x")
    told = play(reader(), [body.encode()])
    assert show(told[-1])[:3] == ("end", "failed", "No.")
    assert not any(show(h)[0] == "text" for h in told)


@pytest.mark.parametrize(
    ("body", "outcome", "reason"),
    [
        ("", Outcome.ABORTED, ""),
        ("<html>Bad gateway</html>", Outcome.ABORTED, ""),
        ("[]", Outcome.ABORTED, ""),
        ('{"type":"error","error":"no"}', Outcome.FAILED, "no"),
        ('{"error":{}}', Outcome.FAILED, "the provider reported an error"),
        ('{"content":[]}', Outcome.COMPLETED, ""),
        ('{"content":[],"stop_reason":"max_tokens"}', Outcome.CAPPED, "max_tokens"),
        (
            '{"content":[],"stop_reason":"model_context_window_exceeded"}',
            Outcome.CAPPED,
            "model_context_window_exceeded",
        ),
    ],
)
def test_whole_bodies_end(body, outcome, reason):
    one = reader("x.json")
    one.feed(body.encode())
    (ended,) = one.close()
    assert (ended.outcome, ended.reason) == (outcome, reason)


@pytest.mark.parametrize("block", [rec.OMITTED[:-1] + ',"type":"thinking"}', rec.FILLED])
def test_a_key_twice_is_no_accident(block):
    body = rec.opened(0, block) + rec.grown(0, "thinking_delta", "thinking", "x") + rec.closed(0)
    told = play(reader(), [(body + rec.ended("end_turn")).encode()])
    (thought,) = [h.thought for h in told if isinstance(h, Reasoning)]
    assert json.loads(thought.raw)["thinking"] == json.loads(block)["thinking"] + "x"


def test_half_an_emoji_in_a_field_that_nobody_knows_stays():
    block = '{"type":"thinking","thinking":"","odd":"\\ud83d","signature":"s"}'
    body = rec.opened(0, block) + rec.grown(0, "thinking_delta", "thinking", "x") + rec.closed(0)
    told = play(reader(), [(body + rec.ended("end_turn")).encode()])
    assert show(told[-2]) == ("think", "block", block.replace('"thinking":""', '"thinking":"x"'))


def test_a_summary_of_what_went_before_is_kept():
    block = '{"type":"compaction","content":null,"odd":1}'
    body = rec.opened(0, block) + rec.grown(0, "compaction_delta", "content", "We ", "did.")
    told = play(reader(), [(body + rec.ended("end_turn")).encode()])
    assert show(told[-2]) == ("blob", "compaction", block.replace("null", '"We did."'))


def test_a_whole_body_with_a_key_twice():
    body = f'{{"content":[],"content":[{rec.OMITTED}],"stop_reason":"end_turn"}}'
    told = play(reader("x.json"), [body.encode()])
    assert show(told[0]) == OMITTED


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("depth", [50, 940, 980, 2000])
def test_depth_is_no_trap(stream, depth):
    deep = "[" * depth + "]" * depth
    block = f'{{"type":"thinking","thinking":"x","signature":"s","content":{deep}}}'
    other = f'{{"type":"sparkle","content":{deep}}}'
    body = rec.opened(0, block) + rec.closed(0) + rec.opened(1, other) + rec.ended("end_turn")
    if not stream:
        body = f'{{"content":[{block},{other}]}}'
    one = Messages().reader(stream=stream, clock=FrozenClock(), origin=ORIGIN, sent=10)
    assert isinstance(play(one, [body.encode()])[-1], TurnEnded)
