"""Sessions as lines of JSON, out of a store and into one, without losing anything.

A line is an event: its envelope, and its data as the JSON it is, to the byte, so that types and
fields that this version does not know come through. A first line says what the rest is. A forked
session is preceded by those it goes on from. Memories are no part of the lines: they are an index,
and made anew from the log.
"""

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from copy import copy

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline import splice
from thoughtline.clock import Clock
from thoughtline.errors import Conflict, ThoughtlineError, Unreadable
from thoughtline.events import Draft, Event
from thoughtline.keys import Trail
from thoughtline.library.histories import fitted, spoken, visible
from thoughtline.library.transcripts import left_behind
from thoughtline.memories import Memory, remember
from thoughtline.parts import Part
from thoughtline.sessions import Session
from thoughtline.stores.base import Batch, Store
from thoughtline.turns import Turn

VERSION = 1
_KEY = "thoughtline_export"


class _Line(Struct, frozen=True, kw_only=True):
    """An event as it is written; what a newer version has beside is not ours to keep."""

    session: str
    seq: int
    id: str
    parent: str
    at: float
    type: str
    version: int
    data: Raw


_lines = msgspec.json.Decoder(_Line)
_encode = msgspec.json.Encoder().encode


# -- out -----------------------------------------------------------------------------------------


async def export_lines(store: Store, session: str, *, alone: bool) -> AsyncIterator[str]:
    """The lines of a session, without line ends."""
    sessions = [session]
    events = {session: await store.read(session)}
    if not events[session]:
        raise ThoughtlineError(f"there is no session {session!r} here")
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
    """An event as a line of JSON, whatever anybody takes for the end of a line."""
    facts = {name: getattr(event, name) for name in event.__struct_fields__}
    made = _encode(facts | {"data": _embedded(event.data)}).decode()
    return made if len(made.splitlines()) == 1 else json.dumps(facts)


def _embedded(data: str) -> Raw | str:
    """Data as JSON in JSON; as a string where that would not come back as it was."""
    if data.startswith('"') or data != data.strip():
        return data
    try:
        splice.loads(data.encode())
    except (Unreadable, UnicodeEncodeError):
        return data
    return Raw(data.encode())


# -- in ------------------------------------------------------------------------------------------


def read_lines(lines: Iterable[str | bytes]) -> dict[str, list[Event]]:
    """The sessions that the lines hold. Raises `Unreadable`, and says at which line."""
    found: dict[str, list[Event]] = {}
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            if number == 1 and _is_head(text):
                continue
            event = _event(_lines.decode(text))
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise Unreadable(f"line {number} is no event of a session: {error}") from error
        events = found.setdefault(event.session, [])
        if event.seq != len(events):
            raise Unreadable(
                f"line {number}: session {event.session!r} goes on with event {event.seq}, "
                f"expected {len(events)}; lines are missing"
            )
        events.append(event)
    return found


def _is_head(text: str | bytes) -> bool:
    said = msgspec.json.decode(text)
    if not isinstance(said, dict) or _KEY not in said:
        return False
    if said[_KEY] != VERSION:
        raise ValueError(f"this is export version {said[_KEY]}, and {VERSION} can be read here")
    return True


def _event(line: _Line) -> Event:
    facts = {name: getattr(line, name) for name in line.__struct_fields__}
    raw = bytes(line.data)
    data = msgspec.json.decode(raw, type=str) if raw[:1] == b'"' else raw.decode()
    return Event(**(facts | {"data": data}))


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
    names: dict[str, str] = {}
    there: dict[str, int] = {}  # how many events of it are there already
    for id, events in given.items():
        known = await store.read(id)
        if known == events[: len(known)] or events == known[: len(events)]:
            names[id], there[id] = id, len(known)
        elif rename:
            names[id], there[id] = clock.new_id(), 0
        else:
            first = next(n for n, (a, b) in enumerate(zip(known, events, strict=False)) if a != b)
            raise Conflict(
                f"session {id!r} is there already and differs from event {first} on; "
                "nothing was imported; import it under a new id with `rename`"
            )
    sessions = {id: _under(names[id], events, names) for id, events in given.items()}
    folded = await _folded(store, {names[id]: events for id, events in sessions.items()})
    remembered = memories(folded)
    for id, events in sessions.items():
        new = events[there[id] :]
        if new:
            drafts = tuple(_draft(event) for event in new)
            own = tuple(memory for memory in remembered if memory.session == names[id])
            batch = Batch(
                session=names[id],
                tenant=tenant,
                drafts=drafts,
                memories=own,
                expect=there[id] - 1,
            )
            await store.append(batch)
    return list(names.values())


def _under(id: str, events: Iterable[Event], names: Mapping[str, str]) -> list[Event]:
    """Events under the session's name here, a fork with the new name of where it comes from."""
    made = []
    for event in events:
        data = event.data
        if event.type == "session_forked":
            raw = data.encode()
            span = splice.members(raw).get("session")
            origin = msgspec.json.decode(raw[span.value : span.end]) if span else ""
            if span and names.get(origin, origin) != origin:
                data = splice.apply(raw, [(span.value, span.end, _encode(names[origin]))]).decode()
        made.append(replace(event, session=id, data=data))
    return made


def _draft(event: Event) -> Draft:
    return Draft(**{name: getattr(event, name) for name in Draft.__struct_fields__})


async def _folded(store: Store, given: Mapping[str, Sequence[Event]]) -> list[Session]:
    """Sessions and all they go on from, the origins first."""
    folded: dict[str, Session] = {}
    for wanted in given:
        chain: dict[str, Session] = {}
        id = wanted
        while id and id not in folded and id not in chain:
            events = given.get(id) or await store.read(id)
            if not events:
                raise ThoughtlineError(
                    f"session {wanted!r} goes on from {id!r}, which is neither in these lines nor "
                    "here; export it together with those it goes on from"
                )
            session = chain[id] = Session(id).extend(events)
            id = session.origin.session if session.origin else ""
        folded |= {session.id: session for session in reversed(chain.values())}
    return list(folded.values())


# -- the index -----------------------------------------------------------------------------------


class _Stand(Struct, frozen=True):
    """Where a path stands after a turn."""

    trail: Trail
    before: Turn | None = None  # the last answer
    heard: tuple[Part, ...] = ()  # since


def memories(sessions: Iterable[Session]) -> list[Memory]:
    """What the archive remembers of all turns that ended; origins come before their forks."""
    stands = {"": _Stand(Trail())}
    chains: dict[str, str] = {}
    made: list[Memory] = []
    for session in sessions:
        for turn in session.turns:
            stand = stands.get(turn.parent)
            if stand is None:  # of a version that we cannot read
                continue
            trail, heard = copy(stand.trail), (*stand.heard, *turn.input)
            trail.hear(fitted(stand.before, heard))
            said = spoken(turn)
            keys = trail.speak(said if visible(said) else turn.output)
            chains[turn.id] = keys.chain.hex()
            if turn.outcome is not None:
                parent = stand.before.id if stand.before else ""
                left = left_behind(turn, chains)
                made.append(remember(replace(turn, parent=parent), keys, skipped=left))
            stands[turn.id] = (
                _Stand(trail, replace(turn, output=said))
                if visible(said)
                else _Stand(stand.trail, stand.before, heard)
            )
    return made
