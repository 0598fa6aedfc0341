"""A standby takes over from a PostgreSQL that is gone, for the nodes that know both."""

import contextlib
import secrets
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from cluster.test_nodes import DIALECTS, Talk, together
from support.cluster import Node, settings_for
from support.postgres_server import PostgresServer
from support.tcp_proxy import TcpProxy
from support.waiting import until
from thoughtline.agents.simulated import POLICIES
from thoughtline.stores.sealing.ring import new_key
from thoughtline.testing import serving

pytestmark = pytest.mark.slow

PROVIDERS = ("deepseek", "claude", "openai", "gemini")
REPLICATION = {"wal_level": "replica", "max_wal_senders": "4", "hot_standby": "on"}


class Machines:
    """A server, its standby behind a line that can be cut, and two nodes that know both."""

    def __init__(self, stack, *, synchronous, settings=""):
        folder = Path(tempfile.mkdtemp(prefix="thoughtline-failover-"))
        folder.chmod(0o755)  # PostgreSQL runs as another user than root
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        self.primary = PostgresServer(folder / "primary", **REPLICATION).make().start()
        stack.callback(self._end, self.primary)
        self.primary.sql("CREATE DATABASE thoughtline", "SELECT 1")
        self.line = TcpProxy(self.primary.port).start()
        stack.callback(self.line.stop)
        self.standby = PostgresServer(folder / "standby", **REPLICATION)
        self.standby.follow(self.line, "standby")
        stack.callback(self._end, self.standby)
        if synchronous:
            self.primary.sql("ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT 1")
            self.primary.run("pg_ctl", "reload", "-D", self.primary.data)
        self.sims = stack.enter_context(serving(*PROVIDERS))
        upstreams = [(name, self.sims.root(name), POLICIES.get(name, name)) for name in PROVIDERS]
        both = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        more = f'secret = "env:SECRET"\nfind_wait = 30.0\ncommit_wait = 30.0\n{settings}'
        text = settings_for(f"postgresql://postgres@{both}/thoughtline", upstreams, more=more)
        shared = {"SECRET": secrets.token_hex(32), "KEYS": new_key().line()}
        shared["XDG_DATA_HOME"] = str(folder / "data")
        self.nodes = [Node(folder / name, text, environment=shared) for name in ("a", "b")]
        for node in self.nodes:
            node.start()
            stack.callback(node.stop)
        for node in self.nodes:
            node.wait()

    @staticmethod
    def _end(server):
        if server.running:
            server.stop("immediate")

    def talks(self, count=1):
        """Conversations, the first with one node, the next with the other."""
        made = []
        for number in range(count):
            for place, dialect in enumerate(DIALECTS):
                one = SimpleNamespace(url=self.nodes[place % 2].url, sims=self.sims)
                made.append(Talk(one, dialect, number))
        return made

    def swap(self, talks):
        """Each goes on with the other node."""
        first, second = (node.url for node in self.nodes)
        for talk in talks:
            talk.nodes = [second if talk.nodes == [first] else first]

    def logged(self):
        """Which turns the standby has."""
        rows = self.standby.sql(
            "SELECT encode(id, 'escape') AS turn FROM batches WHERE nth = 0", database="thoughtline"
        )
        return [row["turn"] for row in rows]


@pytest.fixture
def stack():
    with contextlib.ExitStack() as made:
        yield made


def test_a_synchronous_standby_takes_over_and_nothing_is_lost(stack):
    machines = Machines(stack, synchronous=True)
    asked = machines.talks()
    together(asked, 2)
    machines.primary.stop("immediate")
    machines.standby.promote()
    machines.swap(asked)
    together(asked, 2)
    machines.swap(asked)
    together(asked, 1)
    assert [talk.audits for talk in asked if not talk.clean()] == []


def test_what_a_standby_that_is_behind_lacks_is_said_again(stack):
    """What is stored is sealed, too."""
    machines = Machines(
        stack, synchronous=False, settings='keys = "env:KEYS"\nrequire_sealed = true'
    )
    asked = machines.talks()
    replies = [talk.client.turn() for talk in asked]
    told = {reply.headers["x-thoughtline-turn"] for reply in replies}
    until(lambda: set(machines.logged()) == told)
    machines.line.cut()  # from here on the standby is behind
    replies += [talk.client.turn() for _ in range(2) for talk in asked]
    machines.primary.stop("immediate")
    machines.standby.promote()
    received = [reply.headers["x-thoughtline-turn"] for reply in replies]
    assert len(machines.logged()) < len(received)
    machines.swap(asked)
    together(asked, 1)
    assert [talk.audits for talk in asked if not talk.clean()] == []
    logged = machines.logged()
    assert [logged.count(turn) for turn in received] == [1] * len(received)
