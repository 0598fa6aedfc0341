"""A gateway that is killed again and again under load, and what its clients miss afterwards.

python -m benchmarks.soak                     200 times `kill -9`
python -m benchmarks.soak --kills 20 --clients 4 --seconds 120

Clients of four dialects talk to strict simulated providers (Kimi and Gemini among them) through a
real gateway with a SQLite file. They throw thoughts away, and ask again when the line breaks, as
clients do. Meanwhile the gateway is killed and started again, every tenth time while another
program holds the lock of the file. Killed so often, a process may not live long enough to write the
turns that waited beside the store; the last one is given the time. Counted at the end:

- lost: turns that a client has received in full, and that are not in the store;
- missing: thoughts that are absent from the last request of a conversation;
- crossed: thoughts there that belong to another turn, conversation or account, or are altered;
- refused: requests that the provider refused.

All but the kills should be 0. Only loopback addresses; ends after `--seconds` in any case. If that
is too short for all the kills, it says so, and counts as failed.
"""

import argparse
import asyncio
import importlib
import itertools
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.stands import free_port, wait
from thoughtline.stores.base import Store
from thoughtline.stores.sqlite import SqliteStore
from thoughtline.testing import Pace, Reply, Request, Serving, serving

PROVIDERS = ("kimi", "gemini", "deepseek", "claude", "openai", "minimax", "mistral", "mimo")
_BODY = {"messages": {"thinking": {"type": "enabled", "budget_tokens": 4096}}}
"""Members that make a dialect's models think."""

TURNS = 8
"""Exchanges of a conversation."""
CATCHING_UP = 60.0
"""Seconds in which what waits beside the store is written, when nobody asks any more."""

ENDING = 60.0
"""Seconds that conversations are given to end, of a quarter of the time at most."""


def clients() -> Any:
    """The module of the clients that the tests have."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    return importlib.import_module("support.clients")


class Gateway:
    """A process that can be killed, always on the same port and file."""

    def __init__(self, folder: Path, sims: Serving) -> None:
        self.port = free_port()
        self.store = folder / "t.db"
        self._settings = folder / "thoughtline.toml"
        upstreams = "".join(
            f'[upstreams.{name}]\nbase_url = "{sims.root(name)}"\npolicy = "{policy_of(name)}"\n'
            for name in PROVIDERS
        )
        self._settings.write_text(
            f'{upstreams}[store]\nurl = "sqlite:///{self.store}"\n[log]\nlevel = "error"\n'
        )
        self._log = (folder / "log").open("w")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "thoughtline", "serve", "--port", str(self.port)]
        self._process = subprocess.Popen(
            [*command, "--config", str(self._settings)],
            stdout=subprocess.DEVNULL,
            stderr=self._log,
        )
        wait(self.port, 60)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the store's file, as another program may."""
        db = sqlite3.connect(self.store, timeout=10, isolation_level=None)
        try:
            db.execute("BEGIN IMMEDIATE")
            yield
        finally:
            db.close()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def catch_up(self) -> None:
        """Start once more, and wait until nothing waits beside the store."""
        self.start()
        until = time.monotonic() + CATCHING_UP
        while self._waiting() and time.monotonic() < until:
            time.sleep(0.1)
        self.kill()

    def _waiting(self) -> list[Path]:
        return list(self.store.parent.glob(f"{self.store.name}-spill-*"))


def policy_of(name: str) -> str:
    return {"claude": "anthropic"}.get(name, name)


class Soak:
    """The load, and what is counted."""

    def __init__(self, port: int, sims: Serving, deadline: float, *, turns: int = TURNS) -> None:
        self._port = port
        self._turns = turns
        self._sims = sims
        self._deadline = deadline
        self._clients = clients()
        self._numbers = itertools.count()
        self._stop = threading.Event()
        self.counts: Counter[str] = Counter()
        self.received: list[tuple[str, str, str]] = []  # provider, session and turn
        self.audits: Counter[tuple[str, str]] = Counter()  # provider and what became of thoughts
        self.refusals: list[str] = []

    def work(self) -> None:
        """Hold conversations, one after the other, until it is over."""
        with httpx2.Client(timeout=30, trust_env=False) as http:
            while not self._stop.is_set():
                number = next(self._numbers)
                self._converse(http, PROVIDERS[number % len(PROVIDERS)], number)

    def wait(self, turns: int, seconds: float) -> None:
        """Until so many turns more are received, but not longer than that."""
        until, enough = time.monotonic() + seconds, self.counts["turns"] + turns
        while time.monotonic() < until and self.counts["turns"] < enough:
            time.sleep(0.003)

    def stop(self) -> None:
        """End each conversation with one more request."""
        self._stop.set()

    def _converse(self, http: httpx2.Client, provider: str, number: int) -> None:
        sim = self._sims[provider]
        prefix = {"messages": "/v1", "gemini": "/v1beta"}.get(sim.dialect, sim.base_path)
        client = self._clients.client(
            sim.dialect,
            lambda request: self._post(http, request),
            base=f"/u/{provider}{prefix}",
            key=f"key-{number % 3}",
            model=sim.models()[0],
            stream=number % 2 == 0,
            echo="strip",
            **_BODY.get(sim.dialect, {}),
            opening=f"Please look after number {number}.",
        )
        reply = None
        for _ in range(self._turns):
            reply = client.turn()
            if reply.status != 200:
                self._refuse(provider, reply)
                return
            self.received.append(
                (
                    provider,
                    reply.headers["x-thoughtline-session"],
                    reply.headers["x-thoughtline-turn"],
                )
            )
            self.counts["turns"] += 1
            if self._stop.is_set():
                break
        last = client.send()
        if last.status != 200:
            self._refuse(provider, last)
            return
        self.counts["conversations"] += 1
        for name, value in re.findall(r"(\w+)=(\d+)", last.headers.get("x-sim-thoughts", "")):
            self.audits[provider, name] += int(value)

    def _refuse(self, provider: str, reply: Reply) -> None:
        self.counts["refused"] += 1
        self.refusals.append(f"{provider}: {reply.status} {reply.body[:300]!r}")

    def _post(self, http: httpx2.Client, request: Request) -> Reply:
        """Send a request, again and again until an answer has come in full."""
        query = f"?{request.query}" if request.query else ""
        url = f"http://127.0.0.1:{self._port}{request.path}{query}"
        while time.monotonic() < self._deadline:
            try:
                answer = http.post(url, content=request.body, headers=request.headers)
            except httpx2.TransportError:
                answer = None
            if answer is not None and answer.status_code < 500:
                return Reply(
                    status=answer.status_code,
                    headers=dict(answer.headers),
                    chunks=(answer.content,),
                )
            self.counts["asked again"] += 1
            time.sleep(0.1)
        raise TimeoutError("the time of the soak is over")

    async def lost(self, store: Store) -> list[tuple[str, str, str]]:
        """Return the received turns that are not in the store, and close it."""
        ended: dict[str, set[str]] = {}
        lost = []
        for provider, session, turn in self.received:
            if session not in ended:
                events = await store.read(session)
                ended[session] = {e.parent for e in events if e.type == "turn_ended"}
            if turn not in ended[session]:
                lost.append((provider, session, turn))
        await store.close()
        return lost

    def crossed(self) -> int:
        names = ("foreign", "misplaced", "altered")
        return sum(n for (_, name), n in self.audits.items() if name in names)

    def missing(self) -> int:
        return sum(n for (_, name), n in self.audits.items() if name == "missing")


def soak(kills: int, threads: int, seconds: float) -> bool:
    """Run it; returns whether all kills were made, and nothing was lost, missing or crossed."""
    began = time.monotonic()
    deadline = began + seconds
    last_kill = deadline - min(ENDING, seconds / 4)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(*PROVIDERS, pace=Pace(delay=0.0005)) as sims,
    ):
        gateway = Gateway(Path(folder), sims)
        gateway.start()
        run = Soak(gateway.port, sims, deadline)
        workers = [threading.Thread(target=run.work, daemon=True) for _ in range(threads)]
        for worker in workers:
            worker.start()
        killed = 0
        try:
            while killed < kills and time.monotonic() < last_kill:
                with gateway.locked() if killed % 10 == 5 else nullcontext():
                    run.wait(random.randrange(40), random.uniform(0.1, 4.0))
                    gateway.kill()
                    killed += 1
                    gateway.start()
                say(f"\r{line(run, killed, kills, began)}")
            run.stop()
            for worker in workers:
                worker.join(max(1.0, deadline - time.monotonic()))
            stuck = sum(worker.is_alive() for worker in workers)
        finally:
            gateway.kill()
        say(f"\r{line(run, killed, kills, began)}\n")
        gateway.catch_up()
        lost = asyncio.run(run.lost(SqliteStore(gateway.store)))
        return report(run, lost, killed, stuck, kills)


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def line(run: Soak, killed: int, kills: int, began: float) -> str:
    counts = run.counts
    return (
        f"{killed}/{kills} kills, {time.monotonic() - began:.0f} s: {counts['turns']} turns received, "
        f"{counts['conversations']} conversations, {counts['asked again']} asked again; "
        f"missing {run.missing()}, crossed {run.crossed()}, refused {counts['refused']}   "
    )


def report(
    run: Soak, lost: list[tuple[str, str, str]], killed: int, stuck: int, kills: int
) -> bool:
    """Print what was counted; returns whether all was done, and nothing lost or missing."""
    print(f"acknowledged turns lost: {len(lost)} of {len(run.received)}, over {killed} kills")
    print(f"thoughts missing: {run.missing()}, crossed: {run.crossed()}")
    print(f"requests refused: {run.counts['refused']}, clients that hang: {stuck}")
    for provider in PROVIDERS:
        figures = {name: n for (who, name), n in sorted(run.audits.items()) if who == provider}
        print(f"  {provider:10} {figures}")
    for text in [*map(str, lost[:5]), *run.refusals[:5]]:
        print(f"  {text}")
    if killed < kills:
        print(f"only {killed} of {kills} kills: give it more time with --seconds")
    wrong = lost or run.missing() or run.crossed() or run.counts["refused"] or stuck
    return not wrong and killed >= kills


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200, help="how often it is killed")
    parser.add_argument("--clients", type=int, default=8, help="conversations at once")
    parser.add_argument("--seconds", type=float, default=1800, help="most time that it takes")
    given = parser.parse_args()
    sys.exit(0 if soak(given.kills, given.clients, given.seconds) else 1)


if __name__ == "__main__":
    main()
