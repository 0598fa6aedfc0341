"""The subject of a JSON Web Token, which stays the same when the token is renewed.

It is read and not verified: only the provider that issued the token can do that.
"""

import base64
import binascii

import msgspec
from msgspec import Struct

MAX_TOKEN = 16_384
"""Characters of a token that is looked at."""


class _Payload(Struct):
    """The claims of a token that are looked at."""

    sub: str = ""
    iss: str = ""
    api_key: str = ""  # in tokens that a client makes from its key, as for GLM
    exp: int | float | None = None


_decode = msgspec.json.Decoder(_Payload).decode


def token_subject(token: str) -> str:
    """Issuer and subject of a token; empty for any other text, and for a token without expiry.

    A token that does not expire is a key: nobody renews it.
    """
    parts = token.split(".") if token[:3] == "eyJ" and len(token) <= MAX_TOKEN else ()
    if len(parts) != 3:
        return ""
    try:
        payload = _decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (msgspec.MsgspecError, binascii.Error, ValueError, RecursionError):
        return ""
    name = payload.sub or payload.api_key
    return f"{len(payload.iss)} {payload.iss} {name}" if name and payload.exp is not None else ""
