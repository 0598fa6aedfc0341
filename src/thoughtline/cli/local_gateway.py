"""A gateway on this machine: its address, and what its pages answer."""

from __future__ import annotations

import contextlib
import http.client
import json
import urllib.error
import urllib.request
from typing import Any

_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 (compared, not bound)
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open  # never by a proxy

NAME = "thoughtline"
"""What a gateway calls itself at `/version`."""
_MAX_BODY = 64 << 20


def address(host: str, port: int) -> str:
    """The URL at which this machine reaches a gateway that listens there."""
    host = _ANY.get(host, host.strip("[]"))
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def who_answers(url: str) -> str:
    """The name of what answers at an address; empty: nothing does."""
    try:
        with _open(f"{url}/version", timeout=3) as answer:
            body = answer.read(10_000)
    except (urllib.error.HTTPError, http.client.HTTPException):
        return "unknown"
    except (OSError, ValueError):
        return ""
    with contextlib.suppress(ValueError, AttributeError):
        return str(json.loads(body).get("name") or "unknown")
    return "unknown"


def ask(url: str, token: str = "", *, timeout: float = 10) -> Any:
    """What a page of a gateway answers, whatever its status; None if it does not answer in JSON."""
    request = urllib.request.Request(url)  # noqa: S310 (our own address)
    if token:
        request.add_header("authorization", f"Bearer {token}")
    try:
        with _open(request, timeout=timeout) as answer:
            return json.loads(answer.read(_MAX_BODY))
    except urllib.error.HTTPError as refusal:
        with contextlib.suppress(OSError, ValueError), refusal:
            return json.loads(refusal.read(_MAX_BODY))
    except (OSError, ValueError, http.client.HTTPException):
        pass
    return None
