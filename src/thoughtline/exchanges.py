"""One request through the rooms, without the wire: find, restore, patch; then capture.

The gateway, the in-process transport and the library all walk this way and differ only in how the
bytes travel. `begin` gives the body to send; `feed` takes what comes back, after the client has
it; `finish` writes the turn. When the provider refuses, `again` decides anew on other terms. A
store that is down never stops a request: what could not be looked up counts as not found (`gap`).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from thoughtline import keys
from thoughtline.capture import Capture
from thoughtline.clock import Clock, SystemClock
from thoughtline.dialects.base import Dialect, Reader, Request
from thoughtline.errors import StoreError, Unreadable
from thoughtline.events import Event, Happening, Outcome, TurnEnded
from thoughtline.guards import Target
from thoughtline.matching import Path, survey
from thoughtline.memories import Memory
from thoughtline.parts import Carrier
from thoughtline.policies import Need
from thoughtline.replay import NOTHING, Limits, Restoration, restore
from thoughtline.stores.base import Store
from thoughtline.turns import Turn

MOST = 64 << 20
"""Of an answer larger than this (in bytes) nothing is kept: no request would take it back."""
Found = Mapping[bytes, Sequence[Memory]]
Rewrite = Callable[[bytes], bytes]
"""A last change of a finished body; one that finds nothing to do gives back the same object."""


class Terms(Struct, frozen=True, kw_only=True):
    """On what terms a request goes out, beside the thoughts in it."""

    fields: Mapping[str, bytes | None] = {}  # top-level members to set, or to remove
    headers: Mapping[str, str] = {}  # to be added to the client's own
    rewrites: tuple[Rewrite, ...] = ()
    refused: frozenset[str] = frozenset()  # outputs whose own thoughts were refused: chain keys
    noted: Mapping[str, str] = {}  # kept with the turn, for the next request of the conversation


_PLAIN = Terms()
_EVENTS = (b"data:", b"event:", b":")
"""How a stream of events begins."""


class Behind(Struct, frozen=True):
    """What a request goes on from without saying it: the provider is asked to remember it."""

    memory: Memory
    turns: tuple[Turn, ...]


class Exchange(Struct, kw_only=True, eq=False, weakref=True):
    """One request and its response."""

    request: Request
    original: Request  # as the client sent it
    dialect: Dialect
    target: Target
    path: Path
    found: Found
    gap: str  # why nothing could be looked up, if so
    store: Store
    tenant: str
    clock: Clock
    limits: Limits
    terms: Terms
    behind: Behind | None
    streamed: bool
    home: str  # the session that it shall be written to, if that was said
    restoration: Restoration = Restoration(rulings=())
    body: bytes = b""  # to be sent
    unfit: str = ""  # why the body cannot be changed, if it should be
    lapse: str = ""  # why the answer is not kept, if so
    most: int = MOST
    received: int = 0  # the one who received it knows better when
    departed: int = 0
    _capture: Capture | None = None
    _reader: Reader = None  # type: ignore[assignment] # made by `sent`
    _fed: int = 0
    _heard: bool = False  # something of the response, so that it is certain how it comes
    _finished: bool = False
    _written: bool = False

    __repr__ = object.__repr__  # nothing of what is said in it, wherever it is printed

    def __post_init__(self) -> None:
        self.received = self.departed = self.clock.mono()
        self._decide()

    def again(
        self,
        *,
        target: Target | None = None,
        found: Found | None = None,
        path: Path | None = None,
        terms: Terms | None = None,
        request: Request | None = None,
    ) -> bytes:
        """Decide (anew): on other terms, with other memories, about another request."""
        self.target = target or self.target
        self.found = self.found if found is None else found
        self.path = path or self.path
        self.terms = terms or self.terms
        self.request = request or self.request
        self._capture = None
        self._decide()
        return self.body

    def _decide(self) -> None:
        self.restoration = self._restored()
        members = {**self.restoration.fields, **self.terms.fields}
        try:
            body = self.dialect.patch(self.request, self.restoration.revisions, members)
            for rewrite in self.terms.rewrites:
                body = rewrite(body)
        except Unreadable as error:  # a key twice: which one counts is not for us to say
            body = self.request.body
            self.gap = self.unfit = str(error)
        self.body = body

    def _decided(self, target: Target) -> Restoration:
        return restore(self.path, self.found, target, self.limits, self.terms.refused)

    def _restored(self) -> Restoration:
        made = self._decided(self.target)
        policy = self.target.policy
        if made.fields and Carrier.BLOCK in policy.reads:
            # With thinking switched off this API takes no thought in the message it goes on from.
            bare = self._decided(replace(self.target, policy=replace(policy, need=Need.FORBIDDEN)))
            made = replace(made, rulings=bare.rulings, revisions=bare.revisions)
        behind = self.behind.memory if self.behind else None
        if behind is None and not self.terms.noted:
            return made
        return replace(
            made, parent=made.parent or behind, skipped={**made.skipped, **self.terms.noted}
        )

    async def reread(self, request: Request, *, certain: Collection[str] = ()) -> None:
        """Walk with another request in place of this one; `certain` as in `begin`."""
        path = _survey(request, self.target, dialect=self.dialect, hints=())
        path = replace(path, hints=self.path.hints, named=self.path.named)
        found, self.gap = await _find(self.store, self.tenant, path, certain)
        self.behind = None
        self.again(request=request, path=path, found=found)

    def bookmark(self) -> Callable[[], None]:
        """A way back to what is decided now."""
        kept = [(name, getattr(self, name)) for name in self.__struct_fields__]

        def back() -> None:
            for name, value in kept:
                setattr(self, name, value)

        return back

    @property
    def altered(self) -> bool:
        """Whether what goes out is anything but the client's own bytes."""
        return self.body is not self.original.body

    def sent(self) -> None:
        """The request leaves now: a fresh reader and a fresh record."""
        self.departed = self.clock.mono()
        self._capture = Capture(
            path=self.path,
            restoration=self.restoration,
            origin=self.target.origin,
            tenant=self.tenant,
            clock=self.clock,
            session=self.home,
        )
        self._reader = self._listener()
        self._fed, self._heard, self.lapse = 0, False, ""

    def _listener(self) -> Reader:
        return self.dialect.reader(
            stream=self.streamed,
            clock=self.clock,
            origin=self.target.origin,
            sent=self.departed,
        )

    @property
    def capture(self) -> Capture:
        """The record of this exchange."""
        if self._capture is None:
            self.sent()
        assert self._capture is not None  # noqa: S101 (made by `sent`)
        return self._capture

    @property
    def session(self) -> str:
        """The session this turn is written to."""
        return self.capture.session

    @property
    def turn(self) -> str:
        """The turn's id."""
        return self.capture.turn

    @property
    def done(self) -> bool:
        """Whether the provider said that it is finished."""
        return self._capture is not None and self._reader.done

    @property
    def running(self) -> bool:
        """Whether the request has left and its turn is not written yet."""
        return self._capture is not None and not self._written

    @property
    def pulse(self) -> tuple[bool, ...]:
        """While it runs: changes whenever a thought opens or closes, or the model speaks."""
        return self._reader.pulse

    @property
    def spoke(self) -> bool:
        """While it runs: whether anything but thoughts has come."""
        return self._reader.spoke

    def glimpse(self) -> Turn:
        """The turn as far as it has come; a thought that is growing has no end yet."""
        capture = self.capture
        return capture.glimpse(capture.output if self._finished else self._reader.glimpse())

    @property
    def refusal(self) -> str:
        """Why the provider failed inside of its answer, before it had said anything."""
        ended = self._capture.ended if self._capture is not None else None
        if ended is None or ended.outcome is not Outcome.FAILED or self.capture.output:
            return ""
        return ended.reason

    def feed(self, data: bytes) -> list[Happening]:
        """Take in a piece of the response; what happened in it, for whoever watches."""
        capture = self.capture
        self._fed += len(data)
        if self._fed > self.most:
            self.give_up(f"the answer is larger than {self.most} bytes")
        if self.lapse:
            return []
        if not self._heard:
            self._listen(data)
        happenings = self._reader.feed(data)
        capture.take(happenings)
        return happenings

    def _listen(self, data: bytes) -> None:
        """Some upstreams answer whole who asked for a stream, or the other way round."""
        begun = data.lstrip()
        self._heard = bool(begun)
        if begun.startswith(b"{" if self.streamed else _EVENTS):
            self.streamed = not self.streamed
            self._reader = self._listener()

    def give_up(self, why: str) -> None:
        """Keep no more of the response: whoever asked for it has it, and the log has why not."""
        if not self.lapse:
            self.lapse = f"not captured: {why}"
            self._reader = self._listener()  # the other one may hold all that came so far

    async def finish(self, *, reason: str = "") -> list[Event]:
        """The response is over, or cut: write the turn, the first time this is said."""
        if self._finished:
            return []
        self._finished = True
        capture = self.capture
        if self.lapse:
            capture.take([TurnEnded(outcome=Outcome.ABORTED, reason=self.lapse)])
        else:
            capture.take(self._reader.close(reason=reason))
        try:
            return await self.store.append(capture.finish())
        finally:
            self._written = True


async def begin(
    request: Request,
    *,
    dialect: Dialect,
    target: Target,
    tenant: str,
    store: Store,
    clock: Clock | None = None,
    stream: bool | None = None,
    hints: Iterable[str] = (),
    limits: Limits = NOTHING,
    session: str = "",
    terms: Terms | None = None,
    behind: Behind | None = None,
    certain: Collection[str] = (),
    original: Request | None = None,
) -> Exchange:
    """Look up what is known of a request's history, and decide what goes back.

    `certain` are ids of turns that are known to be in the path, where the client named them;
    `original` is the client's own request, where this one was made from it.
    """
    path = _survey(request, target, dialect=dialect, hints=hints)
    if behind is not None:
        path = replace(path, trail=keys.trail([*behind.turns, *request.turns])[1])
    found, gap = await _find(store, tenant, path, certain)
    return Exchange(
        request=request,
        original=original or request,
        dialect=dialect,
        target=target,
        path=path,
        found=found,
        gap=gap,
        store=store,
        tenant=tenant,
        clock=clock or SystemClock(),
        limits=limits,
        terms=terms or _PLAIN,
        behind=behind,
        streamed=request.stream if stream is None else stream,
        home=session,
    )


def _survey(request: Request, target: Target, *, dialect: Dialect, hints: Iterable[str]) -> Path:
    prefixes: Sequence[str] = dialect.prefixes(request) if target.policy.prefix else ()
    return survey(
        request.turns,
        tools=request.tools,
        thinking=request.thinking,
        hints=(*request.hints, *hints),
        group=request.group,
        prefixes=prefixes,
        previous=request.previous,
    )


async def _find(
    store: Store, tenant: str, path: Path, certain: Collection[str]
) -> tuple[Found, str]:
    """What is known under the names of a path; where a certain turn is, no other is meant."""
    try:
        found = await store.find(tenant, path.names())
    except StoreError as error:
        return {}, str(error)
    if not certain:
        return found, ""
    narrow: dict[bytes, Sequence[Memory]] = {}
    for name, memories in found.items():
        named = [memory for memory in memories if memory.turn in certain]
        narrow[name] = named or memories
    return narrow, ""
