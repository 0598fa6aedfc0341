"""The Codex CLI, through the gateway: three runs of one conversation, two of them resumed."""

import os
import subprocess
from pathlib import Path

import httpx2
import pytest

from e2e.ways import KEY, TURNS, providers

HERE = Path(__file__).parent / "node"
MODULES = Path(os.environ.get("E2E_NODE_MODULES", HERE / "node_modules"))

SENT = "thoughtline_wire_requests_total"

by_gateway = pytest.mark.parametrize("way", ["gateway"], indirect=True)


@pytest.fixture
def codex(tmp_path):
    """Runs the command line in a home of its own."""
    command = MODULES / ".bin" / "codex"
    if not command.exists():
        pytest.skip("codex is not installed; `make clients` installs it")
    home, folder = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    folder.mkdir()
    env = {**os.environ, "CODEX_HOME": str(home), "KEPT_KEY": KEY}

    def run(*arguments):
        made = subprocess.run(
            [str(command), "exec", *arguments],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]

    return run


@by_gateway
@pytest.mark.parametrize("sockets", [False, True], ids=["http", "websocket"])
@pytest.mark.parametrize("name", providers("responses"))
def test_exec_and_resume(way, codex, sockets):
    provider = (
        f'{{name="kept", base_url="{way.url}", env_key="KEPT_KEY", wire_api="responses", '
        f"supports_websockets={str(sockets).lower()}}}"
    )
    options = (
        "--skip-git-repo-check",
        *("-m", way.model),
        *("-c", "sandbox_mode=read-only"),
        *("-c", "model_provider=kept"),
        *("-c", f"model_providers.kept={provider}"),
    )
    before = by_socket(way)
    codex(*options, way.ask(0))
    codex("resume", "--last", *options, way.ask(1))
    codex("resume", "--last", *options, way.ask(2))
    way.judge()
    assert by_socket(way) - before == (TURNS if sockets else 0)


def by_socket(way):
    """How many requests have come to the gateway over a WebSocket."""
    lines = httpx2.get(f"{way.gateway}/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(SENT))
