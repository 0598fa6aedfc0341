"""Things go wrong around the gateway: it keeps serving, and loses nothing that a client received."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time

import httpx2
import pytest

from thoughtline.testing import serving

TOOLS = [
    {
        "type": "function",
        "function": {"name": "run", "parameters": {"type": "object", "properties": {}}},
    }
]


class Process:
    """`thoughtline serve` in a folder, towards a simulated DeepSeek."""

    def __init__(self, folder, root):
        self.folder = folder
        (folder / "thoughtline.toml").write_text(
            f'[upstreams.up]\nbase_url = "{root}"\npolicy = "deepseek"\n'
            f'[store]\nurl = "sqlite:///{folder}/t.db"\ncommit_wait = 1.0\n[log]\nlevel = "error"\n'
        )
        self.start()

    def start(self):
        command = [sys.executable, "-m", "thoughtline", "serve", "--port", "0", "--json"]
        clean = {
            k: v
            for k, v in os.environ.items()
            if not k.endswith("_API_KEY") and not k.startswith("THOUGHTLINE")
        }
        self.process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=clean,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.url = json.loads(self.process.stdout.readline())["url"]
        self.port = int(self.url.rpartition(":")[2])
        for _ in range(600):
            with contextlib.suppress(httpx2.TransportError):
                if httpx2.get(self.url + "/health").status_code == 200:
                    return
            time.sleep(0.05)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def exchange(self, messages, **headers):
        return httpx2.post(
            f"{self.url}/u/up/v1/chat/completions",
            json={"model": "deepseek-v4-pro", "messages": messages, "tools": TOOLS},
            headers={"authorization": "Bearer me", **headers},
            timeout=30,
        )

    def talk(self, exchanges, messages=None):
        messages = messages or [{"role": "user", "content": "mend it"}]
        for _ in range(exchanges):
            reply = self.exchange(messages)
            assert reply.status_code == 200, reply.text
            message = {
                k: v
                for k, v in reply.json()["choices"][0]["message"].items()
                if k != "reasoning_content"
            }
            calls = message.get("tool_calls") or []
            results = [{"role": "tool", "tool_call_id": c["id"], "content": "ok"} for c in calls]
            messages = [*messages, message, *(results or [{"role": "user", "content": "go on"}])]
        return reply, messages


@pytest.fixture
def gateway(tmp_path):
    with serving("deepseek") as sims:
        process = Process(tmp_path, sims.root("deepseek"))
        process.sims = sims
        yield process
        process.kill()


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
    head = b"POST /u/up/v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n{"
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
            b"POST /u/up/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\n"
            b"content-length: %d\r\n\r\n%s" % (len(body), body.encode())
        )
        slow.append(one)
    reply, _ = gateway.talk(2)
    assert reply.status_code == 200
    for one in slow:
        one.close()


def test_a_signal_lets_open_streams_finish(gateway):
    with httpx2.stream(
        "POST",
        f"{gateway.url}/u/up/v1/chat/completions",
        json={
            "model": "deepseek-v4-pro",
            "messages": [{"role": "user", "content": "hi"}],
            "stream": True,
        },
        headers={"authorization": "Bearer me"},
    ) as reply:
        gateway.process.send_signal(signal.SIGTERM)
        assert reply.read().endswith(b"data: [DONE]\n\n")
    assert gateway.process.wait(40) is not None
