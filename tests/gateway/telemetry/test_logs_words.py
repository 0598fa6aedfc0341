"""No thought, no answer and no credential is in a log line, whatever an upstream answers."""

import asyncio
import io
import json
import re
from contextlib import asynccontextmanager
from functools import cache, partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import translation
from support.gateway import Answer, InProcessGateway, ScriptedWire
from support.gateway_server import page
from support.junk import places, put
from thoughtline.cli.conversation import TOOLS
from thoughtline.dialects import DIALECTS
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.errors import WireError
from thoughtline.gateway.app import Gateway
from thoughtline.gateway.telemetry import Telemetry, open_log
from thoughtline.log.parts import Call, Text, Thought
from thoughtline.log.turns import Turn

KEY, QUESTION = "credential-canary", "Is there a question-canary?"
QUOTED = 12
"""So many letters in a row of what was said are a quotation."""
PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "/v1beta/models/m:{method}",
}
LAST_EVENT = re.compile(r'"type": ?"(response\.(completed|failed|incomplete)|error)"')
KINDS = {True: "text/event-stream", False: "application/json"}


class BreakingWire(ScriptedWire):
    """Gives an answer; its line may break at the end."""

    def __init__(self, answer, *, broken):
        super().__init__(answer)
        self._broken = broken

    @asynccontextmanager
    async def send(self, request):
        async with super().send(request) as answer:
            if self._broken:
                answer.chunks = partial(self._chunks, answer.chunks)
            yield answer

    async def _chunks(self, chunks):
        async for chunk in chunks():
            yield chunk
        raise WireError("the line broke")


@cache
def said(provider, stream):
    """Everything that an answer says, in its own words."""
    words = []
    dialect, _ = translation.CONVERSATION[provider]
    for part in translation.read(
        dialect, translation.answer(provider, stream=stream), stream=stream
    ):
        if isinstance(part, Thought):
            words += (part.text, part.raw)
        elif isinstance(part, Text):
            words.append(part.text)
        elif isinstance(part, Call):
            words.append(part.arguments)
    return words


def quotations(words):
    """What must not be in a line."""
    for text in words:
        yield from (text[at : at + QUOTED] for at in range(len(text) - QUOTED + 1))


# -- what may become of an answer ------------------------------------------------------------------


def cut(draw, body, stream):
    return body[: draw(st.integers(0, len(body)))]


def damaged(draw, body, stream):
    at = draw(st.integers(0, len(body)))
    return body[:at] + draw(st.binary(max_size=3)) + body[at + draw(st.integers(0, 3)) :]


def rearranged(draw, body, stream):
    """Something that was said stands at another place of a document, as another type perhaps."""
    datas = body.split(b"\n\n") if stream else [body]
    at = draw(st.integers(0, len(datas) - 1))
    before, brace, rest = datas[at].partition(b"{")
    try:
        document = json.loads(brace + rest)
    except ValueError:
        return body
    paths = list(places(document))
    moved = draw(st.sampled_from([body.decode("utf-8", "replace"), _longest(document), [], None]))
    changed = put(document, draw(st.sampled_from(paths)), moved)
    datas[at] = before + json.dumps(changed).encode()
    return b"\n\n".join(datas)


def told_as_error(draw, body, stream):
    words = body.decode("utf-8", "replace")
    shape = draw(
        st.sampled_from(
            [{"error": {"message": words}}, {"error": words}, {"message": words}, [words], words]
        )
    )
    told = json.dumps(shape).encode()
    return b"data: " + told + b"\n\n" if stream and draw(st.booleans()) else told


def in_prose(draw, body, stream):
    return b"Sorry, it went wrong: " + body


def untouched(draw, body, stream):
    return body


CHANGES = (cut, damaged, rearranged, told_as_error, in_prose, untouched)


def _longest(document):
    texts = [one for path in places(document) if isinstance(one := _at(document, path), str)]
    return max(texts, key=len, default="")


def _at(document, path):
    for key in path:
        document = document[key]
    return document


@st.composite
def answers(draw, provider, stream):
    """An answer that may be anything, with any status; what was said of it, and where it ends."""
    body = translation.answer(provider, stream=stream)
    for change in draw(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=2)):
        body = change(draw, body, stream)
    status = draw(st.sampled_from([200, 200, 200, 400, 404, 429, 500]))
    kind = KINDS[stream if draw(st.booleans()) else draw(st.booleans())]
    return Answer(status, body, {"content-type": kind})


# -- the law ---------------------------------------------------------------------------------------


def gateway_to(provider, wire, lines):
    """A gateway that writes all the lines there are; its upstream speaks one dialect."""
    dialect, _ = translation.CONVERSATION[provider]
    telemetry = Telemetry(log=open_log(level="debug", style="json", stream=lines))
    gateway = InProcessGateway(wire, provider, observer=telemetry)
    up = Upstream(name="up", base_url="http://sim", policy=provider, dialects=(dialect,))
    gateway.proxy.directory = Directory([up])
    return gateway


def asked(speaks, *, stream):
    """A request of a client, its path and its headers."""
    dialect = DIALECTS[speaks]
    method = "streamGenerateContent" if stream else "generateContent"
    fields = {"max_tokens": 500} if speaks == "messages" else {}
    body = dialect.write(
        [Turn(input=(Text(text=QUESTION),))], model="m", tools=TOOLS, stream=stream, fields=fields
    )
    name, value = dialect.credential(KEY)
    return PATHS[speaks].format(method=method), body, {name: value}


def quoted(lines, words):
    """Words that are in the lines of some requests, and must not be."""
    text = lines.getvalue()
    assert '"event":"request"' in text
    return [word for word in (KEY, "question-canary", *quotations(words)) if word in text]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("provider", translation.CONVERSATION)
@pytest.mark.parametrize("speaks", DIALECTS)
@given(data=st.data())
def test_no_line_quotes_an_answer(speaks, provider, stream, data):
    lines = io.StringIO()
    wire = BreakingWire(data.draw(answers(provider, stream)), broken=data.draw(st.booleans()))
    path, body, head = asked(speaks, stream=stream)

    async def ask():
        await gateway_to(provider, wire, lines).post(path, body, head)
        await asyncio.sleep(0)  # lines are written when the loop comes round

    asyncio.run(ask())
    assert quoted(lines, said(provider, stream)) == []


async def over_websocket(app, frame):
    """Send a frame to an application, and wait for the last event of the answer."""
    received, sent = asyncio.Queue(), asyncio.Queue()
    head = {"host": "127.0.0.1", "authorization": f"Bearer {KEY}"}
    scope = {
        "type": "websocket",
        "path": PATHS["responses"],
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in head.items()],
        "client": ("127.0.0.1", 4711),
        "subprotocols": [],
    }
    serving = asyncio.create_task(app(scope, received.get, sent.put))
    for message in ({"type": "connect"}, {"type": "receive", "text": json.dumps(frame)}):
        received.put_nowait({**message, "type": f"websocket.{message['type']}"})
    while True:
        message = await sent.get()
        if LAST_EVENT.search(message.get("text") or (message.get("bytes") or b"").decode()):
            break
    received.put_nowait({"type": "websocket.disconnect", "code": 1000})
    await serving
    await asyncio.sleep(0)  # lines are written when the loop comes round


@pytest.mark.parametrize("provider", translation.CONVERSATION)
@given(data=st.data())
def test_nor_over_a_websocket(provider, data):
    lines = io.StringIO()
    wire = BreakingWire(data.draw(answers(provider, True)), broken=data.draw(st.booleans()))
    app = Gateway(gateway_to(provider, wire, lines).proxy, page)
    frame = {"type": "response.create", "model": "m", "input": QUESTION}
    asyncio.run(over_websocket(app, frame))
    assert quoted(lines, said(provider, True)) == []
