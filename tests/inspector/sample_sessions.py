"""Sessions as they come about in real life, and awkward ones, to be looked at.

    PYTHONPATH=src:tests python -m inspector.sample_sessions --port 7340 --many 10000 --long 2000

serves a gateway over a file with all of them, in front of simulated providers that think slowly,
and talks to one of those again and again, so that there is always something to see.
"""

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time

from inspector.exchange_events import SECOND, drafted, timed
from thoughtline.log.decisions import Action, MatchLevel, ReplayDecision
from thoughtline.log.events import Quarantined, SessionForked, draft
from thoughtline.log.parts import Call, Carrier, Decision, Origin, Result, Thought, Timing
from thoughtline.log.usage import Usage
from thoughtline.stores.base import Batch

HOSTILE = (
    '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'
    "</textarea>'\"`${7*7}`{{7*7}} javascript:alert(1) \u202eevil\u202c \u0000 \ud7ff"
)
ORIGINS = {
    name: Origin(dialect=dialect, provider=name, endpoint=f"https://{name}.test", model=model)
    for name, dialect, model in [
        ("deepseek", "chat", "deepseek-v4-pro"),
        ("openai", "responses", "gpt-5.2"),
        ("anthropic", "messages", "claude-opus-4-8"),
        ("gemini", "gemini", "gemini-3-pro"),
    ]
}
CARRIERS = {
    "chat": Carrier.REASONING_CONTENT,
    "responses": Carrier.ITEM,
    "messages": Carrier.BLOCK,
    "gemini": Carrier.PART,
}


def thought(text="Let me see.", seconds=3.0, *, by="deepseek", start=1.0, **more):
    """A thought that opened `start` seconds after its request, and took so long."""
    origin = ORIGINS[by]
    sealed, cut = more.pop("sealed", 0), more.pop("cut", False)
    opened = 100 * SECOND + round(start * SECOND)
    timing = timed(opened, seconds, sent=100 * SECOND, at=1_790_000_000.0 + start, cut=cut)
    return Thought(
        carrier=CARRIERS[origin.dialect],
        raw='"' + "x" * max(sealed, len(text)) + '"',
        text=text,
        seals=("seal",) if sealed else (),
        origin=origin,
        timing=more.pop("timing", timing),
        **more,
    )


def decision(position, action, **more):
    return ReplayDecision(turn=position, action=action, **more)


class Session:
    """Writes one session, turn by turn."""

    def __init__(self, store, id, *, tenant="tenant-a", at=1_790_000_000.0):
        self.store, self.id, self.tenant, self.at = store, id, tenant, at
        self.last = ""
        self._count = 0

    async def turn(self, said, *output, by="deepseek", parent=None, ended="completed", **more):
        """One turn; its id. Strings are words, anything else is a part."""
        self._count += 1
        self.at += 30.0
        id = more.get("id", f"{self.id}-t{self._count}")
        drafts = drafted(
            id,
            [said] if isinstance(said, str) else said,
            output,
            target=ORIGINS[by],
            parent=self.last if parent is None else parent,
            at=self.at,
            end=self.at + 5.0,
            decisions=more.get("decisions", ()),
            outcome=ended,
            reason=more.get("reason", ""),
            usage=more.get("usage", Usage(input=1200, output=90, reasoning=60, cached=800)),
        )
        await self.write(*drafts)
        self.last = id
        return id

    async def write(self, *drafts):
        await self.store.append(Batch(session=self.id, tenant=self.tenant, drafts=tuple(drafts)))

    async def note(self, body):
        self._count += 1
        await self.write(draft(body, id=f"{self.id}-n{self._count}", parent="", at=self.at))


async def fill(store, at=1_790_000_000.0):
    """One session of each kind; the ids say which."""
    await _agent(Session(store, "agent", at=at))
    await _branches(Session(store, "branches", at=at))
    await _thoughts(Session(store, "thoughts", tenant="tenant-b", at=at))
    await _endings(store, at)
    hostile = Session(store, "hostile", at=at)
    await hostile.turn(
        HOSTILE, thought(HOSTILE, 2), HOSTILE, Call(name=HOSTILE, arguments=HOSTILE, id="c")
    )
    await hostile.turn([Result(content=HOSTILE, call="c", name=HOSTILE, error=True)], HOSTILE)
    fork = Session(store, "fork", at=at)
    await fork.note(SessionForked(session="agent", turn="agent-t2"))
    fork.last = "agent-t2"
    await fork.turn("Try the other way.", thought("Another way, then.", 4), "Here it is.")


async def _agent(session):
    """An agent's loop, and a client that loses its thoughts."""
    call = Call(name="read_file", arguments='{"path": "a.txt"}', id="call_1")
    one = await session.turn("Mend a.txt, please.", thought("I must read it first.", 22.4), call)
    two = await session.turn(
        [Decision(call="call_1", verdict="allow"), Result(content="teh end", call="call_1")],
        thought("A typo: teh.", 4.2),
        "I found a typo.",
        decisions=[decision(0, Action.RESTORED, level=MatchLevel.FULL, entry=one, thoughts=1)],
    )
    await session.turn(
        "And b.txt?",
        thought("The same again, I suppose.", 65.0),
        "It has none.",
        decisions=[
            decision(0, Action.REPLACED, level=MatchLevel.LOCAL, entry=one, thoughts=1, left=1),
            decision(1, Action.EXACT, level=MatchLevel.FULL, entry=two, thoughts=1),
            decision(2, Action.PLACEHOLDER, reason="unknown"),
            decision(3, Action.ABSENT, reason="ambiguous"),
            decision(4, Action.ABSENT, reason="silent", level=MatchLevel.FULL),
            decision(5, Action.DROPPED, reason="another provider", entry=two, left=1),
        ],
    )


async def _branches(session):
    first = await session.turn("A or B?", thought("Hard to say.", 3), "Either.")
    await session.turn("Take A.", thought("A it is.", 2), "A.", parent=first)
    await session.turn("Take B.", thought("B it is.", 7), "B.", parent=first)
    await session.turn("More of B.", thought("More.", 1), "More B.")


async def _thoughts(session):
    """Every kind of thought, and every kind of time."""
    await session.turn(
        "Two thoughts, please.",
        thought("The first one.", 5, by="anthropic"),
        "On the one hand.",
        thought("The second one.", 9, by="anthropic", start=7.0),
        "On the other.",
        by="anthropic",
    )
    sealed = await session.turn(
        "A sealed one.",
        thought("", 12, by="openai", id="rs_1", sealed=3100),
        "Done.",
        by="openai",
    )
    await session.note(Quarantined(turn=sealed, thoughts=(0,), reason="400"))
    unknown = thought("Nobody saw it open.", by="gemini", timing=Timing(sent=1, closed=2))
    await session.turn("A whole body.", unknown, "Here.", by="gemini")
    at_once = thought("Held back.", 0.01, start=8.0)
    await session.turn("Delivered at once.", at_once, "Here.")


async def _endings(store, at):
    aborted = Session(store, "aborted", at=at)
    cut = thought("I was about to", 5, by="anthropic", cut=True)
    await aborted.turn(
        "Wait, stop.", cut, by="anthropic", ended="aborted", reason="the client left"
    )
    failed = Session(store, "failed", at=at)
    await failed.turn("Try.", ended="failed", reason="the provider reported an error", usage=None)
    capped = Session(store, "capped", at=at)
    await capped.turn("Write a book.", thought("Long.", 40), ended="capped", reason="length")
    running = Session(store, "unfinished", at=at)
    await running.turn("A loop in another process.", ended="")


async def many(store, count, at=1_790_000_000.0):
    """A lot of small sessions."""
    names = list(ORIGINS)
    for start in range(0, count, 500):
        some = [
            Session(store, f"many-{n:05}", at=at + n) for n in range(start, min(start + 500, count))
        ]
        await asyncio.gather(
            *(
                one.turn(f"Question {one.id}", thought("Hm.", n % 90), "Answer.", by=names[n % 4])
                for n, one in enumerate(some)
            )
        )


async def long(store, turns, at=1_790_000_000.0, *, decisions=3):
    """One session of so many turns, each of which put the last few thoughts back."""
    session, before = Session(store, "long", at=at), []
    for n in range(turns):
        replay = [
            decision(
                max(n - decisions, 0) + k,
                Action.RESTORED,
                level=MatchLevel.FULL,
                entry=m,
                thoughts=1,
            )
            for k, m in enumerate(before[-decisions:])
        ]
        made = thought(f"Step {n}: what next?", n % 70)
        before.append(await session.turn(f"Step {n}", made, f"Did {n}.", decisions=replay))


# -- a gateway to look at ------------------------------------------------------------------------


def main():
    """Serve it."""
    import uvicorn

    from support.gateway_server import upstreams
    from thoughtline.gateway.build import build
    from thoughtline.gateway.settings import (
        AccessSettings,
        Secret,
        Settings,
        StoreSettings,
        UpstreamSettings,
    )
    from thoughtline.inspector import inspector
    from thoughtline.stores.sqlite import SqliteStore
    from thoughtline.testing import Pace, serving

    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--port", type=int, default=7340)
    asked.add_argument("--many", type=int, default=0)
    asked.add_argument("--long", type=int, default=0)
    asked.add_argument("--token", default="")
    asked.add_argument("--delay", type=float, default=0.4, help="seconds between two pieces")
    asked.add_argument("--seconds", type=float, default=3600.0, help="then it ends")
    given = asked.parse_args()

    async def run(sims, folder):
        file = f"{folder}/world.db"
        store = SqliteStore(file)
        await fill(store, time.time() - 3600)
        await many(store, given.many, time.time() - 7200)
        await long(store, given.long, time.time() - 7200)
        await store.close()
        made = {
            up.name: UpstreamSettings(name=up.name, base_url=up.base_url, policy=up.policy)
            for up in upstreams(sims, "deepseek", "claude", "openai")
        }
        settings = Settings(
            store=StoreSettings(url=f"sqlite:///{file}"),
            upstreams=made,
            access=AccessSettings(admin_token=Secret(given.token)),
        )
        config = uvicorn.Config(
            build(settings, pages=inspector), port=given.port, log_level="warning", lifespan="on"
        )
        server = uvicorn.Server(config)
        serving_it = asyncio.ensure_future(server.serve())
        talking = asyncio.ensure_future(_talk(f"http://127.0.0.1:{given.port}"))
        sys.stdout.write(f"http://127.0.0.1:{given.port}/inspect/\n")
        sys.stdout.flush()
        await asyncio.wait({serving_it}, timeout=given.seconds)
        talking.cancel()
        server.should_exit = True
        await serving_it

    with (
        tempfile.TemporaryDirectory() as folder,
        serving("deepseek", "claude", "openai", pace=Pace(delay=given.delay)) as sims,
        contextlib.suppress(KeyboardInterrupt),
    ):
        asyncio.run(run(sims, folder))


async def _talk(url):
    """A client that drops thoughts and talks for ever."""
    import httpx2

    async with httpx2.AsyncClient(timeout=None) as client:
        while True:
            messages = [{"role": "user", "content": "Please mend the file a.txt."}]
            for _ in range(4):
                await asyncio.sleep(1)
                with contextlib.suppress(httpx2.HTTPError):
                    body = {"model": "deepseek-v4-pro", "messages": messages, "stream": True}
                    where = f"{url}/u/deepseek/v1/chat/completions"
                    head = {"authorization": "Bearer somebody"}
                    answer = await client.post(where, json=body, headers=head)
                    said = answer.text
                    messages += [
                        {"role": "assistant", "content": _content(said)},
                        {"role": "user", "content": "Go on."},
                    ]


def _content(stream):
    import json

    lines = [line[6:] for line in stream.split("\n") if line.startswith("data: {")]
    choices = [choice for line in lines for choice in json.loads(line).get("choices", ())]
    return "".join(choice.get("delta", {}).get("content") or "" for choice in choices)


if __name__ == "__main__":
    main()
