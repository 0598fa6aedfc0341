"""Upstreams: whose a model is, and where each dialect is spoken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.gateway import Answer, InProcessGateway, ScriptedWire
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.engine.model_names import ModelNames, ModelRow
from thoughtline.engine.routes import join

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
    gateway = InProcessGateway(wire)
    gateway.proxy.directory = Directory(KNOWN)
    body = {"model": model, "input": "x"} if model else {"input": "x"}
    reply = await gateway.post(path, body, {"x-thoughtline-replay": "off"})
    assert reply.status == 200, reply.body
    (sent,) = wire.sent
    assert sent.url == url
    assert key in sent.headers


@pytest.mark.parametrize("path", ["/v1/files", "/v1/messages/count_tokens"])
async def test_what_belongs_to_nobody_is_told_what_to_do(path):
    gateway = InProcessGateway(ScriptedWire(Answer()))
    gateway.proxy.directory = Directory(KNOWN)
    reply = await gateway.post(path, b"{}")
    assert (reply.status, reply.json["error"]["code"]) == (404, "unknown_upstream")
    assert f"/u/NAME{path}" in reply.json["error"]["message"]
    assert ("type" in reply.json) == ("messages" in path)


NAMED = [
    Upstream(name=name, base_url=base, key="k", models=models, configured=False)
    for name, base, models in (
        ("openai", "https://api.openai.com", ("gpt-*",)),
        ("anthropic", "https://api.anthropic.com", ("claude-*",)),
        ("gemini", "https://generativelanguage.googleapis.com", ("gemini-*",)),
        ("deepseek", "https://api.deepseek.com", ("deepseek-*",)),
        ("groq", "https://api.groq.com/openai/v1", ("llama-*",)),
    )
]
MINE = Upstream(name="mine", base_url="https://mine.example", key="k", models=("m-*",))


@pytest.mark.parametrize(
    ("path", "model", "url"),
    [
        # A version too many: the base URL has one, and the client adds its own.
        ("/u/anthropic/v1/v1/messages", "c", "https://api.anthropic.com/v1/messages"),
        # None at all: the AI SDK's Anthropic, and OpenAI's SDKs with a base URL without /v1.
        ("/u/anthropic/messages", "c", "https://api.anthropic.com/v1/messages"),
        ("/u/openai/chat/completions", "c", "https://api.openai.com/v1/chat/completions"),
        ("/u/openai/responses", "c", "https://api.openai.com/v1/responses"),
        (
            "/u/gemini/models/g:generateContent",
            "g",
            "https://generativelanguage.googleapis.com/v1beta/models/g:generateContent",
        ),
        # Where it is not needed, and where nobody knows, it is left as it is.
        ("/u/deepseek/chat/completions", "d", "https://api.deepseek.com/chat/completions"),
        ("/u/mine/chat/completions", "d", "https://mine.example/chat/completions"),
        ("/u/openai/dashboard", "", "https://api.openai.com/dashboard"),
        # The name without /u/ before it.
        (
            "/deepseek/v1/chat/completions",
            "deepseek-4",
            "https://api.deepseek.com/v1/chat/completions",
        ),
        ("/openai/chat/completions", "deepseek-4", "https://api.openai.com/v1/chat/completions"),
        # A path that the model's own upstream has, or whose upstream somebody configured.
        (
            "/openai/v1/chat/completions",
            "llama-4",
            "https://api.groq.com/openai/v1/chat/completions",
        ),
        ("/openai/v1/chat/completions", "m-1", "https://mine.example/openai/v1/chat/completions"),
    ],
)
async def test_a_base_url_is_understood_as_it_was_meant(path, model, url):
    wire = ScriptedWire(Answer())
    gateway = InProcessGateway(wire)
    gateway.proxy.directory = Directory([*NAMED, MINE])
    reply = await gateway.post(path, {"model": model}, {"x-thoughtline-replay": "off"})
    assert (reply.status, [one.url for one in wire.sent]) == (200, [url])


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


def test_names_are_found_in_any_case_and_an_exact_one_first():
    deepseek = Upstream(name="deepseek", base_url="https://api.deepseek.com")
    mimo = Upstream(name="mimo", base_url="https://api.xiaomimimo.com")
    mine = Upstream(name="Mine", base_url="http://a")
    other = Upstream(name="mine", base_url="http://b")
    directory = Directory([deepseek, mimo, mine, other])
    assert directory.pick("DeepSeek", "") is deepseek
    assert directory.pick("Xiaomi-MiMo", "") is mimo
    assert directory.pick("Mine", "") is mine
    assert directory.pick("mine", "") is other
    assert directory.pick("MINE", "") is None  # two of that name
    assert directory.pick("nobody", "") is None


NAMES = st.sampled_from(["gpt", "claude", "gemini", "deepseek", "llama", "x"]).flatmap(
    lambda family: st.text("-0123456789abc.", max_size=6).map(lambda rest: family + rest)
)


@given(alias=NAMES, asked=NAMES, to=st.sampled_from([one.name for one in NAMED]))
def test_a_name_in_the_map_changes_no_other_name(alias, asked, to):
    row = ModelRow(pattern=alias, upstream=to, model="served")
    plain, mapped = Directory(NAMED), Directory(NAMED, model_names=ModelNames([row]))
    if alias != asked:
        for path in ("", *plain.names):
            assert mapped.pick(path, asked) is plain.pick(path, asked)
    else:
        found, owner = mapped.pick("", asked), plain.pick("", asked)
        assert (found.name, found.served, found.asked) == (to, "served", asked)
        assert found.foreign is (owner is not None and owner.name != to)
        for path in plain.names:
            assert mapped.pick(path, asked).name == path
            assert not mapped.pick(path, asked).foreign
