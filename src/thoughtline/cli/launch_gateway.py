"""The gateway that a launched tool talks to: the one that runs, or one started for this run."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from thoughtline.errors import SettingsError, WireError

START_SECONDS = 30.0
STOP_SECONDS = 40.0  # a little more than streams may take to end
_PAUSE = 0.1
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 (compared, not bound)
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open  # never by a proxy


class KeptThoughts(NamedTuple):
    """What was kept during a run."""

    thoughts: int
    sessions: tuple[str, ...]  # ids, the last used first


class LaunchGateway:
    """A gateway that answers."""

    def __init__(self, url: str, *, admin_token: str = "", started: bool = False) -> None:
        self.url = url
        self.started = started  # for this run, and it ends with it
        self._token = admin_token
        self._since, self._before = 0.0, dict[str, int]()

    def begin(self) -> None:
        """Remember what is kept already."""
        page = self._sessions()
        self._since = page.get("now", 0.0)
        self._before = {one["id"]: one["thoughts"] for one in page.get("sessions", ())}

    def kept(self) -> KeptThoughts | None:
        """What was kept since `begin`; None if the gateway does not tell."""
        page = self._sessions()
        if not self._since or not page:
            return None
        thoughts, sessions = 0, []
        for one in page["sessions"]:
            if one["touched"] < self._since:
                continue
            new = one["created"] >= self._since
            before = 0 if new else self._before.get(one["id"], one["thoughts"])
            thoughts += one["thoughts"] - before
            sessions.append(one["id"])
        return KeptThoughts(thoughts, tuple(sessions))

    def failed(self) -> list[str]:
        """What went wrong since `begin`, the newest first, each with its status."""
        page = _get(f"{self.url}/api/requests/failed?limit=100", self._token)
        requests = page.get("requests", ()) if isinstance(page, dict) else ()
        return [
            f"{one['status']}, {one['reason']}"
            for one in requests
            if self._since and one["at"] >= self._since and one["method"] == "POST"
        ]

    def failed_at_last(self) -> list[str]:
        """The same, for a tool that got nothing: its failure may be on its way to the log."""
        for _ in range(20):
            if failed := self.failed():
                return failed
            time.sleep(0.1)
        return []

    def _sessions(self) -> dict[str, Any]:
        found = _get(f"{self.url}/api/sessions?limit=200", self._token)
        return found if isinstance(found, dict) and "sessions" in found else {}


def address(host: str, port: int) -> str:
    """The URL at which this machine reaches a gateway that listens there."""
    host = _ANY.get(host, host.strip("[]"))
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


@contextlib.contextmanager
def gateway(
    url: str, *, config: str = "", models: Mapping[str, str], admin_token: str = ""
) -> Iterator[LaunchGateway]:
    """The gateway at this address; started, and stopped at the end, if none runs there.

    `models` are rows of `[models]` that a started one gets beside its settings.
    """
    answer = "" if url.endswith(":0") else _who(url)
    if answer == "thoughtline":
        yield LaunchGateway(url, admin_token=admin_token)
        return
    if answer:
        raise SettingsError(
            f"another program answers at {url}, so no gateway can be started there; "
            "choose another `server.port` (THOUGHTLINE_PORT=7338 thoughtline launch …)"
        )
    with tempfile.TemporaryDirectory(prefix="thoughtline-launch-") as folder:
        log = Path(folder) / "gateway.log"
        process = _start(config, models, log)
        try:
            said = _wait(process, log)
            yield LaunchGateway(said, admin_token=admin_token, started=True)
        finally:
            _stop(process)


def _start(config: str, models: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "thoughtline", "serve", "--json"]
    command += ["--config", config] if config else []
    env = dict(os.environ)
    if models:
        rows = json.loads(env.get("THOUGHTLINE_MODELS") or "{}")
        rows |= {pattern: {"to": to} for pattern, to in models.items()}
        env["THOUGHTLINE_MODELS"] = json.dumps(rows)
    with log.open("wb") as stream:
        return subprocess.Popen(  # noqa: S603 (ourselves)
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the tool
        )


def _wait(process: subprocess.Popen[bytes], log: Path) -> str:
    """Its address, once it is ready."""
    until = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < until:
        url = _said(log)
        if url and _get(f"{url}/ready") is not None:
            return url
        time.sleep(_PAUSE)
    said = log.read_text("utf-8", "replace").strip()[-2000:]
    why = "ended at once" if process.poll() is not None else "was not ready in time"
    raise WireError(f"the gateway {why}; `thoughtline doctor` says what is wrong. It said:\n{said}")


def _said(log: Path) -> str:
    for line in log.read_text("utf-8", "replace").splitlines():
        with contextlib.suppress(ValueError, AttributeError):
            if url := json.loads(line).get("url"):
                return str(url)
    return ""


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _who(url: str) -> str:
    """The name of what answers at an address; empty: nothing does."""
    try:
        with _open(f"{url}/version", timeout=3) as answer:
            body = answer.read(10_000)
    except urllib.error.HTTPError:
        return "unknown"
    except http.client.HTTPException:
        return "unknown"
    except (OSError, ValueError):
        return ""
    with contextlib.suppress(ValueError, AttributeError):
        return str(json.loads(body).get("name") or "unknown")
    return "unknown"


def _get(url: str, token: str = "") -> Any:
    """What a page of the gateway answers; None if it does not."""
    request = urllib.request.Request(url)  # noqa: S310 (our own address)
    if token:
        request.add_header("authorization", f"Bearer {token}")
    try:
        with _open(request, timeout=10) as answer:
            return json.loads(answer.read())
    except (OSError, ValueError, http.client.HTTPException):
        return None
