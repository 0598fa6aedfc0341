"""Things go wrong around the gateway: it keeps serving, and loses nothing that a client received."""

import contextlib
import json
import socket

import httpx2

from support.gateway_process import TOOLS


def test_killed_in_the_middle_of_a_stream_it_goes_on_where_the_client_is(gateway):
    _, messages = gateway.talk(3)
    with (
        contextlib.suppress(httpx2.TransportError),
        httpx2.stream(
            "POST",
            f"{gateway.url}/u/up/v1/chat/completions",
            json={"model": "deepseek-v4-pro", "messages": messages, "tools": TOOLS, "stream": True},
            headers={"authorization": "Bearer me", "x-sim-fault": "stall"},
        ) as reply,
    ):
        for _ in reply.iter_raw():
            gateway.kill()
    gateway.start()
    reply, _ = gateway.talk(1, messages)
    assert "restored=3; missed=0" in reply.headers["x-thoughtline-replay"]


def test_a_store_that_is_removed_does_not_stop_it(gateway):
    _, messages = gateway.talk(3)
    for file in gateway.folder.glob("t.db*"):
        file.unlink()
    reply, _ = gateway.talk(3, messages)
    assert "missed=0" in reply.headers["x-thoughtline-replay"]  # from memory


def test_garbage_from_upstream_passes_and_nothing_breaks(gateway):
    messages = [{"role": "user", "content": "mend it"}]
    for fault in ("garbage", "garbage:2", "cut:2", "500", "429"):
        with contextlib.suppress(httpx2.TransportError):
            gateway.exchange(messages, **{"x-sim-fault": fault})
    reply, _ = gateway.talk(2)
    assert reply.status_code == 200


def test_a_thousand_clients_that_come_and_go(gateway):
    head = b"POST /u/up/v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n{"
    for _ in range(10):
        sockets = []
        for _ in range(100):
            one = socket.create_connection(("127.0.0.1", gateway.port))
            one.sendall(head)
            sockets.append(one)
        for one in sockets:
            one.close()
    reply, _ = gateway.talk(3)
    assert "restored=2; missed=0" in reply.headers["x-thoughtline-replay"]


def test_a_slow_client_does_not_fill_memory(gateway):
    """It reads nothing: the gateway must stop reading from upstream, not hoard."""
    body = json.dumps(
        {
            "model": "deepseek-v4-pro",
            "messages": [{"role": "user", "content": "x" * 200_000}],
            "stream": True,
        }
    )
    slow = []
    for _ in range(20):
        one = socket.create_connection(("127.0.0.1", gateway.port))
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.sendall(
            b"POST /u/up/v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer k\r\n"
            b"content-length: %d\r\n\r\n%s" % (len(body), body.encode())
        )
        slow.append(one)
    reply, _ = gateway.talk(2)
    assert reply.status_code == 200
    for one in slow:
        one.close()
