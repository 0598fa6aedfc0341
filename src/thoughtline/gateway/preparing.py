"""What a request needs before its thoughts are looked up: the policy's and the endpoint's wishes.

Towards a Responses server that keeps nothing for this client, what the client only names (a
previous response, an item) is written out from the log, `store` is false, and the sealed thoughts
are asked for. A client that wants the server to remember is left alone, and so is one that says
what the log does not hold (pictures, system messages): nobody could write that out again. What an
endpoint has taught (`learned`) is done at once. The log is read at the edge; the rest is pure.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from thoughtline import keys as k
from thoughtline import splice
from thoughtline.dialects import fields as top_level
from thoughtline.dialects.base import Dialect, Request
from thoughtline.dialects.responses import Responses
from thoughtline.errors import ThoughtlineError, Unreadable
from thoughtline.events import Outcome
from thoughtline.exchanges import Behind, Exchange, Rewrite, Terms
from thoughtline.gateway import histories, rewrites
from thoughtline.gateway.histories import ASIDE, path_to
from thoughtline.gateway.learned import Lesson
from thoughtline.gateway.members import Top, Wishes, wishes
from thoughtline.memories import Memory
from thoughtline.parts import Call, Carrier, Thought
from thoughtline.policies import Policy
from thoughtline.sessions import Session
from thoughtline.stores.base import Store
from thoughtline.turns import Turn

INCLUDE = "reasoning.encrypted_content"
UNTAUGHT = Lesson()
_UNTOUCHED = frozenset({"chat", "gemini"})
"""Dialects of which nothing needs to be changed, unless an endpoint has taught that."""


class Prepared(Struct, frozen=True, kw_only=True):
    """A request, ready to be begun."""

    request: Request
    terms: Terms = Terms()
    behind: Behind | None = None
    certain: frozenset[str] = frozenset()  # turns that the client named


async def prepare(
    request: Request,
    *,
    dialect: Dialect,
    policy: Policy,
    tenant: str,
    store: Store,
    lesson: Lesson | None = None,
    whole: bool = True,
) -> Prepared:
    """Give a request what its endpoint needs. One that needs nothing is given back as it is.

    `whole`: the log holds what is said, and not only what is thought.
    """
    made = Prepared(request=request)
    if lesson is None and dialect.name in _UNTOUCHED:
        return made
    taught = lesson or UNTAUGHT
    fields: dict[str, bytes | None] = {}
    try:
        if isinstance(dialect, Responses):
            said = wishes(request.body)
            kept = policy.remembers and said.store is True and not taught.unstored
            made = await _recalled(request, dialect, tenant, store, kept=kept)
            if not whole or not told_whole(request, said):
                noted = {ASIDE: "something was said that is not kept"}
                made = replace(made, terms=replace(made.terms, noted=noted))
            again = ASIDE not in made.terms.noted
            fields |= members(made.request, policy, taught, said, again=again)
        if taught.drops:
            has = splice.members(request.body)
            fields |= {name: None for name in taught.drops if name in has}
        last = changes(made.request, dialect.name, policy, taught)
    except Unreadable:
        return Prepared(request=request)
    if not fields and not last:
        return made
    return replace(made, terms=replace(made.terms, fields=fields, rewrites=last))


# -- what the client only names ------------------------------------------------------------------


async def _recalled(
    request: Request, dialect: Responses, tenant: str, store: Store, *, kept: bool
) -> Prepared:
    """The request with what it names written out; `kept`: the server knows it."""
    named = references(request)
    if not named and not request.previous:
        return Prepared(request=request)
    names = [k.ref("item", id) for id in named]
    if request.previous:
        names.append(k.ref("response", request.previous))
    try:
        found = await store.find(tenant, names)
        after = _settled(found.get(k.ref("response", request.previous), ()))
        turns = await path_to(store, after) if after else ()
        behind = Behind(after, turns) if after and turns else None
        noted = {ASIDE: after.skipped[ASIDE]} if after and ASIDE in after.skipped else {}
        if kept:
            return Prepared(request=request, behind=behind, terms=Terms(noted=noted))
        memories = {id: _settled(found.get(k.ref("item", id), ())) for id in named}
        items = await _items(store, memories)
    except ThoughtlineError:
        return Prepared(request=request)
    made = _reread(request, dialect, dialect.expand(request, items))
    certain = {memory.turn for memory in memories.values() if memory}
    if behind is not None:
        made = expanded(made, dialect, turns)
        certain |= {turn.id for turn in turns}
    return Prepared(request=made, certain=frozenset(certain), terms=Terms(noted=noted))


def told_whole(request: Request, said: Wishes) -> bool:
    """Whether the log will hold all that a request says: not so for pictures and asides."""
    heard = (part for turn in request.turns for part in turn.input)
    return not said.asides and histories.whole(heard)


def references(request: Request) -> list[str]:
    """Ids of the items that a request names without bringing them."""
    thoughts = (t for turn in request.turns for t in turn.thoughts)
    return [t.id for t in thoughts if t.carrier is Carrier.REFERENCE and t.id]


def _settled(memories: Sequence[Memory]) -> Memory | None:
    """The turn that is meant; one that did not complete is not there to go on from."""
    return next((m for m in memories if m.outcome is Outcome.COMPLETED), None)


async def _items(store: Store, memories: Mapping[str, Memory | None]) -> dict[str, str]:
    """The JSON texts of items by their ids, as their provider emitted them."""
    folded: dict[str, Session] = {}
    items: dict[str, str] = {}
    for id, memory in memories.items():
        if memory is None:
            continue
        if memory.session not in folded:
            events = await store.read(memory.session)
            folded[memory.session] = Session(memory.session).extend(events)
        for part in folded[memory.session].turn(memory.turn).output:
            own = part.item if isinstance(part, Call) else getattr(part, "id", "")
            if own == id and getattr(part, "raw", ""):
                items[id] = part.raw  # type: ignore[union-attr]  # decisions are no output
    return items


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
        own = request.body[top["input"].value : top["input"].end]
        own = _listed(own)
    raw = b"[" + b",".join(piece for piece in (before, own) if piece.strip()) + b"]"
    fields = {"input": raw, "previous_response_id": None}
    body = splice.apply(request.body, top_level.edits(request.body, top, fields))
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


# -- what the policy and the endpoint want -------------------------------------------------------


def members(
    request: Request, policy: Policy, lesson: Lesson, said: Wishes, *, again: bool = True
) -> dict[str, bytes | None]:
    """Members of a Responses request to set; `again`: the log could say all of it again."""
    made: dict[str, bytes | None] = {}
    if policy.stateless or lesson.unstored:
        must = lesson.unstored or not policy.remembers
        free = again and not _wants_state(request, said)
        if said.store is not False and (must or free):
            made["store"] = b"false"
        included = said.include or []
        if isinstance(included, list) and INCLUDE not in included and not lesson.unsealed:
            made["include"] = splice.dumps([*included, INCLUDE])
    asked = said.reasoning if isinstance(said.reasoning, dict) else {}
    if lesson.all_turns and "context" not in asked:
        made["reasoning"] = Top(request.body).nested("reasoning", {"context": b'"all_turns"'})
    return made


def _wants_state(request: Request, said: Wishes) -> bool:
    """Whether the client counts on the server's memory."""
    asked = said.store is True or said.conversation or said.background
    return bool(asked or request.previous or references(request))


def changes(request: Request, dialect: str, policy: Policy, lesson: Lesson) -> tuple[Rewrite, ...]:
    """Last changes of the finished body."""
    wanted: list[tuple[bool | None, Rewrite]] = []
    match dialect:
        case "chat":
            wanted = [(lesson.nine, rewrites.nine_characters), (lesson.bare, rewrites.bared)]
        case "responses":
            wanted = [
                (lesson.nameless, rewrites.nameless),
                (lesson.summaries, rewrites.summarised),
            ]
        case "messages":
            wanted = [(_may_be_switched_off(request, policy), rewrites.unclearing)]
    return tuple([rewrite for asked, rewrite in wanted if asked])


def _may_be_switched_off(request: Request, policy: Policy) -> bool:
    """Whether it may be us who switch thinking off, in a request that asks to clear it."""
    off = policy.off is not None and request.thinking is not False
    return off and b"clear_thinking" in request.body


# -- what the conversation wants -----------------------------------------------------------------

DROP_BLOCK = "drop_block"
"""Noted with a turn: from here on, blocks that do not fit are to be dropped by the provider."""
CONTROLS = "thinking-binding-controls-2026-08-01"


def dropping(exchange: Exchange) -> Terms | None:
    """Terms on which a provider drops blocks that are bound to another prefix; None: it cannot."""
    top = Top(exchange.request.body)
    thinking = top.value("thinking")
    kind = thinking.get("type") if isinstance(thinking, dict) else "adaptive"
    if kind not in ("adaptive", "enabled"):
        return None
    wanted: dict[str, bytes | None] = {
        "block_binding": b'{"prefix_mismatch_behavior":"drop_block"}'
    }
    if not isinstance(thinking, dict):
        wanted = {"type": b'"adaptive"', **wanted}
    terms = exchange.terms
    return replace(
        terms,
        fields={**terms.fields, "thinking": top.nested("thinking", wanted)},
        headers={**terms.headers, "anthropic-beta": CONTROLS},
        noted={**terms.noted, DROP_BLOCK: "bound to a different conversation"},
    )


def keep_on(exchange: Exchange) -> None:
    """What was once needed in this conversation is needed for ever."""
    if DROP_BLOCK in exchange.restoration.before and DROP_BLOCK not in exchange.terms.noted:
        terms = dropping(exchange)
        if terms is not None:
            exchange.again(terms=terms)
