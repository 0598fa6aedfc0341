"""Conversations that a client does not repeat, because the server is to remember them.

A Responses client may name a previous response, or single items, instead of sending them again. The
log holds both. Where the server keeps nothing for this client, what is named is written out from
the log; where it does, the turns behind the name are known all the same, so that the new turn gets
its place in the conversation. A history with a hole in it, or one that was edited since, is not
used: half a history is worse than the provider's own answer.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.dialects import splice
from thoughtline.dialects.base import Dialect, Request
from thoughtline.engine.decision import (
    Predecessor,
)
from thoughtline.engine.offload import run_for
from thoughtline.engine.translation import as_echoed, item_at, named_item
from thoughtline.errors import ThoughtlineError
from thoughtline.log import keys as k
from thoughtline.log.events import Outcome
from thoughtline.log.index import IndexEntry, client_response_id
from thoughtline.log.parts import Blob, Call, Carrier, Part, Thought
from thoughtline.log.sessions import Session
from thoughtline.log.turns import Turn
from thoughtline.stores.base import Store

ASIDE = "aside"
"""Noted with a turn: before it, something was said that the log does not hold."""


class Recalled(Struct, frozen=True, kw_only=True):
    """A request whose item references and previous response are resolved, if they are known."""

    request: Request
    predecessor: Predecessor | None = None
    known_turns: frozenset[str] = frozenset()  # turns that the client named
    noted: Mapping[str, str] = {}


async def recall(
    request: Request,
    dialect: Dialect,
    tenant: str,
    store: Store,
    *,
    remembered: bool,
    endpoint: str = "",
) -> Recalled:
    """Write out what a request to this endpoint only names.

    `remembered`: the server knows it itself.
    """
    named = references(request)
    if not named and not request.previous_response:
        return Recalled(request=request)
    names = [_item_key(id) for id in named]
    if request.previous_response:
        names.append(k.reference_key("response", request.previous_response))
    try:
        found = await store.find(tenant, names)
        previous = k.reference_key("response", request.previous_response)
        after = completed(found.get(previous, ()), endpoint)
        turns = await path_to(store, after) if after else ()
        predecessor = Predecessor(after, turns) if after and turns else None
        noted = {ASIDE: after.skipped[ASIDE]} if after and ASIDE in after.skipped else {}
        if remembered:
            return Recalled(request=request, predecessor=predecessor, noted=noted)
        entries = {id: completed(found.get(_item_key(id), ()), endpoint) for id in named}
        items = await _items(store, entries, dialect)
    except ThoughtlineError:
        return Recalled(request=request)
    known_turns = {entry.turn for entry in entries.values() if entry}
    if predecessor is not None:
        known_turns |= {turn.id for turn in turns}

    def write() -> Request:
        made = _reread(request, dialect, dialect.expand(request, items))
        return expanded(made, dialect, turns) if predecessor is not None else made

    made = await run_for(request.body, write)
    return Recalled(request=made, known_turns=frozenset(known_turns), noted=noted)


def _item_key(id: str) -> bytes:
    """The key under which the turn of an item is found; that of a translated turn is in its id."""
    if (found := named_item(id)) is not None:
        return k.reference_key("response", client_response_id(found[0]))
    return k.reference_key("item", id)


def references(request: Request) -> list[str]:
    """Ids of the items that a request names without bringing them."""
    thoughts = (t for turn in request.turns for t in turn.thoughts)
    return [t.id for t in thoughts if t.carrier is Carrier.REFERENCE and t.id]


def completed(entries: Iterable[IndexEntry], endpoint: str) -> IndexEntry | None:
    """The turn that an id names, if it completed: others are not there to be continued.

    Of several, the one of this endpoint. None where there are two: the server gives the same id
    again, so it names neither.
    """
    found = {entry.turn: entry for entry in entries if entry.outcome is Outcome.COMPLETED}
    if len(found) > 1:
        found = {id: entry for id, entry in found.items() if entry.origin.endpoint == endpoint}
    return next(iter(found.values())) if len(found) == 1 else None


async def path_to(store: Store, entry: IndexEntry) -> tuple[Turn, ...]:
    """The turns up to and including this one; nothing where the log does not hold all of it."""
    if ASIDE in entry.skipped:
        return ()
    folded: dict[str, Session] = {}
    wanted = entry.session
    try:
        while wanted and wanted not in folded:
            session = folded[wanted] = Session(wanted).extend(await store.read(wanted))
            wanted = session.origin.session if session.origin else ""
        logged = folded[entry.session].path(entry.turn, folded.__getitem__)
        path = [as_echoed(turn) for turn in logged]
    except (ThoughtlineError, KeyError):
        return ()
    names, _ = k.rolling_keys(path)
    last = names[-1] if names else None
    same = last is not None and last.full in entry.keys
    parts = (part for turn in path for part in (*turn.input, *turn.output))
    return tuple(path) if same and repeatable(parts) else ()


def repeatable(parts: Iterable[Part]) -> bool:
    """Whether the log can say all of it again; of a picture only its digest is kept."""
    return all(part.raw for part in parts if isinstance(part, Blob))


async def _items(
    store: Store, entries: Mapping[str, IndexEntry | None], dialect: Dialect
) -> dict[str, str]:
    """The JSON texts of items by their ids, as their provider emitted them, or as it was told."""
    folded: dict[str, Session] = {}
    items: dict[str, str] = {}
    for id, entry in entries.items():
        if entry is None:
            continue
        if entry.session not in folded:
            events = await store.read(entry.session)
            folded[entry.session] = Session(entry.session).extend(events)
        turn = folded[entry.session].turn(entry.turn)
        if (given := named_item(id)) is not None and turn.client is not None:
            part = item_at(turn, given[1])
            items |= {id: _written_item(part, dialect)} if part is not None else {}
            continue
        for part in turn.output:
            own = part.item if isinstance(part, Call) else getattr(part, "id", "")
            if own == id and getattr(part, "raw", ""):
                items[id] = part.raw  # type: ignore[union-attr]  # decisions are no output
    return items


def _written_item(part: Part, dialect: Dialect) -> str:
    """One part of an output as an item."""
    body = dialect.write([Turn(output=(part,))], model="")
    (place,) = splice.elements(body, splice.members(body)["input"])
    return body[place.value : place.end].decode()


def expanded(request: Request, dialect: Dialect, turns: Sequence[Turn]) -> Request:
    """The request with these turns before its own items, and no previous response.

    Thoughts are not among them: they are put back as in every other request.
    """
    visible = [
        replace(turn, output=tuple(p for p in turn.output if not isinstance(p, Thought)))
        for turn in turns
    ]
    written = dialect.write(visible, model="")
    place = splice.members(written)["input"]
    before = written[place.value + 1 : place.end - 1]
    top = splice.members(request.body)
    own = b""
    if "input" in top:
        own = _listed(request.body[top["input"].value : top["input"].end])
    raw = b"[" + b",".join(piece for piece in (before, own) if piece.strip()) + b"]"
    fields = {"input": raw, "previous_response_id": None}
    body = splice.apply(request.body, splice.set_members(request.body, top, fields))
    return _reread(request, dialect, body)


def _listed(own: bytes) -> bytes:
    """The inside of a list of items; a string is what the user says."""
    if own[:1] == b"[":
        return own[1:-1]
    return b'{"role":"user","content":' + own + b"}" if own[:1] == b'"' else b""


def _reread(request: Request, dialect: Dialect, body: bytes) -> Request:
    if body is request.body:
        return request
    return replace(dialect.read(body), model=request.model, stream=request.stream)
