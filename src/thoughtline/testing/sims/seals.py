"""Sealed values: what only the simulated provider can write and read back.

A seal carries a few bytes of claims, hidden and authenticated with the simulator's secret, in the
outer shape of the real thing: `gAAAA…` base64url (OpenAI), long standard base64 (Claude, Gemini),
unpadded standard base64 (xAI). Equal secret and claims give an equal seal. This is a test double,
not cryptography to protect anything.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Literal, TypeAlias

Style: TypeAlias = Literal["openai", "claude", "gemini", "xai"]

_NONCE, _MAC = 16, 32
# Fernet tokens start with a version byte and a timestamp: base64url("\x80\0\0\0\0…") = "gAAAAA".
_HEAD: dict[Style, bytes] = {
    "openai": b"\x80\x00\x00\x00\x00",
    "claude": b"\x12\xcb\x05",
    "gemini": b"\x0a\xf2\x02",
    "xai": b"",
}


def seal(secret: bytes, claims: bytes, style: Style, *, size: int = 240) -> str:
    """Seal `claims`; `size` is the least number of bytes before base64."""
    head = _HEAD[style]
    room = size - len(head) - _NONCE - _MAC - 4
    body = len(claims).to_bytes(4, "big") + claims + bytes(max(0, room - len(claims)))
    nonce = hmac.digest(secret, b"nonce" + style.encode() + claims, "sha256")[:_NONCE]
    hidden = _mask(secret, nonce, body)
    mac = _mac(secret, head + nonce + hidden, style)
    return _text(head + nonce + hidden + mac, style)


def unseal(secret: bytes, text: str, style: Style) -> bytes | None:
    """Give back the claims, or None for anything that this secret did not seal in this style."""
    raw = _bytes(text, style)
    head = _HEAD[style]
    if raw is None or len(raw) < len(head) + _NONCE + _MAC + 4 or _text(raw, style) != text:
        return None
    signed, mac = raw[:-_MAC], raw[-_MAC:]
    if not hmac.compare_digest(mac, _mac(secret, signed, style)):
        return None
    nonce, hidden = signed[len(head) : len(head) + _NONCE], signed[len(head) + _NONCE :]
    body = _mask(secret, nonce, hidden)
    return body[4 : 4 + int.from_bytes(body[:4], "big")]


def _mac(secret: bytes, signed: bytes, style: Style) -> bytes:
    return hmac.digest(secret, style.encode() + signed, "sha256")


def _mask(secret: bytes, nonce: bytes, body: bytes) -> bytes:
    stream = hashlib.shake_256(secret + nonce).digest(len(body))
    return bytes(a ^ b for a, b in zip(body, stream, strict=True))


def _text(raw: bytes, style: Style) -> str:
    if style == "openai":
        return base64.urlsafe_b64encode(raw).decode()
    text = base64.b64encode(raw).decode()
    return text.rstrip("=") if style == "xai" else text


def _bytes(text: str, style: Style) -> bytes | None:
    try:
        if style == "openai":
            return base64.b64decode(text, altchars=b"-_", validate=True)
        padding = "=" * (-len(text) % 4) if style == "xai" else ""
        return base64.b64decode(text + padding, validate=True)
    except (binascii.Error, ValueError):
        return None
