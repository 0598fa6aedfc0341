"""A client of the gateway over a WebSocket."""

import contextlib
import json

from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from support import gateway_server as gateways
from support.waiting import eventually

TOOLS = [
    {"type": "function", "name": name, "parameters": {}} for name in ("read_file", "run", "search")
]


CLEAN = "altered=0; missing=0; misplaced=0; foreign=0"


MODELS = {"deepseek-responses": "deepseek-v4-flash", "xai": "grok-4.5"}


class SocketClient:
    """A client that sends what is new after the response before, like Codex."""

    def __init__(self, socket, *, model="gpt-5.6", lane=None, store=False):
        self.socket, self.lane = socket, lane
        self.fields = {"model": model, "tools": TOOLS, "store": store}
        self.fields["include"] = ["reasoning.encrypted_content"]
        self.previous = ""
        self.history = []  # everything, for a full send
        self.new = []

    async def ask(self, *new, full=False, **more):
        """Send, and read the answer; gives its events."""
        await self.send(*new, full=full, **more)
        return await self.read()

    async def send(self, *new, full=False, **more):
        self.new = [*new] or self.new
        self.history += self.new
        frame = {"type": "response.create", **self.fields, **more}
        if self.lane:
            frame["stream_id"] = self.lane
        if self.previous and not full:
            frame |= {"previous_response_id": self.previous, "input": self.new}
        else:
            frame["input"] = self.history
        await self.socket.send(json.dumps(frame))

    async def read(self):
        events = []
        while not events or events[-1]["type"] not in (
            "response.completed",
            "response.failed",
            "response.incomplete",
            "error",
        ):
            events.append(json.loads(await self.socket.recv()))
        self.take(events)
        return events

    def take(self, events):
        if events[-1]["type"] != "response.completed":
            return
        response = events[-1]["response"]
        self.previous = response["id"]
        items = [e["item"] for e in events if e["type"] == "response.output_item.done"]
        self.history += items
        calls = [item["call_id"] for item in items if item["type"] == "function_call"]
        self.new = [
            {"type": "function_call_output", "call_id": call, "output": "ok"} for call in calls
        ] or [{"role": "user", "content": f"and then? {len(self.history)}"}]


def say(text):
    return {"role": "user", "content": text}


@contextlib.contextmanager
def gateway(sims, name, *, websockets, dialects=(), **how):
    upstreams = gateways.upstreams(sims, name, supports_websockets=websockets, dialects=dialects)
    with gateways.running(upstreams, **how) as running:
        running.ws = running.url.replace("http", "ws") + "/v1/responses"
        yield running


def dial(url, key="key-one", **headers):
    shown = {"authorization": f"Bearer {key}", **headers}
    return connect(url, additional_headers=shown, max_size=None)


async def quiet(running, count):
    """Wait until the gateway has noted so many ends."""
    await eventually(lambda: len(running.notes.records) >= count)


async def refused(socket, frame):
    await socket.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))
    event = json.loads(await socket.recv())
    assert event["type"] == "error"
    return event["status"], event["error"]["code"]


async def status(url, **how):
    try:
        async with dial(url, **how):
            return 101
    except InvalidStatus as error:
        return error.response.status_code
