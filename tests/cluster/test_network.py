"""Between the nodes and the database: answers that vanish, delays, a node that is cut off.

The clocks of the nodes are ten minutes apart, and neither is right.
"""

import contextlib
import secrets
from types import SimpleNamespace

import httpx2
import pytest

from cluster.test_nodes import DIALECTS, Talk, together
from support.cluster import Node, settings_for
from support.postgres_server import SharedServer
from support.tcp_proxy import TcpProxy
from support.waiting import until
from thoughtline.agents.simulated import POLICIES
from thoughtline.testing import serving

pytestmark = pytest.mark.slow

PROVIDERS = ("deepseek", "claude", "openai", "gemini")


class Nodes:
    """Two nodes, each with a line of its own to the database."""

    def __init__(self, stack, folder, server, database, waits):
        self.database, self._server = database, server
        server.sql(f"CREATE DATABASE {database}", "SELECT 1")
        stack.callback(server.sql, f"DROP DATABASE {database} WITH (FORCE)", "SELECT 1")
        self.sims = stack.enter_context(serving(*PROVIDERS))
        upstreams = [(name, self.sims.root(name), POLICIES.get(name, name)) for name in PROVIDERS]
        secret = secrets.token_hex(32)
        self.both = []
        for name, shift in (("a", "300"), ("b", "-300")):
            proxy = TcpProxy(server.port).start()
            stack.callback(proxy.stop)
            url = f"postgresql://postgres@127.0.0.1:{proxy.port}/{database}"
            own = {
                "SECRET": secret,
                "XDG_DATA_HOME": str(folder / f"data-{name}"),
                "CLOCK_SHIFT": shift,
            }
            text = settings_for(url, upstreams, more=f'secret = "env:SECRET"\n{waits}')
            node = Node(folder / name, text, environment=own).start()
            stack.callback(node.kill)
            self.both.append(SimpleNamespace(node=node, proxy=proxy, url=node.url, sims=self.sims))
        for one in self.both:
            one.node.wait()

    def sql(self, text):
        return self._server.sql(text, database=self.database)


@pytest.fixture(scope="module")
def made(tmp_path_factory, worker_id):
    """Makes nodes, which wait for the database for so long."""
    base = tmp_path_factory.getbasetemp()
    with contextlib.ExitStack() as stack:
        shared = SharedServer(base if worker_id == "master" else base.parent)
        stack.callback(shared.close)
        yield lambda name, waits: Nodes(
            stack, tmp_path_factory.mktemp(name), shared.server, f"{name}_{worker_id}", waits
        )


@pytest.fixture(scope="module")
def nodes(made):
    return made("patient", "find_wait = 30.0\ncommit_wait = 30.0")


@pytest.fixture(scope="module")
def hasty_nodes(made):
    return made("hasty", "find_wait = 2.0\ncommit_wait = 0.5")


class Alternating(Talk):
    """Goes to the other node with every request."""

    def __init__(self, nodes, dialect, number, **options):
        super().__init__(nodes.both[number % 2], dialect, number, **options)
        self.nodes = [one.url for one in nodes.both]

    def send(self, request):
        self.nodes.reverse()
        return super().send(request)


def each_is_in_the_log_once(nodes, replies):
    """Wait until every turn that a client received is in the log; none is there twice."""

    def each_once():
        rows = nodes.sql("SELECT encode(id, 'escape') AS turn FROM batches WHERE nth = 0")
        listed = [row["turn"] for row in rows]
        counts = [listed.count(reply.headers["x-thoughtline-turn"]) for reply in replies]
        assert max(counts) <= 1
        return min(counts) == 1

    until(each_once)


@pytest.fixture
def replies(monkeypatch):
    """Every answer that a client received in full."""
    got, go = [], Talk.send

    def send(talk, request):
        reply = go(talk, request)
        got.append(reply)
        return reply

    monkeypatch.setattr(Talk, "send", send)
    return got


def test_answers_that_vanish_lose_nothing_and_double_nothing(nodes, replies):
    talks = [Alternating(nodes, dialect, n) for n in range(2) for dialect in DIALECTS]
    together(talks, 1)
    before = [one.proxy.swallowed for one in nodes.both]
    for _ in range(3):
        for one in nodes.both:
            one.proxy.swallow(2)
        together(talks, 1)
    for one in nodes.both:
        one.proxy.swallow(0)
    assert all(one.proxy.swallowed > n for one, n in zip(nodes.both, before, strict=True))
    assert [talk.audits for talk in talks if not talk.clean()] == []
    each_is_in_the_log_once(nodes, replies)


def test_a_slow_line_makes_requests_slow_and_nothing_else(nodes, replies):
    talks = [Alternating(nodes, dialect, 10) for dialect in DIALECTS]
    for one in nodes.both:
        one.proxy.delay = 0.05
    together(talks, 3)
    for one in nodes.both:
        one.proxy.delay = 0.0
    assert [talk.audits for talk in talks if not talk.clean()] == []
    each_is_in_the_log_once(nodes, replies)


def test_a_node_that_is_cut_off_serves_and_catches_up(hasty_nodes, replies):
    nodes = hasty_nodes
    well, cut = nodes.both
    talk, other = (Alternating(nodes, "chat", 20), Alternating(nodes, "chat", 21))
    talk.nodes, other.nodes = [cut.url], [well.url]
    together([talk, other], 2)
    cut.proxy.cut()
    try:
        talk.go(1)  # its own turns of before are not known there now
        ready = httpx2.get(cut.url + "/ready", timeout=60)
        assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
        other.go(1)
        assert other.clean()
        assert httpx2.get(well.url + "/ready", timeout=60).json()["status"] == "ready"
    finally:
        cut.proxy.mend()
    each_is_in_the_log_once(nodes, replies)
    talk.nodes = [well.url]
    talk.audits.clear()
    talk.go(1)
    assert talk.clean()


@pytest.mark.parametrize("which", [0, 1], ids=["fast clock", "slow clock"])
def test_what_is_forgotten_while_a_node_is_cut_off_is_not_sent_by_it(hasty_nodes, replies, which):
    nodes = hasty_nodes
    cut, well = nodes.both[which], nodes.both[1 - which]
    talk = Alternating(nodes, "chat", 30 + which)
    talk.nodes = [cut.url]
    talk.go(1)
    cut.proxy.cut()
    try:
        talk.go(1)  # this turn waits
        cleared = httpx2.delete(well.url + "/api/cache/reasoning", timeout=60)
        assert cleared.status_code == 200, cleared.text
    finally:
        cut.proxy.mend()
    cut.proxy.delay = 0.06  # more than a look-up is given while the database does not answer
    until(lambda: httpx2.get(cut.url + "/ready", timeout=60).json()["status"] == "ready")
    for url in (cut.url, well.url):
        talk.nodes = [url]
        reply = talk.client.send()
        told = reply.headers.get("x-sim-thoughts", "")
        assert reply.status == 400 or "exact=0" in told, told
    cut.proxy.delay = 0.0
    each_is_in_the_log_once(nodes, replies[:2])
