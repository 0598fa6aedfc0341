"""The AI SDK on Node, through the gateway."""

import os
from pathlib import Path

import pytest

from e2e.ways import THINKING, providers
from e2e.workers import Worker
from thoughtline.testing import simulator

HERE = Path(__file__).parent / "node"
MODULES = Path(os.environ.get("E2E_NODE_MODULES", HERE / "node_modules"))

by_gateway = pytest.mark.parametrize("way", ["gateway"], indirect=True)
streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
KINDS = {
    "openai-compatible": "chat",
    "openai-responses": "responses",
    "anthropic": "messages",
    "google": "gemini",
}
CHAT = providers("chat", without={"mistral"})  # content in parts is for its own package


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    node = MODULES / ".bin" / "node"
    if not node.exists() or not (MODULES / "ai").exists():
        pytest.skip("the AI SDK is not installed; `make clients` installs it")
    folder = tmp_path_factory.mktemp("node")
    (folder / "node_modules").symlink_to(MODULES)
    (folder / "worker.mjs").write_text((HERE / "worker.mjs").read_text("utf-8"), "utf-8")
    made = Worker(node, "worker.mjs", log=folder / "log", cwd=folder)
    yield made
    made.close()


@by_gateway
@streamed
@pytest.mark.parametrize("name", CHAT)
@pytest.mark.parametrize("kind", ["openai-chat", "openai-compatible"])
def test_chat(way, worker, kind, stream):
    worker.converse(way, kind=kind, stream=stream)


@by_gateway
@streamed
@pytest.mark.parametrize("name", ["deepseek", "deepseek-v3.2", "deepseek-r1"])
def test_deepseek(way, worker, stream):
    worker.converse(way, kind="deepseek", stream=stream)


@by_gateway
@streamed
@pytest.mark.parametrize("name", ["mistral"])
def test_mistral(way, worker, stream):
    worker.converse(way, kind="mistral", stream=stream)


@by_gateway
@streamed
@pytest.mark.parametrize("name", providers("messages"))
def test_anthropic(way, worker, stream):
    thinking = dict(THINKING.get(way.name, {}))
    if "budget_tokens" in thinking:
        thinking["budgetTokens"] = thinking.pop("budget_tokens")
    options = {"anthropic": {"thinking": thinking}} if thinking else {}
    worker.converse(way, kind="anthropic", stream=stream, options=options)


@by_gateway
@streamed
@pytest.mark.parametrize("name", providers("responses", without={"codex"}))
@pytest.mark.parametrize("stored", [True, False], ids=["stored", "unstored"])
def test_responses(way, worker, stored, stream):
    """By default it sends back nothing but references to items."""
    options = {"store": False, "include": ["reasoning.encrypted_content"]}
    worker.converse(
        way,
        kind="openai-responses",
        stream=stream,
        options={} if stored else {"openai": options},
    )


@by_gateway
@streamed
@pytest.mark.parametrize("name", providers("gemini"))
def test_google(way, worker, stream):
    options = {"google": {"thinkingConfig": {"includeThoughts": True}}}
    worker.converse(way, kind="google", stream=stream, options=options)


@by_gateway
@pytest.mark.parametrize("name", ["codex"])
def test_a_backend_that_only_streams(way, worker):
    options = {"openai": {"store": False, "instructions": "Be brief."}}
    worker.converse(way, kind="openai-responses", stream=True, options=options)


@by_gateway
@streamed
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind, dialect in KINDS.items()
        for name in ("deepseek", "kimi-k3", "openai", "claude", "gemini")
        if simulator(name).dialect != dialect
    ],
)
def test_providers_of_other_dialects(way, worker, kind, stream):
    way.model = way.alias
    options = {"openai": {"store": False}} if kind == "openai-responses" else {}
    worker.converse(way, kind=kind, stream=stream, options=options)
