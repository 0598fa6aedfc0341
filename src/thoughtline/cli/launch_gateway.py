"""The gateway that a tool talks to: the one that runs, or one that is started and stays."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from thoughtline.cli.background import BackgroundGateway, GatewayState
from thoughtline.cli.local_gateway import NAME, address, ask, who_answers
from thoughtline.errors import SettingsError

if TYPE_CHECKING:
    from thoughtline.gateway.settings import Settings


class KeptThoughts(NamedTuple):
    """What was kept during a run."""

    thoughts: int
    sessions: tuple[str, ...]  # ids, the last used first


class LaunchGateway:
    """A gateway that answers."""

    def __init__(
        self,
        url: str,
        *,
        admin_token: str = "",
        started: bool = False,
        state: GatewayState | None = None,
    ) -> None:
        self.url = url
        self.started = started  # just now
        self.state = state  # None: it runs in a terminal or as a service
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
        page = ask(f"{self.url}/api/requests/failed?limit=100", self._token)
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
        found = ask(f"{self.url}/api/sessions?limit=200", self._token)
        return found if isinstance(found, dict) and "sessions" in found else {}


def runs_elsewhere(settings: Settings) -> str:
    """The address of a gateway that runs in a terminal or as a service; empty: there is none.

    Raises `SettingsError` where another program has the port.
    """
    port = settings.server.port
    if not port or BackgroundGateway(port, os.environ).state() is not None:
        return ""
    url = address(settings.server.host, port)
    answer = who_answers(url)
    if answer in ("", NAME):
        return url if answer else ""
    raise SettingsError(
        f"another program answers at {url}, so no gateway can be started there; "
        "choose another `server.port` (THOUGHTLINE_PORT=7338 thoughtline launch …)"
    )


def ensure_gateway(settings: Settings, arguments: Sequence[str] = ()) -> LaunchGateway:
    """The gateway at the address of these settings, started in the background if none runs there.

    `arguments` are those of `serve` for one that is started.
    """
    token = settings.access.admin_token.reveal()
    if url := runs_elsewhere(settings):
        return LaunchGateway(url, admin_token=token)
    state, started = BackgroundGateway(settings.server.port, os.environ).ensure(arguments)
    return LaunchGateway(state.url, admin_token=token, started=started, state=state)
