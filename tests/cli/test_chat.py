"""`thoughtline chat`: a conversation with a provider that is shown and kept."""

import json

import pytest
from click.testing import CliRunner

import thoughtline
from support.command_line import chat, events, run
from thoughtline.agents.chat import Chat
from thoughtline.agents.simulated import SimWire
from thoughtline.cli import main

pytestmark = pytest.mark.usefixtures("home")


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


def test_an_effort_is_told_in_the_words_of_the_providers_api(monkeypatch):
    asked = []
    monkeypatch.setattr(SimWire, "send", remembering(SimWire.send, asked))
    assert run("chat", "--model", "sim/kimi-k3", "--effort", "low", says="Hi\n").exit_code == 0
    assert json.loads(asked[0].body)["reasoning_effort"] == "low"
    refused = run("chat", "--model", "sim/kimi-k3", "--effort", "hard", fails=True)
    assert refused.exit_code == 2 and "expected one of low, high, max" in refused.stderr


def remembering(send, asked):
    def remember(self, request):
        asked.append(request)
        return send(self, request)

    return remember


def test_a_model_by_the_name_that_is_listed(monkeypatch):
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    refused = run("chat", "--model", "deepseek/deepseek-v4-pro", fails=True)
    assert refused.exit_code == 1 and "DEEPSEEK_API_KEY" in refused.stderr


@pytest.mark.parametrize("arguments", [["--model", "sim/claude"], ["--provider", "sim/claude"]])
def test_a_simulated_model_by_the_name_that_the_gateway_knows(arguments):
    assert "claude-opus-5-5 (claude)" in run("chat", *arguments, says="Hi\n").stderr


def test_a_session_goes_on_with_whom_it_talked_with():
    run("chat", "--model", "sim/claude", says="Hi\n")
    assert "claude-opus-5-5 (claude)" in run("chat", "--session", "last", says="x\n").stderr


def test_a_refusal_is_a_failure():
    result = run("chat", "--provider", "sim:claude", "--model", "nope", says="Hi\n", fails=True)
    assert "(failed: 404: model: nope)" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--provider", "sim:nobody"], "no simulated provider is called 'nobody'"),
        (["--provider", "deepseek"], "name the model with --model"),
        (["--model", "m"], "name a provider with --provider"),
        (["--option", "thinking={"], "is not KEY=JSON"),
        (["--option", "thinking"], "is not KEY=JSON"),
        (["--key-env", "NOT_SET"], "NOT_SET is not set"),
        (["--session", "nope"], "no session is called 'nope'"),
        (["--store", "redis://x"], "--store: `store.url` is not a URL of a store"),
    ],
)
def test_what_cannot_be(arguments, says, monkeypatch):
    for name in ("DEEPSEEK_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert says in run("chat", *arguments, says="Hi\n", fails=True).output


def test_a_missing_key_is_said_before_the_first_question(monkeypatch):
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    result = run("chat", "--provider", "deepseek", "--model", "m", says="Hi\n", fails=True)
    assert "set DEEPSEEK_API_KEY" in result.stderr
    assert "session" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "says", "code"),
    [
        (["--provider", "sim:deepseek"], "Hi\n", 0),
        (["--provider", "sim:deepseek"], "", 0),
        (["--provider", "sim:claude", "--model", "nope"], "Hi\n", 1),
        (["--provider", "sim:claude", "--model", "nope"], "Hi\n/session\n", 1),
        (["--provider", "deepseek", "--model", "m"], "", 1),
        (["--session", "nope"], "Hi\n", 1),
        (["--provider", "deepseek"], "Hi\n", 2),
        (["--option", "x={"], "Hi\n", 2),
        (["--nonsense"], "Hi\n", 2),
    ],
)
def test_exit_codes(arguments, says, code, monkeypatch):
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    assert CliRunner().invoke(main, ["chat", *arguments], input=says).exit_code == code


def test_one_message_without_an_answer_fails_the_whole_input(monkeypatch):
    """Also if the last one is answered."""
    kept = Chat.run

    def run_or_raise(chat, *message):
        if message == ("Bad",):
            raise thoughtline.WireError("no line")
        return kept(chat, *message)

    monkeypatch.setattr(Chat, "run", run_or_raise)
    said = chat(says="Bad\nGood\n", fails=True)
    assert "no line" in said.stderr and "Done." in said.stdout


@pytest.mark.parametrize("name", ["openai", "claude", "gemini-vertex", "kimi-k3"])
def test_every_kind_of_simulated_provider(name):
    result = run("chat", "--provider", f"sim:{name}", "--tools", "--yes", says="One\nTwo\n")
    assert "failed" not in result.output
