"""Chat Completions output, streamed (`chat_reader`) and whole (`chat_whole`)."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.histories.chat import STYLES, assistant
from support.junk import WILD, places, put
from thoughtline.dialects import splice
from thoughtline.dialects.chat import ChatCompletions
from thoughtline.dialects.limits import TooComplex
from thoughtline.engine.capture import output_parts
from thoughtline.log.events import (
    AssistantMessage,
    Delta,
    Outcome,
    Reasoning,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    TurnEnded,
    draft,
)
from thoughtline.log.parts import Carrier, Origin, Thought
from thoughtline.log.usage import Usage
from thoughtline.testing import FrozenClock

RECORDINGS = Path(__file__).parents[2] / "recordings"
STREAMS = sorted(RECORDINGS.glob("chat-*.sse"))
BODIES = sorted(RECORDINGS.glob("chat-*.json"))
ORIGIN = Origin(dialect="chat", provider="p", model="asked")
SENT = 500


def reader(stream=True, clock=None):
    return ChatCompletions().reader(
        stream=stream, clock=clock or FrozenClock(), origin=ORIGIN, sent=SENT
    )


def read(chunks, stream=True):
    made = reader(stream)
    told = [happening for chunk in chunks for happening in made.feed(chunk)]
    told += made.close(reason="closed")
    assert made.close() == []
    assert made.feed(b"data: {}\n\n") == []
    return told


def recorded(name):
    return (RECORDINGS / name).read_bytes()


def chunk(delta, finish=None, **more):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def sse(*chunks, done=True):
    events = [json.dumps(chunk) if isinstance(chunk, dict) else chunk for chunk in chunks]
    return "".join(f"data: {event}\n\n" for event in [*events, *["[DONE]"] * done]).encode()


def canonical(told):
    return [t for t in told if not isinstance(t, Delta)]


def short(told):
    """What was told, in a few words each; deltas are left out."""
    lines = []
    for body in canonical(told):
        match body:
            case Reasoning():
                t = body.thought
                lines.append((t.carrier.value, t.raw, *(["aborted"] if t.timing.aborted else [])))
            case AssistantMessage():
                lines.append(("text", "".join(part.text for part in body.parts)))
            case ToolCall():
                lines.append(("call", body.call.name, body.call.arguments, body.call.id))
            case TurnEnded():
                lines.append((body.outcome.value, body.reason))
    return lines


EXPECTED = {
    "chat-deepseek.sse": [
        (
            "reasoning_content",
            '"The user wants the weather in two cities.\\nI can ask for both at once."',
        ),
        ("text", "Let me check both."),
        ("call", "get_weather", '{"city": "Oslo", "days": 5.0}', "call_00_c6eK2pXbT0aV4nGq7sJd"),
        ("call", "get_weather", '{"city": "København"}', "call_01_Yt1mRw8uZ5oHcEx9LfBk"),
        ("completed", "closed"),
    ],
    "chat-kimi.sse": [
        ("reasoning_content", '" I should list the files first."'),
        ("call", "bash", '{"command":"ls -la"}', "functions.bash:0"),
        ("call", "bash", '{"command":"pwd"}', "functions.bash:1"),
        ("completed", "closed"),
    ],
    "chat-openrouter-claude.sse": [
        ("reasoning", '"Both files are needed."'),
        (
            "reasoning_details",
            (
                '[{"type":"reasoning.text","text":"Both files are needed.",'
                '"format":"anthropic-claude-v1","index":0,'
                '"signature":"EpACCkYICxgCKkBvcGFxdWUrc2lnbmF0dXJl/w=="},'
                '{"type":"reasoning.encrypted","data":"EmwKAhgBEgyM7reda/cted==",'
                '"format":"anthropic-claude-v1","index":1}]'
            ),
        ),
        ("text", "Reading both."),
        ("call", "read_file", '{"path": "a.py"}', "toolu_01A09q90qw90lq917835lq9"),
        ("completed", "closed"),
    ],
    "chat-openrouter-gpt.sse": [
        ("reasoning", '"**Planning**\\n\\nTwo steps."'),
        (
            "reasoning_details",
            (
                '[{"type":"reasoning.summary","summary":"**Planning**\\n\\nTwo steps.",'
                '"format":"openai-responses-v1","index":0},'
                '{"type":"reasoning.encrypted","data":"gAAAAABpQm9ndXNCbG9i-_==",'
                '"id":"rs_68c1e0f0a4b881a2","format":"openai-responses-v1","index":0}]'
            ),
        ),
        ("text", "The answer is 42."),
        ("completed", "closed"),
    ],
    "chat-minimax.sse": [
        ("think", '"<think>\\nIt is a <b> question with a < sign.\\n</think>\\n\\n"'),
        ("text", "Use `<`, not `</think>`."),
        ("completed", "closed"),
    ],
    "chat-mistral.sse": [
        (
            "chunk",
            '{"type":"thinking","thinking":[{"type":"text","text":"First, the units."}],"closed":true}',
        ),
        ("text", "One moment."),
        ("chunk", '{"type":"thinking","thinking":[{"type":"text","text":"Now the sum."}]}'),
        ("text", "It is 7."),
        ("call", "save", '{"n": 7}', "D681PevKs"),
        ("completed", "closed"),
    ],
    "chat-gemini.sse": [
        ("text", "Checking both."),
        ("extra_content", '{"google":{"thought_signature":"CtQBAdHtim9/opaque+sig=="}}'),
        ("call", "get_weather", '{"city":"Oslo"}', "function-call-17650001"),
        ("call", "get_weather", '{"city":"Bergen"}', "function-call-17650002"),
        ("completed", "closed"),
    ],
    "chat-copilot.sse": [
        ("reasoning_text", '"**Looking up the name**\\n\\n"'),
        ("reasoning_opaque", '"/LUJ4ZT0cGFxdWUr=="'),
        ("text", "Found it."),
        ("completed", "closed"),
    ],
    "chat-vllm.sse": [
        ("reasoning", '"\\nOkay, easy.\\n"'),
        ("text", "\n\n4"),
        ("completed", "closed"),
    ],
    "chat-error.sse": [
        ("reasoning", '"Hm"'),
        ("failed", "Provider disconnected unexpectedly"),
    ],
    "chat-cut.sse": [
        ("reasoning_content", '"Let me think"', "aborted"),
        ("aborted", "closed"),
    ],
    "chat-cut-answer.sse": [
        ("reasoning_content", '"Easy."'),
        ("aborted", "closed"),
    ],
    "chat-empty.sse": [
        ("reasoning_content", '""'),
        ("text", "Yes."),
        ("completed", "closed"),
    ],
    "chat-length.sse": [
        ("reasoning_content", '"Long story"'),
        ("text", "Once upon"),
        ("capped", "length"),
    ],
    "chat-separators.sse": [
        ("reasoning_content", '"one\u2028two\u2029"'),
        ("text", "a\u2028b\u0085c"),
        ("completed", "closed"),
    ],
    "chat-halves.sse": [
        ("reasoning_content", '"smile 😀!"'),
        ("text", "🚀 up, lone \ufffd."),
        ("call", "say", '{"text":"😀"}', "call_1"),
        ("completed", "closed"),
    ],
    "chat-crlf.sse": [
        ("reasoning_content", '"So"'),
        ("text", "It works."),
        ("completed", "closed"),
    ],
    "chat-cr.sse": [
        ("reasoning_content", '"So"'),
        ("text", "It works."),
        ("completed", "closed"),
    ],
    "chat-custom.sse": [
        ("call", "patch", "*** Begin Patch", "call_c"),
        ("completed", "closed"),
    ],
    "chat-odd.sse": [
        ("reasoning_content", '{"deep":[1]}'),
        ("text", "here"),
        ("call", "", '{"a": 1}', ""),
        ("completed", "closed"),
    ],
    "chat-deepseek.json": [
        (
            "reasoning_content",
            '"The user asks \\u201cwhere\\u201d.\\nI need \\ud83d\\ude00 a \\/ tool."',
        ),
        ("text", "Let me check."),
        ("call", "get_weather", '{"city": "Oslo"}', "call_00_c6eK2pXbT0aV4nGq7sJd"),
        ("completed", "closed"),
    ],
    "chat-openrouter.json": [
        ("reasoning", '"First.Second."'),
        (
            "reasoning_details",
            """[
          { "type": "reasoning.text", "text": "First.",  "signature": "sig\\u003d1", "weight": 1.10 },
          { "signature": "sig2", "text": "Second.", "type": "reasoning.text", "unknown": {"z": 1, "a": 2} },
          {"type":"reasoning.encrypted","data":"blob/1=="}, {"type":"reasoning.encrypted","data":"blob/2=="}
        ]""",
        ),
        ("text", "Done."),
        ("completed", "closed"),
    ],
    "chat-mistral.json": [
        (
            "chunk",
            '{"type": "thinking", "thinking": [{"type": "text", "text": "Let me see."}], "closed": true}',
        ),
        ("text", "7"),
        ("completed", "closed"),
    ],
    "chat-gemini.json": [
        ("extra_content", '{"google":{"thought_signature":"Ct8BAdHtim+sig\\u003d\\u003d"}}'),
        ("call", "get_weather", '{"city":"Oslo"}', "function-call-1"),
        ("call", "now", "{}", ""),
        ("completed", "closed"),
    ],
    "chat-minimax.json": [
        ("think", '"<think>\\nHm.\\n</think>\\n\\n"'),
        ("text", "Yes."),
        ("completed", "closed"),
    ],
    "chat-mimo-error.json": [("failed", "Param Incorrect")],
    "chat-copilot.json": [
        ("reasoning_text", '"Looking."'),
        ("reasoning_opaque", '"/LUJ4ZT0=="'),
        ("text", "Found it."),
        ("completed", "closed"),
    ],
    "chat-truncated.json": [("aborted", "closed")],
}


# --- recordings --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", STREAMS + BODIES, ids=lambda path: path.name)
def test_a_recording_tells_its_story(path):
    assert short(read([path.read_bytes()], path.suffix == ".sse")) == EXPECTED[path.name]


@pytest.mark.parametrize("path", STREAMS + BODIES, ids=lambda path: path.name)
def test_everything_told_can_be_written_and_shown(path):
    for happening in read([path.read_bytes()], path.suffix == ".sse"):
        if happening in canonical([happening]):
            assert draft(happening, id="i", parent="p", at=0.0).data.encode()
        else:
            assert "".join(str(field) for field in happening.__struct_fields__)
            assert splice.dumps(happening)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.name)
def test_deltas_add_up(path):
    told = read([path.read_bytes()])
    texts = "".join(t.text for t in told if isinstance(t, TextDelta))
    final = "".join(p.text for t in told if isinstance(t, AssistantMessage) for p in t.parts)
    if path.name == "chat-halves.sse":  # halves that meet are shown as a character
        assert texts == "🚀 up, lone \ufffd."
    elif told[-1].outcome is not Outcome.ABORTED and told[-1].outcome is not Outcome.FAILED:
        assert texts == final
    calls = "".join(t.call.arguments for t in told if isinstance(t, ToolCall))
    if path.name != "chat-halves.sse":
        assert calls == "".join(t.arguments for t in told if isinstance(t, ToolCallDelta))


def test_a_thought_that_comes_twice_is_shown_once():
    shown = [
        t.text
        for t in read([recorded("chat-openrouter-claude.sse")])
        if isinstance(t, ReasoningDelta)
    ]
    assert shown == ["Both files", " are needed."]
    both = sse(chunk({"reasoning": "a", "reasoning_content": "a"}), chunk({"content": "b"}, "stop"))
    assert [t.text for t in read([both]) if isinstance(t, ReasoningDelta)] == ["a"]


def test_facts_about_the_turn():
    ended = read([recorded("chat-deepseek.sse")])[-1]
    assert ended == TurnEnded(
        outcome=Outcome.COMPLETED,
        reason="closed",
        usage=Usage(input=339, output=83, reasoning=39, cached=320),
        response="8f4c2c1a-6f0e-4c3b-9a57-2b1f6c0d9e11",
        model="deepseek-v4-pro",
        stop=StopReason.CALLS,
    )
    usages = {
        "chat-kimi.sse": Usage(input=120, output=44, cached=96),
        "chat-openrouter-claude.sse": Usage(input=512, output=77, reasoning=21, cached=0),
        "chat-vllm.sse": Usage(input=11, output=8),
        "chat-copilot.sse": Usage(input=30, output=15, reasoning=6, cached=0),
        "chat-odd.sse": Usage(),
        "chat-empty.sse": None,
    }
    for name, usage in usages.items():
        assert read([recorded(name)])[-1].usage == usage
    copilot = read([recorded("chat-copilot.sse")])[-1]
    assert (copilot.model, copilot.response) == ("gemini-3.1-pro", "7mwraYu3Kq")


def test_the_first_id_and_model_are_kept():
    first = chunk({"content": "a"}, id="one", model="served")
    last = chunk({}, "stop", id="two", model="other", usage={"prompt_tokens": 1})
    ended = read([sse(chunk({}, id="", model=""), first, last)])[-1]
    assert (ended.response, ended.model, ended.usage) == ("one", "served", Usage(input=1))


def test_the_model_as_served_is_part_of_the_origin():
    thought = read([recorded("chat-deepseek.sse")])
    made = next(t.thought.origin for t in thought if isinstance(t, Reasoning))
    assert (made.model, made.asked, made.provider) == ("deepseek-v4-pro", "asked", "p")


def test_seals():
    sealed = {
        name: [len(t.thought.seals) for t in read([recorded(name)]) if isinstance(t, Reasoning)]
        for name in ("chat-openrouter-claude.sse", "chat-copilot.sse", "chat-gemini.sse")
    }
    assert sealed == {
        "chat-openrouter-claude.sse": [0, 2],
        "chat-copilot.sse": [0, 1],
        "chat-gemini.sse": [1],
    }
    whole = read([recorded("chat-openrouter.json")], stream=False)
    details = next(t.thought for t in whole if isinstance(t, Reasoning) and t.thought.seals)
    assert len(set(details.seals)) == 4  # nothing is merged that came whole


def test_a_thought_between_words_is_a_thought():
    content = "<think>a</think>\n\none\n<think>\n b</think>\n\ntwo <think>c</think>"
    streamed = [chunk({"content": letter}) for letter in content]
    whole = {"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}
    told = short(read([sse(*streamed, chunk({}, "stop"))]))
    assert told == short(read([json.dumps(whole).encode()], stream=False))
    assert told[:-1] == [
        ("think", '"<think>a</think>\\n\\n"'),
        ("text", "one"),
        ("think", '"\\n<think>\\n b</think>\\n\\n"'),
        ("text", "two <think>c</think>"),
    ]


# --- timing ------------------------------------------------------------------------------------


def timed(*steps):
    """Feed chunks, a second after one another; thoughts with their times in seconds."""
    clock = FrozenClock(mono=0)
    made = ChatCompletions().reader(stream=True, clock=clock, origin=ORIGIN, sent=0)
    for step in steps:
        clock.advance(1)
        made.feed(sse(step, done=False))
    clock.advance(10)
    told = made.close()

    def seconds(timing):
        times = (timing.sent, timing.opened, timing.first, timing.last, timing.closed)
        return tuple(None if t is None else t // 10**9 for t in times)

    return {t.thought.carrier: seconds(t.thought.timing) for t in told if isinstance(t, Reasoning)}


R, D, O, C = (  # noqa: E741
    Carrier.REASONING,
    Carrier.REASONING_DETAILS,
    Carrier.REASONING_OPAQUE,
    Carrier.REASONING_CONTENT,
)


def test_a_thought_ends_when_something_else_begins():
    think, say, end = {"reasoning_content": "a"}, chunk({"content": "b"}), chunk({}, "stop")
    assert timed(chunk(think), chunk(think), say, say, end) == {C: (0, 1, 1, 2, 3)}
    assert timed(chunk(think), chunk(think), end) == {C: (0, 1, 1, 2, 3)}
    assert timed(chunk({"reasoning_content": ""}), chunk(think), say, end) == {C: (0, 1, 2, 2, 3)}


def test_empty_repeats_do_not_keep_a_thought_open():
    say = chunk({"content": "b", "reasoning_content": ""})
    first = chunk({"reasoning_content": "a"})
    assert timed(first, say, say, say, chunk({}, "stop")) == {C: (0, 1, 1, 1, 2)}
    made = reader()
    made.feed(sse(*[say] * 100))
    assert len(made._members[C].pieces) == 1


def test_thoughts_that_grow_together_end_together():
    both = chunk({"reasoning": "a", "reasoning_details": [{"text": "a", "index": 0}]})
    say = chunk({"content": "b"})
    assert timed(both, both, say, chunk({}, "stop")) == {R: (0, 1, 1, 2, 3), D: (0, 1, 1, 2, 3)}
    assert timed(both, both, say) == {R: (0, 1, 1, 2, 3), D: (0, 1, 1, 2, 3)}  # cut later on


def test_each_thought_ends_by_itself():
    one, other, say = (
        chunk({"reasoning": "a"}),
        chunk({"reasoning_opaque": "b"}),
        chunk({"content": "c"}),
    )
    assert timed(one, say, other, say, chunk({}, "stop")) == {
        R: (0, 1, 1, 1, 2),
        O: (0, 3, 3, 3, 4),
    }


def test_a_thought_that_goes_on_is_open_again():
    think, say = chunk({"reasoning": "a"}), chunk({"content": "b"})
    assert timed(think, say, think, say, chunk({}, "stop")) == {R: (0, 1, 1, 3, 4)}
    assert timed(think, say, think) == {R: (0, 1, 1, 3, None)}  # cut while it grew


def test_a_seal_is_there_at_once():
    say, seal = chunk({"content": "b"}), chunk({"reasoning_opaque": "x"})
    assert timed(say, seal, chunk({}, "stop")) == {O: (0, 2, 2, 2, 3)}
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
    signed = chunk({"tool_calls": [call | {"extra_content": {"google": {}}}]})
    assert timed(say, signed, say, chunk({}, "stop")) == {
        Carrier.EXTRA_CONTENT: (0, 2, None, None, 2)
    }


def test_inline_thoughts_and_chunks_are_timed_too():
    end = chunk({}, "stop")
    steps = [chunk({"content": t}) for t in ("<think>", "a", "b</think>", "c")]
    assert timed(*steps, end) == {Carrier.THINK: (0, 1, 2, 3, 4)}
    assert timed(*steps[:2]) == {Carrier.THINK: (0, 1, 2, 2, None)}
    piece = {"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}
    steps = [chunk({"content": [piece]})] * 2
    assert timed(*steps, chunk({"content": "b"}), end) == {Carrier.CHUNK: (0, 1, 1, 2, 3)}


def test_a_whole_body_has_no_beginning():
    """When a thought began is unknown there, and stays so."""
    clock = FrozenClock(mono=0)
    made = reader(stream=False, clock=clock)
    clock.advance(2)
    made.feed(recorded("chat-deepseek.json"))
    (timing,) = [t.thought.timing for t in made.close() if isinstance(t, Reasoning)]
    assert (timing.sent, timing.opened, timing.first, timing.last) == (SENT, None, None, None)
    assert timing.closed == 2_000_000_000
    assert not timing.aborted


# --- the order of a message --------------------------------------------------------------------


def kinds(told):
    return [line[0] for line in short(told)[:-1]]


def test_thoughts_beside_the_content_come_before_it_whenever_they_arrive():
    late = sse(chunk({"content": "a"}), chunk({"reasoning_opaque": "x"}), chunk({}, "stop"))
    assert kinds(read([late])) == ["reasoning_opaque", "text"]
    one = sse(chunk({"content": "a", "reasoning_content": "r"}, "stop"))
    assert kinds(read([one])) == ["reasoning_content", "text"]


def test_calls_are_in_the_order_of_their_index():
    def call(index, name):
        return {"index": index, "id": name, "function": {"name": name, "arguments": "{}"}}

    told = read(
        [sse(chunk({"tool_calls": [call(1, "b")]}), chunk({"tool_calls": [call(0, "a")]}, "stop"))]
    )
    assert [t.call.name for t in told if isinstance(t, ToolCall)] == ["a", "b"]


def test_calls_that_share_an_index():
    def call(id, name, arguments):
        return {"index": 0, "id": id, "function": {"name": name, "arguments": arguments}}

    def made(*pieces):
        told = read([sse(*(chunk({"tool_calls": [piece]}) for piece in pieces), chunk({}, "stop"))])
        return [(t.call.id, t.call.name, t.call.arguments) for t in told if isinstance(t, ToolCall)]

    assert made(call("a", "f", "{}"), call("b", "f", "[]")) == [("a", "f", "{}"), ("b", "f", "[]")]
    # a new id with every piece of one call; the name only with the first
    assert made(call("a", "f", "{"), call("b", "", "}")) == [("a", "f", "{}")]
    # id and name with every piece
    assert made(call("a", "f", "{"), call("a", "f", "}")) == [("a", "f", "{}")]
    assert made(call("a", "f", "{"), call(None, "f", "}")) == [("a", "f", "{}")]


def test_calls_without_an_index():
    calls = [{"id": n, "function": {"name": n, "arguments": "{}"}} for n in "ab"]
    assert kinds(read([sse(chunk({"tool_calls": calls}, "stop"))])) == ["call", "call"]


def test_the_old_function_call():
    data = sse(
        chunk({"function_call": {"name": "f", "arguments": "{"}}),
        chunk({"function_call": {"arguments": "}"}}, "function_call"),
    )
    assert short(read([data])) == [("call", "f", "{}", ""), ("completed", "closed")]


# --- endings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "outcome", "reason"),
    [
        ([chunk({"content": "a"}, "stop")], Outcome.COMPLETED, "closed"),
        ([chunk({"content": "a"}, "length")], Outcome.CAPPED, "length"),
        ([chunk({"content": "a"}, "content_filter")], Outcome.COMPLETED, "closed"),
        ([chunk({"content": "a"}, "error")], Outcome.FAILED, "error"),
        (
            [chunk({"content": "a"}, "insufficient_system_resource")],
            Outcome.FAILED,
            "insufficient_system_resource",
        ),
        ([chunk({"content": "a"}), {"error": {"message": "busy"}}], Outcome.FAILED, "busy"),
        ([{"error": "plain"}], Outcome.FAILED, "plain"),
        ([{"error": {"code": 5}}], Outcome.FAILED, "the provider reported an error"),
        ([chunk({"content": "a"}, "length"), {"error": {"message": "e"}}], Outcome.FAILED, "e"),
        ([chunk({"content": "a"})], Outcome.ABORTED, "closed"),
        ([], Outcome.ABORTED, "closed"),
    ],
)
def test_outcomes(steps, outcome, reason):
    made = reader()
    made.feed(sse(*steps, done=False))
    ended = made.close(reason="closed")[-1]
    assert (ended.outcome, ended.reason) == (outcome, reason)


def test_the_end_without_a_reason_is_an_end():
    assert short(read([sse(chunk({"content": "a"}))])) == [("text", "a"), ("completed", "closed")]
    made = reader()
    made.feed(b"data: [DONE]")  # not even a line end
    assert made.close()[-1].outcome is Outcome.COMPLETED


def test_done_is_known_before_the_end():
    made = reader()
    made.feed(sse(chunk({"content": "a"}), done=False))
    assert not made.done
    made.feed(sse(chunk({}, "stop"), done=False))
    assert made.done


def test_an_inline_thought_that_is_never_closed():
    cut = sse(chunk({"content": "<think>ab</thi"}), done=False)
    assert short(read([cut])) == [("think", '"<think>ab</thi"', "aborted"), ("aborted", "closed")]
    assert [t.text for t in read([cut]) if isinstance(t, ReasoningDelta)] == ["ab", "</thi"]


def test_what_looked_like_a_tag_is_shown_in_the_end():
    told = read([sse(chunk({"content": "  <th"}, "stop"))])
    assert [t.text for t in told if isinstance(t, TextDelta)] == ["  <th"]
    assert ("text", "  <th") in short(told)


def test_a_lone_half_goes_back_as_it_came():
    told = read([sse(chunk({"reasoning": "x \ud83d y"}), chunk({"content": "a"}, "stop"))])
    (thought,) = [t.thought for t in told if isinstance(t, Reasoning)]
    assert thought.raw == '"x \\ud83d y"'
    assert thought.text == "x \ufffd y"
    body = json.dumps({"choices": [{"message": {"reasoning": "x \ud83d"}}]}).encode()
    (thought,) = [t.thought for t in read([body], stream=False) if isinstance(t, Reasoning)]
    assert thought.raw == '"x \\ud83d"'


def test_halves_inside_of_details():
    pieces = [[{"type": "reasoning.text", "index": 0, "text": half}] for half in "\ud83d\ude00"]
    told = read(
        [sse(*(chunk({"reasoning_details": piece}) for piece in pieces), chunk({}, "stop"))]
    )
    (thought,) = [t.thought for t in told if isinstance(t, Reasoning)]
    assert json.loads(thought.raw)[0]["text"] == thought.text == "😀"


# --- garbage -----------------------------------------------------------------------------------


DELTA = {
    "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}, {"text": "a"}],
    "reasoning_content": "r",
    "reasoning": "r",
    "reasoning_details": [{"type": "reasoning.text", "text": "t", "index": 0, "signature": "s"}],
    "reasoning_text": "r",
    "reasoning_opaque": "o",
    "tool_calls": [
        {
            "index": 0,
            "id": "c",
            "function": {"name": "f", "arguments": "{}"},
            "extra_content": {"google": {"thought_signature": "s"}},
        }
    ],
    "function_call": {"name": "g", "arguments": "{}"},
}
USAGE = {"prompt_tokens": 1, "completion_tokens_details": {"reasoning_tokens": 1}}
WHOLE = {"id": "i", "model": "m", "usage": USAGE, "error": None}
CHUNK = WHOLE | {"choices": [{"index": 0, "delta": DELTA, "finish_reason": "stop", "usage": USAGE}]}
BODY = WHOLE | {"choices": [{"index": 0, "message": DELTA, "finish_reason": "stop"}]}


@given(WILD)
@settings(max_examples=25)
def test_any_type_at_any_place_never_raises(junk):
    for document, stream in ((CHUNK, True), (BODY, False)):
        for place in places(document):
            spoilt = json.dumps(put(document, place, junk))
            data = f"data: {spoilt}\n\n".encode() if stream else spoilt.encode()
            told = read([data, data] if stream else [data], stream)
            for body in canonical(told):
                draft(body, id="i", parent="p", at=0.0)


@pytest.mark.parametrize("depth", [100, 900, 5_000, 100_000])
@pytest.mark.parametrize("key", [*DELTA])
def test_deep_nesting_does_no_harm(depth, key):
    for opening, closing in (("[", "]"), ('{"thinking":', "}"), ('[{"text":1,"arguments":', "}]")):
        deep = opening * depth + "1" + closing * depth
        stream = f'data: {{"choices":[{{"delta":{{"{key}":{deep}}},"finish_reason":"stop"}}]}}\n\n'
        body = f'{{"choices":[{{"message":{{"{key}":{deep}}},"finish_reason":"stop"}}]}}'
        for text, is_stream in ((stream, True), (body, False)):
            with contextlib.suppress(TooComplex):  # it is not captured then
                assert isinstance(read([text.encode()], stream=is_stream)[-1], TurnEnded)


def test_a_long_stream_is_gathered_in_pieces():
    """Linear: nothing that grows is joined before the end."""
    made = reader()
    piece = sse(
        chunk({"reasoning_details": [{"type": "reasoning.text", "text": "x" * 50, "index": 0}]}),
        done=False,
    )
    for _ in range(5_000):
        made.feed(piece)
    assert len(made._members[Carrier.REASONING_DETAILS].pieces) == 5_000
    (told, _) = made.close()
    assert len(told.thought.text) == 250_000


# --- streamed or whole, it is the same message -------------------------------------------------


def streamed(message, draw):
    """The chunks in which a provider might send this message."""
    chunks = [{"role": "assistant", "content": ""}]
    for key in ("reasoning_content", "reasoning", "reasoning_text"):
        chunks += [{key: piece} for piece in cut(message.get(key), draw)]
    for index, detail in enumerate(message.get("reasoning_details", ())):
        grown = "text" if "text" in detail else "data"
        rest = {k: v for k, v in detail.items() if k not in {grown, "signature"}} | {"index": index}
        chunks += [{"reasoning_details": [rest | {grown: p}]} for p in cut(detail[grown], draw)]
        if "signature" in detail:
            chunks.append({"reasoning_details": [rest | {"signature": detail["signature"]}]})
    content = message.get("content")
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, dict) and part["type"] == "thinking":
            chunks.append({"content": [part]})
        else:
            text = part["text"] if isinstance(part, dict) else part
            chunks += [{"content": piece} for piece in cut(text, draw)]
    if "reasoning_opaque" in message:
        chunks.append({"reasoning_opaque": message["reasoning_opaque"]})
    for index, call in enumerate(message.get("tool_calls", ())):
        pieces = cut(call["function"]["arguments"], draw)
        head = call | {
            "index": index,
            "function": {"name": call["function"]["name"], "arguments": ""},
        }
        chunks.append({"tool_calls": [head]})
        chunks += [{"tool_calls": [{"index": index, "function": {"arguments": p}}]} for p in pieces]
    return sse(*map(chunk, chunks), chunk({}, "stop"))


def cut(text, draw):
    if text is None:
        return []
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def said(told):
    """Parts without what only a stream or only a whole body knows."""
    return [
        Thought(carrier=part.carrier, raw=part.raw, text=part.text, seals=part.seals)
        if isinstance(part, Thought)
        else part
        for part in output_parts(told)
    ]


@given(st.sampled_from(STYLES).flatmap(assistant), st.data())
def test_a_stream_adds_up_to_the_message(message, data):
    whole = splice.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})
    one = said(read([whole], stream=False))
    other = said(read([streamed(message, data.draw)]))
    ours = [
        p for p in one if not (isinstance(p, Thought) and p.carrier is Carrier.REASONING_DETAILS)
    ]
    theirs = [
        p for p in other if not (isinstance(p, Thought) and p.carrier is Carrier.REASONING_DETAILS)
    ]
    assert ours == theirs
    assert [p.seals for p in one if isinstance(p, Thought)] == [
        p.seals for p in other if isinstance(p, Thought)
    ]
