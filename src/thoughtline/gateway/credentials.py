"""Credentials of a request: every header, cookie and query parameter that may name an account.

The upstream decides which of them counts, so all of them make the tenant: two accounts never share
thoughts. A value that only looks like a credential and changes from request to request costs hits;
one that was overlooked would mix accounts up.
"""

import re
from functools import lru_cache
from urllib.parse import parse_qsl, unquote_plus

from thoughtline.gateway.asgi import RawHeaders

CREDENTIALS = frozenset({b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key"})
"""Headers that hold a credential, in the dialects' various ways."""
_LOOKS_SECRET = re.compile(
    r"(?:^|[-_.])(?:api[-_]?keys?|(?:access|account|license|secret|subscription|user)[-_]?key"
    r"|[a-z]*tokens?|auth|authentication|authorization|bearer|credentials?|jwt|passw(?:or)?d"
    r"|[a-z]*secret)(?:$|[-_.])|(?:^|[-_.])[a-z]*keys?$"
).search
_QUERY_NAMES = frozenset({"key", "code", "sig", "signature", "pass", "pwd", "session", "sid"})
"""Names of query parameters that are credentials, beside those that look like one."""
_NO_CREDENTIAL = re.compile(
    r"csrf|xsrf|idempotency|max[-_]?(?:[a-z]+[-_])?tokens|proxy-authorization|sec-websocket"
    r"|(?:affinity|cache|dedup\w*|partition|request|routing|session|shard\w*|trace)[-_]?keys?$"
).search
"""Names that look like a credential and are none, or do not go upstream."""
_VOLATILE = re.compile(
    rb"\s*(?:__cf_bm|_cfuvid|__cflb|cf_clearance|_ga\w*|_gid|AWSALB\w*|csrf\w*|XSRF-TOKEN)\s*="
).match
"""Cookies of proxies and statistics, which change and name no account."""


def credentials(headers: RawHeaders, query: str) -> list[str]:
    """All credentials of a request; those in the usual headers come first."""
    found: list[str] = []
    others: list[str] = []
    for name, value in headers:
        if name in CREDENTIALS:
            found.append(_bearer(value.decode("latin-1")))
        elif is_secret(name):
            others += _others(name, value)
    if query:
        found += [value for name, value in parse_qsl(query) if name == "key"]
        others += [value for name, value in parse_qsl(query) if name != "key" and _is_secret(name)]
    return found + others if others else found


ACCOUNTS = frozenset(
    {
        b"openai-organization",
        b"openai-project",
        b"x-goog-user-project",
        b"x-organization-id",
        b"x-project-id",
        b"x-workspace-id",
        b"anthropic-workspace-id",
    }
)
"""Headers that choose one of the accounts which a credential opens."""


def chosen_accounts(headers: RawHeaders) -> tuple[str, ...]:
    """Which of its accounts a credential is used for, where a request says so."""
    named = [(name, value.strip()) for name, value in headers if name in ACCOUNTS]
    return tuple(sorted(f"{n.decode()}={v.decode('latin-1')}" for n, v in named if v))


def credential(headers: RawHeaders, query: str) -> str:
    """The credential that a client shows to this gateway, wherever its dialect puts it."""
    for name, value in headers:
        if name in CREDENTIALS:
            return _bearer(value.decode("latin-1"))
    keys = [value for name, value in parse_qsl(query) if name == "key"] if query else ()
    return keys[0] if keys else ""


@lru_cache(maxsize=1024)
def is_secret(name: bytes) -> bool:
    """Whether a header that no dialect knows may hold a credential."""
    spelled = name.decode("latin-1")
    return spelled == "cookie" or _looks_secret(spelled)


@lru_cache(maxsize=1024)
def _is_secret(name: str) -> bool:
    """Whether a query parameter may be a credential."""
    lowered = name.strip().lower()
    return lowered in _QUERY_NAMES or _looks_secret(lowered)


def _looks_secret(name: str) -> bool:
    return bool(_LOOKS_SECRET(name)) and not _NO_CREDENTIAL(name)


def _others(name: bytes, value: bytes) -> list[str]:
    if name != b"cookie":
        return [_bearer(value.decode("latin-1"))]
    cookies = [one for one in value.split(b";") if one.strip() and not _VOLATILE(one)]
    return sorted(one.strip().decode("latin-1") for one in cookies)


def _bearer(text: str) -> str:
    """A header's credential without the scheme `Bearer`."""
    text = text.strip()
    scheme, _, token = text.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else text


def is_withheld(name: bytes) -> bool:
    """Whether a header is of the client's own account, and so of no other provider's business."""
    return name in CREDENTIALS or name in ACCOUNTS or is_secret(name)


def without_key(query: str, *, others: bool = False) -> str:
    """A query string without the credential that some clients put there (`key=`).

    `others`: nor any that looks like one.
    """
    if not query:
        return query
    parts = query.split("&")  # the other parameters keep their spelling
    named = [(unquote_plus(part.partition("=")[0]), part) for part in parts]
    return "&".join(
        part for name, part in named if name != "key" and not (others and _is_secret(name))
    )
