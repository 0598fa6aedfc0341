"""Ids for clients of translated answers: unique, the same every time, valid everywhere."""

from base64 import b32encode
from hashlib import blake2b


def client_call_id(turn: str, nth: int) -> str:
    """The id of a turn's nth call for its client.

    Providers' own ids repeat (`list_dir:0` in every turn) or hold letters that others refuse.
    """
    digest = blake2b(f"{turn}/{nth}".encode(), digest_size=15).digest()
    return "call_" + b32encode(digest).decode().lower()
