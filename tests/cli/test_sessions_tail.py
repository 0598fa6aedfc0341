"""`thoughtline tail`: events as they are written, by whatever process."""

import json
import signal
import subprocess
import sys

import pytest

from support.command_line import chat, events, run

pytestmark = pytest.mark.usefixtures("home")


def test_tail_shows_the_last_and_then_the_next(home):
    chat()
    id = json.loads(run("sessions", "--json").stdout)[0]["session"]
    command = [sys.executable, "-m", "thoughtline", "tail", id, "--lines", "2"]
    # Where tests run in the background the signal may be ignored, and a child inherits that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before)
    with process:
        first = [process.stdout.readline() for _ in range(2)]
        assert "assistant_message" in first[0]
        assert "turn_ended" in first[1] and "completed" in first[1]
        chat("--session", id, says="Still there?\n")
        while "Still there?" not in (line := process.stdout.readline()):
            assert line
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, 130)


def test_tail_of_one_session_until_something_happens():
    facts = events(chat("--json", "--tools", "--yes").stdout)
    tailed = run("tail", "last", "--lines", "99", "--until", "turn_ended").output
    assert [line.split()[2] for line in tailed.splitlines()] == [
        fact["type"] for fact in facts[: len(tailed.splitlines())]
    ]
    assert "the user said" not in tailed
    as_json = run("tail", "last", "--lines", "99", "--until", "turn_ended", "--json").output
    assert events(as_json) == facts[: len(events(as_json))]
