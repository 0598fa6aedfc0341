"""Headers on their way: hop-by-hop ones end here, credentials are exchanged, ours are added."""

from collections.abc import Container, Iterable, Mapping, Sequence

from thoughtline.exchanges import Exchange
from thoughtline.gateway.access import CREDENTIALS
from thoughtline.replay import Action, Restoration

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "expect",
    }
)
_ENDLESS = HOP_BY_HOP | {"content-length"}
_OURS_IN = frozenset({b"x-thoughtline-session", b"x-thoughtline-replay"})
_NEVER = {name.encode() for name in HOP_BY_HOP} | _OURS_IN
_NEVER |= {b"host", b"content-length", b"accept-encoding"}
_GONE = {
    (keyed, recoded): frozenset(_NEVER)
    | (CREDENTIALS if keyed else frozenset())
    | ({b"content-encoding"} if recoded else frozenset())
    for keyed in (False, True)
    for recoded in (False, True)
}
"""What does not go on: by whether the client's credential stays here, and the body is plain now."""
_HINTS = (
    b"x-thoughtline-session",
    b"session-id",
    b"session_id",
    b"thread-id",
    b"x-session-id",
    b"x-session-affinity",
    b"x-affinity",
    b"x-litellm-session-id",
    b"x-client-request-id",
    b"conversation_id",
)
"""Headers in which clients name their session."""
_HINTING = frozenset(_HINTS)

Pairs = Sequence[tuple[bytes, bytes]]
"""Headers as the ASGI server gives them, with names in lower case."""


def hints(known: Mapping[bytes, bytes]) -> list[str]:
    """Session ids that clients send along; our own header first."""
    if _HINTING.isdisjoint(known):
        return []
    return [known[name].decode("latin-1") for name in _HINTS if known.get(name)]


def wish(known: Mapping[bytes, bytes]) -> str:
    """What the client asks of replay: `off` or `strict`, if anything."""
    said = known.get(b"x-thoughtline-replay")
    return said.decode("latin-1").strip().lower() if said else ""


def upstream(
    headers: Pairs, *, dialect: str, key: str, recoded: bool, ours: bool = False
) -> list[tuple[str, str]]:
    """What goes on: `key` replaces the client's credential; `recoded`: the body is plain now.

    `ours`: the client's credential opened this gateway's door, and is for nobody else.
    """
    gone = _GONE[bool(key or ours), recoded]
    for name, value in headers:
        if name == b"connection":
            gone |= {word.strip().lower() for word in value.split(b",")}
    kept = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in headers
        if name not in gone
    ]
    kept.append(("accept-encoding", "identity"))  # so that what comes back can be read as it comes
    if key:
        kept.append(credential(dialect, key))
    return kept


def overlaid(
    headers: list[tuple[str, str]], configured: Mapping[str, str]
) -> list[tuple[str, str]]:
    """With those that are configured for an upstream, each in the place of the client's own."""
    if not configured:
        return headers
    names = {name.lower() for name in configured}
    kept = [(name, value) for name, value in headers if name.lower() not in names]
    return [*kept, *configured.items()]


def joined(headers: Iterable[tuple[str, str]], more: Mapping[str, str]) -> list[tuple[str, str]]:
    """With more values: one that is there already is added to, as in a list."""
    left = dict(more)
    made = [(name, _listed(value, left.pop(name.lower(), ""))) for name, value in headers]
    return [*made, *left.items()]


def _listed(values: str, more: str) -> str:
    known = [value.strip() for value in values.split(",")]
    return values if not more or more in known else f"{values},{more}"


def credential(dialect: str, key: str) -> tuple[str, str]:
    """A key where this dialect's providers look for it."""
    if dialect == "messages":
        return ("x-api-key", key)
    if dialect == "gemini":
        return ("x-goog-api-key", key)
    return ("authorization", f"Bearer {key}")


def downstream(
    headers: Sequence[tuple[str, str]], ours: Iterable[tuple[str, str]], *, stream: bool = False
) -> list[tuple[bytes, bytes]]:
    """What the client gets: the upstream's own, without those of its connection, and ours.

    A `stream` has no length: a ping, or the news that the upstream broke, may make it longer.
    """
    gone = _ENDLESS if stream else HOP_BY_HOP
    for name, value in headers:
        if name == "connection":
            gone |= {word.strip().lower() for word in value.split(",")}
    return [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in (*headers, *ours)
        if name not in gone
    ]


def ours(exchange: Exchange, known: Container[str]) -> list[tuple[str, str]]:
    """Where the turn is kept, and what became of the thoughts; not where an upstream says so."""
    capture = exchange.capture
    made = (
        ("x-thoughtline-session", capture.session),
        ("x-thoughtline-turn", capture.turn),
        ("x-thoughtline-replay", _report(exchange.restoration)),
    )
    return [pair for pair in made if pair[0] not in known]


def _report(restoration: Restoration) -> str:
    done = [ruling.action for ruling in restoration.rulings]
    return (
        f"restored={done.count(Action.RESTORED) + done.count(Action.REPLACED)}; "
        f"missed={restoration.missed}; placeholder={done.count(Action.PLACEHOLDER)}; "
        f"dropped={done.count(Action.DROPPED)}"
    )
