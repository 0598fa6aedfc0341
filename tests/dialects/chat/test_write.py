"""New Chat Completions requests, written from turns."""

from hypothesis import given

from support.histories.chat import body, histories
from thoughtline.dialects import splice
from thoughtline.dialects.chat import ChatCompletions
from thoughtline.dialects.chat.write import written_media, written_result_media
from thoughtline.dialects.media import media
from thoughtline.dialects.params import ToolSpec
from thoughtline.log.canonical import visible
from thoughtline.log.parts import Blob, Call, Carrier, Result, Text, Thought
from thoughtline.log.turns import Turn

CHAT = ChatCompletions()
PNG = "data:image/png;base64,iVBORw0KGgo="


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


def test_images_files_and_audio_have_parts_of_their_own():
    image = written_media(media(url=PNG, detail="original"))
    assert image == {"type": "image_url", "image_url": {"url": PNG, "detail": "high"}}
    pdf = media(data="JVBERi0=", mime="application/pdf", name="a.pdf")
    assert written_media(pdf)["file"]["filename"] == "a.pdf"
    sound = written_media(media(data="UklGRg==", mime="audio/wav"))
    assert sound["input_audio"] == {"data": "UklGRg==", "format": "wav"}


def test_what_cannot_be_said_is_left_out():
    assert written_media(Blob(kind="image", digest="0")) is None


def test_what_a_tool_showed_names_its_call():
    shown = written_result_media(Result(content="", call="c1", media=(media(url=PNG),)))
    assert "c1" in shown[0]
    assert shown[1]["type"] == "image_url"
    assert written_result_media(Result(content="", call="c1")) == []
