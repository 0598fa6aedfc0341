"""The troubleshooting page: its error texts are those that the gateway knows and providers send.

Texts stand in blocks of their own (`error`). In them `…` and `N` stand for whatever a provider puts
there, and `NAME` for the name of a tool.
"""

import json
import re
from pathlib import Path

import pytest

from support.clients import client, load
from thoughtline.gateway import headers
from thoughtline.providers.errors import ERROR_RULES, Strategy, diagnose
from thoughtline.testing import simulator

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "howto" / "troubleshooting.md").read_text("utf-8")
ERRORS = re.findall(r"^```error\n(.+?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
NOT_SHOWN = {
    Strategy.RECONNECT,  # a WebSocket's own affair
    Strategy.KEEP_IDS,  # only after ids were left out
    Strategy.DROP_INCLUDE,  # only what the gateway asked for
    Strategy.TAKE_OUT,  # in whatever words
}
FIELDS = {"claude": {"thinking": {"type": "enabled", "budget_tokens": 2048}}}


def patterns():
    for text in ERRORS:
        words = [re.escape(part) for part in re.split(r"…|(?<!\w)(?:N|NAME)(?!\w)", text)]
        yield re.compile(".*?".join(words), re.DOTALL)


def said(reply):
    """The text of a refusal, wherever the provider puts it."""
    body = reply.body.decode()
    return body + "\n" + body.replace('\\"', '"').replace("\\n", "\n")


@pytest.mark.parametrize("text", ERRORS)
def test_every_error_is_one_that_the_gateway_acts_on(text):
    body = text if text.startswith("{") else json.dumps({"error": {"message": text}})
    assert diagnose(400, body.encode()) is not None


def test_every_error_that_the_gateway_acts_on_is_there():
    found = {diagnose(400, text.encode()) for text in ERRORS}
    acted_on = {strategy for strategy, *_ in ERROR_RULES}
    assert acted_on - found == NOT_SHOWN & acted_on


def test_no_error_is_there_twice():
    assert len(set(ERRORS)) == len(ERRORS) > 25


@pytest.mark.parametrize(
    "name",
    [
        "deepseek",
        "deepseek-v3.2",
        "deepseek-anthropic",
        "deepseek-responses",
        "kimi",
        "kimi-k3",
        "mimo",
        "claude",
        "gemini",
        "gemini-compat",
        "gemini-vertex",
    ],
)
def test_a_client_that_loses_its_thoughts_gets_one_of_them(name):
    sim = simulator(name)
    talker = client(sim.dialect, sim, model=sim.models()[0], echo="strip", **FIELDS.get(name, {}))
    reply = talker.run(4)
    assert reply.status == 400, reply.body
    assert any(pattern.search(said(reply)) for pattern in patterns()), reply.body


def with_reasoning_content(entries):
    """What a client does that knows one key for all providers."""
    return [
        {**entry, "reasoning_content": "hm"} if entry.get("role") == "assistant" else entry
        for entry in map(load, entries)
    ]


@pytest.mark.parametrize("name", ["groq", "cerebras", "mistral", "deepseek-r1"])
def test_a_client_that_sends_them_where_they_are_refused_gets_one_of_them(name):
    sim = simulator(name)
    talker = client("chat", sim, model=sim.models()[0], echo=with_reasoning_content)
    reply = talker.run(3)
    assert reply.status in (400, 422), reply.body
    assert any(pattern.search(said(reply)) for pattern in patterns()), reply.body


def without_reasoning(entries):
    return [e for e in map(load, entries) if e.get("type") != "reasoning"]


def only_reasoning(entries):
    kept = list(map(load, entries))
    last = max(n for n, entry in enumerate(kept) if entry.get("type") == "reasoning")
    return kept[: last + 1]


def altered(entries):
    return [
        {**entry, "encrypted_content": "gAAAAABaltered"}
        if entry.get("type") == "reasoning"
        else entry
        for entry in map(load, entries)
    ]


@pytest.mark.parametrize("echo", [without_reasoning, only_reasoning, altered])
def test_a_client_that_breaks_items_apart_gets_one_of_them(echo):
    sim = simulator("openai")
    talker = client("responses", sim, model=sim.models()[0], store=False)
    talker.talk(1)
    talker.echo = echo
    reply = talker.turn()
    assert reply.status == 400, reply.body
    assert any(pattern.search(said(reply)) for pattern in patterns()), reply.body


def test_every_header_that_is_read_is_in_the_reference():
    page = (DOCS / "reference" / "headers.md").read_text("utf-8")
    for name in headers._SESSION_HEADERS:
        assert f"`{name.decode()}" in page
    for value in ("off", "strict"):
        assert f"`x-thoughtline-replay: {value}`" in page
    assert "howto/troubleshooting.md" in (DOCS.parent / "README.md").read_text("utf-8")


def test_the_texts_in_the_readme_are_those_of_the_page():
    readme = (DOCS.parent / "README.md").read_text("utf-8")
    texts = re.findall(r"^\| (.+?) \| \[.*troubleshooting\.md#", readme, re.MULTILINE)
    assert len(texts) > 5
    shown = re.sub(r"\bN\b|\d+", "N", " ".join(PAGE.split()))
    assert [text for text in texts if re.sub(r"\bN\b|\d+", "N", text) not in shown] == []
