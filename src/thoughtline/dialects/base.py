"""What a dialect is: a pure, two-way codec for one API shape, and every fact about that shape.

`read` turns a client's request body into a path of turns; `patch` puts thoughts into that same
body and touches nothing else (no revisions: the same bytes object); `write` makes a new body from
a path; a `Reader` turns provider output, fed in any split, into events. Which thought goes where
is not decided here but in `replay`; what one provider demands is in `providers`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import msgspec
from msgspec import Struct

from thoughtline.clock import Clock
from thoughtline.dialects import splice
from thoughtline.dialects.answers import AnswerHead, AnswerWriter
from thoughtline.dialects.media import is_media
from thoughtline.dialects.model_lists import OPENAI, ModelShape
from thoughtline.dialects.params import ParamFields, RequestParams, ToolSpec
from thoughtline.dialects.splice import Edit
from thoughtline.dialects.token_counts import TokenCount
from thoughtline.dialects.upstream_errors import ErrorKind, UpstreamError
from thoughtline.errors import Unreadable
from thoughtline.log.capabilities import Capabilities
from thoughtline.log.events import StreamEvent
from thoughtline.log.parts import Blob, Carrier, Origin, Part
from thoughtline.log.turns import Place, Turn


class Request(Struct, frozen=True, kw_only=True):
    """A client's request as read. The last turn may lack an output: what is to be answered."""

    body: bytes
    model: str = ""
    stream: bool = False
    tools: bool = False  # whether tools are declared: some contracts hang on that
    thinking: bool | None = None  # switched on or off by the client; None: not said
    turns: tuple[Turn, ...] = ()
    hints: tuple[str, ...] = ()  # session ids found in the body, as they are
    shared_hint: str = ""  # the one of them that other conversations may share
    previous_response: str = ""  # that this request continues, where a dialect can say so
    anchors: tuple[Any, ...] = ()  # per turn: where its output stands in the body (private)
    parts: int = 0  # of the history, as they were counted; 0: they are few


class StateParams(Struct):
    """What a request asks of the state that its server keeps."""

    store: Any = None
    include: Any = None
    conversation: Any = None
    background: Any = None
    reasoning: Any = None
    system_items: bool = False  # whether a system or developer message stands among the items


class PlacedThought(Struct, frozen=True, gc=False):
    """A thought in its place, under the key the target reads."""

    place: Place
    carrier: Carrier
    raw: str  # JSON text


class Revision(Struct, frozen=True, gc=False, kw_only=True):
    """What becomes of one output: its thoughts are exactly these, wherever it had others."""

    turn: int  # index into Request.turns
    thoughts: tuple[PlacedThought, ...] = ()
    anonymous: bool = False  # take the item ids off its calls and texts
    unsealed: bool = False  # take sealed summaries out
    verbatim: bool = False  # an equal item that the client spelled differently gives way too
    phases: tuple[str, ...] = ()  # per text: what it was for, where that is to be said


class Prefixes(Struct, frozen=True):
    """Digests of everything before each output of a request."""

    digests: tuple[str, ...] = ()
    states: tuple[Any, ...] = ()  # behind the output of each turn, for `rolling_prefixes`


class PathMatch(Struct, frozen=True, kw_only=True):
    """What a request path says in a dialect."""

    generates: bool = True  # it asks a model to answer; else the path only names a model
    counts: bool = False  # it asks how many tokens such a request has
    model: str = ""  # where the path holds it
    stream: bool | None = None  # where the path says so


Edits = Callable[[Request, Sequence[Revision], Mapping[str, bytes | None]], list[Edit]]
"""`Dialect.edits` of a body that changes."""

Rewrite = Callable[[bytes], bytes]
"""A last edit of a finished body: pure; the same object where there is nothing to do."""


def unchanged(body: bytes) -> bytes:
    """The rewrite of a dialect whose bodies do not have what is to be edited."""
    return body


def listed_names(body: bytes, member: str, key: str) -> list[str]:
    """A member of each object in a list, where it is text. Raises `Unreadable`."""
    try:
        listed = msgspec.json.decode(body)[member]
        return [name for one in listed if isinstance(name := one.get(key), str)]
    except (msgspec.MsgspecError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise Unreadable(f"this is not a list of models: {error}") from error


class Rewrites(Struct, frozen=True, kw_only=True):
    """The last edits that some endpoints demand; `unchanged` where a dialect has no such thing."""

    strip_null_reasoning: Rewrite = unchanged  # keys for thoughts that hold null
    short_call_ids: Rewrite = unchanged  # tool call ids of nine characters
    strip_item_ids: Rewrite = unchanged  # of sealed thoughts and of what they led to
    drop_repeated_items: Rewrite = unchanged
    add_summaries: Rewrite = unchanged  # to reasoning items that have none
    drop_compactions: Rewrite = unchanged
    drop_foreign_citations: Rewrite = unchanged  # links of answers that were translated
    drop_configuration: Rewrite = unchanged  # items that change settings on the way
    drop_fallbacks: Rewrite = unchanged  # and the thoughts of the model before the last one
    drop_bare_thoughts: Rewrite = unchanged  # outputs of nothing else
    drop_clear_thinking: Rewrite = unchanged  # from requests that do not think
    flatten_tool_loop: Rewrite = unchanged  # the running loop becomes a message of the user


class Reader(Protocol):
    """Turns one response into happenings. The end of a stream is an event, not an exception."""

    done: bool  # the provider said that it is finished
    opening: bytes  # what a keep-alive repeats of how the answer began, if it does
    damaged: bool  # something in it is not UTF-8, and was read with U+FFFD in its place
    arrived: int  # when the bytes that are fed arrived, by the monotonic clock; 0: just now

    @property
    def has_output(self) -> bool:
        """Whether anything but thoughts has come."""

    @property
    def version(self) -> tuple[bool, ...]:
        """A value that changes when a thought opens, begins or closes, or other output begins."""

    def snapshot(self) -> list[Part]:
        """What has come so far, in order; a thought that is growing has no end yet."""

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Take in bytes as they come; deltas at once, canonical bodies when they are complete.

        It raises nothing, with one exception: `limits.TooComplex`, as `close` may.
        """

    def only_text(self, data: bytes) -> str | None:
        """The text that is all that an event's data says; None where it says more, or else.

        Events that say a text each are then the same as one that says all of it (`alike`).
        """

    def close(self, *, reason: str = "") -> list[StreamEvent]:
        """The stream is over: what remains, last of all the turn's end. Idempotent."""


class Dialect(Protocol):
    """One API shape. The facts have the values of most dialects; each class says where it differs.

    `path_suffix` and `path_prefix` are how requests are recognised: a request goes to a path with
    that suffix, and whatever is below that prefix belongs to this dialect and to no other.
    """

    name: ClassVar[str]

    # -- where requests go, and with which headers
    path_suffix: ClassVar[str] = ""
    path_prefix: ClassVar[str] = ""
    token_count: ClassVar[TokenCount | None] = None  # how its providers count tokens, if they do
    count_members: ClassVar[Mapping[str, Any]] = {}  # of an answer that counts, beside the number
    count_suffix: ClassVar[str] = ""  # of the path that counts the tokens of a request
    path_neighbour: ClassVar[str] = ""  # another path that is spoken wherever this dialect is
    always_versioned: ClassVar[bool] = False  # no server takes its paths without a version
    credential_header: ClassVar[str] = "authorization"
    request_headers: ClassVar[tuple[tuple[str, str], ...]] = ()  # that every request must have
    models_path: ClassVar[str] = "/v1/models"  # where a provider lists its models, all at once
    model_shape: ClassVar[ModelShape] = OPENAI  # in which it does
    models_query: ClassVar[str] = ""
    base_url_variable: ClassVar[str] = "OPENAI_BASE_URL"  # read by the SDKs that speak it

    # -- requests
    history_member: ClassVar[str] = "messages"  # the top-level member that holds the history
    content_member: ClassVar[str] = "content"  # of an element of the history: what is said
    calls_member: ClassVar[str] = "content"  # of one: what is called
    thinking_on: ClassVar[Mapping[str, Any]] = {}  # members that make an optional thinker think
    reasoning_carrier: ClassVar[Carrier | None] = None  # where a demanded thought stands
    signature_carrier: ClassVar[Carrier | None] = None  # where Gemini's signature stands
    string_carriers: ClassVar[tuple[Carrier, ...]] = ()  # keys for thoughts that are plain strings
    reasoning_before_each_call: ClassVar[bool] = False  # a demand holds for each parallel call
    signed_blocks: ClassVar[bool] = False  # thoughts are signed blocks among those of a message
    joins_texts: ClassVar[bool] = False  # texts that a user says in a row are written as one
    item_list: ClassVar[bool] = False  # a flat list of items, which may end inside of an output
    server_state: ClassVar[bool] = False  # a request can name the response that it continues
    websockets: ClassVar[bool] = False  # it can be spoken over a WebSocket
    always_normalised: ClassVar[bool] = False  # requests change also where no quirk is known
    rewrites: ClassVar[Rewrites] = Rewrites()
    effort_members: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Members that say how hard to think; with names behind them, only these members of theirs."""

    # -- responses
    model_places: ClassVar[tuple[tuple[str, ...], ...]] = (("model",),)  # that name the model
    stream_end: ClassVar[re.Pattern[bytes]]  # found in the last event; elsewhere it does no harm
    ends_once: ClassVar[bool] = True  # False: more may follow behind it, and another end
    stream_stop: ClassVar[re.Pattern[bytes] | None] = None  # in an event before it: why it stopped
    keepalive: ClassVar[bytes] = b": keep-alive\n\n"  # between two events, ignored by clients
    error_event_name: ClassVar[str] = ""  # of an error inside of a stream, where events have names
    translated_headers: ClassVar[tuple[tuple[str, str], ...]] = ()  # of a translated answer
    operation: ClassVar[str] = "chat"  # `gen_ai.operation.name` of OpenTelemetry

    _edits: Edits  # of a body that changes

    def request_path(self, model: str, *, stream: bool = True) -> str:
        """The path of a request behind a provider's host; `model` is escaped as in a URL."""
        return "/v1" + self.path_suffix

    def match_path(self, path: str) -> PathMatch | None:
        """What a path says in this dialect; None where it is not one of its requests."""
        if path.endswith(self.path_suffix):
            return PathMatch()
        counts = bool(self.count_suffix) and path.endswith(self.count_suffix)
        return PathMatch(generates=False, counts=True) if counts else None

    def credential(self, key: str) -> tuple[str, str]:
        """The header that holds a provider's key."""
        bearer = self.credential_header == "authorization"
        return self.credential_header, f"Bearer {key}" if bearer else key

    def model_names(self, body: bytes) -> list[str]:
        """The models in a provider's list. Raises `Unreadable` for what is not one."""
        return listed_names(body, "data", "id")

    def placeholders(self, *, every_output: bool) -> tuple[str, ...]:
        """JSON texts to try in place of a lost thought; `every_output`: also without calls."""
        return ()

    def read(self, body: bytes) -> Request:
        """Read a request. Raises `Unreadable` for what is not one; never anything else."""

    def thinking_switch(self, members: Mapping[str, Any]) -> bool | None:
        """Whether the members of a body switch thinking on or off; None: they do not say."""

    def state_params(self, body: bytes) -> StateParams | None:
        """What a request asks of the server's state; None where servers keep none."""
        return None

    def expand(self, request: Request, items: Mapping[str, str]) -> bytes:
        """The same body with references replaced by the items (id → JSON text) that are given."""
        return request.body

    def patch(
        self,
        request: Request,
        revisions: Sequence[Revision],
        fields: Mapping[str, bytes | None] | None = None,
    ) -> bytes:
        """The same body with these outputs revised and these top-level members set or removed."""
        return splice.apply(request.body, self.edits(request, revisions, fields or {}))

    def edits(
        self,
        request: Request,
        revisions: Sequence[Revision],
        fields: Mapping[str, bytes | None],
    ) -> list[Edit]:
        """What `patch` changes. Raises `Unreadable` for a body that is not for us to change."""
        return self._edits(request, revisions, fields) if revisions or fields else []

    def write(
        self,
        turns: Sequence[Turn],
        *,
        model: str,
        system: str = "",
        tools: Sequence[ToolSpec] = (),
        stream: bool = True,
        fields: Mapping[str, Any] | None = None,
        cache_breakpoints: bool = False,
    ) -> bytes:
        """A new request. Thoughts in the turns are written under their carriers, as they are.

        `cache_breakpoints`: mark what is to be cached, where a provider caches nothing unasked.
        """

    def params(self, request: Request) -> RequestParams:
        """What a client's request asks, for another dialect; only of a body that was read."""

    def param_fields(self, params: RequestParams, takes: Capabilities) -> ParamFields:
        """The members that ask the same of a provider of this dialect, beside tools and history."""

    def says_media(self, part: Blob) -> bool:
        """Whether an image or a file of another dialect can be said in this one."""
        return is_media(part)

    def answer_writer(self, head: AnswerHead) -> AnswerWriter:
        """A writer of one answer, for a client of this dialect."""

    def prefixes(self, request: Request) -> Sequence[str]:
        """Per turn a digest of everything before its output, where signatures are bound to that."""
        made = self.rolling_prefixes(request)
        return made.digests if made is not None else ()

    def rolling_prefixes(self, request: Request, after: Any = None) -> Prefixes | None:
        """The same, and what the digests of later turns are made from.

        `after` is the state behind the turns that stand before those of the request; None where it
        does not hold any more, because something changed in front of the history.
        """
        return Prefixes()

    def reader(self, *, stream: bool, clock: Clock, origin: Origin, sent: int) -> Reader:
        """A reader for one response; `sent` is the clock's reading when the request left."""

    def upstream_error(self, error: UpstreamError) -> bytes:
        """The body of a provider's error, as clients of this dialect expect it."""

    def streams_array(self, query: str) -> bool:
        """Whether the query of a request asks for a stream that is one JSON array."""
        return False

    def error_in_stream(self, kind: ErrorKind, program: str, *, socket: bool) -> bool:
        """Whether this program (its user agent) knows such an error only inside of a stream.

        `socket`: it reads events from a WebSocket, which has no status.
        """
        return False

    def error(self, status: int, message: str, *, code: str = "") -> bytes:
        """The body of an error that did not come from a provider, as clients expect it."""

    def keepalive_after(self, opening: bytes, last: bytes) -> bytes:
        """What says that the connection is alive, between two events of a stream.

        `opening` is what the reader kept of how the answer began, `last` what came last.
        """
        return self.keepalive

    def error_event(self, status: int, message: str, *, code: str = "") -> bytes:
        """The server-sent event that ends a stream which broke off."""
        name = f"event: {self.error_event_name}\n".encode() if self.error_event_name else b""
        return name + b"data: " + self.error(status, message, code=code) + b"\n\n"
