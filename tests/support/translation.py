"""One answer of every provider, told again in every dialect."""

from functools import lru_cache

from support.clients import client
from thoughtline.clock import SystemClock
from thoughtline.dialects import DIALECTS
from thoughtline.dialects.answer_blocks import AnswerBlocks
from thoughtline.dialects.answers import AnswerEnd, AnswerHead, stop_reason
from thoughtline.dialects.tool_names import ToolNames
from thoughtline.engine.capture import output_parts
from thoughtline.log.events import TurnEnded
from thoughtline.log.parts import Call, Origin, Text, Thought
from thoughtline.log.usage import Usage
from thoughtline.testing import simulator

CONVERSATION = {
    "deepseek": ("chat", {}),
    "openai": ("responses", {}),
    "claude": ("messages", {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
    "gemini": ("gemini", {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}),
}
"""A provider for each dialect, and what makes it think aloud."""

KINDS = {Thought: "thought", Text: "text", Call: "call"}


@lru_cache
def answer(provider, *, stream, realistic=None):
    """The provider's first answer that has a thought, a text and a call: its bytes."""
    dialect, members = CONVERSATION[provider]
    sim = simulator(provider, realistic=realistic)
    talker = client(dialect, sim, stream=stream, **members)
    for _ in range(12):
        reply = talker.turn()
        kinds = {type(part) for part in read(dialect, reply.body, stream=stream)}
        if kinds >= {Thought, Text, Call}:
            return reply.body
    raise AssertionError(f"{provider} never thinks, speaks and calls in one answer")


def read(dialect, body, *, stream):
    """The parts of an answer."""
    reader = DIALECTS[dialect].reader(stream=stream, clock=SystemClock(), origin=Origin(), sent=0)
    return output_parts([*reader.feed(body), *reader.close()])


def spoken(provider, dialect, *, stream, size=0, realistic=None):
    """The answer in another dialect; `size`: the provider's bytes come in pieces of that size."""
    body = answer(provider, stream=stream, realistic=realistic)
    speaks, _ = CONVERSATION[provider]
    reader = DIALECTS[speaks].reader(stream=stream, clock=SystemClock(), origin=Origin(), sent=0)
    head = AnswerHead(
        id="t" * 32,
        model="asked",
        created=0,
        stream=stream,
        handle=lambda nth: f"handle-{nth}",
    )
    writer = DIALECTS[dialect].answer_writer(head)
    blocks = AnswerBlocks(ToolNames([]), lambda nth: f"call_{nth}")
    made = writer.start()
    for at in range(0, len(body), size or len(body)):
        made += writer.write(blocks.feed(reader.feed(body[at : at + (size or len(body))])))
    rest = reader.close()
    made += writer.write([*blocks.feed(rest), *blocks.end(complete=True)])
    ended = next(event for event in reversed(rest) if isinstance(event, TurnEnded))
    end = AnswerEnd(stop=stop_reason(ended, called=blocks.called), usage=ended.usage or Usage())
    return made + writer.finish(end)


def blocks_of(dialect, body, *, stream):
    """What a client reads in an answer: kind and content, thoughts without their handles."""
    found = []
    for part in read(dialect, body, stream=stream):
        content = (part.name, part.arguments) if isinstance(part, Call) else part.text
        if type(part) in KINDS and not (isinstance(part, Thought) and not part.text):
            found.append((KINDS[type(part)], content))
    return found
