"""Bytes sent over a session of 100 turns: continuations against full sends, and the curve.

The session is a coding agent's: instructions and tools of a few kilobytes, sealed thoughts, calls
with results that are as long as files are. It talks to the strict simulator over a real socket.
"""

import asyncio
import random
import time
from collections import Counter

from thoughtline.clock import SystemClock
from thoughtline.dialects.params import ToolSpec
from thoughtline.dialects.responses import Responses
from thoughtline.dialects.responses.reader import ResponsesReader
from thoughtline.log.events import AssistantMessage, Reasoning, ToolCall
from thoughtline.log.parts import Call, Origin, Part, Result, Text
from thoughtline.log.turns import Turn
from thoughtline.testing import serving
from thoughtline.wires.base import Outbound
from thoughtline.wires.websocket import requests
from thoughtline.wires.websocket.continuation import Destination, LogPosition, SendReason
from thoughtline.wires.websocket.response import SentRequest
from thoughtline.wires.websocket.wire import ResponsesWire

TURNS = 100
MARKS = (25, 50, 75, 100)
RESPONSES = Responses()
WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "while", "it", "naps")


def prose(random_: random.Random, size: int) -> str:
    """So many characters."""
    words: list[str] = []
    while sum(map(len, words)) + len(words) < size:
        words.append(random_.choice(WORDS))
    return " ".join(words)[:size]


async def session(url: str, fields: int = 2000) -> tuple[dict[int, tuple[int, int]], list[bytes]]:
    """Hold it; at each mark, the bytes sent and what full sends would have been.

    Instructions and tools are about `fields` characters, and go out with each request.
    """
    chance = random.Random(4)
    tools = [
        ToolSpec(name=name, description=prose(chance, fields // 8))
        for name in ("read_file", "run", "search")
    ]
    system = prose(chance, fields // 2)
    sent: list[SentRequest] = []
    wire = ResponsesWire(on_send=sent.append)
    turns: list[Turn] = []
    heard: tuple[Part, ...] = (Text(text=prose(chance, 400)),)
    marks: dict[int, tuple[int, int]] = {}
    bodies: list[bytes] = []
    for number in range(1, TURNS + 1):
        body = RESPONSES.write(
            [*turns, Turn(input=heard)], model="gpt-5.6", system=system, tools=tools
        )
        bodies.append(body)
        headers = [("authorization", "Bearer key"), ("content-type", "application/json")]
        outbound = Outbound(method="POST", url=f"{url}/responses", headers=headers, body=body)
        parent = turns[-1].id if turns else ""
        position = LogPosition(
            destination=Destination(endpoint=url), turn=str(number), parent=parent
        )
        reader = ResponsesReader(stream=True, clock=SystemClock(), origin=Origin(), sent=0)
        async with wire.send(outbound, position) as answer:
            told = [one async for event in answer for one in reader.event(event)]
            assert answer.commit()
        output: list[Part] = []
        for one in told:
            if isinstance(one, Reasoning):
                output.append(one.thought)
            elif isinstance(one, ToolCall):
                output.append(one.call)
            elif isinstance(one, AssistantMessage):
                output += one.parts
        turns.append(Turn(input=heard, output=tuple(output), id=str(number)))
        calls = [part for part in output if isinstance(part, Call)]
        results = tuple(
            Result(content=prose(chance, chance.choice((200, 1500, 6000))), call=call.id)
            for call in calls
        )
        heard = results or (Text(text=prose(chance, 200)),)
        if number in MARKS:
            marks[number] = (sum(one.size for one in sent), sum(one.full_size for one in sent))
    reasons = Counter(one.plan.reason for one in sent)
    assert reasons == {SendReason.NO_BASELINE: 1, SendReason.CONTINUED: TURNS - 1}
    await wire.close()
    return marks, bodies


def cost(bodies: list[bytes]) -> tuple[float, float]:
    """CPU of reading the last request: as the one after another, and all by itself; in ms."""
    before = requests.read(bodies[-2])
    best = [float("inf"), float("inf")]
    for _ in range(20):
        for place, after in enumerate((before, None)):
            start = time.process_time()
            requests.read(bodies[-1], after)
            best[place] = min(best[place], (time.process_time() - start) * 1000)
    return best[0], best[1]


def run() -> list[tuple[str, float, str]]:
    """Figures for `make bench`."""
    with serving("openai") as sims:
        marks, bodies = asyncio.run(session(sims.url("openai")))
        heavy, _ = asyncio.run(session(sims.url("openai"), fields=20_000))
    sent, whole = marks[TURNS]
    rows = [
        (f"bytes sent over {TURNS} turns, of full sends (bar 3)", 100 * sent / whole, "%"),
        *(
            (f"  sent up to turn {at} (full: {full / 1e6:.2f} MB)", size / 1e3, "kB")
            for at, (size, full) in marks.items()
        ),
    ]
    sent, whole = heavy[TURNS]
    label = "  the same with 20 kB of instructions and tools, which are sent each time"
    rows.append((label, 100 * sent / whole, "%"))
    known, new = cost(bodies)
    label = f"a request of {len(bodies[-1]) / 1e6:.2f} MB"
    return [
        *rows,
        (f"reading {label}, history known: only new items hashed", known, "ms CPU"),
        (f"reading {label}, nothing known", new, "ms CPU"),
    ]


if __name__ == "__main__":
    for name, figure, unit in run():
        print(f"{name:75} {figure:10.2f} {unit}")
