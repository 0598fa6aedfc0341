"""Clients that bring back exactly what they were given, one per dialect.

Each keeps the history as the bytes it received, so that a simulated provider has nothing to blame
them for; a test then spoils one thing in `history` and sees what the provider says to that.
"""

import msgspec
from hypothesis import strategies as st

from thoughtline.testing.sims.spelling import Fragment, elements, fields, write
from thoughtline.testing.sims.values import Request

TOOL_NAMES = ("read_file", "run", "search")


def sse(body):
    """The data of each event, as bytes."""
    events = [block for block in body.split(b"\n\n") if block]
    return [
        line.removeprefix(b"data: ")
        for block in events
        for line in block.split(b"\n")
        if line.startswith(b"data: ")
    ]


def load(raw):
    return msgspec.json.decode(raw)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
"""Any JSON."""


def places(value, path=()):
    """The path to every value in a document."""
    yield path
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(one, (*path, key))


def put(value, path, junk):
    """The document with something else at this path."""
    if not path:
        return junk
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(copy[path[0]], path[1:], junk)
    return copy


class Client:
    """What the dialects share."""

    path = ""
    model = ""

    def __init__(self, sim, *, key="key-one", stream=False, model=None, tools=True, **body):
        self.sim = sim
        self.key = key
        self.stream = stream
        self.model = model or self.model
        self.tools = tools
        self.body = body
        self.history = [self.user("Please go ahead.")]
        self.headers = {}

    def user(self, text):
        raise NotImplementedError

    def request(self):
        """The body of the next request."""
        raise NotImplementedError

    def absorb(self, reply):
        """Append the answer to the history, and what a user or a tool says to it."""
        raise NotImplementedError

    def send(self, **changes):
        """Send the history; it stays as it is."""
        body = {**self.request(), **changes}
        headers = {"authorization": f"Bearer {self.key}", **self.headers}
        return self.sim.answer(Request("POST", self.path, headers, write(body), self.query))

    query = ""

    def talk(self, turns):
        """So many exchanges; gives the last reply."""
        for _ in range(turns):
            reply = self.send()
            assert reply.status == 200, reply.body
            self.absorb(reply)
        return reply

    def raw(self):
        return [Fragment(one.decode()) for one in self.history]

    def edit(self, at, **changes):
        """Change fields of one entry; None removes a field."""
        value = {**load(self.history[at]), **changes}
        value = {name: one for name, one in value.items() if one is not None}
        self.history[at] = write(value)

    def find(self, test):
        """Where the entries are of which something is true."""
        return [at for at, one in enumerate(self.history) if test(load(one))]


class ResponsesClient(Client):
    path = "/v1/responses"
    model = "gpt-5.6"

    def user(self, text):
        return write({"type": "message", "role": "user", "content": text})

    def request(self):
        tools = [{"type": "function", "name": n, "parameters": {}} for n in TOOL_NAMES]
        return {
            "model": self.model,
            "store": False,
            "stream": self.stream,
            "include": ["reasoning.encrypted_content"],
            "tools": tools if self.tools else [],
            "input": self.raw(),
            **self.body,
        }

    def output(self, reply):
        """The items of an answer, as bytes."""
        if not self.stream:
            return elements(fields(reply.body)["output"])
        last = fields(sse(reply.body)[-1])
        return elements(fields(last["response"])["output"])

    def absorb(self, reply):
        items = self.output(reply)
        self.history += [*items, *self.answers(items)]

    def answers(self, items):
        """What tools or users say to these items."""
        calls = [one for one in map(load, items) if one["type"] == "function_call"]
        if not calls:
            return [self.user("And then?")]
        return [
            write({"type": "function_call_output", "call_id": call["call_id"], "output": "fine"})
            for call in calls
        ]

    def kinds(self, kind):
        return self.find(lambda one: one.get("type") == kind)
