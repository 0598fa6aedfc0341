"""The Codex CLI, through the gateway: three runs of one conversation, two of them resumed."""

import httpx2
import pytest

from e2e.programs import Program
from e2e.ways import KEY, TURNS, providers

SENT = "thoughtline_wire_requests_total"
TRANSLATED = ["deepseek", "kimi", "kimi-k3", "glm", "claude", "claude-bound", "gemini"]

by_gateway = pytest.mark.parametrize("way", ["gateway"], indirect=True)


@pytest.fixture
def codex(tmp_path):
    program = Program("codex", tmp_path, KEPT_KEY=KEY)
    program.env["CODEX_HOME"] = str(program.home)
    return program


def options(way, *, sockets=False):
    provider = (
        f'{{name="kept", base_url="{way.url}", env_key="KEPT_KEY", wire_api="responses", '
        f"supports_websockets={str(sockets).lower()}}}"
    )
    return (
        "--skip-git-repo-check",
        *("-m", way.alias if way.sim.dialect != "responses" else way.model),
        *("-c", "sandbox_mode=read-only"),
        *("-c", "model_provider=kept"),
        *("-c", f"model_providers.kept={provider}"),
    )


def converse(way, codex, options):
    codex("exec", *options, way.ask(0))
    codex("exec", "resume", "--last", *options, way.ask(1))
    codex("exec", "resume", "--last", *options, way.ask(2))
    way.judge()


@by_gateway
@pytest.mark.parametrize("sockets", [False, True], ids=["http", "websocket"])
@pytest.mark.parametrize("name", providers("responses"))
def test_exec_and_resume(way, codex, sockets):
    before = by_socket(way)
    converse(way, codex, options(way, sockets=sockets))
    assert by_socket(way) - before == (TURNS if sockets else 0)


@by_gateway
@pytest.mark.parametrize("summary", ["auto", "none"])
@pytest.mark.parametrize("name", TRANSLATED)
def test_providers_of_other_dialects(way, codex, summary):
    """Thoughts are shown as summaries, or as reasoning text to a client that wants none."""
    converse(way, codex, (*options(way), *("-c", f"model_reasoning_summary={summary}")))


@by_gateway
@pytest.mark.parametrize("name", ["deepseek", "kimi-k3", "claude-bound"])
def test_a_websocket_to_providers_of_other_dialects(way, codex):
    before = by_socket(way)
    converse(way, codex, options(way, sockets=True))
    assert by_socket(way) - before == TURNS


def by_socket(way):
    """How many requests have come to the gateway over a WebSocket."""
    lines = httpx2.get(f"{way.gateway}/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(SENT))
