"""Simulated models for people: they think, call what is there, and answer from what came back."""

import json

import pytest

from thoughtline.testing import Request, Say, Think, Tool, Use, simulator
from thoughtline.testing.sims.assistant import assistant_script
from thoughtline.testing.sims.assistant_tools import wishes
from thoughtline.testing.sims.heard import Answered, listen
from thoughtline.testing.sims.thinking_time import pauses


def object_of(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


TEXT = {"type": "string"}
LIST = {"type": "array", "items": {"type": "object", "properties": {"path": TEXT, "from": TEXT}}}
READ = Tool("read_file", object_of(["path"], path=TEXT))
SHELL = Tool("Bash", object_of(["command"], command=TEXT, justification=TEXT, timeout=TEXT))
WEATHER = Tool("get_weather", object_of(["city"], city=TEXT, unit={"enum": ["C", "F"]}))


def played(body, *tools):
    """What the model does with this request."""
    sim = simulator("deepseek", script=assistant_script, serials=False)
    sim.begin(Request("POST", "/v1/chat/completions", {}, json.dumps(body).encode()))
    sim.now.tools = tools
    return assistant_script(0, sim)


def asked(text):
    return {"messages": [{"role": "user", "content": text}]}


# -- what it hears -------------------------------------------------------------------------------

CALL = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
HISTORIES = {
    "chat": {
        "messages": [
            {"role": "user", "content": "read a.txt"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "hello"},
        ]
    },
    "responses": {
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "read a.txt"}]},
            {"type": "function_call", "call_id": "c1", "name": "read_file", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "hello"},
        ]
    },
    "messages": {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "<system-reminder>no</system-reminder>"},
                    {"type": "text", "text": "read a.txt"},
                ],
            },
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "read_file", "input": {}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "hello"}],
            },
        ]
    },
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "read a.txt"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "read_file", "args": {}}}]},
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "read_file", "response": {"output": "hello"}}}
                ],
            },
        ]
    },
}


@pytest.mark.parametrize("dialect", HISTORIES)
def test_it_hears_the_same_in_every_dialect(dialect):
    heard = listen(json.dumps(HISTORIES[dialect]).encode())
    assert (heard.asked, heard.answered) == ("read a.txt", (Answered("read_file", "hello"),))


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"messages": [1, {"role": 2}]}', b'{"input": "hi"}']
)
def test_no_body_is_too_strange(body):
    assert listen(body).answered == ()


# -- what it calls -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "tools", "calls"),
    [
        ("What is in notes.md?", [WEATHER, READ], [("read_file", {"path": "notes.md"})]),
        (
            "Compare a.py with src/b.py",
            [READ],
            [("read_file", {"path": "a.py"}), ("read_file", {"path": "src/b.py"})],
        ),
        (
            "read my notes.md",
            [SHELL],
            [("Bash", {"command": "cat notes.md"})],
        ),
        (
            "Which files are here?",
            [SHELL],
            [("Bash", {"command": "ls"})],
        ),
        ("How is the weather in Oslo?", [READ, WEATHER], [("get_weather", {"city": "Oslo"})]),
        (
            "open a.md",
            [Tool("read_files", object_of(["files"], files=LIST))],
            [("read_files", {"files": [{"path": "a.md"}]})],
        ),
        (
            "open a.md",
            [Tool("Read", object_of(["filepath"], filepath=TEXT))],
            [("Read", {"filepath": "a.md"})],
        ),
        ("Tell me a joke", [READ, SHELL, WEATHER], []),
        ("delete all files with rm -rf", [READ], []),
        (
            "list my files",
            [Tool("shell", object_of(["command"], command={"type": "array", "items": TEXT}))],
            [("shell", {"command": ["bash", "-lc", "ls"]})],
        ),
    ],
)
def test_it_calls_what_is_of_use_and_nothing_else(words, tools, calls):
    uses = [wish.use for wish in wishes(words, tools)]
    assert [(use.name, json.loads(use.arguments)) for use in uses] == calls


def test_a_tool_that_wants_absolute_paths_gets_one():
    tool = Tool(
        "Read", object_of(["file_path"], file_path={**TEXT, "description": "Absolute path"})
    )
    [wish] = wishes("what is in a.txt", [tool], "/home/me")
    assert json.loads(wish.use.arguments) == {"file_path": "/home/me/a.txt"}


# -- what it says --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrapped",
    [
        "Chunk ID: 1\nWall time: 0.2 seconds\nOutput:\nhello\n",
        "<path>/a.txt</path>\n<content>\n1: hello\n</content>",
        "     1\thello\n",
        '{"content": "hello\\n", "lines_read": 1}',
    ],
)
def test_it_sees_through_what_tools_put_around_a_result(wrapped):
    body = {"messages": [*HISTORIES["chat"]["messages"][:2]]}
    body["messages"].append({"role": "tool", "tool_call_id": "c1", "content": wrapped})
    assert played(body, READ)[-1] == Say("`read_file` says: hello")


def test_it_thinks_calls_and_answers_from_what_came_back():
    thought, use = played(asked("What is in a.txt?"), READ)
    assert isinstance(thought, Think)
    assert isinstance(use, Use)
    thought, said = played(HISTORIES["chat"], READ)
    assert isinstance(thought, Think)
    assert said == Say("`read_file` says: hello")


@pytest.mark.parametrize(
    ("words", "answer"),
    [("what is 17 * 23?", "17 * 23 = 391"), ("(1 + 2) / 0", "simulat"), ("2026-11-18", "simulat")],
)
def test_it_can_add_and_knows_its_limits(words, answer):
    assert answer in played(asked(words))[-1].text


def test_a_structured_answer_follows_its_schema():
    body = asked("Fix the login") | {
        "response_format": {"json_schema": {"schema": object_of(title=TEXT)}}
    }
    assert json.loads(played(body)[-1].text) == {"title": "Fix the login"}


def test_a_thought_takes_seconds_and_words_do_not():
    thought = [b'{"reasoning_content": "hm"}'] * 40
    said = [b'{"content": "hi"}'] * 10
    waits = pauses([*thought, *said])
    assert 2 <= sum(waits[:40]) <= 7
    assert sum(waits[40:]) < 1
    assert (
        sum(pauses([b"start", b'{"type": "reasoning"}', b'{"type": "reasoning"}', b"x", b"y"])) > 2
    )
