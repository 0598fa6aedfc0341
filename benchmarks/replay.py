"""A long history from read to patch (keys, decisions), with 130 thoughts put back."""

import json
import random

from msgspec.structs import replace

from benchmarks.timing import best
from thoughtline.dialects import DIALECTS
from thoughtline.log.events import Outcome
from thoughtline.log.index import IndexEntry, index_entry
from thoughtline.log.keys import rolling_keys
from thoughtline.log.parts import Carrier, Origin, Thought
from thoughtline.log.turns import Turn
from thoughtline.providers.contracts import find_policy
from thoughtline.replay.decide import plan_replay
from thoughtline.replay.guard import Target
from thoughtline.replay.match import request_path

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


def index_entries(turns: tuple[Turn, ...], origin: Origin) -> dict[bytes, list[IndexEntry]]:
    """What a look-up in the store would find: every turn with a thought of 2 KB."""
    keys, _ = rolling_keys(turns)
    found: dict[bytes, list[IndexEntry]] = {}
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
        entry = index_entry(lived, names)
        for name in entry.keys:
            found.setdefault(name, []).append(entry)
        parent = lived.id
    return found


def run() -> list[tuple[str, float, str]]:
    """Figures for `make bench`."""
    chat = DIALECTS["chat"]
    body = history()
    origin = Origin(
        dialect="chat", provider="deepseek", endpoint="e", account="a", model="deepseek-v4-pro"
    )
    target = Target(policy=find_policy("deepseek", "chat", "deepseek-v4-pro"), origin=origin)
    request = chat.read(body)
    found = index_entries(request.turns, origin)

    def whole() -> bytes:
        read = chat.read(body)
        path = request_path(read.turns, tools=read.tools)
        done = plan_replay(path, found, target)
        return chat.patch(read, done.revisions, done.fields)

    put = plan_replay(request_path(request.turns, tools=True), found, target)
    assert len(put.revisions) == THOUGHTS, len(put.revisions)
    label = f"{len(json.loads(body)['messages'])} messages, {len(body) / 1e6:.2f} MB"
    return [
        (f"keys of {label} (bar 3)", best(lambda: rolling_keys(request.turns)) * 1e3, "ms CPU"),
        (f"read + restore + patch of it, {THOUGHTS} thoughts (bar 8)", best(whole) * 1e3, "ms CPU"),
        ("  of that: read", best(lambda: chat.read(body)) * 1e3, "ms CPU"),
        (
            "  of that: restore",
            best(lambda: plan_replay(request_path(request.turns, tools=True), found, target)) * 1e3,
            "ms CPU",
        ),
        ("  of that: patch", best(lambda: chat.patch(request, put.revisions)) * 1e3, "ms CPU"),
    ]


if __name__ == "__main__":
    for name, figure, unit in run():
        print(f"{name:65} {figure:10.2f} {unit}")
