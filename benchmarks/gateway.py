"""What the gateway costs: CPU of its process per request and per chunk, beside nginx where it is.

All processes on this machine, over loopback; ratios within one run, since machines are noisy. A
third column would be LiteLLM's proxy: `THOUGHTLINE_BENCH_LITELLM=/path/to/litellm` adds it.
"""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.replay import history

SMALL = json.dumps(
    {
        "model": "deepseek-v4-pro",
        "messages": [
            {"role": "system", "content": "Be brief. " * 40},
            {"role": "user", "content": "Please mend the file a.txt. " * 10},
        ],
        "tools": [{"type": "function", "function": {"name": "run", "parameters": {}}}],
    }
).encode()
TICKS = os.sysconf("SC_CLK_TCK")


def cpu(pid: int) -> float:
    """Seconds of CPU that a process and its children have used."""
    total = 0.0
    for stat in [Path(f"/proc/{pid}/stat"), *_children(pid)]:
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / TICKS
    return total


def _children(pid: int) -> list[Path]:
    try:
        kids = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [Path(f"/proc/{kid}/stat") for kid in kids]


def memory(pid: int) -> float:
    """Resident bytes of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def process(*command: str, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """A process for the length of a block."""
    running = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **(env or {})},
    )
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(10)
        except subprocess.TimeoutExpired:
            running.kill()


def wait(port: int) -> None:
    """Until somebody listens."""
    for _ in range(600):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"nobody listens on port {port}")


@contextlib.contextmanager
def gateway(upstream: int) -> Iterator[tuple[int, int, str]]:
    """(port, pid, path) of a gateway with a SQLite store of its own."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "thoughtline.toml"
        settings.write_text(
            f'[upstreams.bench]\nbase_url = "http://127.0.0.1:{upstream}"\npolicy = "deepseek"\n'
            f'[store]\nurl = "sqlite:///{folder}/t.db"\n[log]\nlevel = "error"\n'
        )
        command = [
            sys.executable,
            "-m",
            "thoughtline",
            "serve",
            "--port",
            "0",
            "--json",
            "--config",
            str(settings),
        ]
        with process(*command) as running:
            assert running.stdout
            port = int(json.loads(running.stdout.readline())["url"].rpartition(":")[2])
            wait(port)
            yield port, running.pid, "/u/bench/v1/chat/completions"


@contextlib.contextmanager
def nginx(upstream: int) -> Iterator[tuple[int, int, str] | None]:
    """The same for nginx's proxy_pass; None where there is no nginx."""
    program = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if program is None:
        yield None
        return
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "nginx.conf").write_text(
            f"daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;\n"
            "events {{ worker_connections 4096; }}\n".format()
            + "http { access_log off; client_body_temp_path /tmp; proxy_temp_path /tmp; fastcgi_temp_path /tmp;"
            " uwsgi_temp_path /tmp; scgi_temp_path /tmp; client_max_body_size 64m;"
            f" upstream u {{ server 127.0.0.1:{upstream}; keepalive 128; }}"
            f" server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://u; proxy_http_version 1.1;"
            ' proxy_set_header Connection ""; proxy_buffering off; client_body_buffer_size 2m; } } }'
        )
        with process(program, "-p", folder, "-c", f"{folder}/nginx.conf") as running:
            wait(port)
            yield port, running.pid, "/v1/chat/completions"


def request(path: str, body: bytes, *headers: str) -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        "host: x",
        "authorization: Bearer k",
        "content-type: application/json",
    ]
    return "\r\n".join([*lines, f"content-length: {len(body)}", *headers, "", ""]).encode() + body


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: bytes) -> float:
    """One request with a whole answer; seconds until the first byte."""
    start = time.perf_counter()
    writer.write(asked)
    head = await reader.readuntil(b"\r\n\r\n")
    first = time.perf_counter() - start
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.decode())
    if b"content-length:" in head.lower():
        size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(size)
    else:
        while int(line := (await reader.readline()).strip(), 16):
            await reader.readexactly(int(line, 16) + 2)
        await reader.readline()
    return first


async def load(port: int, asked: bytes, count: int, clients: int) -> tuple[float, list[float]]:
    """Requests per second, and times to the first byte."""
    firsts: list[float] = []

    async def client(share: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        for _ in range(share):
            firsts.append(await ask(reader, writer, asked))
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(client(count // clients) for _ in range(clients)))
    return count / (time.perf_counter() - start), firsts


def requests(
    name: str, place: tuple[int, int, str], body: bytes, count: int
) -> list[tuple[str, float, str]]:
    """CPU and rate of requests with whole answers."""
    port, pid, path = place
    asked = request(path, body)
    asyncio.run(load(port, asked, 64, 8))  # warm
    before = cpu(pid)
    rate, _ = asyncio.run(load(port, asked, count, 16))
    used = cpu(pid) - before
    _, firsts = asyncio.run(load(port, asked, 200, 1))
    return [
        (f"{name}: CPU per request", used / count * 1e6, "µs"),
        (f"{name}: requests per second", rate, "1/s"),
        (f"{name}: median time to first byte, one client", statistics.median(firsts) * 1e6, "µs"),
    ]


def streams(
    name: str, place: tuple[int, int, str], count: int = 50, chunks: int = 100
) -> list[tuple[str, float, str]]:
    """CPU per paced chunk and memory per open stream."""
    port, pid, path = place
    body = SMALL[:-1] + b',"stream":true}'
    asked = request(path, body, f"x-pace: {chunks}/0.02")
    asyncio.run(load(port, asked, 10, 10))  # warm
    before, rest = cpu(pid), memory(pid)
    peak = 0.0

    async def run() -> None:
        nonlocal peak
        work = asyncio.ensure_future(load(port, asked, count, count))
        await asyncio.sleep(1.0)
        peak = memory(pid)
        await work

    asyncio.run(run())
    used = cpu(pid) - before
    return [
        (
            f"{name}: CPU per chunk, {count} streams at 50 chunks/s (bar 70)",
            used / (count * chunks) * 1e6,
            "µs",
        ),
        (f"{name}: memory per open stream (bar 100)", max(0.0, peak - rest) / count / 1024, "KB"),
    ]


def conversation(place: tuple[int, int, str]) -> list[tuple[str, float, str]]:
    """The long history, whose 130 thoughts the gateway knows because it saw each of them made."""
    port, pid, path = place
    document = json.loads(history())
    document.pop("stream")
    # Every assistant message becomes the very answer that this upstream gives, so that it is known.
    answer = {"role": "assistant", "content": "All done, the file is mended."}
    messages, known = [], 0
    for message in document["messages"]:
        if message["role"] == "tool":
            messages.append({"role": "user", "content": message["content"]})
        elif message["role"] == "assistant":
            messages.append(answer)
        else:
            messages.append(message)

    async def teach() -> None:
        nonlocal known
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        for end, message in enumerate(messages):
            if message is answer:
                body = json.dumps({**document, "messages": messages[:end]}).encode()
                await ask(reader, writer, request(path, body))
                known += 1
        writer.close()

    asyncio.run(teach())
    body = json.dumps({**document, "messages": messages}).encode()
    asked = request(path, body)
    before = cpu(pid)
    asyncio.run(load(port, asked, 40, 2))
    used = cpu(pid) - before
    label = (
        f"{len(messages)} messages, {len(body) / 1e6:.2f} MB, {known} thoughts put back (bar 10)"
    )
    return [(f"thoughtline: CPU per request of {label}", used / 40 * 1e3, "ms")]


def run() -> list[tuple[str, float, str]]:
    """Figures for `make bench`."""
    rows: list[tuple[str, float, str]] = []
    with process(sys.executable, "-m", "benchmarks.upstream") as provider:
        assert provider.stdout
        upstream = int(provider.stdout.readline())
        with nginx(upstream) as place:
            if place:
                rows += requests("nginx", place, SMALL, 4000) + streams("nginx", place)
            else:
                print("nginx is not installed: no comparison with it", file=sys.stderr)
        with gateway(upstream) as place:
            rows += requests("thoughtline", place, SMALL, 2000)  # bar: 400 µs
            rows += streams("thoughtline", place)
            rows += conversation(place)
    return rows


if __name__ == "__main__":
    for label, figure, unit in run():
        print(f"{label:95} {figure:12,.1f} {unit}")
