"""Floods: how long /health waits, and how much memory a gateway takes, while it is sent one.

Each flood goes to a gateway of its own process: as a client's body (plain, and compressed), as an
upstream's answer and as its stream. Printed are the longest wait for /health, how much CPU the
gateway took during the one in which it took most (on a busy machine the rest of the wait is others'
work), and the memory that the process took at its peak beyond what it had before, per byte of the
flood. Linux only.

    python -m benchmarks floods
    FLOOD_BYTES=60000000 python -m benchmarks floods
"""

import asyncio
import contextlib
import gzip
import http.client
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import NamedTuple

from thoughtline.testing.floods import (
    ANSWERS,
    REQUESTS,
    STREAM_SHAPES,
    STREAMS,
    flood,
    stream,
)

SIZE = int(os.environ.get("FLOOD_BYTES", "3000000"))
BUDGET = float(os.environ.get("FLOOD_SECONDS", "50"))
SHAPES = (
    "empty objects",
    "numbers",
    "messages",
    "longer texts",
    "one text",
    "wide text",
    "widened text",
    "escapes",
    "nested",
)
PATHS = {
    "chat": "/u/up/v1/chat/completions",
    "messages": "/u/up/v1/messages",
    "responses": "/u/up/v1/responses",
    "gemini": "/u/up/v1beta/models/m:generateContent",
}
SMALL: dict[str, dict[str, object]] = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    "messages": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "responses": {"model": "m", "input": "hi"},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}


class _Upstream:
    """Answers every request with what it was told."""

    answer, kind = b"{}", "application/json"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                left = int(line.partition(b":")[2])
                while left > 0 and (piece := await reader.read(min(left, 1 << 20))):
                    left -= len(piece)
        body = self.answer
        writer.write(
            b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n"
            % (self.kind.encode(), len(body))
        )
        writer.write(body)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()


class _Stand:
    """A gateway, its upstream, and somebody who asks for /health all the time."""

    def __init__(self, folder: Path) -> None:
        self.upstream = _Upstream()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        starting = asyncio.start_server(self.upstream.serve, "127.0.0.1", 0)
        server = asyncio.run_coroutine_threadsafe(starting, self._loop).result()
        port = server.sockets[0].getsockname()[1]
        (folder / "thoughtline.toml").write_text(
            f'[upstreams.up]\nbase_url = "http://127.0.0.1:{port}"\npolicy = "generic"\n'
            f'[store]\nurl = "sqlite:///{folder}/t.db"\n[log]\nlevel = "error"\n'
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", "thoughtline", "serve", "--port", "0", "--json"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        self.port = int(json.loads(self.process.stdout.readline())["url"].rpartition(":")[2])
        while _wait(self.port) is None:
            time.sleep(0.05)
        context = multiprocessing.get_context("spawn")
        self.longest = context.Value("d", 0.0)
        self.busiest = context.Value("d", 0.0)
        told = (self.port, self.process.pid, self.longest, self.busiest)
        self._watcher = context.Process(target=_watch, args=told, daemon=True)
        self._watcher.start()  # a process of its own: making a flood must not hold it up

    def memory(self, field: str) -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))

    def send(self, dialect: str, body: bytes, headers: dict[str, str]) -> tuple[float, float, int]:
        """Send a request; the longest wait for /health meanwhile, its CPU, and the memory."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")  # forget the peak
        before = self.memory("VmRSS")
        self.longest.value = self.busiest.value = 0.0
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("POST", PATHS[dialect], body, headers)
            connection.getresponse().read()
        connection.close()
        self._until_idle()
        grown = max(0, self.memory("VmHWM") - before)
        return self.longest.value, self.busiest.value, grown

    def _until_idle(self) -> None:
        """Wait until the turn is written, too: nothing of it counts for the next one."""
        before, after = -1.0, _cpu(self.process.pid)
        while after - before > 0.02:
            time.sleep(0.1)
            before, after = after, _cpu(self.process.pid)

    def stop(self) -> None:
        self._watcher.kill()
        self.process.kill()
        self.process.wait()
        self._loop.call_soon_threadsafe(self._loop.stop)


def _wait(port: int) -> float | None:
    """Ask for /health; how long that took."""
    begun = time.perf_counter()
    try:
        with socket.create_connection(("127.0.0.1", port)) as peer:
            peer.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            while peer.recv(1 << 16):
                pass
    except OSError:
        return None
    return time.perf_counter() - begun


def _cpu(pid: int) -> float:
    """Seconds of CPU that all threads of a process have taken."""
    taken = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # that thread has ended
            taken += int(task.read_text().split()[0])
    return taken / 1e9


def _watch(
    port: int, pid: int, longest: "Synchronized[float]", busiest: "Synchronized[float]"
) -> None:
    while True:
        before = _cpu(pid)
        waited = _wait(port) or 0.0
        longest.value = max(longest.value, waited)
        busiest.value = max(busiest.value, min(waited, _cpu(pid) - before))
        time.sleep(0.005)


class _Case(NamedTuple):
    way: str  # it goes: `request`, `gzip`, `answer` or `stream`
    dialect: str
    template: str
    shape: str

    def made(self) -> bytes:
        if self.way == "stream":
            return stream(self.template, self.shape, SIZE)
        return flood(self.template, self.shape, SIZE)


def _cases() -> list[_Case]:
    cases: list[_Case] = []
    for dialect, places in REQUESTS.items():
        for template in places.values():
            cases += [_Case("request", dialect, template, shape) for shape in SHAPES]
            cases.append(_Case("gzip", dialect, template, "empty objects"))
        for template in ANSWERS[dialect].values():
            cases += [_Case("answer", dialect, template, shape) for shape in SHAPES]
        cases += [_Case("stream", dialect, STREAMS[dialect], shape) for shape in STREAM_SHAPES]
    return [case for start in range(7) for case in cases[start::7]]  # some of each, if time is up


def _send(stand: _Stand, case: _Case) -> tuple[float, float, float]:
    """Send a flood; the longest wait for /health, its CPU, and the memory per byte of the flood."""
    headers = {"content-type": "application/json", "authorization": "Bearer k"}
    made = body = case.made()
    stand.upstream.answer, stand.upstream.kind = b"{}", "application/json"
    if case.way == "gzip":
        body = gzip.compress(made, 1)
        headers["content-encoding"] = "gzip"
    elif case.way in ("answer", "stream"):
        small = SMALL[case.dialect] | ({"stream": True} if case.way == "stream" else {})
        body = json.dumps(small).encode()
        stand.upstream.answer = made
        if case.way == "stream":
            stand.upstream.kind = "text/event-stream"
    wait, cpu, memory = stand.send(case.dialect, body, headers)
    return wait, cpu, memory / len(made)


_FIGURES = {
    "longest wait for /health": (1000, "ms"),
    "most CPU in a wait": (1000, "ms"),
    "most memory": (1, "times its size"),
}


def run() -> list[tuple[str, float, str]]:
    worst: dict[tuple[str, str], tuple[float, str]] = {}
    done, deadline = 0, time.monotonic() + BUDGET
    with tempfile.TemporaryDirectory() as folder:
        stand = _Stand(Path(folder))
        try:
            time.sleep(2)  # the watcher starts
            stand.longest.value = 0.0
            time.sleep(3)
            idle = stand.longest.value
            for case in _cases():
                if time.monotonic() > deadline:
                    break
                name = f"{case.dialect}, {case.shape}"
                for what, figure in zip(_FIGURES, _send(stand, case), strict=True):
                    before = worst.get((case.way, what), (0.0, ""))
                    worst[case.way, what] = max(before, (figure, name))
                done += 1
        finally:
            stand.stop()
    rows: list[tuple[str, float, str]] = [
        (f"floods of {SIZE:,} bytes", float(done), "of them"),
        ("nothing: longest wait for /health in 3 seconds", idle * 1000, "ms"),
    ]
    for (way, what), (figure, name) in worst.items():
        scale, unit = _FIGURES[what]
        rows.append((f"{way}: {what} ({name})", figure * scale, unit))
    return rows
