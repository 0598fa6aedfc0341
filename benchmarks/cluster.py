"""Gateways behind nginx over one PostgreSQL, disturbed in every way, and what their clients miss.

python -m benchmarks.cluster                       10,000 conversations, then each disturbance
python -m benchmarks.cluster --conversations 200 --rounds 1 --nodes 3
python -m benchmarks.cluster --sealed --only rolling_restart --rounds 20

Each request of a conversation goes to another node (round robin). Clients of four dialects throw
their thoughts away, and strict simulated providers count what comes back. First undisturbed; then,
so many rounds of each: a node killed, PostgreSQL stopped as in a crash and started again, PostgreSQL
frozen for some seconds, all nodes restarted one after the other. Counted as in `benchmarks.soak`,
for each part. All but the disturbances should be 0; `asked again` too, where nothing is killed.
Only loopback addresses; ends after `--seconds` in any case.
"""

import argparse
import asyncio
import importlib
import os
import secrets
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.soak import PROVIDERS, Soak, clients, line, policy_of, report, say
from thoughtline.stores import open_store
from thoughtline.stores.sealing.keychain import Keychain
from thoughtline.stores.sealing.ring import KeyRing, new_key
from thoughtline.testing import Pace, Serving, serving

FROZEN_SECONDS = 4.0
DISTURBANCES = ("rolling_restart", "kill_a_node", "crash_postgres", "freeze_postgres")


class Machines:
    """PostgreSQL, nodes and the load balancer."""

    def __init__(self, folder: Path, sims: Serving, nodes: int, *, sealed: bool) -> None:
        clients()  # makes the tests' helpers known
        support = importlib.import_module("support.cluster")
        servers = importlib.import_module("support.postgres_server")
        folder.chmod(0o755)
        self.postgres: Any = servers.PostgresServer(folder / "postgres").make()
        self.postgres.start()
        self.postgres.sql("CREATE DATABASE thoughtline")
        self.url: str = self.postgres.url("thoughtline")
        upstreams = [(name, sims.root(name), policy_of(name)) for name in PROVIDERS]
        keys = 'keys = "env:KEYS"\nrequire_sealed = true\n' if sealed else ""
        settings = support.settings_for(
            self.url, upstreams, more=f'secret = "env:SECRET"\n{keys}[log]\nlevel = "error"'
        )
        key = new_key()
        self.keychain = Keychain(KeyRing([key])) if sealed else None
        environment = {"SECRET": secrets.token_hex(32), "KEYS": key.line()}
        self.cluster: Any = support.Cluster(folder, settings, nodes=nodes, environment=environment)
        self._next = 0

    def kill_a_node(self) -> None:
        """`kill -9` one node after the other, and start it again."""
        node = self.cluster.nodes[self._next % len(self.cluster.nodes)]
        self._next += 1
        node.kill()
        time.sleep(0.5)
        node.start().wait()

    def crash_postgres(self) -> None:
        """End PostgreSQL as a crash does, and start it again."""
        self.postgres.stop("immediate")
        time.sleep(0.5)
        self.postgres.start()

    def freeze_postgres(self) -> None:
        """PostgreSQL says nothing for some seconds, and keeps its connections."""
        with self.postgres.frozen():
            time.sleep(FROZEN_SECONDS)

    def rolling_restart(self) -> None:
        """Restart the nodes one after the other, as for an upgrade."""
        self.cluster.rolling_restart()

    def stop(self) -> None:
        self.cluster.stop()
        self.postgres.stop()


@contextmanager
def machines(sims: Serving, nodes: int, *, sealed: bool) -> Iterator[Machines]:
    """All of it, running."""
    with tempfile.TemporaryDirectory(prefix="thoughtline-cluster-") as folder:
        made = Machines(Path(folder), sims, nodes, sealed=sealed)
        try:
            made.cluster.start()
            yield made
        finally:
            made.stop()


def part(
    name: str,
    where: Machines,
    sims: Serving,
    *,
    conversations: int = 0,
    disturb: Callable[[], None] | None = None,
    rounds: int = 0,
    threads: int,
    turns: int,
    deadline: float,
) -> bool:
    """One part: so many conversations, and so many disturbances meanwhile."""
    print(f"\n{name}")
    began, done = time.monotonic(), 0
    run = Soak(where.cluster.balancer.port, sims, deadline, turns=turns)
    workers = [threading.Thread(target=run.work, daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    while time.monotonic() < deadline:
        if done >= rounds and run.counts["conversations"] >= conversations:
            break
        run.wait(40, 2.0)
        if disturb is not None:
            disturb()
            done += 1
        say(f"\r{line(run, done, rounds, began)}")
    run.stop()
    for worker in workers:
        worker.join(max(1.0, deadline - time.monotonic()))
    stuck = sum(worker.is_alive() for worker in workers)
    say(f"\r{line(run, done, rounds, began)}\n")
    lost = asyncio.run(_lost(run, where))
    doubled = len(run.received) - len(set(run.received))
    print(f"turns written twice: {doubled}; asked again by clients: {run.counts['asked again']}")
    killed = disturb is not None and disturb.__name__ == "kill_a_node"
    again = 0 if killed else run.counts["asked again"]
    return report(run, lost, done, stuck, rounds) and not doubled and not again


async def _lost(run: Soak, where: Machines) -> list[tuple[str, str, str]]:
    return await run.lost(open_store(where.url, keychain=where.keychain))


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--conversations", type=int, default=10_000, help="undisturbed ones")
    parser.add_argument("--turns", type=int, default=4, help="exchanges of each")
    parser.add_argument("--rounds", type=int, default=5, help="of each disturbance")
    parser.add_argument("--nodes", type=int, default=2, help="gateways behind nginx")
    parser.add_argument("--clients", type=int, default=12, help="conversations at once")
    parser.add_argument("--seconds", type=float, default=3600, help="most time that it takes")
    parser.add_argument("--sealed", action="store_true", help="what is stored is sealed")
    parser.add_argument("--only", choices=DISTURBANCES, help="one disturbance, and nothing else")
    given = parser.parse_args()
    deadline = time.monotonic() + given.seconds
    fine = True
    with (
        serving(*PROVIDERS, pace=Pace(delay=0.0005)) as sims,
        machines(sims, given.nodes, sealed=given.sealed) as where,
    ):
        common: dict[str, Any] = {
            "threads": given.clients,
            "turns": given.turns,
            "deadline": deadline,
        }
        if not given.only:
            fine &= part(
                "undisturbed",
                where,
                sims,
                conversations=given.conversations,
                **common,
            )
        for name in (given.only,) if given.only else DISTURBANCES:
            fine &= part(
                name.replace("_", " "),
                where,
                sims,
                disturb=getattr(where, name),
                rounds=given.rounds,
                **common,
            )
    print("\nnothing lost, missing, crossed, doubled or refused" if fine else "\nfaults: see above")
    sys.stdout.flush()
    os._exit(0 if fine else 1)  # clients that hang do not keep it


if __name__ == "__main__":
    main()
