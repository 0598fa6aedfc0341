"""Conversations that change their node with every request, while nodes and the database fail.

How many conversations: `CLUSTER_CONVERSATIONS`, of each dialect.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import httpx2
import pytest

from support.clients import client
from support.waiting import until
from thoughtline.testing import Reply

pytestmark = pytest.mark.slow

COUNT = int(os.environ.get("CLUSTER_CONVERSATIONS", "3"))
DIALECTS = {
    "chat": ("deepseek", ""),
    "messages": ("claude", "/v1"),
    "responses": ("openai", "/v1"),
    "gemini": ("gemini", ""),
}
CLEAN = "altered=0; missing=0; misplaced=0; foreign=0"


class Talk:
    """A client that strips thoughts, and asks again where a node or the balancer failed."""

    def __init__(self, machines, dialect, number, *, patient=False):
        self.provider, base = DIALECTS[dialect]
        self.patient = patient
        self.sent = self.asked_again = 0
        self.nodes = [machines.url]
        self.audits = []
        key = f"key-{number % 2}-{'k' * 20}"
        options = {"base": base} if base else {}
        if dialect == "chat":
            options["model"] = machines.sims["deepseek"].models()[0]
        echo = "strip" if dialect in {"chat", "messages"} else "keep"
        opening = f"mend file {number} of {dialect}"
        self.client = client(dialect, self.send, key=key, echo=echo, opening=opening, **options)

    def send(self, request):
        got = until(lambda: self._sent(request))
        self.audits.append(got.headers.get("x-sim-thoughts", ""))
        return Reply(status=got.status_code, chunks=(got.content,), headers=dict(got.headers))

    def _sent(self, request):
        """The answer; None where somebody else may give one."""
        self.sent += 1
        url = f"{self.nodes[0]}/u/{self.provider}{request.path}"
        if request.query:
            url += f"?{request.query}"
        try:
            got = httpx2.post(url, content=request.body, headers=dict(request.headers), timeout=90)
            if got.status_code not in (502, 503, 504) or not self.patient:
                return got
        except httpx2.TransportError:
            assert self.patient, "the request failed"
        self.asked_again += 1
        return None

    def go(self, turns):
        for _ in range(turns):
            reply = self.client.turn()
            assert reply.status == 200, reply.body
        return self

    def clean(self):
        return all(CLEAN in audit for audit in self.audits)


def talks(machines, count=COUNT, **options):
    return [
        Talk(machines, dialect, number, **options)
        for number in range(count)
        for dialect in DIALECTS
    ]


def together(talks, turns):
    with ThreadPoolExecutor(12) as pool:
        return list(pool.map(lambda talk: talk.go(turns), talks))


@contextmanager
def under_way(talks, turns):
    """While these talks go on, from when each of them has sent a request."""
    before = [talk.sent for talk in talks]
    with ThreadPoolExecutor(1) as pool:  # whose end waits for what was submitted
        going = pool.submit(together, talks, turns)
        until(lambda: all(talk.sent > n for talk, n in zip(talks, before, strict=True)))
        yield
        going.result()


def nothing_twice_and_no_gap(machines):
    doubled = machines.sql(
        "SELECT session, id FROM batches WHERE nth = 0 GROUP BY session, id HAVING count(*) > 1"
    )
    gaps = machines.sql(
        "SELECT session FROM batches GROUP BY session"
        " HAVING sum(count) <> max(first + count) OR min(first) <> 0"
    )
    assert (list(doubled), list(gaps)) == ([], [])


def test_another_node_with_every_request_in_four_dialects(machines):
    asked = together(talks(machines), 4)
    assert [talk.client.path for talk in asked if not talk.clean()] == []
    assert all(f"exact={n}" in talk.audits[n] for talk in asked[:1] for n in range(1, 4))
    served = [
        sum(
            float(line.rpartition(" ")[2])
            for line in httpx2.get(node.url + "/metrics").text.splitlines()
            if line.startswith("thoughtline_requests_total{")
        )
        for node in machines.nodes
    ]
    assert all(count > 0 for count in served), served
    nothing_twice_and_no_gap(machines)


def test_a_node_that_is_killed_loses_nothing_that_was_acknowledged(machines):
    asked = talks(machines, 2, patient=True)
    together(asked, 1)
    node = machines.nodes[0]
    with under_way(asked, 2):
        node.kill()
    node.start().wait()
    together(asked, 2)
    assert [talk.audits for talk in asked if not talk.clean()] == []
    nothing_twice_and_no_gap(machines)


def test_a_database_that_restarts_is_waited_for(machines):
    asked = talks(machines, 1)
    together(asked, 2)
    machines.postgres.stop("immediate")  # as in a crash
    ready = httpx2.get(machines.nodes[1].url + "/ready", timeout=60)
    assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
    with under_way(asked, 2):
        machines.postgres.start()
    assert [talk.audits for talk in asked if not talk.clean()] == []
    nothing_twice_and_no_gap(machines)


def test_a_database_that_is_frozen_for_a_while_is_waited_for(machines):
    asked = talks(machines, 1)
    together(asked, 2)
    with ExitStack() as freezing:
        freezing.enter_context(machines.postgres.frozen())
        with under_way(asked, 1):
            freezing.close()
    together(asked, 1)
    assert [talk.audits for talk in asked if not talk.clean()] == []


def test_what_one_node_forgets_no_other_sends(machines):
    one, other = machines.nodes
    talk = Talk(machines, "chat", 901)
    talk.nodes = [one.url]
    talk.go(2)
    talk.nodes = [other.url]
    talk.go(1)
    assert "missing=0" in talk.audits[-1]
    cleared = httpx2.delete(one.url + "/api/cache/reasoning", timeout=60)
    assert cleared.status_code == 200, cleared.text
    reply = talk.client.send()
    told = reply.headers.get("x-sim-thoughts", "")
    assert reply.status == 400 or "exact=0" in told, told  # what it must have is not made up


def test_a_refusal_on_one_node_is_known_on_the_other(machines, monkeypatch):
    one, other = machines.nodes
    sim, refusals = machines.sims["openai"], []
    refuse = sim.refuse
    monkeypatch.setattr(sim, "refuse", lambda problem: refusals.append(problem) or refuse(problem))
    talk = Talk(machines, "responses", 902)
    talk.client.echo = "strip"
    talk.nodes = [one.url]
    talk.go(2)
    monkeypatch.setattr(sim, "secret", b"seals of before cannot be opened any more")
    assert talk.client.send().status == 200
    assert len(refusals) == 1  # corrected by the first node
    talk.nodes = [other.url]
    assert talk.client.send().status == 200
    assert len(refusals) == 1


class Hasty(Talk):
    """A client that leaves as soon as it hears why the model stopped."""

    def send(self, request):
        url = f"{self.nodes[0]}/u/{self.provider}{request.path}"
        heard = b""
        with httpx2.stream(
            "POST", url, content=request.body, headers=dict(request.headers), timeout=90
        ) as got:
            for chunk in got.iter_raw():
                heard += chunk
                place = heard.find(b'"finish_reason":"')
                if place >= 0 and b"\n\n" in heard[place:]:
                    break
        self.audits.append(got.headers.get("x-sim-thoughts", ""))
        heard = heard.partition(b"data: [DONE]")[0] + b"data: [DONE]\n\n"
        return Reply(status=got.status_code, chunks=(heard,), headers=dict(got.headers))


def test_a_client_that_leaves_at_the_stop_goes_on_elsewhere(machines):
    talk = Hasty(machines, "chat", 904)
    talk.client.stream = True
    for number in range(8):
        talk.nodes = [machines.nodes[number % 2].url]
        talk.go(1)
    assert talk.clean(), talk.audits
    assert "exact=7" in talk.audits[-1]


def test_two_branches_on_two_nodes_are_one_session(machines):
    one, other = machines.nodes
    left, right = Talk(machines, "chat", 903), Talk(machines, "chat", 903)
    left.nodes, right.nodes = [one.url], [other.url]
    left.go(2)
    right.client.history = [*left.client.history, right.client.user("The other way.")]
    left.client.history.append(left.client.user("This way."))
    replies = [branch.client.turn() for _ in range(2) for branch in (left, right)]
    assert len({reply.headers["x-thoughtline-session"] for reply in replies}) == 1
    assert left.clean() and right.clean()


def test_a_rolling_restart_fails_no_request(machines):
    asked = talks(machines, 1)
    going = threading.Event()

    def steadily(talk):
        while not going.is_set():
            talk.go(1)
            if len(talk.client.history) > 40:
                talk.client.history = talk.client.history[:1]
        return talk

    with ThreadPoolExecutor(len(asked)) as pool:
        running = [pool.submit(steadily, talk) for talk in asked]
        try:
            for node in machines.nodes:
                with machines.cluster.balancer.without(node.port):
                    node.restart()
        finally:
            going.set()
        for one in running:
            one.result()
    assert all(talk.asked_again == 0 for talk in asked)
    nothing_twice_and_no_gap(machines)
