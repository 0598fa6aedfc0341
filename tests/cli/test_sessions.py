"""The commands about sessions: chat, sessions, show, tail, fork, export, import."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from thoughtline.cli import COMMANDS, main
from thoughtline.cli.files import MOST, reading_tools
from thoughtline.cli.telling import ago, brief, clean
from thoughtline.testing import Pace, serving

PATIENCE = 60
"""Seconds of silence after which a program on a terminal hangs."""
OURS = ("chat", "sessions", "show", "tail", "fork", "export", "import")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A folder and a data folder of one's own, and no keys."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def run(*arguments, says="", fails=False):
    result = CliRunner().invoke(main, list(arguments), input=says)
    assert (result.exit_code != 0) == fails, result.output + str(result.exception)
    return result


def chat(*arguments, says="Hello there\n", **more):
    return run("chat", "--provider", "sim:deepseek", *arguments, says=says, **more)


def events(output):
    return [json.loads(line) for line in output.splitlines() if line.startswith('{"session"')]


@pytest.mark.parametrize("name", OURS)
def test_help_teaches(name):
    text = run(name, "--help").output
    assert f"    thoughtline {name} " in text
    assert "--store URL" in text
    assert name in COMMANDS


def test_the_default_store_is_the_gateways(home):
    chat()
    assert (home / "data" / "thoughtline" / "thoughtline.db").exists()
    chat("--store", "sqlite:///mine.db")
    assert (home / "here" / "mine.db").exists()
    assert len(json.loads(run("sessions", "--json").stdout)) == 1


# -- chat ----------------------------------------------------------------------------------------


def test_a_conversation_is_shown_and_kept():
    result = chat(says="Hello there\nAnd now?\n")
    assert "session " in result.stderr
    assert "Thinking…" in result.stdout and "Thought for 1 second" in result.stdout
    assert "Both are there" in result.stdout
    [row] = json.loads(run("sessions", "--json").stdout)
    assert row["words"] == "Hello there"
    assert row["tenant"] == "local"


def test_thoughts_are_shown_when_asked_for():
    assert "the user said" not in chat().stdout
    assert "the user said" in chat("--thoughts").stdout


def test_as_json_for_scripts():
    facts = events(chat("--json", "--tools", "--yes").stdout)
    assert [fact["seq"] for fact in facts] == list(range(len(facts)))
    assert facts[-1]["type"] == "turn_ended"
    assert {"tool_call", "tool_result", "permission_decision"} <= {f["type"] for f in facts}


def test_tools_are_off_unless_asked_for_and_denied_where_nobody_can_be_asked():
    assert "tool_call" not in chat("--json").stdout
    denied = [
        fact["data"]["decision"]
        for fact in events(chat("--json", "--tools").stdout)
        if fact["type"] == "permission_decision"
    ]
    assert {fact["verdict"] for fact in denied} == {"deny"}
    assert "start the chat with --yes" in denied[0]["reason"]


def test_going_on_with_a_session():
    first = chat("--json")
    id = events(first.stdout)[0]["session"]
    again = chat("--json", "--session", "last", says="More\n")
    assert {fact["session"] for fact in events(again.stdout)} == {id}
    assert events(again.stdout)[0]["seq"] == len(events(first.stdout))


def test_commands_at_the_prompt():
    said = chat(
        says="One\nTwo\n/undo\nThree\n/session\n/fork\n/thoughts\n/what\n/undo\n/quit\nNo\n"
    )
    assert "taken back: Two" in said.stdout
    assert "taken back: Three" in said.stdout
    assert "thoughts are shown" in said.stdout
    assert "/what is none of these:\n/undo     take the last message back" in said.stdout
    listed = json.loads(run("sessions", "--json").stdout)
    assert len(listed) == 2
    shown = run("show", listed[-1]["session"]).output
    assert "Three" in shown and "Two" not in shown
    assert "other branches end at:" in shown


def test_undo_at_the_beginning():
    assert "nothing to take back" in chat(says="/undo\n").stdout


@pytest.mark.parametrize("arguments", [["--model", "sim/claude"], ["--provider", "sim/claude"]])
def test_a_simulated_model_by_the_name_that_the_gateway_knows(arguments):
    assert "claude-sonnet-4-5 (claude)" in run("chat", *arguments, says="Hi\n").stderr


def test_a_session_goes_on_with_whom_it_talked_with():
    run("chat", "--model", "sim/claude", says="Hi\n")
    assert "claude-sonnet-4-5 (claude)" in run("chat", "--session", "last", says="x\n").stderr


def test_a_refusal_is_a_failure():
    result = run("chat", "--provider", "sim:claude", "--model", "nope", says="Hi\n", fails=True)
    assert "(failed: 404: model: nope)" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--provider", "sim:nobody"], "no simulated provider is called 'nobody'"),
        (["--provider", "deepseek"], "say which model with --model"),
        (["--model", "m"], "say whom to ask with --provider"),
        (["--option", "thinking={"], "is not KEY=JSON"),
        (["--option", "thinking"], "is not KEY=JSON"),
        (["--key-env", "NOT_SET"], "NOT_SET is not set"),
        (["--session", "nope"], "no session is called 'nope'"),
        (["--store", "redis://x"], "--store: `store.url` names no store"),
    ],
)
def test_what_cannot_be(arguments, says, monkeypatch):
    for name in ("DEEPSEEK_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert says in run("chat", *arguments, says="Hi\n", fails=True).output


def test_a_missing_key_is_said_and_the_prompt_stays(monkeypatch):
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    result = run("chat", "--provider", "deepseek", "--model", "m", says="Hi\n")
    assert "set DEEPSEEK_API_KEY" in result.stderr


@pytest.mark.parametrize("name", ["openai", "claude", "gemini-vertex", "kimi-k3"])
def test_every_kind_of_simulated_provider(name):
    result = run("chat", "--provider", f"sim:{name}", "--tools", "--yes", says="One\nTwo\n")
    assert "failed" not in result.output


# -- sessions, show ------------------------------------------------------------------------------


def test_without_sessions():
    assert "No sessions yet" in run("sessions").output
    assert json.loads(run("sessions", "--json").output) == []
    assert "there are no sessions yet" in run("show", fails=True).output


def test_a_list_for_people():
    chat()
    run("fork", "last")
    listed = run("sessions").output.splitlines()
    assert len(listed) == 2
    assert "(fork of …" in listed[0]
    assert "Hello there" in listed[1] and "just now" in listed[1]
    assert len(run("sessions", "--limit", "1").output.splitlines()) == 1
    assert "0 is not in the range" in run("sessions", "--limit", "0", fails=True).output
    assert "no turn is called '²'" in run("fork", "last", "²", fails=True).output


def test_show_folds_thoughts_away():
    chat("--tools", "--yes")
    plain = run("show", "last").output
    assert "   1  Hello there" in plain
    assert "Thought for 1 second" in plain
    assert "the user said" not in plain
    assert "→ read_file(" in plain and "✗ read_file  Error:" in plain
    assert "the user said" in run("show", "last", "--thoughts").output


def test_show_for_scripts():
    chat("--tools", "--yes")
    shown = json.loads(run("show", "last", "--json").output)
    assert shown["heads"] == [shown["head"]] == [shown["turns"][-1]["id"]]
    [thought] = [p for p in shown["turns"][0]["output"] if p["type"] == "thought"]
    assert thought["seconds"] == 1
    assert "raw" not in thought and "text" not in thought
    shown = json.loads(run("show", "last", "--json", "--thoughts").output)
    assert "the user said" in str(shown["turns"][0]["output"])


def test_sessions_and_turns_are_named_by_an_end_of_their_ids():
    chat(says="One\nTwo\n")
    [row] = json.loads(run("sessions", "--json").stdout)
    for name in (row["session"], row["session"][-8:], row["session"][:20]):
        assert f"session {row['session']}" in run("show", name).output
    assert "Two" not in run("show", "last", "--at", "1").output
    assert (
        "no turn is called '99999999'" in run("show", "last", "--at", "99999999", fails=True).output
    )
    run("fork", "last")
    first = row["session"][:4]
    assert "2 sessions are called" in run("show", first, fails=True).output


def test_what_failed_and_what_stayed_behind_is_shown():
    chat()
    run("chat", "--provider", "sim:openai", "--session", "last", says="And you?\n")
    run(
        "chat",
        "--provider",
        "sim:claude",
        "--session",
        "last",
        "--model",
        "x",
        says="Hm\n",
        fails=True,
    )
    shown = run("show", "last").output
    assert "(failed: 404: model: x)" in shown
    assert "left behind: foreign provider" in shown


# -- fork, export, import ------------------------------------------------------------------------


def test_fork_at_a_turn():
    chat(says="One\nTwo\n")
    made = json.loads(run("fork", "last", "1", "--json").output)
    shown = run("show", made["session"]).output
    assert f"goes on from {made['from']}" in shown
    assert "   ·  One" in shown and "Two" not in shown
    run("chat", "--provider", "sim:deepseek", "--session", made["session"], says="Elsewhere\n")
    assert "   1  Elsewhere" in run("show", made["session"]).output


def test_export_and_import(home):
    chat()
    run("fork", "last")
    lines = run("export", "last").stdout
    assert len(lines.splitlines()) > 5
    result = run("export", "last", "-o", "it.jsonl")
    assert "events in it.jsonl" in result.stderr
    assert (home / "here" / "it.jsonl").read_text() == lines
    elsewhere = ("--store", "sqlite:///other.db")
    ids = run("import", "it.jsonl", *elsewhere).output.split()
    assert len(ids) == 2
    assert json.loads(run("import", "-", *elsewhere, "--json", says=lines).output) == ids
    assert run("export", ids[1], *elsewhere).stdout == lines
    assert len(run("export", ids[1], "--alone").stdout.splitlines()) == 2
    changed = lines.replace("Hello", "Hallo")
    assert "differs from event 1" in run("import", "-", *elsewhere, says=changed, fails=True).output
    renamed = run("import", "-", "--rename", *elsewhere, says=changed).output.split()
    assert renamed[0] not in ids
    assert "line 1 is no event" in run("import", "-", says="what\n", fails=True).output
    assert "there is no session in it" in run("import", "-", says="", fails=True).output


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_a_sentence():
    chat()
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "thoughtline", "export", "last"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ") and "Traceback" not in done.stderr


# -- tail ----------------------------------------------------------------------------------------


def test_tail_shows_the_last_and_then_the_next(home):
    chat()
    id = json.loads(run("sessions", "--json").stdout)[0]["session"]
    command = [sys.executable, "-m", "thoughtline", "tail", id, "--lines", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        first = [process.stdout.readline() for _ in range(2)]
        assert "assistant_message" in first[0]
        assert "turn_ended" in first[1] and "completed" in first[1]
        chat("--session", id, says="Still there?\n")
        while "Still there?" not in (line := process.stdout.readline()):
            assert line
        process.send_signal(signal.SIGINT)
        assert process.wait(20) in (0, 130)


def test_tail_of_one_session_until_something_happens():
    facts = events(chat("--json", "--tools", "--yes").stdout)
    tailed = run("tail", "last", "--lines", "99", "--until", "turn_ended").output
    assert [line.split()[2] for line in tailed.splitlines()] == [
        fact["type"] for fact in facts[: len(tailed.splitlines())]
    ]
    assert "the user said" not in tailed
    as_json = run("tail", "last", "--lines", "99", "--until", "turn_ended", "--json").output
    assert events(as_json) == facts[: len(events(as_json))]


# -- words ---------------------------------------------------------------------------------------


def test_text_that_would_upset_a_terminal_is_harmless():
    assert clean("a\x1b[31mb\r\u202e\tc\nd") == "a\\x1b[31mb\\r\\u202e\tc\nd"
    assert brief("x" * 50, 10) == "xxxxxxxxx…"
    assert [ago(0, s) for s in (5, 61, 7200, 200_000)] == [
        "just now",
        "1 min ago",
        "2 h ago",
        "2 d ago",
    ]


# -- the tools of a chat -------------------------------------------------------------------------


def test_the_tools_look_at_one_folder_only(home):
    here = home / "here"
    (here / "a.txt").write_text("hello")
    (here / "big.txt").write_text("x" * (MOST + 1))
    (here / "data.bin").write_bytes(b"a\0b")
    (here / "sub").mkdir()
    (here / "way-out").symlink_to(home)
    (home / "secret.txt").write_text("no")
    read, names = (tool.function for tool in reading_tools(here))
    assert read("a.txt") == "hello"
    assert read("big.txt").endswith("bytes are shown]")
    assert read("data.bin") == "[a binary file, not shown]"
    assert names() == "a.txt\nbig.txt\ndata.bin\nsub/\nway-out/"
    assert names("sub") == "(empty)"
    for path in ("../secret.txt", "/etc/passwd", "way-out/secret.txt", str(home / "secret.txt")):
        with pytest.raises(PermissionError, match="outside of the folder"):
            read(path)
    with pytest.raises(PermissionError):
        names("..")


# -- on a terminal -------------------------------------------------------------------------------


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
        time.sleep(0.5)  # the prompt is there a moment before anybody reads
        terminal.type("\x03")
        assert terminal.end() == 0
    outcomes = [turn["outcome"] for turn in json.loads(run("show", "--json").output)["turns"]]
    assert outcomes == ["aborted", "completed"]


@pytest.mark.slow
def test_ctrl_c_at_a_question_is_no_answer():
    terminal = Terminal("chat", "--provider", "sim:deepseek", "--tools")
    terminal.until("> ")
    terminal.type("Look\n")
    terminal.until("[a]lways: ")
    time.sleep(0.5)  # the prompt is there a moment before anybody reads
    terminal.type("\x03")
    terminal.until("(cancelled)")
    terminal.until("> ")
    terminal.type("\x04")
    assert terminal.end() == 0
    facts = events(run("export", "last").stdout)
    assert not [f for f in facts if f["type"] == "permission_decision"]
    assert facts[-1]["type"] == "turn_ended" and facts[-1]["data"]["outcome"] == "aborted"
