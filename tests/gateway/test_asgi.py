"""A client that disconnects before its answer has begun."""

import asyncio
import json

import pytest

from support.breaking_upstream import ASKED, Gate, answered, upstream
from support.gateway_server import running
from support.http_server import dialled
from support.loop_clock import settled
from support.waiting import until
from thoughtline.gateway import asgi
from thoughtline.gateway.asgi import DisconnectWatcher
from thoughtline.gateway.options import ProxyOptions


@pytest.mark.parametrize(
    ("finish", "ended"), [(True, (200, "")), (False, (499, "the client left"))]
)
def test_an_answer_that_had_not_begun_is_kept_or_not(finish, ended):
    """Without a stream, the head comes with the words: a client leaves before either."""
    go, sent = Gate(), json.dumps(ASKED).encode()
    options = ProxyOptions(finish_on_disconnect=finish)
    with upstream(answered({"content": "x", "reasoning_content": "t"}), go) as ups:  # noqa: SIM117
        with running(ups, options=options) as gateway:
            with dialled(gateway.port) as peer:
                peer.sendall(
                    b"POST /u/u/v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
                    b"content-length: %d\r\n\r\n%b" % (len(sent), sent)
                )
                assert go.reached.wait(60)
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


async def test_the_own_server_tells_by_itself_that_a_client_left(loop_clock):
    server, cut = Server(), []

    async def work():
        watcher = DisconnectWatcher(never, server)
        server.left()
        await settled()  # what ends at once, ends
        assert not watcher.disconnected
        try:
            await loop_clock.advance(asgi.WATCH_AFTER)
        except asyncio.CancelledError:
            cut.append(watcher.disconnected)
            watcher.uncancel()
        watcher.stop()

    await work()
    assert cut == [True]
    assert server.left is None


async def test_who_has_an_answer_is_not_missed_any_more(loop_clock):
    server = Server()
    watcher = DisconnectWatcher(never, server)
    server.left()
    watcher.stop()
    await loop_clock.advance(asgi.WATCH_AFTER)
    assert not watcher.disconnected
    assert server.left is None
