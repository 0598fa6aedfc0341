"""The Gemini reader: recorded streams, arrays and bodies in, happenings out."""

import pytest

from support.reader_contract import play, show
from support.recordings import gemini as rec
from support.splits import bytewise
from thoughtline.dialects.gemini import Gemini
from thoughtline.dialects.thoughts import standard_base64
from thoughtline.engine.capture import output_parts
from thoughtline.log import keys
from thoughtline.log.events import Outcome, Reasoning, TurnEnded
from thoughtline.log.parts import Carrier, Origin, Timing
from thoughtline.log.usage import Usage
from thoughtline.testing import FrozenClock
from thoughtline.testing.sims.values import sse

ORIGIN = Origin(dialect="gemini", provider="gemini", account="a1", model="gemini-3-pro")
USAGE = Usage(input=412, output=539, reasoning=502, cached=256)
WHOLE = "gemini-whole.json"


def reader(name="x.sse", clock=None):
    clock = clock or FrozenClock()
    return Gemini().reader(stream=name != WHOLE, clock=clock, origin=ORIGIN, sent=10)


ARGUMENTS = '{"path": "a b.txt" ,"limit":5.0}'
READ = ("call", "read_file", ARGUMENTS, "")
THOUGHT = ("think", "part", rec.THOUGHT)
SIGNATURE = ("think", "signature", f'"{rec.SIGNATURE}"')
OTHER = ("think", "signature", f'"{rec.OTHER}"')
PLAN = '{"text": "**Plan**\\n\\nRead\u2028two files.", "thought": true, "extra": {"z": 1}}'
COMPLETED = ("end", "completed", "hung up", USAGE)

PLAYBOOK = {
    "gemini-parallel.sse": [
        ("think~", "**Plan**\n\n"),
        ("think~", "Read\u2028two"),
        ("think~", " files."),
        ("call~", 0, ARGUMENTS, "read_file", ""),
        ("call~", 1, ARGUMENTS, "read_file", ""),
        ("think", "part", PLAN),
        SIGNATURE,
        READ,
        READ,
        COMPLETED,
    ],
    "gemini-text.sse": [
        ("think~", "**Plan**\n\nRead — then run."),
        ("text~", " It is"),
        ("text~", "\u2028done."),
        ("text~", " 🎉 "),
        THOUGHT,
        ("text", " It is\u2028done. 🎉 "),
        ("think", "part", rec.SEAL),
        COMPLETED,
    ],
    "gemini-signed.sse": [
        ("think~", "Hm"),
        ("think~", "m."),
        ("text~", "Let me"),
        ("text~", " look"),
        ("text~", " now."),
        ("text~", "And"),
        ("text~", "again."),
        ("call~", 0, "{}", "run", "fc-7"),
        ("think", "part", '{"text": "Hm", "thought": true}'),
        ("think", "part", f'{{"text": "m.", "thought": true, "thoughtSignature": "{rec.OTHER}"}}'),
        ("text", "Let me"),
        ("text", " look"),
        SIGNATURE,
        ("text", " now."),
        ("text", "And"),
        OTHER,
        (
            "blob",
            "inlineData",
            '{"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}',
        ),
        ("text", "again."),
        SIGNATURE,
        ("call", "run", "{}", "fc-7"),
        COMPLETED,
    ],
    "gemini-array.json": [
        ("think~", "**Plan**\n\nRead — then run."),
        ("text~", 'Braces } ] in " a { string \\'),
        ("text~", " and more."),
        ("call~", 0, ARGUMENTS, "read_file", ""),
        THOUGHT,
        ("text", 'Braces } ] in " a { string \\ and more.'),
        SIGNATURE,
        READ,
        COMPLETED,
    ],
    "gemini-halves.sse": [
        ("think~", "a"),
        ("think~", "😀b"),  # the half at the end of all is nothing to show
        ("text~", "c"),
        ("text~", "😀"),
        ("think", "part", '{"text":"a\\ud83d\\ude00b\\ud83d","thought":true}'),
        ("text", "c😀"),
        COMPLETED,
    ],
    "gemini-capped.sse": [
        ("think~", "Hm."),
        ("text~", "It is"),
        ("think", "part", '{"text": "Hm.", "thought": true}'),
        ("text", "It is"),
        ("end", "capped", "MAX_TOKENS", USAGE),
    ],
    "gemini-malformed.sse": [
        ("think~", "Hm."),
        ("text~", "It is"),
        ("think", "part", '{"text": "Hm.", "thought": true}'),
        ("end", "failed", "MALFORMED_FUNCTION_CALL", USAGE),
    ],
    "gemini-cut.sse": [
        ("think~", "One."),
        ("think~", "Two"),
        (
            "think",
            "part",
            f'{{"text": "One.", "thought": true, "thoughtSignature": "{rec.SIGNATURE}"}}',
        ),
        ("think", "part", '{"text": "Two", "thought": true}', "cut"),
        ("end", "aborted", "hung up", USAGE),
    ],
    "gemini-failed.sse": [
        ("think~", "Hm."),
        ("text~", "It"),
        ("think", "part", '{"text": "Hm.", "thought": true}'),
        ("end", "failed", "The model is overloaded.", USAGE),
    ],
    "gemini-blocked.json": [("end", "failed", "SAFETY", None)],
    "gemini-odd.sse": [
        ("text~", "A"),
        ("text~", "C"),
        ("call~", 0, "{}", "", ""),
        ("text~", "D"),
        ("blob", "text", '{"text": 5}'),
        ("text", "A"),
        ("blob", "executableCode", '{"executableCode": {"code": "1"}}'),
        ("blob", "functionCall", '{"functionCall": "lost"}'),
        ("text", "C"),
        ("call", "", "{}", ""),
        ("text", "D"),
        ("end", "completed", "hung up", Usage()),
    ],
    WHOLE: [THOUGHT, ("text", " Let me look. "), SIGNATURE, READ, COMPLETED],
}
each_recording = pytest.mark.parametrize("name", PLAYBOOK)


@pytest.mark.parametrize("name", rec.RECORDINGS)
def test_recordings_are_what_their_maker_makes(name):
    assert rec.read(name) == rec.RECORDINGS[name]().encode()


@each_recording
def test_playbook(name):
    assert [show(h) for h in play(reader(name), [rec.read(name)])] == PLAYBOOK[name]


@pytest.mark.parametrize("name", [n for n in PLAYBOOK if n.endswith(".sse") and "cut" not in n])
def test_events_and_arrays_say_the_same(name):
    body = rec.read(name)
    lines = [line[6:] for line in body.splitlines() if line.startswith(b"data: {")]
    for between in (b",", b"\n,\r\n", b",\n"):
        array = b"[" + between.join(lines) + b"]"
        assert play(reader(), [array]) == play(reader(), [body])
        assert play(reader(), bytewise(array)) == play(reader(), [body])


def test_a_thought_in_two_chunks_is_one_and_ends_with_its_signature():
    chunks = [
        rec.chunk(rec.said("A", thought=True, odd=[1])),
        rec.chunk(rec.said("B", thought=True)),
        rec.chunk(rec.said("", thought=True, thoughtSignature=rec.SIGNATURE)),
        rec.chunk(rec.said("C", thought=True)),
        rec.chunk(rec.said("D"), finish="STOP"),
    ]
    told = [show(h) for h in play(reader(), [rec.sse(*chunks).encode()])]
    signed = f'"thought": true, "odd": [1],"thoughtSignature":"{rec.SIGNATURE}"}}'
    assert told[4:7] == [
        ("think", "part", '{"text": "AB", ' + signed),
        ("think", "part", '{"text": "C", "thought": true}'),
        ("text", "D"),
    ]


def test_a_key_twice_is_no_accident():
    """The last one counts, as it does for every reader."""
    chunks = [
        rec.chunk('{"text":"A","text":"B","thought":true}'),
        rec.chunk('{"text":"C","thought":true}'),
        rec.chunk('{"odd":1,"odd":{"a":2},"thoughtSignature":"s"}'),
        rec.chunk('{"functionCall":{},"functionCall":{"name":"f","args":{"a":1}}}', finish="STOP"),
    ]
    told = [show(h) for h in play(reader(), [rec.sse(*chunks).encode()])]
    assert told[3:-1] == [
        ("think", "part", '{"text":"BC","thought":true}'),
        ("think", "signature", '"s"'),
        ("blob", "odd", '{"odd":{"a":2}}'),
        ("call", "f", '{"a": 1}', ""),
    ]
    twice = rec.chunk(rec.said("A"), finish="STOP")[:-1] + ',"responseId":"x"}'
    assert show(play(reader(), [twice.encode()])[1]) == ("text", "A")


def test_a_thought_knows_where_it_was_made_and_what_seals_it():
    told = play(reader(), [rec.read("gemini-parallel.sse")])
    summary, signature = [h.thought for h in told if isinstance(h, Reasoning)]
    assert (summary.carrier, signature.carrier) == (Carrier.PART, Carrier.SIGNATURE)
    assert summary.text == "**Plan**\n\nRead\u2028two files."
    assert summary.seals == ()
    assert signature.seals == (keys.string_digest(standard_base64(rec.SIGNATURE)),)
    assert (signature.origin.model, signature.origin.asked) == (rec.MODEL, "gemini-3-pro")


def test_timing():
    clock = FrozenClock()
    one = reader(clock=clock)
    at = []
    for event in rec.parallel().encode().split(b"\r\n\r\n")[:-1]:
        clock.advance(1)
        at.append(clock.mono())
        one.feed(event + b"\r\n\r\n")
    summary, signature = [h.thought.timing for h in one.close() if isinstance(h, Reasoning)]
    assert summary == Timing(
        sent=10, opened=at[0], first=at[0], last=at[2], closed=at[3], at=1_800_000_001.0
    )
    assert signature == Timing(sent=10, opened=at[3], closed=at[3], at=1_800_000_004.0)


def test_the_end_is_told_once():
    one = reader()
    body = rec.read("gemini-text.sse")
    one.feed(body[:-2])
    assert not one.done
    one.feed(body[-2:])
    assert one.done
    assert isinstance(one.close()[-1], TurnEnded)
    assert one.close() == []


@pytest.mark.parametrize(
    ("body", "outcome", "reason"),
    [
        ("", Outcome.ABORTED, ""),
        ("<html>Bad gateway</html>", Outcome.ABORTED, ""),
        ("[]", Outcome.ABORTED, ""),
        ("{}", Outcome.ABORTED, ""),
        ('{"error":"no"}', Outcome.FAILED, "no"),
        ('[{"error":{"code":400,"message":"No."}}]', Outcome.FAILED, "No."),
        ('{"candidates":[{"finishReason":"STOP"}]}', Outcome.COMPLETED, ""),
        ('{"candidates":[{"finishReason":"SAFETY"}]}', Outcome.FAILED, "SAFETY"),
        ('{"candidates":[{"finishReason":1}]}', Outcome.COMPLETED, ""),
        ('{"candidates":[{"finishReason":2}]}', Outcome.CAPPED, "MAX_TOKENS"),
        ('{"candidates":[{"finishReason":3}]}', Outcome.FAILED, "SAFETY"),
        ('{"candidates":[{"finishReason":15}]}', Outcome.FAILED, "15"),
        ('{"candidates":[{"finishReason":0}]}', Outcome.ABORTED, ""),
        ('{"candidates":[{"finish_reason":"STOP"}]}', Outcome.COMPLETED, ""),
        ('{"promptFeedback":{"blockReason":4}}', Outcome.FAILED, "PROHIBITED_CONTENT"),
        ('{"prompt_feedback":{"block_reason":"SAFETY"}}', Outcome.FAILED, "SAFETY"),
    ],
)
def test_bodies_end(body, outcome, reason):
    for name in ("x.sse", WHOLE):
        one = reader(name)
        one.feed(body.encode())
        (ended,) = one.close()
        assert (ended.outcome, ended.reason) == (outcome, reason)


@pytest.mark.parametrize("name", ["x.sse", WHOLE])
@pytest.mark.parametrize("depth", [50, 940, 980, 2000])
def test_depth_is_no_trap(name, depth):
    deep = "[" * depth + "]" * depth
    parts = [
        f'{{"text":"x","thought":true,"odd":{deep}}}',
        f'{{"odd":{deep}}}',
        f'{{"functionCall":{{"name":"f","args":{{"a":{deep}}}}},"thoughtSignature":"s"}}',
    ]
    body = rec.chunk(*parts, finish="STOP")
    assert isinstance(play(reader(name), [body.encode()])[-1], TurnEnded)


def chunk(*parts, **more):
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if "finish" in more:
        candidate["finishReason"] = more.pop("finish")
    return {"candidates": [candidate], **more}


def test_a_model_that_runs_code_may_say_twice_why_it_stopped():
    """What comes after the first reason belongs to the answer, and the last one counts."""
    code = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
    data = b"".join(
        map(
            sse,
            (
                chunk({"text": "I run it.", "thought": True}, code, finish="STOP"),
                chunk({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}),
                chunk({"text": "It is "}, usageMetadata={"promptTokenCount": 1}),
                chunk(
                    {"text": "one."},
                    finish="MAX_TOKENS",
                    usageMetadata={"promptTokenCount": 1, "candidatesTokenCount": 9},
                ),
            ),
        )
    )
    told = play(reader(), [data])
    said = output_parts(told)
    assert [type(part).__name__ for part in said] == ["Thought", "Blob", "Blob", "Text"]
    assert said[-1].text == "It is one."
    ended = told[-1]
    assert (ended.outcome, ended.reason) == (Outcome.CAPPED, "MAX_TOKENS")
    assert ended.usage == Usage(input=1, output=9)


def test_a_model_that_only_thought_wrote_what_it_thought():
    counts = {"promptTokenCount": 4, "thoughtsTokenCount": 7, "totalTokenCount": 11}
    ended = play(reader(), [sse(chunk(finish="MAX_TOKENS", usageMetadata=counts))])[-1]
    assert ended.usage == Usage(input=4, output=7, reasoning=7)


def test_an_answer_in_snake_case():
    """Every chunk of it, also those of nothing but a piece of text."""
    parts = ({"text": "a "}, {"text": "b"}, {"function_call": {"name": "ls", "args": {"p": "."}}})
    chunks = [{**chunk(part), "usage_metadata": {"prompt_token_count": 1}} for part in parts]
    chunks[-1]["candidates"][0]["finish_reason"] = "STOP"
    chunks[1]["usage_metadata"] = {"prompt_token_count": 2, "candidates_token_count": 3}
    chunks[2]["usage_metadata"] = {}
    told = play(reader(), [sse({"model_version": "m1", "response_id": "r1", **c}) for c in chunks])
    text, call = output_parts(told)
    assert (text.text, call.name, call.arguments) == ("a b", "ls", '{"p":"."}')
    ended = told[-1]
    assert (ended.outcome, ended.model, ended.response) == (Outcome.COMPLETED, "m1", "r1")
    assert ended.usage == Usage(input=2, output=3)
