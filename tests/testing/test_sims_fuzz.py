"""Whatever a client sends, a simulator answers like its provider: never an exception."""

from __future__ import annotations

import copy
import functools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.clients import ChatClient, audit, post
from thoughtline.testing import Request, simulator
from thoughtline.testing.sims.chat import PROVIDERS

NAMES = sorted(PROVIDERS)
FEW = settings(max_examples=25)

# Where each provider says what went wrong.
SAYS = {
    "cerebras": lambda body: body["message"],
    "mistral": lambda body: body["message"],
    "mimo": lambda body: body["error"]["param"] or body["error"]["message"],
    "gemini-compat": lambda body: body[0]["error"]["message"],
    "minimax": lambda body: body["error"]["message"],
}
KEYS = {
    "glm": {"code", "message"},
    "kimi": {"message", "type"},
    "kimi-k3": {"message", "type"},
    "groq": {"message", "type"},
    "mimo": {"code", "message", "param", "type"},
    "minimax": {"type", "message", "http_code"},
    "gemini-compat": {"code", "message", "status"},
}

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def said(name, reply):
    """The error's text, checked to be where this provider puts it."""
    body = json.loads(reply.body.removeprefix(b"data:"))
    text = SAYS.get(name, lambda body: body["error"]["message"])(body)
    assert text
    if name in KEYS:
        error = body[0]["error"] if name == "gemini-compat" else body["error"]
        assert set(error) == KEYS[name]
    return text


def check(name, reply):
    """A 200 in the dialect, or an error in the provider's shape."""
    assert audit(reply)
    if reply.status == 200:
        assert b"chat.completion" in reply.body
    else:
        assert 400 <= reply.status <= 422
        assert said(name, reply)


@functools.cache
def history(name):
    """A valid body of several turns."""
    talk = ChatClient(simulator(name), key="k")
    if name == "deepseek-r1":
        talk.alter = lambda m: {k: v for k, v in m.items() if k != "reasoning_content"}
    assert talk.run(5).status == 200
    body = {**talk.request(), "thinking": {"type": "enabled"}}
    return {k: v for k, v in body.items() if (name, k) != ("cerebras", "thinking")}


def places(value, path=()):
    """The path of everything inside a JSON value."""
    yield path
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, child in inner:
            yield from places(child, (*path, key))


def put(body, path, value):
    if not path:
        return value
    body = copy.deepcopy(body)
    owner = functools.reduce(lambda v, key: v[key], path[:-1], body)
    owner[path[-1]] = value
    return body


def drop(body, path):
    body = copy.deepcopy(body)
    owner = functools.reduce(lambda v, key: v[key], path[:-1], body)
    del owner[path[-1]]
    return body


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data())
def test_any_value_anywhere(name, data):
    body = history(name)
    path = data.draw(st.sampled_from(list(places(body))))
    check(name, post(simulator(name), put(body, path, data.draw(values))))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_needed_that_is_not_asked_for(name):
    body = history(name)
    sim = simulator(name)
    for path in places(body):
        if path:
            check(name, post(sim, drop(body, path)))


@pytest.mark.parametrize("name", NAMES)
def test_every_wrong_type_at_every_place(name):
    body = history(name)
    sim = simulator(name)
    for path in places(body):
        for value in (None, 5, "x", [], {"a": 1}, [5]):
            check(name, post(sim, put(body, path, value)))


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(body=st.binary(max_size=60) | values.map(lambda v: json.dumps(v).encode()))
def test_any_bytes(name, body):
    reply = post(simulator(name), body)
    assert reply.status != 200
    check(name, reply)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"model":', b"[" * 100_000, b'"\\ud83d"', b"\xff", b"NaN", b"1e999"]
)
def test_malformed_json(name, body):
    reply = post(simulator(name), body)
    assert reply.status == (422 if name == "mistral" else 400)
    said(name, reply)


@pytest.mark.parametrize("name", NAMES)
def test_deep_json(name):
    sim = simulator(name)
    for depth in (100, 300, *range(700, 1100, 40)):
        deep = b'{"type":"text","text":"x","x":' + b"[" * depth + b"]" * depth + b"}"
        body = b'{"model":"m","messages":[{"role":"user","content":[' + deep + b"]}]}"
        check(name, post(sim, body))


@pytest.mark.parametrize("name", NAMES)
def test_wrong_places(name):
    sim = simulator(name)
    head = {"authorization": "Bearer k"}
    reply = sim.answer(Request("POST", "/v1/nowhere", head, b"{}"))
    assert reply.status == 404
    said(name, reply)
    assert sim.answer(Request("GET", "/v1/chat/completions", head, b"")).status == 405
    assert sim.answer(Request("POST", "/v1/models", head, b"")).status == 405
    listing = json.loads(sim.answer(Request("GET", "/v1/models", head, b"")).body)
    assert [m["id"] for m in listing["data"]] == list(sim.models())


@pytest.mark.parametrize("name", NAMES)
def test_no_credential(name):
    sim = simulator(name)
    for headers in ({}, {"authorization": "Bearer "}, {"authorization": ""}):
        reply = sim.answer(Request("POST", "/v1/chat/completions", headers, b"{}"))
        assert reply.status == 401
        said(name, reply)
    only = simulator(name, account="k")
    assert post(only, history(name), key="bad").status == 401
    assert post(only, history(name), key="k").status == 200


@given(text=st.text(max_size=12))
def test_any_fault_header(text):
    reply = post(simulator("glm"), history("glm"), x_sim_fault=text)
    assert 200 <= reply.status <= 599
