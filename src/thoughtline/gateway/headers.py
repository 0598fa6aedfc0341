"""Headers of requests and responses on their way through the gateway.

Hop-by-hop headers end here, the client's credential is replaced by the upstream's key, and the
`x-thoughtline-…` headers are read and added.
"""

import re
from collections.abc import Collection, Container, Iterable, Mapping
from enum import StrEnum

from thoughtline.dialects import DEFAULT, DIALECTS
from thoughtline.engine.endpoints import Upstream
from thoughtline.engine.exchange import Exchange
from thoughtline.gateway.asgi import RawHeaders
from thoughtline.gateway.credentials import CREDENTIALS, is_withheld
from thoughtline.log.decisions import HEADER_ORDER, word_counts
from thoughtline.replay.plan import ReplayPlan

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"expect",
    }
)
_NOT_IN_STREAMS = _HOP_BY_HOP | {b"content-length"}
_NEVER = _HOP_BY_HOP | {b"x-thoughtline-session", b"x-thoughtline-replay", b"x-thoughtline-report"}
_NEVER |= {b"host", b"content-length", b"accept-encoding"}
_REMOVED = {
    (credentials, decompressed): frozenset(_NEVER)
    | (CREDENTIALS if credentials else frozenset())
    | ({b"content-encoding"} if decompressed else frozenset())
    for credentials in (False, True)
    for decompressed in (False, True)
}
"""Headers that do not go upstream, by whether the client's credentials are removed and whether the
body was decompressed."""
_SESSION_HEADERS = (
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
_SESSION_HEADER_SET = frozenset(_SESSION_HEADERS)


def session_hints(headers: Mapping[bytes, bytes]) -> list[str]:
    """Session ids that the client sends; `x-thoughtline-session` first."""
    if _SESSION_HEADER_SET.isdisjoint(headers):
        return []
    return [headers[name].decode("latin-1") for name in _SESSION_HEADERS if headers.get(name)]


def replay_mode(headers: Mapping[bytes, bytes]) -> str:
    """The `x-thoughtline-replay` of a request: `off`, `strict`, or empty."""
    value = headers.get(b"x-thoughtline-replay")
    return value.decode("latin-1").strip().lower() if value else ""


def wants_report(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a WebSocket client wants the answer's headers, as an event before its first one."""
    return headers.get(b"x-thoughtline-report", b"").strip().lower() == b"on"


def to_upstream(
    headers: RawHeaders,
    *,
    dialect: str,
    key: str,
    decompressed: bool,
    gateway_key: bool = False,
    foreign: bool = False,
    identity: bytes = b"",
) -> list[tuple[str, str]]:
    """The headers of a request to an upstream.

    `key` replaces the client's credential. `decompressed`: the body lost its content encoding.
    `gateway_key`: the client's credential is a key of this gateway, and goes to nobody else.
    `foreign`: it is another provider's, and so is all that may be one. `identity` is the header in
    which a proxy in front names the user, to this gateway and to nobody else.
    """
    removed = _REMOVED[bool(key or gateway_key), decompressed] | {identity}
    if foreign:
        removed |= {name for name, _ in headers if is_withheld(name)}
    for name, value in headers:
        if name == b"connection":
            removed |= {word.strip().lower() for word in value.split(b",")}
    passed = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in headers
        if name not in removed
    ]
    passed.append(("accept-encoding", "identity"))  # so that the response can be read as it comes
    if key:
        passed.append(DIALECTS.get(dialect, DEFAULT).credential(key))
    return passed


def with_configured(
    headers: list[tuple[str, str]], configured: Mapping[str, str]
) -> list[tuple[str, str]]:
    """The headers with an upstream's configured ones, each in place of the client's own."""
    if not configured:
        return headers
    names = {name.lower() for name in configured}
    others = [(name, value) for name, value in headers if name.lower() not in names]
    return [*others, *configured.items()]


def to_client(
    headers: Iterable[tuple[str, str]], added: Iterable[tuple[str, str]], *, stream: bool = False
) -> list[tuple[bytes, bytes]]:
    """The headers of a response to the client: the upstream's, and what the gateway adds."""
    return raw_to_client(encoded(headers), added, stream=stream)


def encoded(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Headers as an ASGI server takes them."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def raw_to_client(
    headers: RawHeaders, added: Iterable[tuple[str, str]], *, stream: bool
) -> list[tuple[bytes, bytes]]:
    """The headers of a response to the client, of the upstream's as they came.

    A `stream` has no `content-length`: a keep-alive, or an error event, may make it longer.
    """
    removed = _NOT_IN_STREAMS if stream else _HOP_BY_HOP
    if b"connection" in dict(headers):
        named = b",".join([value for name, value in headers if name == b"connection"])
        removed |= {word.strip().lower() for word in named.split(b",")}
        added = [pair for pair in added if pair[0].encode("latin-1") not in removed]
    return [*[pair for pair in headers if pair[0] not in removed], *encoded(added)]


WITHHELD = "withheld=identity"
"""In place of the counts, where the provider refused a client that only its own token names."""


class PassedThrough(StrEnum):
    """Why a request passed through untouched: `x-thoughtline-replay: passed=…`."""

    OFF = "off"
    NO_HISTORY = "no_history"
    UNREADABLE = "unreadable"
    TOO_COMPLEX = "too_complex"


PASSED_THROUGH = {
    PassedThrough.OFF: "the client asked for it with `x-thoughtline-replay: off`",
    PassedThrough.NO_HISTORY: "the path is not one of those that carry a conversation",
    PassedThrough.UNREADABLE: "the body is not what this API takes, so it was not looked into",
    PassedThrough.TOO_COMPLEX: "the body holds too many elements, or too much text, to be read",
}
"""Each reason with its meaning, as the reference has it."""


_OF_TURNS = frozenset({b"x-thoughtline-session", b"x-thoughtline-turn", b"x-thoughtline-replay"})


def thoughtline_headers(exchange: Exchange, received: Collection[bytes]) -> list[tuple[str, str]]:
    """The headers of a turn: they name the session and the turn, and report on replay.

    One that was `received` from the upstream, which may be another gateway, is left alone.
    """
    recording, plan = exchange.recording, exchange.decision.replay_plan
    added = [
        ("x-thoughtline-session", recording.session),
        ("x-thoughtline-turn", recording.turn),
        ("x-thoughtline-replay", replay_header(plan, adjusted=exchange.decision.adjusted)),
    ]
    if _OF_TURNS.isdisjoint(received):
        return added
    return [pair for pair in added if pair[0].encode() not in received]


def broken_off_headers(exchange: Exchange, code: str) -> list[tuple[str, str]]:
    """The headers of a turn that ended before its client had any of it; `code` says with what."""
    *names, (replay, said) = thoughtline_headers(exchange, ())
    return [*names, (replay, f"{said}; refused={code}" if code else said)]


def refusal_header(code: str) -> tuple[bytes, bytes]:
    """What an error of the gateway says that comes before the request is looked at."""
    return b"x-thoughtline-replay", f"refused={code}".encode("latin-1")


def failure_headers(
    exchange: Exchange | None,
    received: Container[str] = (),
    *,
    request: str = "",
    code: str = "",
    passed: str = "",
) -> list[tuple[str, str]]:
    """The headers of an answer without a turn: the conversation, the failed request, the replay.

    `request` names the failed request, if it is kept. `code` is the gateway's own error, and
    `passed` why the request was not looked into. A client that is known by what it says of itself
    hears nothing of a conversation: a refusal may mean that it is somebody else.
    """
    added: list[tuple[str, str]] = []
    said = [f"passed={passed}"] if passed else []
    if exchange is not None and exchange.incoming.claimed:
        said.append(WITHHELD)
    elif exchange is not None:
        parent = exchange.decision.replay_plan.parent
        added += [("x-thoughtline-session", parent.session)] if parent else []
        said.append(replay_header(exchange.decision.replay_plan, sent=exchange.sent))
    if code:
        said.append(f"refused={code}")
    added += [("x-thoughtline-request", request)] if request else []
    added += [("x-thoughtline-replay", "; ".join(said))] if said else []
    return [pair for pair in added if pair[0] not in received]


_UNFIT = re.compile(r"[^!-~]|[,;>]")
"""What may not stand in a name in a header: the names are the client's own."""
_UNFIT_VALUE = re.compile(r"[^!-~]|[,;]")
_MAX_NAME = 100


def fit(name: str) -> str:
    """A name as it may stand in a header."""
    return _UNFIT.sub("_", name[:_MAX_NAME])


def model_header(upstream: Upstream) -> list[tuple[str, str]]:
    """What says that another model was asked than the client named, where that is so."""
    if not upstream.asked:
        return []
    asked, served = fit(upstream.asked), fit(upstream.served)
    return [("x-thoughtline-model", f"{asked}>{upstream.name}/{served}")]


_HEADER = "; ".join(f"{word.value}=%d" for word in HEADER_ORDER[:-1])


def replay_header(
    replay_plan: ReplayPlan, *, sent: bool = True, adjusted: Collection[str] = ()
) -> str:
    """The value of `x-thoughtline-replay`: outputs by word, and what is not to be overlooked.

    The first four words have always stood there, in this order; later ones are added behind.
    `sent`: the request went out; otherwise no thinking was switched off.
    """
    value = _HEADER % word_counts(replay_plan.kinds())[:-1]
    if (changed := replay_plan.prefix_changed) is not None:
        value = f"{value}; prefix_changed={changed + 1}"
    if replay_plan.parent is not None and replay_plan.parent.unread:
        value += f"; unread={replay_plan.parent.unread}"
    if adjusted:
        shown = (_UNFIT_VALUE.sub("_", change[:_MAX_NAME]) for change in adjusted)
        value += f"; adjusted={','.join(shown)}"
    return f"{value}; thinking=off" if replay_plan.thinking_off and sent else value
