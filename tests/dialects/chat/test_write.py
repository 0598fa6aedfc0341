"""New Chat Completions requests, written from turns."""

from hypothesis import given

from support.histories.chat import body, histories
from thoughtline.dialects import splice
from thoughtline.dialects.chat import ChatCompletions
from thoughtline.dialects.params import ToolSpec
from thoughtline.log.canonical import visible
from thoughtline.log.parts import Blob, Call, Carrier, Result, Text, Thought
from thoughtline.log.turns import Turn

CHAT = ChatCompletions()


def read(*messages, **more):
    return CHAT.read(body(list(messages), **more))


def user(content="q"):
    return {"role": "user", "content": content}


@given(histories())
def test_what_is_written_reads_back(messages):
    *turns, last = read(*messages).turns
    turns = [turn for turn in turns if turn.output]  # there is no way to write an empty answer
    again = CHAT.read(CHAT.write([*turns, last], model="m")).turns
    for one, other in zip([*turns, last], again, strict=True):
        assert [p for p in other.output if isinstance(p, Thought)] == [*one.thoughts]
        assert visible(one.output) == visible(other.output)
        assert visible(one.input, is_input=True) == visible(other.input, is_input=True)


def test_thoughts_are_written_to_the_byte():
    raws = {
        Carrier.REASONING_CONTENT: '"caf\\u00e9 \\ud83d"',
        Carrier.REASONING_DETAILS: '[ {"weight": 1.10, "n": 1e3} ]',
        Carrier.CHUNK: '{"type": "thinking",  "thinking": [ ]}',
        Carrier.EXTRA_CONTENT: '{"google": {"thought_signature":"a\\u003d"}}',
    }
    thoughts = tuple(Thought(carrier=carrier, raw=raw) for carrier, raw in raws.items())
    turn = Turn(output=(*thoughts, Text(text="a"), Call(name="f", arguments="{}", id="c")))
    made = CHAT.write([turn], model="m").decode()
    assert all(raw in made for raw in raws.values())


def test_a_new_request():
    turns = [
        Turn(
            input=(Text(text="q"), Blob(kind="image_url", digest="0", raw='{"type": "image_url"}')),
            output=(Text(text="a"), Blob(kind="refusal", digest="0", raw='{"type":"refusal"}')),
        ),
        Turn(input=(Result(content="r", call="c1"), Text(text="more"))),
    ]
    tool = ToolSpec(name="f", description="d", parameters={"type": "object"})
    made = CHAT.write(turns, model="m", system="s", tools=[tool], fields={"temperature": 0})
    assert splice.loads(made) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "q"}, {"type": "image_url"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "refusal"}]},
            {"role": "tool", "tool_call_id": "c1", "content": "r"},
            {"role": "user", "content": "more"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "f", "description": "d", "parameters": {"type": "object"}},
            }
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0,
    }
    assert "stream" not in splice.loads(CHAT.write(turns, model="m", stream=False))
