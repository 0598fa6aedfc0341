"""Addresses: which hosts are this machine alone, and what an upstream's URL must look like."""

import ipaddress
from urllib.parse import urlsplit

from thoughtline.settings.providers import SCHEME


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine can reach a server that listens on this host."""
    bare = host.strip("[]").lower()
    if bare == "localhost" or bare.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False


def unfit(url: str) -> str:
    """Why a URL cannot be an upstream's base; empty when it can. Never quotes the URL."""
    if url == SCHEME:
        return ""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "is no URL"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "is no http:// or https:// URL"
    if "@" in parts.netloc:
        return "has a credential in it"
    if parts.query or parts.fragment:
        return "has something after its path"
    if any(c.isspace() for c in url):
        return "has a space in it"
    return ""
