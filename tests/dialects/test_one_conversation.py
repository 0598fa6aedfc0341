"""One conversation, told in every dialect, has one set of keys."""

import json

from hypothesis import given
from hypothesis import strategies as st

from responses_histories import ARGUMENTS, WORDS, spelled
from thoughtline import keys
from thoughtline.dialects.chat import Chat
from thoughtline.dialects.gemini import Gemini
from thoughtline.dialects.messages import Messages
from thoughtline.dialects.responses import Responses
from thoughtline.parts import Call, Carrier, Result, Text, Thought
from thoughtline.turns import Turn

DIALECTS = [Chat(), Messages(), Gemini(), Responses()]
CARRIERS = {
    "chat": (Carrier.REASONING_CONTENT, '"I think."'),
    "messages": (Carrier.BLOCK, '{"type":"thinking","thinking":"I think.","signature":"s"}'),
    "gemini": (Carrier.SIGNATURE, '"s"'),
    "responses": (Carrier.ITEM, '{"type":"reasoning","id":"rs_1","summary":[]}'),
}


@st.composite
def conversations(draw):
    """Turns without thoughts: text, calls, or both; then what tools or people say to that."""
    turns = []
    heard = (Text(text=draw(WORDS)),)
    for number in range(draw(st.integers(1, 4))):
        said = [Text(text=draw(WORDS))] if draw(st.booleans()) else []
        for place in range(draw(st.integers(0, 2)) if said else 1):
            arguments = draw(ARGUMENTS.flatmap(spelled))
            id = f"call_{number}_{place}"
            said.append(Call(name=draw(st.sampled_from("fg")), arguments=arguments, id=id))
        turns.append(Turn(input=heard, output=tuple(said)))
        results = [
            Result(content=draw(WORDS), call=call.id, name=call.name)
            for call in said
            if isinstance(call, Call)
        ]
        heard = tuple(results) or (Text(text=draw(WORDS)),)
    return [*turns, Turn(input=heard)]


def thinking(turns, dialect):
    """The same with a thought before everything that was said."""
    carrier, raw = CARRIERS[dialect.name]
    thought = Thought(carrier=carrier, raw=raw)
    return [
        Turn(input=turn.input, output=(thought, *turn.output) if turn.output else ())
        for turn in turns
    ]


@given(conversations())
def test_every_dialect_names_the_same_turns_alike(turns):
    expected, _ = keys.trail(turns)
    for dialect in DIALECTS:
        for told in (turns, thinking(turns, dialect)):
            request = dialect.read(dialect.write(told, model="m"))
            assert keys.trail(request.turns)[0] == expected, dialect.name


def test_a_picture_is_a_picture_everywhere():
    data = "iVBORw0KGgo="
    chat = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}]
    source = {"type": "base64", "media_type": "image/png", "data": data}
    messages = [{"type": "image", "source": source}]
    gemini = [{"inlineData": {"mimeType": "image/png", "data": data}}]
    bodies = [
        (Chat(), {"messages": [{"role": "user", "content": chat}]}),
        (Messages(), {"messages": [{"role": "user", "content": messages}]}),
        (Gemini(), {"contents": [{"role": "user", "parts": gemini}]}),
    ]
    inputs = [dialect.read(json.dumps(body).encode()).turns[0].input for dialect, body in bodies]
    assert len({blob.digest for (blob,) in inputs}) == 1
