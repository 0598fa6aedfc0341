"""A conversation at the prompt: its commands, questions and Ctrl-C, on a real terminal."""

import json
import os
import pty
import select
import signal
import sys
from pathlib import Path

import pytest

from support.command_line import chat, events, run
from support.ticking_provider import ticking
from support.waiting import until
from thoughtline.cli.repl import Repl
from thoughtline.testing import Pace, Say, Think, serving

PATIENCE = 60
"""Seconds of silence after which a program on a terminal hangs."""
READING = ("poll_schedule_timeout", "do_select", "wait_woken", "n_tty_read")
"""Where the kernel has a program that waits for a line."""


pytestmark = pytest.mark.usefixtures("home")


def test_commands_at_the_prompt():
    said = chat(
        says="One\nTwo\n/undo\nThree\n/session\n/fork\n/thoughts\n/what\n/undo\n/quit\nNo\n"
    )
    assert "taken back: Two" in said.stdout
    assert "taken back: Three" in said.stdout
    assert "thoughts are shown" in said.stdout
    assert "/what is not a command; these are:\n/undo     take the last message back" in said.stdout
    listed = json.loads(run("sessions", "--json").stdout)
    assert len(listed) == 2
    shown = run("show", listed[-1]["session"]).output
    assert "Three" in shown and "Two" not in shown
    assert "other branches end at:" in shown


def test_undo_at_the_beginning():
    assert "nothing to take back" in chat(says="/undo\n").stdout


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, *arguments):
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a parallel runner has it ignored
            os.execv(sys.executable, [sys.executable, "-m", "thoughtline", *arguments])
        self.seen = ""

    def until(self, text):
        while text not in self.seen:
            try:
                ready, _, _ = select.select([self.file], [], [], PATIENCE)
                more = os.read(self.file, 4096) if ready else b""
            except OSError:
                more = b""
            assert more, f"{text!r} did not come: {self.seen}"
            self.seen += more.decode("utf-8", "replace")
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, text):
        os.write(self.file, text.encode())

    def interrupt(self):
        """Type Ctrl-C when the line is read: the prompt is there a moment before."""
        until(self._reads)
        self.type("\x03")

    def _reads(self):
        place = Path(f"/proc/{self.pid}/wchan")
        return not place.exists() or place.read_text().startswith(READING)

    def end(self):
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.file)
        return status


@pytest.mark.slow
def test_permissions_are_asked_on_the_terminal():
    terminal = Terminal("chat", "--provider", "sim:deepseek", "--tools")
    terminal.until("> ")
    terminal.type("Look\n")
    terminal.until("[a]lways: ")
    terminal.type("n\n")
    terminal.until("[a]lways: ")
    terminal.type("a\n")
    terminal.until("[a]lways: ")
    terminal.type("y\n")
    terminal.until("tests pass")
    terminal.until("> ")
    terminal.type("\x04")  # the end of the input
    assert terminal.end() == 0
    facts = events(run("export", "last").stdout)
    verdicts = [f["data"]["decision"] for f in facts if f["type"] == "permission_decision"]
    assert [fact["verdict"] for fact in verdicts] == ["deny", "always", "allow"]
    assert verdicts[0]["reason"] == "by the user"


@pytest.mark.slow
def test_ctrl_c_cancels_the_answer_and_not_the_conversation(monkeypatch):
    monkeypatch.setenv("MY_KEY", "any")
    with serving("deepseek", pace=Pace(delay=0.05)) as served:
        terminal = Terminal(
            *("chat", "--provider", "deepseek", "--base-url", served.url("deepseek")),
            *("--model", "deepseek-v4-pro", "--key-env", "MY_KEY", "--option", "user=me"),
        )
        terminal.until("> ")
        terminal.type("Think long\n")
        terminal.until("Thinking…")
        terminal.type("\x03")
        terminal.until("(cancelled)")
        terminal.until("> ")
        served.app.pace = Pace()
        terminal.type("Go on\n")
        terminal.until("Done.")
        terminal.until("> ")
        terminal.interrupt()
        assert terminal.end() == 0
    outcomes = [turn["outcome"] for turn in json.loads(run("show", "--json").output)["turns"]]
    assert outcomes == ["aborted", "completed"]


@pytest.mark.slow
def test_ctrl_c_at_a_question_is_no_answer():
    terminal = Terminal("chat", "--provider", "sim:deepseek", "--tools")
    terminal.until("> ")
    terminal.type("Look\n")
    terminal.until("[a]lways: ")
    terminal.interrupt()
    terminal.until("(cancelled)")
    terminal.until("> ")
    terminal.type("\x04")
    assert terminal.end() == 0
    facts = events(run("export", "last").stdout)
    assert not [f for f in facts if f["type"] == "permission_decision"]
    assert facts[-1]["type"] == "turn_ended" and facts[-1]["data"]["outcome"] == "aborted"


def sealed(turn, sim):
    return Think("hidden"), Say("Done.")


async def test_a_sealed_thought_is_announced_while_it_lasts(capsys):
    """The first thought of this provider has neither text nor summary."""
    async with ticking("openai", script=sealed) as chat:
        await Repl(thoughts=False, as_json=False, yes=True).send(chat, "Go")
    shown = capsys.readouterr().out
    assert not any(thought.text for thought in chat.turns[-1].thoughts)
    assert shown.index("Thinking…") < shown.index("Thought for ") < shown.index("Done")
