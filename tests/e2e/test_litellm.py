"""LiteLLM's SDK, through the gateway; it cannot live in one environment with the other SDKs."""

import os
from pathlib import Path

import pytest

from e2e.ways import THINKING, providers
from e2e.workers import Worker

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("E2E_LITELLM", ROOT / ".venv-litellm" / "bin" / "python"))
OWN = {
    "deepseek": "deepseek",
    "deepseek-v3.2": "deepseek",
    "kimi": "moonshot",
    "kimi-k3": "moonshot",
    "groq": "groq",
    "cerebras": "cerebras",
    "mistral": "mistral",
    "vllm": "hosted_vllm",
    "openrouter": "openrouter",
}
"""Providers that it knows by name, and what it calls them."""

by_gateway = pytest.mark.parametrize("way", ["gateway"], indirect=True)
streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    if not PYTHON.exists():
        pytest.skip("litellm is not installed; `make clients` installs it")
    script = Path(__file__).with_name("litellm_worker.py")
    made = Worker(PYTHON, script, log=tmp_path_factory.mktemp("litellm") / "log")
    yield made
    made.close()


@by_gateway
@streamed
@pytest.mark.parametrize("name", providers("chat", without={"mistral"}))  # content in parts
def test_as_any_server_of_openai_kind(way, worker, stream):
    worker.converse(way, kind="chat", base=way.url, model=f"openai/{way.model}", stream=stream)


@by_gateway
@streamed
@pytest.mark.parametrize("name", OWN)
def test_by_its_own_name(way, worker, stream):
    model = f"{OWN[way.name]}/{way.model}"
    worker.converse(way, kind="chat", base=way.url, model=model, stream=stream)


@by_gateway
@streamed
@pytest.mark.parametrize("name", providers("messages", tame=True))
def test_messages(way, worker, stream):
    more = {"max_tokens": 4096}
    if way.name in THINKING:
        more["thinking"] = THINKING[way.name]
    model = f"anthropic/{way.model}"
    worker.converse(way, kind="chat", base=way.root, model=model, stream=stream, more=more)


@by_gateway
@pytest.mark.parametrize("name", providers("responses", without={"codex"}))
@pytest.mark.parametrize("stored", [True, False], ids=["stored", "unstored"])
@streamed
def test_responses(way, worker, stored, stream):
    more = {} if stored else {"store": False, "include": ["reasoning.encrypted_content"]}
    model = f"openai/{way.model}"
    worker.converse(way, kind="responses", base=way.url, model=model, stream=stream, more=more)


@by_gateway
@pytest.mark.parametrize("name", providers("responses", without={"codex"}))
def test_responses_behind_completion(way, worker):
    """Its bridge from one API to the other throws reasoning and ids away."""
    worker.converse(way, kind="chat", base=way.url, model=f"openai/responses/{way.model}")


# With models it does not know it only pretends to stream, and makes one call of parallel ones.
@by_gateway
@pytest.mark.parametrize(
    "name", providers("responses", without={"codex", "xai", "deepseek-responses"})
)
def test_responses_behind_a_stream(way, worker):
    model = f"openai/responses/{way.model}"
    worker.converse(way, kind="chat", base=way.url, model=model, stream=True)


@by_gateway
@streamed
@pytest.mark.parametrize("name", providers("gemini"))
def test_gemini(way, worker, stream):
    model = f"gemini/{way.model}"
    base = f"{way.root}/v1beta"
    worker.converse(way, kind="chat", base=base, model=model, stream=stream)


@by_gateway
@pytest.mark.parametrize("name", ["codex"])
def test_a_backend_that_only_streams(way, worker):
    more = {"store": False, "instructions": "Be brief."}
    model = f"openai/{way.model}"
    worker.converse(way, kind="responses", base=way.url, model=model, stream=True, more=more)
