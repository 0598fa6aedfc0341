"""The command that deletes sessions."""

import json

import pytest
from click.testing import CliRunner

from thoughtline.cli import main

STORE = "sqlite:///talk.db"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def run(*arguments, says=""):
    return CliRunner().invoke(main, [*arguments, "--store", STORE], input=says)


def sessions():
    return json.loads(run("sessions", "--json").output)


def test_a_session_is_deleted():
    for _ in range(2):
        assert run("chat", "--provider", "sim:deepseek", says="Hello\n").exit_code == 0
    assert len(sessions()) == 2
    done = run("delete", "last", "--yes")
    assert (done.exit_code, done.output) == (0, "1 session deleted\n")
    assert len(sessions()) == 1
    assert run("delete", "nobody", "--yes").exit_code == 1


def test_what_a_fork_goes_on_from_stays():
    run("chat", "--provider", "sim:deepseek", says="Hello\n")
    origin = run("sessions", "--json")
    forked = run("fork", "last").output.strip()
    first = next(one for one in json.loads(origin.output))
    id = first.get("session") or first.get("id")
    kept = run("delete", id, "--yes")
    assert kept.exit_code == 1
    assert "a fork goes on from it" in kept.output
    both = json.loads(run("delete", id, forked, "--yes", "--json").output)
    assert both == {"deleted": [id, forked], "kept": []}
    assert sessions() == []
