"""Headers on their way: hop-by-hop ones end here, credentials are exchanged, ours are added."""

from collections.abc import Container, Iterable, Mapping, Sequence

from thoughtline.exchanges import Exchange
from thoughtline.gateway.access import CREDENTIALS
from thoughtline.replay import Action

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
_OURS_IN = frozenset({"x-thoughtline-session", "x-thoughtline-replay"})
_NEVER = HOP_BY_HOP | _OURS_IN | {"host", "content-length", "accept-encoding"}
_KEYS = frozenset(name.decode() for name in CREDENTIALS)
_GONE = {
    (keyed, recoded): _NEVER
    | (_KEYS if keyed else frozenset())
    | ({"content-encoding"} if recoded else frozenset())
    for keyed in (False, True)
    for recoded in (False, True)
}
"""What does not go on: by whether the client's credential stays here, and the body is plain now."""
_HINTS = (
    "x-thoughtline-session",
    "session-id",
    "session_id",
    "thread-id",
    "x-session-id",
    "x-session-affinity",
    "x-affinity",
    "x-litellm-session-id",
    "x-client-request-id",
    "conversation_id",
)
"""Headers in which clients name their session."""
_HINTING = frozenset(_HINTS)

Pairs = Sequence[tuple[bytes, bytes]]


def text(headers: Pairs) -> list[tuple[str, str]]:
    """Headers as the ASGI server gives them, as text."""
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers]


def hints(known: Mapping[str, str]) -> list[str]:
    """Session ids that clients send along; our own header first."""
    if _HINTING.isdisjoint(known):
        return []
    return [known[name] for name in _HINTS if known.get(name)]


def upstream(
    headers: Sequence[tuple[str, str]], *, dialect: str, key: str, recoded: bool, ours: bool = False
) -> list[tuple[str, str]]:
    """What goes on: `key` replaces the client's credential; `recoded`: the body is plain now.

    `ours`: the client's credential opened this gateway's door, and is for nobody else.
    """
    gone = _GONE[bool(key or ours), recoded]
    for name, value in headers:
        if name == "connection":
            gone = gone | {word.strip().lower() for word in value.split(",")}
    kept = [(name, value) for name, value in headers if name not in gone]
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
    headers: Sequence[tuple[str, str]], ours: Iterable[tuple[str, str]]
) -> list[tuple[bytes, bytes]]:
    """What the client gets: the upstream's own, without those of its connection, and ours."""
    gone = HOP_BY_HOP
    for name, value in headers:
        if name == "connection":
            gone = gone | {word.strip().lower() for word in value.split(",")}
    kept = [pair for pair in headers if pair[0] not in gone]
    kept += ours
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in kept]


def ours(exchange: Exchange, known: Container[str]) -> list[tuple[str, str]]:
    """Where the turn is kept, and what became of the thoughts; not where an upstream says so."""
    restoration = exchange.restoration
    report = "restored=0; missed=0; placeholder=0; dropped=0"
    if restoration.rulings:
        done = [ruling.action for ruling in restoration.rulings]
        report = (
            f"restored={done.count(Action.RESTORED) + done.count(Action.REPLACED)}; "
            f"missed={restoration.missed}; placeholder={done.count(Action.PLACEHOLDER)}; "
            f"dropped={done.count(Action.DROPPED)}"
        )
    made = [
        ("x-thoughtline-session", exchange.session),
        ("x-thoughtline-turn", exchange.turn),
        ("x-thoughtline-replay", report),
    ]
    return [pair for pair in made if pair[0] not in known]
