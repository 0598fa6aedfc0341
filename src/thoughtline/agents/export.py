"""Exports sessions as lines of JSON and imports them again, without losing anything.

Each line is an event: its envelope, and its data as JSON, so that types and fields that this
version does not know survive. Data comes back byte for byte: where a line separator had to be
escaped (U+0085, U+2028, U+2029: JSON allows them, `str.splitlines` splits at them), `escaped` says
so. The first line is a header with the export's version. A forked
session comes after those that it goes on from. Index entries are not exported: the import makes
them from the events.
"""

import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

import msgspec
from msgspec import Raw, Struct, convert
from msgspec.structs import asdict, replace

from thoughtline.clock import Clock
from thoughtline.dialects import splice
from thoughtline.engine.reindex import index_entries
from thoughtline.errors import Conflict, SessionNotFound, Unreadable
from thoughtline.log.events import Draft, Event
from thoughtline.log.sessions import Session
from thoughtline.stores.base import Batch, Store

VERSION = 1
_KEY = "thoughtline_export"


class _Line(Struct, frozen=True, kw_only=True):
    """One event. Members of the envelope that a newer version adds are not kept."""

    session: str
    seq: int
    id: str
    parent: str
    at: float
    type: str
    version: int
    data: Raw
    escaped: bool = False  # line separators in the data


_lines = msgspec.json.Decoder(_Line)
_encode = msgspec.json.Encoder().encode
_SEPARATOR = re.compile("[\x85\u2028\u2029]")
_ESCAPE = re.compile(r"\\(u0085|u2028|u2029|.)", re.DOTALL)


# -- export --------------------------------------------------------------------------------------


async def export_lines(store: Store, session: str, *, alone: bool) -> AsyncIterator[str]:
    """The lines of a session, without line ends; without those it was forked from if `alone`."""
    sessions = [session]
    events = {session: await store.read(session)}
    if not events[session]:
        raise SessionNotFound(f"there is no session {session!r} in this store")
    while not alone and (origin := Session(session).extend(events[session]).origin):
        session = origin.session
        if session in events:
            break
        events[session] = await store.read(session)
        sessions.append(session)
    yield _encode({_KEY: VERSION, "sessions": sessions[::-1]}).decode()
    for id in reversed(sessions):
        for event in events[id]:
            yield line(event)


def line(event: Event) -> str:
    """An event as a line of JSON, without any character that `str.splitlines` splits at."""
    fields = asdict(event)
    text = _encode(fields | {"data": _embedded(event.data)}).decode()
    if len(text.splitlines()) == 1:
        return text
    data = _SEPARATOR.sub(lambda found: f"\\u{ord(found[0]):04x}", event.data)
    embedded = _embedded(data)
    if isinstance(embedded, str) or len(data.splitlines()) > 1 or _unescaped(data) != event.data:
        return json.dumps(fields)
    del fields["data"]
    return f'{json.dumps(fields)[:-1]}, "data": {data}, "escaped": true}}'


def _unescaped(data: str) -> str:
    """Data with its line separators as they were."""
    return _ESCAPE.sub(lambda found: chr(int(found[1][1:], 16)) if found[1][1:] else found[0], data)


def _embedded(data: str) -> Raw | str:
    """The data as JSON within JSON, or as a string where it would not be read back the same."""
    if data.startswith('"') or data != data.strip():
        return data
    try:
        splice.loads(data.encode())
    except (Unreadable, UnicodeEncodeError):
        return data
    return Raw(data.encode())


# -- import --------------------------------------------------------------------------------------


def read_lines(lines: Iterable[str | bytes]) -> dict[str, list[Event]]:
    """The events of each session in the lines. Raises `Unreadable` with the line's number."""
    found: dict[str, list[Event]] = {}
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            if number == 1 and _is_header(text):
                continue
            event = _event(_lines.decode(text))
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise Unreadable(f"line {number} is not an event of a session: {error}") from error
        events = found.setdefault(event.session, [])
        if event.seq != len(events):
            raise Unreadable(
                f"line {number}: session {event.session!r} goes on with event {event.seq}, "
                f"expected {len(events)}; lines are missing"
            )
        events.append(event)
    return found


def _is_header(text: str | bytes) -> bool:
    header = msgspec.json.decode(text)
    if not isinstance(header, dict) or _KEY not in header:
        return False
    if header[_KEY] != VERSION:
        raise ValueError(f"this is export version {header[_KEY]}, and {VERSION} can be read here")
    return True


def _event(line: _Line) -> Event:
    raw = bytes(line.data)
    data = msgspec.json.decode(raw, type=str) if raw[:1] == b'"' else raw.decode()
    fields = asdict(line) | {"data": _unescaped(data) if line.escaped else data}
    del fields["escaped"]
    return Event(**fields)


async def import_lines(
    store: Store,
    lines: Iterable[str | bytes],
    *,
    tenant: str,
    clock: Clock,
    rename: bool = False,
) -> list[str]:
    """Write sessions into a store; their ids there."""
    given = read_lines(lines)
    names: dict[str, str] = {}  # id in the lines → id in the store
    stored: dict[str, int] = {}  # how many events of it are in the store already
    for id, events in given.items():
        known = await store.read(id)
        if known == events[: len(known)] or events == known[: len(events)]:
            names[id], stored[id] = id, len(known)
        elif rename:
            names[id], stored[id] = clock.new_id(), 0
        else:
            first = next(n for n, (a, b) in enumerate(zip(known, events, strict=False)) if a != b)
            raise Conflict(
                f"session {id!r} is there already and differs from event {first} on; "
                "nothing was imported; import it under a new id with `rename`"
            )
    sessions = {id: _renamed(names[id], events, names) for id, events in given.items()}
    folded = await _with_origins(store, {names[id]: events for id, events in sessions.items()})
    entries = index_entries(folded)
    for id, events in sessions.items():
        new = events[stored[id] :]
        if new:
            drafts = tuple(convert(event, Draft, from_attributes=True) for event in new)
            own = tuple(entry for entry in entries if entry.session == names[id])
            last = stored[id] - 1
            await store.append(
                Batch(
                    session=names[id],
                    tenant=tenant,
                    drafts=drafts,
                    index=own,
                    expect=last,
                    kept=True,
                )
            )
    return list(names.values())


def _renamed(id: str, events: Iterable[Event], names: Mapping[str, str]) -> list[Event]:
    """Events under the session's id in the store; a fork refers to its origin's id there."""
    renamed = []
    for event in events:
        data = event.data
        if event.type == "session_forked":
            raw = data.encode()
            span = splice.members(raw).get("session")
            origin = msgspec.json.decode(raw[span.value : span.end]) if span else ""
            if span and names.get(origin, origin) != origin:
                data = splice.apply(raw, [(span.value, span.end, _encode(names[origin]))]).decode()
        renamed.append(replace(event, session=id, data=data))
    return renamed


async def _with_origins(store: Store, given: Mapping[str, Sequence[Event]]) -> list[Session]:
    """The sessions and all that they were forked from, origins first."""
    folded: dict[str, Session] = {}
    for wanted in given:
        chain: dict[str, Session] = {}
        id = wanted
        while id and id not in folded and id not in chain:
            events = given.get(id) or await store.read(id)
            if not events:
                raise SessionNotFound(
                    f"session {wanted!r} goes on from {id!r}, which is neither in these lines nor "
                    "in this store; export it together with the sessions that it goes on from"
                )
            session = chain[id] = Session(id).extend(events)
            id = session.origin.session if session.origin else ""
        folded |= {session.id: session for session in reversed(chain.values())}
    return list(folded.values())
