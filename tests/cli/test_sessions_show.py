"""`thoughtline show`: a session as people read it, and as scripts do."""

import json

import pytest

from support.command_line import chat, run
from thoughtline.cli.rendering import rendered_turn
from thoughtline.log.events import Outcome
from thoughtline.log.parts import Call, Result, Text
from thoughtline.log.turns import Turn

pytestmark = pytest.mark.usefixtures("home")


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
    assert "could be 2 sessions" in run("show", first, fails=True).output


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
    assert "left out: foreign provider" in shown


def test_a_clients_notes_are_folded_and_results_have_the_name_of_their_tool():
    notes = "<system-reminder>Today is Monday.</system-reminder>"
    asked = Turn(
        input=(Text(text=f"{notes}\nMend it"),), output=(Call(id="c1", name="ls", arguments="{}"),)
    )
    assert list(rendered_turn(asked, thoughts=False))[:2] == [
        ("you", "Mend it"),
        ("note", f"(notes of the client, {len(notes) + 1} characters)"),
    ]
    heard = Turn(input=(Result(call="c1", content="a.py"),), outcome=Outcome.COMPLETED)
    lines = rendered_turn(heard, thoughts=False, tools={"c1": "ls"})
    assert list(lines) == [("tool", "← ls  a.py")]
