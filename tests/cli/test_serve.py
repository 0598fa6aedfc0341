"""The gateway as a process: it says where it listens, serves, and ends gracefully."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
from websockets.sync.client import connect

from support.waiting import answers, until
from thoughtline.agents.simulated import STRICT
from thoughtline.cli import serve
from thoughtline.cli.serve import _listen
from thoughtline.gateway.settings import load

AT_ONCE = {STRICT: "1"}
"""For tests that are not about the simulated models, which type as fast as people read."""
GEMINI = {"role": "user", "parts": [{"text": "hi"}]}


@pytest.fixture
def start(tmp_path):
    """Start `thoughtline serve` in a folder of its own; gives its address and the process."""
    processes = []

    def run(*arguments, env=None):
        clean = {
            k: v
            for k, v in os.environ.items()
            if not k.endswith("_API_KEY") and not k.startswith("THOUGHTLINE")
        }
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "thoughtline",
                "serve",
                "--port",
                "0",
                "--json",
                "--store",
                f"sqlite:///{tmp_path}/t.db",
                *arguments,
            ],
            cwd=tmp_path,
            env={**clean, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        line = process.stdout.readline()
        said = json.loads(line) if line else {}
        until(lambda: process.poll() is not None or answers(f"{said['url']}/health"))
        return said.get("url", ""), process

    yield run
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


TOOLS = [
    {
        "type": "function",
        "function": {"name": "run", "parameters": {"type": "object", "properties": {}}},
    }
]


def exchange(url, messages, model="sim/deepseek/deepseek-v4-pro"):
    reply = httpx2.post(
        f"{url}/v1/chat/completions",
        json={"model": model, "messages": messages, "tools": TOOLS},
        headers={"authorization": "Bearer me"},
    )
    assert reply.status_code == 200, reply.text
    message = {
        k: v for k, v in reply.json()["choices"][0]["message"].items() if k != "reasoning_content"
    }
    results = [
        {"role": "tool", "tool_call_id": c["id"], "content": "ok"}
        for c in message.get("tool_calls") or []
    ]
    return reply, [*messages, message, *(results or [{"role": "user", "content": "go on"}])]


def test_it_serves_and_ends_on_a_signal(start):
    url, process = start(env=AT_ONCE)
    assert httpx2.get(f"{url}/health").status_code == 200
    messages = [{"role": "user", "content": "mend it"}]
    for turn in range(4):
        reply, messages = exchange(url, messages)
        assert f"restored={turn};" in reply.headers["x-thoughtline-replay"]
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors


MESSAGES = [{"role": "user", "content": "hi"}]
SUGGESTED = {
    "sim/deepseek": ("/v1/chat/completions", {"messages": MESSAGES}),
    "sim/claude": ("/v1/messages", {"messages": MESSAGES, "max_tokens": 64}),
    "sim/openai": ("/v1/responses", {"input": "hi"}),
    "sim/gemini": ("/v1beta/models/sim/gemini:generateContent", {"contents": [GEMINI]}),
}


def test_every_suggested_model_answers(start):
    """What a newcomer copies works, also where the model speaks another dialect."""
    url, _ = start()
    asked = [
        (path, body if "models" in path else {"model": model, **body})
        for model, (path, body) in SUGGESTED.items()
    ]
    asked.append(("/v1/chat/completions", {"model": "sim/openai", "messages": MESSAGES}))
    with ThreadPoolExecutor() as threads:  # each takes its time
        replies = list(threads.map(lambda one: httpx2.post(url + one[0], json=one[1]), asked))
    for reply in replies:
        assert reply.status_code == 200, reply.text
        assert "restored=0" in reply.headers["x-thoughtline-replay"]
    other = replies[-1]
    assert other.headers["x-thoughtline-translated"].startswith("chat>responses")
    climbing = httpx2.get(f"{url}/u/deepseek/v1/%2e%2e/files")
    assert (climbing.status_code, climbing.json()["error"]["code"]) == (400, "invalid_path")


def test_a_simulated_model_answers_on_a_websocket(start):
    url, _ = start()
    with connect(f"{url.replace('http', 'ws')}/v1/responses") as socket:
        socket.send(json.dumps({"type": "response.create", "model": "sim/openai", "input": "hi"}))
        types = []
        while not types or types[-1] not in ("response.completed", "error"):
            types.append(json.loads(socket.recv(timeout=60))["type"])
    assert types[-1] == "response.completed"


def test_the_models_that_it_suggests_are_the_ones_that_answer(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    serve._announce(load({}, {}, tmp_path), 7337, as_json=False)
    shown = set(re.findall(r"sim/[a-z]+", capsys.readouterr().out))
    assert shown == SUGGESTED.keys()


@pytest.mark.parametrize("flags", [(), ("--workers", "2")], ids=["alone", "workers"])
def test_an_open_feed_does_not_hold_up_the_end(start, flags):
    url, process = start(*flags, env={"THOUGHTLINE_SERVER__SHUTDOWN_GRACE": "600"})
    with httpx2.stream("GET", f"{url}/api/feed", timeout=60) as feed:
        pieces = feed.iter_text()
        assert "event: hello\n" in next(pieces)
        process.send_signal(signal.SIGINT)
        assert "".join(pieces) == ""  # it ends as a stream should, and is not cut off
    _, errors = process.communicate(timeout=60)  # the grace period for streams is longer
    assert (process.returncode, "Traceback" in errors) == (0, False), errors


def test_a_conversation_survives_kill_9(start):
    """What a client received in full is in the log, also one moment after a crash."""
    messages = [{"role": "user", "content": "mend it"}]
    for turn in range(3):
        url, process = start(env=AT_ONCE)
        reply, messages = exchange(url, messages)
        assert f"restored={turn}; missed=0" in reply.headers["x-thoughtline-replay"]
        process.kill()
        process.wait()


def test_workers_share_the_store(start):
    url, process = start("--workers", "2", env=AT_ONCE)
    messages = [{"role": "user", "content": "mend it"}]
    for turn in range(6):
        reply, messages = exchange(url, messages, "sim/kimi-k3")
        assert f"restored={turn}; missed=0" in reply.headers["x-thoughtline-replay"]
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0


def test_workers_end_with_their_supervisor_and_give_the_port_back(start):
    url, process = start("--workers", "2", env=AT_ONCE)
    exchange(url, [{"role": "user", "content": "mend it"}], "sim/deepseek")
    process.kill()
    process.wait()

    def is_free():
        with contextlib.suppress(OSError), socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", int(url.rpartition(":")[2])))
            listener.listen()
            return True
        return False

    until(is_free)


class Slow(BaseHTTPRequestHandler):
    """A provider that begins to think, and goes on when it is told to."""

    go_on = threading.Event()

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        choice = {"index": 0, "delta": {"reasoning_content": "Hm."}, "finish_reason": None}
        self.wfile.write(
            b"data: " + json.dumps({"id": "c", "choices": [choice]}).encode() + b"\n\n"
        )
        self.wfile.flush()
        self.go_on.wait(60)
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_):
        pass


def test_every_worker_shows_what_runs_in_any(start, tmp_path):
    provider = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    where = f"http://127.0.0.1:{provider.server_port}"
    (tmp_path / "thoughtline.toml").write_text(
        f'[upstreams.slow]\nbase_url = "{where}"\npolicy = "deepseek"\n'
    )
    url, process = start("--workers", "2")
    asked = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    try:
        with httpx2.stream("POST", f"{url}/u/slow/v1/chat/completions", json=asked) as answer:
            pieces = answer.iter_text()
            assert "Hm." in next(pieces)
            for _ in range(12):  # each time whoever is free answers
                listed = httpx2.get(f"{url}/api/sessions", params={"status": "running"}).json()
                assert [one["title"] for one in listed["sessions"]] == ["hi"]
            Slow.go_on.set()
            assert "[DONE]" in "".join(pieces)
    finally:
        Slow.go_on.set()
        provider.shutdown()
        provider.server_close()
        process.send_signal(
            signal.SIGINT
        )  # also after a failure: who is killed leaves workers behind
        assert process.wait(60) == 0


def test_a_taken_port_is_a_sentence(start, tmp_path):
    url, _ = start()
    port = url.rpartition(":")[2]
    second = subprocess.run(
        [sys.executable, "-m", "thoughtline", "serve", "--port", port],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert second.returncode == 1
    assert "cannot listen on 127.0.0.1:" in second.stderr
    assert "Traceback" not in second.stderr


def test_it_does_not_listen_to_the_world_without_keys(tmp_path):
    refused = subprocess.run(
        [sys.executable, "-m", "thoughtline", "serve", "--host", "0.0.0.0", "--port", "0"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert refused.returncode == 1
    assert "allow" in refused.stderr


def test_an_announced_port_takes_connections():
    settings = load({"port": 0}, {}, Path("/nowhere"))
    with _listen(settings) as listener:
        socket.create_connection(listener.getsockname(), timeout=5).close()


def refused(tmp_path, url):
    return subprocess.run(
        [sys.executable, "-m", "thoughtline", "serve", "--port", "0", "--store", url],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def test_a_store_that_can_never_be_is_refused_before_anything_is_announced(tmp_path):
    (tmp_path / "file").write_text("")
    said = refused(tmp_path, "sqlite:///file/t.db")
    assert (said.returncode, said.stdout) == (1, "")
    assert "the folder of `store.url`" in said.stderr


def test_the_announcement_waits_for_the_store_and_says_if_it_does_not_answer(start, tmp_path):
    _, process = start()
    assert (tmp_path / "t.db").exists()  # when it was announced
    process.terminate()
    process.wait(60)
    for file in tmp_path.glob("t.db*"):
        file.unlink()
    (tmp_path / "t.db").mkdir()
    code = [sys.executable, "-m", "thoughtline", "serve", "--port", "0", "--json"]
    code += ["--store", f"sqlite:///{tmp_path}/t.db"]
    with subprocess.Popen(code, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as gateway:
        said = json.loads(gateway.stdout.readline())
        assert "it is a directory" in said["trouble"]
        answered = httpx2.post(
            f"{said['url']}/v1/chat/completions",
            json={"model": "sim/deepseek", "messages": MESSAGES},
        )
        assert answered.status_code == 200  # requests go through
        gateway.terminate()


def test_people_are_told_of_a_store_that_does_not_answer(tmp_path, capsys):
    serve._announce(load({}, {}, tmp_path), 7337, trouble="it is a directory", as_json=False)
    said = capsys.readouterr()
    assert "Thoughtline is listening" in said.out
    assert "The store does not answer" in said.err and "it is a directory" in said.err
