"""The commands about sessions: chat, sessions, show, tail, fork, export, import."""

import json

import pytest

from support.command_line import chat, run
from thoughtline.cli import COMMANDS

OURS = ("chat", "sessions", "show", "tail", "fork", "export", "import", "index")


pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize("name", OURS)
def test_help_teaches(name):
    text = run(name, "--help").output
    assert f"    thoughtline {name} " in text
    assert "--store URL" in text
    assert name in COMMANDS


def test_without_sessions():
    assert "No sessions yet" in run("sessions").output
    assert json.loads(run("sessions", "--json").output) == []
    assert "there are no sessions yet" in run("show", fails=True).output


def test_a_list_for_people():
    chat()
    run("fork", "last")
    listed = run("sessions").output.splitlines()
    assert len(listed) == 2
    assert "(fork of " in listed[0]
    assert "Hello there" in listed[1] and "just now" in listed[1]
    assert len(run("sessions", "--limit", "1").output.splitlines()) == 1
    assert "0 is not in the range" in run("sessions", "--limit", "0", fails=True).output
    assert "no turn is called '²'" in run("fork", "last", "²", fails=True).output
