"""Tokens of an OAuth log-in, as providers hand them out: JSON Web Tokens that soon expire.

A simulator with a `token_secret` accepts only tokens that are signed with it, and takes their
subject for the account; so a client's next token is the same account.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

from thoughtline.testing.sims.values import decode, encode

ISSUER = "https://auth.example.com"


def make_token(secret: bytes, subject: str, **claims: Any) -> str:
    """A token of this subject, signed; `exp` and whatever else is in `claims` make it another."""
    payload = {"iss": ISSUER, "sub": subject, "exp": 4_102_444_800, **claims}
    signed = f"{_part({'alg': 'HS256', 'typ': 'JWT'})}.{_part(payload)}"
    return f"{signed}.{_text(_signature(secret, signed))}"


def token_account(secret: bytes, token: str) -> str:
    """The subject of a token that was signed with this secret; empty for any other text."""
    signed, _, signature = token.rpartition(".")
    if not hmac.compare_digest(_text(_signature(secret, signed)), signature):
        return ""
    payload = signed.partition(".")[2]
    claims = decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return str(claims.get("sub", "")) if isinstance(claims, dict) else ""


def _signature(secret: bytes, signed: str) -> bytes:
    return hmac.digest(secret, signed.encode(), hashlib.sha256)


def _part(value: dict[str, Any]) -> str:
    return _text(encode(value))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
