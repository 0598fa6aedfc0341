"""What a path means, and where it goes."""

import pytest

from rooms import Answer, Rooms, ScriptedWire
from thoughtline.gateway.routes import climbs, join, parse
from thoughtline.gateway.upstreams import Directory, Upstream


@pytest.mark.parametrize(
    ("path", "dialect", "upstream", "model", "stream"),
    [
        ("/v1/chat/completions", "chat", "", "", None),
        ("/u/deepseek/v1/chat/completions", "chat", "deepseek", "", None),
        ("/u/glm/chat/completions", "chat", "glm", "", None),
        ("/v1/responses", "responses", "", "", None),
        ("/v1/messages", "messages", "", "", None),
        ("/v1/messages/count_tokens", "", "", "", None),
        ("/v1beta/models/gemini-3-pro:generateContent", "gemini", "", "gemini-3-pro", False),
        ("/v1beta/models/gemini-3-pro:streamGenerateContent", "gemini", "", "gemini-3-pro", True),
        ("/v1beta/models/gemini-3-pro:countTokens", "", "", "gemini-3-pro", None),
        ("/v1/embeddings", "", "", "", None),
        ("/u/x/v1//chat/completions", "chat", "x", "", None),
        ("/u/x/v1/messages/", "messages", "x", "", None),
        ("/u/x", "", "x", "", None),
        ("/", "", "", "", None),
    ],
)
def test_paths(path, dialect, upstream, model, stream):
    route = parse("POST", path)
    assert (route.dialect, route.upstream, route.model, route.stream) == (
        dialect,
        upstream,
        model,
        stream,
    )
    assert parse("GET", path).dialect == ""


@pytest.mark.parametrize(
    ("path", "goes_on", "family"),
    [
        ("/u/x//v1///chat/completions/", "/v1/chat/completions", "chat"),
        ("/v1/messages/count_tokens", "/v1/messages/count_tokens", "messages"),
        ("/v1/messages/batches//x/", "/v1/messages/batches//x/", "messages"),
        ("/v1/responses/compact", "/v1/responses/compact", "responses"),
        ("/v1beta/models/m:countTokens", "/v1beta/models/m:countTokens", "gemini"),
        ("/v1beta/openai/models", "/v1beta/openai/models", "chat"),
        ("/v1/models", "/v1/models", ""),
        ("/v1/files//x/", "/v1/files//x/", ""),
    ],
)
def test_what_goes_on_and_whose_it_is(path, goes_on, family):
    route = parse("POST", path)
    assert (route.path, route.family) == (goes_on, family)


KNOWN = [
    Upstream(name="anthropic", base_url="https://a", policy="anthropic", key="k", models=("c-*",)),
    Upstream(
        name="deepseek",
        base_url="https://d",
        policy="deepseek",
        key="k",
        models=("d-*",),
        endpoints={"messages": "https://d/anthropic/v1"},
    ),
    Upstream(name="gemini", base_url="https://g", policy="gemini", key="k", models=("g-*",)),
]
X, GOOG, BEARER = ("x-api-key", "k"), ("x-goog-api-key", "k"), ("authorization", "Bearer k")


@pytest.mark.parametrize(
    ("path", "model", "url", "key"),
    [
        ("/v1/messages/count_tokens", "c-1", "https://a/v1/messages/count_tokens", X),
        (
            "/v1/messages/count_tokens",
            "d-1",
            "https://d/anthropic/v1/messages/count_tokens",
            X,
        ),
        ("/v1beta/models/g-1:countTokens", "", "https://g/v1beta/models/g-1:countTokens", GOOG),
        ("/u/anthropic/v1/files", "", "https://a/v1/files", X),
        ("/u/gemini/v1beta/files", "", "https://g/v1beta/files", GOOG),
        ("/u/gemini/v1beta/openai/embeddings", "", "https://g/v1beta/openai/embeddings", BEARER),
        ("/v1/embeddings", "d-1", "https://d/v1/embeddings", BEARER),
        ("/v1/chat/completions", "d-1", "https://d/v1/chat/completions", BEARER),
    ],
)
async def test_what_passes_through_goes_to_whom_its_model_belongs(path, model, url, key):
    wire = ScriptedWire(Answer())
    rooms = Rooms(wire)
    rooms.proxy.directory = Directory(KNOWN)
    body = {"model": model, "input": "x"} if model else {"input": "x"}
    reply = await rooms.post(path, body, {"x-thoughtline-replay": "off"})
    assert reply.status == 200, reply.body
    (sent,) = wire.sent
    assert sent.url == url
    assert key in sent.headers


@pytest.mark.parametrize("path", ["/v1/files", "/v1/messages/count_tokens"])
async def test_what_belongs_to_nobody_is_told_what_to_do(path):
    rooms = Rooms(ScriptedWire(Answer()))
    rooms.proxy.directory = Directory(KNOWN)
    reply = await rooms.post(path, b"not JSON")
    assert (reply.status, reply.json["error"]["code"]) == (404, "unknown_upstream")
    assert f"/u/NAME{path}" in reply.json["error"]["message"]
    assert ("type" in reply.json) == ("messages" in path)


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        (
            "https://api.deepseek.com",
            "/v1/chat/completions",
            "https://api.deepseek.com/v1/chat/completions",
        ),
        ("https://api.openai.com/v1", "/v1/responses", "https://api.openai.com/v1/responses"),
        (
            "https://api.z.ai/api/paas/v4",
            "/v1/chat/completions",
            "https://api.z.ai/api/paas/v4/chat/completions",
        ),
        ("https://x/v1/", "/v1/models", "https://x/v1/models"),
        ("https://x/api/v4", "/api/v4/models", "https://x/api/v4/models"),
        ("https://x/api", "/v1/models", "https://x/api/v1/models"),
        ("https://x/api", "/api/v1/models", "https://x/api/v1/models"),
        ("https://x/api", "/apis/models", "https://x/api/apis/models"),
        ("https://x/v1", "/chat/completions", "https://x/v1/chat/completions"),
        ("https://x", "/chat/completions", "https://x/chat/completions"),
        ("https://x", "*@elsewhere/v1", "https://x/*@elsewhere/v1"),
        (
            "https://g/v1beta",
            "/v1beta/models/m:generateContent",
            "https://g/v1beta/models/m:generateContent",
        ),
    ],
)
def test_a_version_in_the_base_stands_for_the_paths_own(base, path, url):
    assert join(base, path) == url
    assert join(base, path, "a=b") == url + "?a=b"


def test_a_dialect_may_live_elsewhere():
    deepseek = Upstream(
        name="deepseek",
        base_url="https://api.deepseek.com",
        endpoints={"messages": "https://api.deepseek.com/anthropic/v1"},
    )
    assert (
        deepseek.url("messages", "/v1/messages") == "https://api.deepseek.com/anthropic/v1/messages"
    )
    assert (
        deepseek.url("chat", "/v1/chat/completions")
        == "https://api.deepseek.com/v1/chat/completions"
    )
    mirrored = "/anthropic/v1/messages"  # as in https://api.deepseek.com/anthropic
    assert deepseek.url("messages", mirrored) == "https://api.deepseek.com/anthropic/v1/messages"
    gemini = Upstream(name="g", base_url="https://g", endpoints={"chat": "https://g/v1beta/openai"})
    mirrored = "/v1beta/openai/chat/completions"
    assert gemini.url("chat", mirrored) == "https://g/v1beta/openai/chat/completions"
    assert gemini.url("chat", "/v1/chat/completions") == "https://g/v1beta/openai/chat/completions"


def test_the_longest_pattern_wins_and_configured_ones_come_first():
    known = Upstream(name="known", base_url="https://a", models=("deepseek-*",), configured=False)
    mine = Upstream(name="mine", base_url="https://b", models=("deep*",))
    narrow = Upstream(name="narrow", base_url="https://c", models=("deepseek-v4*",))
    directory = Directory([known, mine, narrow])
    assert directory.pick("", "deepseek-v4-pro").name == "narrow"
    assert directory.pick("", "deepseek-r1").name == "mine"
    assert directory.pick("known", "anything").name == "known"
    assert directory.pick("nobody", "deepseek-v4") is None
    assert directory.pick("", "gpt") is None
    assert Directory([known, mine]).pick("", "gpt").name == "mine"  # the only configured one


def test_no_key_is_ever_shown():
    assert "sk-1" not in repr(Upstream(name="x", base_url="https://x", key="sk-1"))


def test_a_path_goes_on_with_its_escapes():
    """Decoded, a part of a path could end it, or the request line."""
    route = parse("GET", "/u/my%20own/v1/files/a%2Fb%3Fc%20d")
    assert (route.upstream, route.path) == ("my own", "/v1/files/a%2Fb%3Fc%20d")


@pytest.mark.parametrize(
    ("path", "up"),
    [
        ("/v1/../admin", True),
        ("/..", True),
        ("/v1/%2e%2E/admin", True),
        ("/v1/.%2e/admin", True),
        ("/v1/..%2Fadmin", True),
        ("/v1/a%2f..%2fadmin", True),
        ("/v1/..%5cadmin", True),
        ("/v1/..\\admin", True),
        ("/v1/%252e%252e/admin", True),
        ("/v1/files/a..b", False),
        ("/v1/files/...", False),
        ("/v1/./chat/completions", False),
        ("/v1/models/gemini-2.5-pro:generateContent", False),
    ],
)
def test_a_path_that_goes_up_is_known(path, up):
    assert climbs(path) is up


@pytest.mark.parametrize(
    ("model", "read"),
    [("sim/gemini", "sim/gemini"), ("sim/gemini/gemini-3-pro", "sim/gemini/gemini-3-pro")],
)
def test_a_simulated_model_may_stand_in_a_path_with_its_slashes(model, read):
    route = parse("POST", f"/v1beta/models/{model}:streamGenerateContent")
    assert (route.dialect, route.model, route.stream) == ("gemini", read, True)


@pytest.mark.parametrize("colon", [":", "%3A"])
def test_a_model_in_a_path_is_read_without_its_escapes(colon):
    path = f"/v1beta/models/sim%2Fgemini{colon}generateContent"
    route = parse("POST", path)
    assert (route.dialect, route.model, route.path) == ("gemini", "sim/gemini", path)
