"""The form of a sealed value: format byte, version of the key, nonce, ciphertext and tag."""

FORMAT = b"\x01"
"""Begins a sealed value. No plain value does: JSON begins otherwise."""
NONCE = 12
HEAD = 3
"""Bytes before the nonce: the format byte, and the version of the tenant's key in two."""
OVERHEAD = HEAD + NONCE + 16
"""Bytes that a sealed value has more than the plain one."""


def is_sealed(value: bytes) -> bool:
    """Whether a value is sealed."""
    return value[:1] == FORMAT


def key_version(value: bytes) -> int:
    """Return the version of the tenant's key that a value was sealed with; 0 for a plain one."""
    return int.from_bytes(value[1:HEAD], "big") if value[:1] == FORMAT else 0
