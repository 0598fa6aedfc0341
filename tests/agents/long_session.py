"""One half of a long session with every simulated provider, as a process of its own.

Arguments: `first` or `second`, the store's file, and where the providers are. The simulators, which
judge, are in the process that started this one.
"""

import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import thoughtline
from support.agents import TOOLS, provider
from thoughtline.testing import simulator


async def first(chat, sim, root):
    """Four answers, a fork and a branch, and on from there."""
    for number in range(4):
        yield await chat.run(f"Please mend file {number}")
    fork = await chat.fork(chat.turns[2].id)
    yield await fork.run("Elsewhere")
    chat.rewind(chat.turns[4].id)
    yield await chat.run("Never mind")
    yield await chat.run("Go on")


async def second(chat, sim, root):
    """The same session, with another model in between, and another fork."""
    for number in range(2):
        yield await chat.run(f"Still there? {number}")
    home, *others = sim.models()
    away = others[0] if others else home
    for model in (away, home, home, home, home):
        chat.use(provider(sim, model, base_url=root))
        yield await chat.run(f"With {model}")
    fork = await chat.fork(chat.turns[-2].id)
    yield await fork.run("And elsewhere")


async def play(log, part, name, root):
    sim = simulator(name)
    setting = {"provider": provider(sim, base_url=root), "tools": TOOLS, "system": "Be brief."}
    if part == "first":
        chat = await log.create(id=f"long-{name}", **setting)
    else:
        chat = await log.resume(f"long-{name}", **setting)
    answers = [answer async for answer in globals()[part](chat, sim, root)]
    assert [a.outcome for a in answers] == ["completed"] * len(answers), answers[-1].reason
    return sorted({answer.session for answer in answers})


async def main(part, file, roots):
    async with thoughtline.open(f"sqlite:///{file}") as log:
        told = await asyncio.gather(*(play(log, part, *item) for item in roots.items()))
    sys.stdout.write(json.dumps(dict(zip(roots, told, strict=True))))


asyncio.run(main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))
