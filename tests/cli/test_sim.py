"""`thoughtline sim`: what it says, and that it serves and stops."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from click.testing import CliRunner

from thoughtline.cli.sim import sim
from thoughtline.testing import PROVIDERS


def run(*arguments):
    return CliRunner().invoke(sim, list(arguments))


def test_help_teaches():
    text = run("--help").output
    for word in ("x-sim-thoughts", "x-sim-fault", "OPENAI_BASE_URL", "--provider", "_sim"):
        assert word in text


def test_list_names_every_provider_and_what_to_set():
    result = run("--list")
    assert result.exit_code == 0
    for name in PROVIDERS:
        assert f"\n{name}  (" in result.output
    assert "OPENAI_BASE_URL=http://127.0.0.1:7338/deepseek\n" in result.output


def test_list_as_json():
    listing = json.loads(run("--list", "--json", "--provider", "kimi", "--port", "9").output)
    (row,) = listing["providers"]
    assert row["base_url"] == "http://127.0.0.1:9/kimi/v1"
    assert row["models"] == ["kimi-k2.6", "kimi-k2.5"]
    assert row["rule"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--provider", "depseek"), "did you mean 'deepseek'"),
        (("--delay", "-1"), "must not be negative"),
        (("--port", "99999"), "cannot listen on 127.0.0.1:99999"),
    ],
)
def test_mistakes_are_explained(arguments, text):
    result = run(*arguments)
    assert result.exit_code != 0
    assert text in result.output


def test_a_taken_port_is_explained():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("--port", str(taken.getsockname()[1]))
    assert result.exit_code == 1
    assert "choose another with --port" in result.output


def test_it_serves_on_loopback_until_ctrl_c():
    code = "from thoughtline.cli.sim import sim; sim()"
    arguments = ["--port", "0", "--json", "--provider", "glm"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            root = json.loads(process.stdout.readline())["root"]
            assert root.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(root, timeout=60) as answer:
                assert json.load(answer)["providers"][0]["name"] == "glm"
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (0, "", "")
