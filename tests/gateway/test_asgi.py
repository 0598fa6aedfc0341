"""A client that disconnects before its answer has begun."""

import asyncio
import threading

import httpx2
import pytest

from support.breaking_upstream import ASKED, answered, until, upstream
from support.gateway_server import running
from thoughtline.gateway import asgi
from thoughtline.gateway.asgi import DisconnectWatcher
from thoughtline.gateway.options import ProxyOptions


@pytest.mark.parametrize(
    ("finish", "ended"), [(True, (200, "")), (False, (499, "the client left"))]
)
def test_an_answer_that_had_not_begun_is_kept_or_not(finish, ended):
    """Without a stream, the head comes with the words: a client leaves before either."""
    go = threading.Event()
    options = ProxyOptions(finish_on_disconnect=finish)
    with upstream(answered({"content": "x", "reasoning_content": "t"}), go) as ups:  # noqa: SIM117
        with running(ups, options=options) as gateway:
            with pytest.raises(httpx2.ReadTimeout):
                httpx2.post(f"{gateway.url}/u/u/v1/chat/completions", json=ASKED, timeout=0.4)
            if not finish:
                until(lambda: gateway.notes.records)
            go.set()
            until(lambda: gateway.notes.records)
            assert gateway.notes.records == [ended]
            assert gateway.proxy.in_flight.count == 0


class Server:
    """The own server: somebody may ask to be told that the client left."""

    left = None

    def watch(self, left):
        self.left = left


async def never():
    raise AssertionError("the own server is not asked for messages")


async def test_the_own_server_tells_by_itself_that_a_client_left(monkeypatch):
    monkeypatch.setattr(asgi, "WATCH_AFTER", 0.05)
    server, cut = Server(), []

    async def work():
        watcher = DisconnectWatcher(never, server)
        server.left()
        for _ in range(5):  # what ends at once, ends
            await asyncio.sleep(0)
        assert not watcher.disconnected
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cut.append(watcher.disconnected)
            watcher.uncancel()
        watcher.stop()

    await work()
    assert cut == [True]
    assert server.left is None


async def test_who_has_an_answer_is_not_missed_any_more(monkeypatch):
    monkeypatch.setattr(asgi, "WATCH_AFTER", 0)
    server = Server()
    watcher = DisconnectWatcher(never, server)
    server.left()
    watcher.stop()
    await asyncio.sleep(0.01)
    assert not watcher.disconnected
    assert server.left is None
