"""Every dialect passes the same suite: how it patches, writes and reads, and which facts it has."""

import itertools
import json
import re
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects.contract import SAMPLES
from support.histories.responses import ARGUMENTS as SAMPLE_ARGUMENTS
from support.histories.responses import WORDS, spelled
from support.junk import JUNK, put
from support.junk import places as junk_places
from support.reader_contract import play
from support.splits import bytewise, splits
from thoughtline.dialects import DEFAULT, DIALECTS, WEBSOCKET_DIALECT, splice
from thoughtline.dialects.base import PlacedThought, Revision, unchanged
from thoughtline.dialects.sse import SseParser
from thoughtline.engine.routes import parse
from thoughtline.errors import Unreadable
from thoughtline.gateway.credentials import CREDENTIALS
from thoughtline.log import keys
from thoughtline.log.canonical import canonical_json
from thoughtline.log.events import TYPE_NAMES, Keepalive, Outcome, Reasoning, TurnEnded, draft
from thoughtline.log.index import RESPONSE_ID_DIALECTS
from thoughtline.log.parts import Call, Result, Text, Thought, Timing
from thoughtline.log.turns import Turn, output_shape, places
from thoughtline.testing import FrozenClock

each = pytest.mark.parametrize("sample", SAMPLES, ids=repr)
RECORDED = [(sample, name) for sample in SAMPLES for name in sample.recordings]
each_recording = pytest.mark.parametrize(
    ("sample", "name"), RECORDED, ids=[name for _, name in RECORDED]
)
each_stream = pytest.mark.parametrize(
    ("sample", "name"),
    [(sample, name) for sample, name in RECORDED if name.endswith(".sse")],
    ids=[name for _, name in RECORDED if name.endswith(".sse")],
)


def test_every_dialect_has_a_sample():
    assert [sample.name for sample in SAMPLES] == list(DIALECTS)
    assert all(DIALECTS[name].name == name for name in DIALECTS)


# -- patch ---------------------------------------------------------------------------------------


@each
@given(st.data())
def test_without_revisions_a_body_is_the_same_object(sample, data):
    body = data.draw(sample.bodies())
    request = sample.dialect.read(body)
    assert request.body is body
    assert sample.dialect.patch(request, []) is body
    assert sample.dialect.patch(request, (), {}) is body


@each
@given(st.data())
def test_thoughts_that_stand_there_already_change_no_byte(sample, data):
    body = data.draw(sample.bodies())
    request = sample.dialect.read(body)
    there = []
    for index, turn in enumerate(request.turns):
        if sample.positions(request, index):
            found = zip(places(output_shape(turn.output)), turn.thoughts, strict=True)
            thoughts = [
                PlacedThought(place, t.carrier, json.dumps(json.loads(t.raw), indent=1))
                for place, t in found
            ]
            there.append(Revision(turn=index, thoughts=tuple(thoughts)))
    patched = sample.dialect.patch(request, there)
    assert patched == body
    assert patched is body or not sample.same_object


@each
@given(st.data())
def test_thoughts_are_those_asked_for_and_stand_where_they_should(sample, data):
    body, revisions = data.draw(sample.revised())
    before = sample.dialect.read(body)
    after = sample.dialect.read(sample.dialect.patch(before, revisions))
    revised = {revision.turn: revision for revision in revisions}
    for index, (was, now) in enumerate(zip(before.turns, after.turns, strict=True)):
        revision = revised.get(index)
        assert now.input == was.input
        if revision is None:
            assert now == was
        else:
            assert sample.thoughts(now) == sample.wanted(revision)
            assert sample.other_output(now, None) == sample.other_output(was, revision)


@each
@given(st.data())
def test_thoughts_are_put_in_to_the_byte(sample, data):
    body, revisions = data.draw(sample.revised())
    request = sample.dialect.read(body)
    patched = sample.dialect.patch(request, revisions)
    after = sample.dialect.read(patched)
    elements = sample.elements(patched)
    for revision in revisions:
        own = [elements[at] for at in sorted(sample.positions(after, revision.turn))]
        for placed in revision.thoughts:
            assert sample.holds(own, placed, request.turns[revision.turn])


@each
@given(st.data())
def test_outside_of_revised_outputs_every_byte_stays(sample, data):
    body, revisions = data.draw(sample.revised())
    request = sample.dialect.read(body)
    patched = sample.dialect.patch(request, revisions)
    before, after = splice.members(body), splice.members(patched)
    assert list(before) == list(after)
    for key, span in before.items():
        if key != sample.dialect.history_member:
            now = after[key]
            assert patched[now.value : now.end] == body[span.value : span.end]
    was, now = before[sample.dialect.history_member], after[sample.dialect.history_member]
    assert patched[: now.value] == body[: was.value]
    assert patched[now.end :] == body[was.end :]
    assert _untouched(sample, patched, revisions) == _untouched(sample, body, revisions)


def _untouched(sample, body, revisions):
    """Elements that no revision speaks of, the first and the last with the space around them."""
    request = sample.dialect.read(body)
    touched = {at for r in revisions for at in sample.positions(request, r.turn)}
    elements = sample.elements(body)
    kept = [element for index, element in enumerate(elements) if index not in touched]
    if elements and 0 not in touched:
        kept[0] = body[: splice.elements(body, _history(sample, body))[0].end]
    if elements and len(elements) - 1 not in touched:
        kept.append(body[splice.elements(body, _history(sample, body))[-1].start :])
    return kept


def _history(sample, body):
    return splice.members(body)[sample.dialect.history_member]


@each
@given(st.data())
def test_patching_twice_is_patching_once(sample, data):
    body, revisions = data.draw(sample.revised())
    once = sample.dialect.patch(sample.dialect.read(body), revisions)
    twice = sample.dialect.patch(sample.dialect.read(once), revisions)
    assert twice == once
    assert twice is once or not sample.same_object


@each
@given(st.data())
def test_top_level_members_are_set_and_removed(sample, data):
    body, revisions = data.draw(sample.revised())
    request = sample.dialect.read(body)
    changed = sample.dialect.patch(request, revisions, {"zz": b'{"a": 1.0}', "zzz": None})
    assert b'"zz":{"a": 1.0}' in changed
    plain = sample.dialect.patch(request, revisions)
    restored = sample.dialect.patch(sample.dialect.read(changed), [], {"zz": None})
    assert b"".join(restored.split()) == b"".join(plain.split())


# -- read ----------------------------------------------------------------------------------------


def _said(parts):
    """What is said in an input: neither notes, nor images and files."""
    texts = "".join(part.text for part in parts if isinstance(part, Text))
    results = [part for part in parts if isinstance(part, Result)]
    return texts, [(r.call, r.name, r.error) for r in results], [r.content for r in results]


@each
@given(st.data())
def test_an_input_is_the_same_for_keys_and_for_another_dialect(sample, data):
    """The one leaves out instructions, and knows images by a digest; the other one needs them."""
    request = sample.dialect.read(data.draw(sample.bodies()))
    inputs = sample.dialect.params(request).inputs
    outputs = sum(bool(sample.positions(request, at)) for at in range(len(request.turns)))
    assert outputs <= len(inputs) <= len(request.turns) + 1
    for turn, input in itertools.zip_longest(request.turns, inputs):
        (texts, calls, contents), said = _said(turn.input if turn else ()), _said(input or ())
        assert said[:2] == (texts, calls)
        for content, text in zip(contents, said[2], strict=True):
            assert text in content  # which has images, too


# -- write ---------------------------------------------------------------------------------------

TEXTS = WORDS | st.text(min_size=1, max_size=30).filter(
    lambda text: text.strip() and not text.lower().startswith("<think")
)
PLAIN_ARGUMENTS = st.dictionaries(
    st.text(max_size=5), st.integers(-9, 9) | st.booleans() | st.text(max_size=5), max_size=3
)
ARGUMENTS = PLAIN_ARGUMENTS.map(canonical_json) | SAMPLE_ARGUMENTS.flatmap(spelled)
CALLS = st.lists(st.tuples(st.sampled_from(["ls", "cat", "run"]), ARGUMENTS), max_size=3)


@st.composite
def conversations(draw):
    """Turns without thoughts: text, calls, or both; the last one is to be answered."""
    turns = []
    input = [Text(text=draw(TEXTS))]
    for number in range(draw(st.integers(1, 4))):
        calls = draw(CALLS)
        output = [Text(text=draw(TEXTS))] if not calls or draw(st.booleans()) else []
        output += [
            Call(name=name, arguments=arguments, id=f"call_{number}_{index}")
            for index, (name, arguments) in enumerate(calls)
        ]
        turns.append(Turn(input=tuple(input), output=tuple(output)))
        input = [
            Result(call=call.id, name=call.name, content=draw(TEXTS))
            for call in output
            if isinstance(call, Call)
        ] or [Text(text=draw(TEXTS))]
    return [*turns, Turn(input=tuple(input))]


@each
@given(conversations())
def test_what_is_written_is_read_again(sample, turns):
    """With the same keys in every dialect, so that what one captures is found from any other."""
    expected, _ = keys.rolling_keys(turns)
    carrier, raw = sample.thought
    thought = Thought(carrier=carrier, raw=raw)
    thinking = [
        Turn(input=turn.input, output=(thought, *turn.output) if turn.output else ())
        for turn in turns
    ]
    for written in (turns, thinking):
        body = sample.dialect.write(written, model="m")
        assert sample.dialect.history_member in splice.members(body)
        read = sample.dialect.read(body)
        assert keys.rolling_keys(read.turns)[0] == expected
        again = [(t.carrier, t.raw) for turn in read.turns for t in turn.thoughts]
        assert again == [sample.thought] * sum(len(turn.thoughts) for turn in written)
        assert body.count(raw.encode()) == len(again) or raw == '"s"'


# -- reader --------------------------------------------------------------------------------------


@each_recording
def test_byte_by_byte_gives_the_same_events(sample, name):
    body = sample.recording(name)
    assert play(sample.reader(name), bytewise(body)) == play(sample.reader(name), [body])


@each
@given(st.data())
def test_any_chunking_gives_the_same_events(sample, data):
    name = data.draw(st.sampled_from(sample.recordings))
    body = sample.recording(name)
    chunks = data.draw(splits(body))
    assert play(sample.reader(name), chunks) == play(sample.reader(name), [body])


@each_recording
def test_line_ends_do_not_matter(sample, name):
    body = re.sub(rb"\r\n?", b"\n", sample.recording(name))
    if name == "chat-openrouter.json":
        body = body.replace(b"\n", b"")  # line ends inside of a thought's own JSON text are kept
    for end in (b"\r\n", b"\r"):
        spelled = body.replace(b"\n", end)
        assert play(sample.reader(name), [spelled]) == play(sample.reader(name), [body])


@each_recording
def test_the_end_comes_once_and_last(sample, name):
    reader = sample.reader(name)
    events = [*reader.feed(sample.recording(name)), *reader.close(reason="hung up")]
    assert [isinstance(event, TurnEnded) for event in events].count(True) == 1
    assert isinstance(events[-1], TurnEnded)
    assert reader.close() == []


@each
def test_when_nobody_saw_a_thought_begin_that_stays_unknown(sample):
    whole = [name for name in sample.recordings if name.endswith(".json") and "array" not in name]
    told = [
        event for name in whole for event in play(sample.reader(name), [sample.recording(name)])
    ]
    timings = {event.thought.timing for event in told if isinstance(event, Reasoning)}
    assert timings == {Timing(sent=10, closed=FrozenClock().mono())}


# -- bad input -----------------------------------------------------------------------------------


def _spoiled(data, document):
    """The document with junk at one of its places."""
    where = data.draw(st.sampled_from(list(junk_places(json.loads(document)))))
    return json.dumps(put(json.loads(document), where, data.draw(JUNK))).encode()


@each
@given(st.data())
def test_wrong_types_never_break_a_patch(sample, data):
    body, revisions = data.draw(sample.revised())
    spoiled = _spoiled(data, body)
    try:
        request = sample.dialect.read(spoiled)
    except Unreadable:
        return
    assert sample.dialect.patch(request, []) is spoiled
    digests = len(sample.dialect.prefixes(request))
    assert digests == (len(request.turns) if sample.dialect.signed_blocks else 0)
    usable = [r for r in revisions if r.turn < len(request.turns) and request.turns[r.turn].output]
    patched = sample.dialect.patch(request, usable)
    if isinstance(json.loads(patched)[sample.dialect.history_member], list):
        assert _untouched(sample, patched, usable) == _untouched(sample, spoiled, usable)
        before, after = request.turns, sample.dialect.read(patched).turns
        for revision in usable:
            was, now = before[revision.turn], after[revision.turn]
            assert sample.other_output(now, None) == sample.other_output(was, revision)


_DATA = re.compile(rb"(?<=^data: )\{.*\}$", re.MULTILINE)


@each
@given(st.data())
def test_wrong_types_never_break_an_answer(sample, data):
    name = data.draw(st.sampled_from(sample.recordings))
    body = sample.recording(name).replace(b"\r\n", b"\n")
    found = [match.span() for match in _DATA.finditer(body)] or [(0, len(body))]
    for start, end in sorted(data.draw(st.sets(st.sampled_from(found), max_size=4)), reverse=True):
        with suppress(ValueError):
            body = body[:start] + _spoiled(data, body[start:end]) + body[end:]
    assert_is_told(sample, name, body)


@each
@given(st.binary(max_size=200), st.data())
def test_garbage_never_breaks_an_answer(sample, garbage, data):
    name = data.draw(st.sampled_from(sample.recordings))
    body = sample.recording(name)
    at = data.draw(st.integers(0, len(body)))
    assert_is_told(sample, name, body[:at] + garbage + body[at:])
    assert_is_told(sample, name, garbage)
    assert_is_told(sample, name, b"data: " + garbage + b"\n\n")


@each
@given(st.data())
def test_a_damaged_answer_is_told_all_the_same(sample, data):
    name = data.draw(st.sampled_from(sample.recordings))
    damaged = bytearray(sample.recording(name))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        if data.draw(st.booleans()):
            damaged[at] = data.draw(st.integers(0, 255))
        else:
            del damaged[at : at + data.draw(st.integers(1, 40))]
    assert_is_told(sample, name, bytes(damaged))


def assert_is_told(sample, name, body):
    """An answer has an end, says the same in any split, and can be written down."""
    told = all_events(sample.reader(name), [body])
    assert isinstance(told[-1], TurnEnded)
    canonical = [event for event in told if type(event) in TYPE_NAMES]
    again = all_events(sample.reader(name), bytewise(body))
    assert canonical == [event for event in again if type(event) in TYPE_NAMES]
    for event in told:
        if type(event) in TYPE_NAMES:
            draft(event, id="i", parent="p", at=0.0)
        else:
            msgspec.json.encode(event)


def all_events(reader, pieces):
    """All that is told; of a spoiled answer, a thought may begin that is not kept."""
    events = [event for piece in pieces for event in reader.feed(piece)]
    return events + reader.close(reason="hung up")


# -- facts ---------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("stream", [True, False])
def test_requests_are_routed_by_their_path(sample, stream):
    path, _, query = sample.dialect.request_path("some-model", stream=stream).partition("?")
    route = parse("POST", path)
    assert (route.dialect, route.family) == (sample.name, sample.name)
    assert route.stream in (None, stream)
    assert route.model in ("", "some-model")
    assert query in ("", "alt=sse")
    found = [d.name for d in DIALECTS.values() if d.match_path(path) is not None]
    assert found == [sample.name]


def test_paths_tell_the_dialects_apart():
    for one, other in itertools.permutations(DIALECTS.values(), 2):
        assert not one.path_suffix or one.path_suffix != other.path_suffix
        assert not one.path_prefix or one.path_prefix != other.path_prefix


@each
def test_a_key_goes_into_a_header_that_the_gateway_knows(sample):
    name, value = sample.dialect.credential("sk-1")
    assert name == sample.dialect.credential_header
    assert name.encode() in CREDENTIALS
    assert value in ("sk-1", "Bearer sk-1")
    assert (value == "Bearer sk-1") == (name == "authorization")
    assert all(key == key.lower() and text for key, text in sample.dialect.request_headers)


@each
def test_a_keepalive_between_events_changes_nothing(sample):
    assert sample.dialect.keepalive.endswith(b"\n\n")
    reader = sample.reader()
    assert all(isinstance(e, Keepalive) for e in reader.feed(sample.dialect.keepalive))
    assert not reader.done


@each
def test_the_error_of_a_broken_stream_is_one_event_that_readers_understand(sample):
    event = sample.dialect.error_event(502, "the provider broke off", code="broken")
    error = sample.dialect.error(502, "the provider broke off", code="broken")
    assert event.endswith(b"\n\n")
    (parsed,) = SseParser().feed(event)
    assert (parsed.name, parsed.data) == (sample.dialect.error_event_name, error)
    assert b"broken" in error
    reader = sample.reader()
    reader.feed(event)
    end = reader.close()[-1]
    assert (end.outcome, end.reason) == (Outcome.FAILED, "the provider broke off")


@each_stream
def test_a_stream_is_complete_with_the_event_that_holds_its_end(sample, name):
    body = re.sub(rb"\r\n?", b"\n", sample.recording(name))
    found = [match.start() for match in sample.dialect.stream_end.finditer(body)]
    complete = sample.reader(name)
    complete.feed(body)
    if not found:
        assert complete.close()[-1].outcome is not Outcome.COMPLETED or not complete.done
        return
    end = body.find(b"\n\n", found[-1])
    reader = sample.reader(name)
    reader.feed(body[: end + 2] if end >= 0 else body)
    assert reader.done == complete.done


@each
def test_a_stream_that_ended_well_held_its_end(sample):
    ends = [sample.dialect.stream_end.search(sample.recording(n)) for n in sample.recordings]
    assert any(ends)


@each
@given(st.data())
def test_rewrites_edit_only_bodies_of_their_own_dialect(sample, data):
    body = data.draw(sample.bodies())
    for name in sample.dialect.rewrites.__struct_fields__:
        rewrite = getattr(sample.dialect.rewrites, name)
        edited = rewrite(body)
        assert edited is body or rewrite is not unchanged
        assert rewrite(edited) is edited


@each
def test_placeholders_are_json_that_the_dialect_can_hold(sample):
    for every_output in (True, False):
        found = sample.dialect.placeholders(every_output=every_output)
        assert all(json.loads(raw) is not None for raw in found)
        assert not found or sample.dialect.reasoning_carrier is not None


def test_state_of_the_server_is_a_matter_of_one_dialect():
    """The log names responses by id only where a request can ask for one."""
    stateful = [name for name, dialect in DIALECTS.items() if dialect.server_state]
    assert tuple(stateful) == RESPONSE_ID_DIALECTS
    for name, dialect in DIALECTS.items():
        assert (dialect.state_params(b'{"store": true}') is not None) == (name in stateful)
    assert DEFAULT.name not in stateful


def test_one_dialect_is_spoken_over_websockets():
    assert [d for d in DIALECTS.values() if d.websockets] == [WEBSOCKET_DIALECT]
