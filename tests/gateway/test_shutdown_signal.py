"""A gateway process that is told to stop lets open streams finish."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys

import httpx2

from support.waiting import answers, until


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
    assert gateway.process.wait(60) is not None


def test_a_signal_does_not_wait_for_halves_of_requests(tmp_path):
    """Nor does it print a stack trace for each of them."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("THOUGHTLINE")}
    clean["THOUGHTLINE_SERVER__SHUTDOWN_GRACE"] = "600"
    command = [sys.executable, "-m", "thoughtline", "serve", "--port", "0", "--json"]
    process = subprocess.Popen(
        [*command, "--store", "memory://"],
        cwd=tmp_path,
        env=clean,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        port = int(json.loads(process.stdout.readline())["url"].rpartition(":")[2])
        until(lambda: answers(f"http://127.0.0.1:{port}/health"))
        with contextlib.ExitStack() as stack:
            for _ in range(100):
                peer = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                peer.sendall(
                    b"POST /u/openai/v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
                    b"content-length: 1000\r\n\r\n{"
                )
            peer.sendall(b'"a')
            assert httpx2.get(f"http://127.0.0.1:{port}/health").status_code == 200
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=60)  # less than the grace period
    finally:
        process.kill()
    assert "Traceback" not in said
