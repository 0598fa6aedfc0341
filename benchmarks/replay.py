"""A long history through the workshop: read, keys, restore, patch, with 130 thoughts put back."""

import json
import random

from msgspec.structs import replace

from benchmarks.timing import best
from thoughtline.dialects import DIALECTS
from thoughtline.events import Outcome
from thoughtline.guards import Target
from thoughtline.keys import trail
from thoughtline.matching import survey
from thoughtline.memories import Memory, remember
from thoughtline.parts import Carrier, Origin, Thought
from thoughtline.policies import lookup
from thoughtline.replay import restore
from thoughtline.turns import Turn

MESSAGES, BYTES, THOUGHTS = 300, 500_000, 130


def history() -> bytes:
    """A coding agent's body: 300 messages, half a megabyte, 130 assistant messages with calls."""
    random.seed(7)
    words = [f"word{n}" for n in range(500)]

    def prose(size: int) -> str:
        return " ".join(random.choices(words, k=size // 8))

    messages: list[dict[str, object]] = [{"role": "system", "content": prose(8000)}]
    for number in range(THOUGHTS):
        arguments = json.dumps({"path": f"src/file{number}.py", "line": 5.0, "text": prose(300)})
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": "edit", "arguments": arguments},
        }
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": prose(2900)})
    while len(messages) < MESSAGES:
        messages.insert(1, {"role": "user", "content": prose(1000)})
    return json.dumps(
        {"model": "deepseek-v4-pro", "messages": messages, "tools": [{}], "stream": True}
    ).encode()


def archive(turns: tuple[Turn, ...], origin: Origin) -> dict[bytes, list[Memory]]:
    """What the store would answer: every turn with a thought of 2 KB."""
    keys, _ = trail(turns)
    found: dict[bytes, list[Memory]] = {}
    parent = ""
    for number, (turn, names) in enumerate(zip(turns, keys, strict=True)):
        if names is None:
            continue
        thought = Thought(
            carrier=Carrier.REASONING_CONTENT,
            raw=json.dumps(f"thought {number} " * 150),
            text="",
            origin=origin,
        )
        lived = replace(
            turn,
            id=str(number),
            parent=parent,
            session="s",
            target=origin,
            output=(thought, *turn.output),
            outcome=Outcome.COMPLETED,
        )
        memory = remember(lived, names)
        for name in memory.names:
            found.setdefault(name, []).append(memory)
        parent = lived.id
    return found


def run() -> list[tuple[str, float, str]]:
    """Figures for `make bench`."""
    chat = DIALECTS["chat"]
    body = history()
    origin = Origin(
        dialect="chat", provider="deepseek", endpoint="e", account="a", model="deepseek-v4-pro"
    )
    target = Target(policy=lookup("deepseek", "chat", "deepseek-v4-pro"), origin=origin)
    request = chat.read(body)
    found = archive(request.turns, origin)

    def whole() -> bytes:
        read = chat.read(body)
        path = survey(read.turns, tools=read.tools)
        done = restore(path, found, target)
        return chat.patch(read, done.revisions, done.fields)

    put = restore(survey(request.turns, tools=True), found, target)
    assert len(put.revisions) == THOUGHTS, len(put.revisions)
    label = f"{len(json.loads(body)['messages'])} messages, {len(body) / 1e6:.2f} MB"
    return [
        (f"keys of {label} (bar 3)", best(lambda: trail(request.turns)) * 1e3, "ms CPU"),
        (f"read + restore + patch of it, {THOUGHTS} thoughts (bar 8)", best(whole) * 1e3, "ms CPU"),
        ("  of that: read", best(lambda: chat.read(body)) * 1e3, "ms CPU"),
        (
            "  of that: restore",
            best(lambda: restore(survey(request.turns, tools=True), found, target)) * 1e3,
            "ms CPU",
        ),
        ("  of that: patch", best(lambda: chat.patch(request, put.revisions)) * 1e3, "ms CPU"),
    ]


if __name__ == "__main__":
    for name, figure, unit in run():
        print(f"{name:65} {figure:10.2f} {unit}")
