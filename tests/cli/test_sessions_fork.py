"""`thoughtline fork`: a session that goes on from a turn of another."""

import json

import pytest

from support.command_line import chat, run

pytestmark = pytest.mark.usefixtures("home")


def test_fork_at_a_turn():
    chat(says="One\nTwo\n")
    made = json.loads(run("fork", "last", "1", "--json").output)
    shown = run("show", made["session"]).output
    assert f"goes on from {made['from']}" in shown
    assert "   ·  One" in shown and "Two" not in shown
    run("chat", "--provider", "sim:deepseek", "--session", made["session"], says="Elsewhere\n")
    assert "   1  Elsewhere" in run("show", made["session"]).output
