"""A gateway that stops answers whoever has reached it, and refuses everybody else."""

import asyncio
import signal
import socket
import sys
import threading

import pytest
import uvicorn

from support.gateway_process import Process
from support.http_server import answer
from support.waiting import until
from thoughtline.gateway.server.listener import GatewayServer, open_no_more
from thoughtline.gateway.server.protocol import HttpProtocol

REQUEST = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


async def app(scope, receive, send):
    head = [(b"content-length", b"6")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": b"served"})


@pytest.fixture
def listener():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        made.listen(64)
        yield made


async def test_connections_that_wait_to_be_accepted_are_answered(listener):
    config = uvicorn.Config(app, http=HttpProtocol, ws="none", lifespan="off", log_level="error")
    server = GatewayServer(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    async with asyncio.timeout(60):
        await server.startup(sockets=[listener])
        place = listener.getsockname()
        peers = [socket.create_connection(place) for _ in range(3)]  # the loop knows of none
        for peer in peers:
            peer.sendall(REQUEST)
        stopping = asyncio.create_task(server.shutdown([listener]))
        for peer in peers:
            status, _, body = await asyncio.to_thread(answer, peer)
            assert (status, body) == (200, b"served")
            peer.close()
        await stopping
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(place)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone can tell its network so")
def test_connections_that_come_later_are_not_opened_and_those_before_go_on(listener):
    place = listener.getsockname()
    with socket.create_connection(place) as before, socket.socket() as later:
        open_no_more(listener)
        later.setblocking(False)
        assert later.connect_ex(place) != 0
        accepted, _ = listener.accept()
        before.sendall(b"said later")
        accepted.settimeout(60)
        assert accepted.recv(20) == b"said later"
        accepted.close()
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_no_request_is_cut_off_by_a_signal(tmp_path, workers):
    """Clients that connect anew for every request, as load balancers do."""
    gateway = Process(tmp_path, "http://127.0.0.1:9", settings=f"[server]\nworkers = {workers}")
    cut, over, served = [], threading.Event(), []

    def ask():
        while not over.is_set():
            try:
                peer = socket.create_connection(("127.0.0.1", gateway.port), timeout=60)
            except OSError:
                return  # it was not sent: another gateway is asked
            with peer:
                try:
                    peer.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
                    assert answer(peer)[0] == 200
                    served.append(1)
                except (OSError, EOFError, AssertionError) as error:
                    cut.append(error)

    clients = [threading.Thread(target=ask) for _ in range(8)]
    for client in clients:
        client.start()
    until(lambda: len(served) >= 100)
    gateway.process.send_signal(signal.SIGTERM)
    gateway.process.communicate(timeout=60)
    over.set()
    for client in clients:
        client.join(60)
    assert cut == []
