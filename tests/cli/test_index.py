"""The command that checks and rebuilds the look-up index."""

import json
import sqlite3

import pytest
from click.testing import CliRunner

from thoughtline.cli import main

STORE = "sqlite:///talk.db"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def run(*arguments, says="", store=STORE):
    named = ["--store", store] if store else []
    return CliRunner().invoke(main, [*arguments, *named], input=says)


def lose_the_index():
    with sqlite3.connect("talk.db") as db:
        db.execute("UPDATE batches SET memo = x'', entries = 0")


def test_check_then_rebuild():
    assert run("chat", "--provider", "sim:deepseek", says="Hello\n").exit_code == 0
    clean = run("index", "--check")
    assert (clean.exit_code, clean.output) == (
        0,
        "1 session with 1 turn: the index matches the log\n",
    )
    lose_the_index()
    found = run("index", "--check")
    assert found.exit_code == 1
    assert found.output.splitlines() == [
        "1 session with 1 turn: differences",
        "  1 turn without an entry",
        "  5 keys without an entry",
        "Correct this with: thoughtline index --rebuild",
    ]
    rebuilt = run("index", "--rebuild")
    assert rebuilt.exit_code == 0
    assert rebuilt.output.splitlines()[-1] == "1 entry written"
    assert run("index", "--check").exit_code == 0


def test_json():
    run("chat", "--provider", "sim:deepseek", says="Hello\n")
    lose_the_index()
    result = run("index", "--check", "--json")
    assert result.exit_code == 1
    report = json.loads(result.output)
    assert [report[name] for name in ("sessions", "turns", "missing", "orphans")] == [1, 1, 1, 5]


def test_an_empty_store_is_clean():
    result = run("index", "--check", store="")
    assert (result.exit_code, result.output) == (
        0,
        "0 sessions with 0 turns: the index matches the log\n",
    )


def test_one_of_the_two_is_needed():
    result = run("index", store="")
    assert result.exit_code == 2
    assert "choose --check or --rebuild" in result.output
