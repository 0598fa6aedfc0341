"""Parts: the values that a turn is made of.

A part is a pure value: no I/O, equality by content, identity given by the log. `Text`, `Call`
and `Result` are what every client can echo; a `Thought` is what most clients drop. A thought's
`raw` is the provider's own JSON text, stored to the byte and never interpreted; its `text` is for
display and never decides what is replayed. Values form no cycles, so they are not tracked by the
garbage collector (`gc=False`): a long history has many of them.
"""

from enum import StrEnum

from msgspec import Struct


class Carrier(StrEnum):
    """The key or the shape in which a thought is transmitted; `raw` is that key's JSON value."""

    REASONING_CONTENT = "reasoning_content"  # chat: string beside content
    REASONING = "reasoning"  # chat: the same under another key (vLLM, Groq, Ollama, OpenRouter)
    REASONING_DETAILS = "reasoning_details"  # chat: OpenRouter's and MiniMax's typed list
    REASONING_TEXT = "reasoning_text"  # chat: Copilot's readable half
    REASONING_OPAQUE = "reasoning_opaque"  # chat: Copilot's sealed half
    THINK = "think"  # chat: inline in content; raw is the JSON string of tags and thought
    CHUNK = "chunk"  # chat: Mistral's {"type":"thinking"} chunk in a content list
    EXTRA_CONTENT = "extra_content"  # chat: Gemini's signature, rides on the next tool call
    ITEM = "item"  # responses: a whole {"type":"reasoning"} item
    BLOCK = "block"  # messages: a whole thinking or redacted_thinking block
    PART = "part"  # gemini: a whole part that is only thought, or an empty signed one
    SIGNATURE = "signature"  # gemini: a thoughtSignature, rides on the next part
    REFERENCE = "reference"  # responses: an item_reference; only ever echoed by clients


RIDING = frozenset({Carrier.EXTRA_CONTENT, Carrier.SIGNATURE})
"""Carriers that are a member of the part after them, not a part of their own."""


class Origin(Struct, frozen=True, gc=False, kw_only=True):
    """Where a thought was made; the guard compares it before the thought may go back."""

    dialect: str = ""
    provider: str = ""  # the policy's name
    endpoint: str = ""  # scheme, host and base path
    account: str = ""  # keyed hash of the credential, never the credential
    model: str = ""  # as served; until that is known, as asked for
    asked: str = ""  # as asked for: providers answer an alias with a dated name


class Timing(Struct, frozen=True, gc=False, kw_only=True):
    """Readings of one monotonic clock, in nanoseconds; None is unknown, never zero."""

    sent: int | None = None  # the request left
    opened: int | None = None  # the item was announced
    first: int | None = None  # its first delta
    last: int | None = None  # its last delta
    closed: int | None = None  # the item was complete
    at: float | None = None  # wall clock when it opened, for people and live timers
    aborted: bool = False  # the stream ended before the item did


class Text(Struct, frozen=True, gc=False, kw_only=True, tag="text", omit_defaults=True):
    """Text of a user or of a model."""

    text: str
    id: str = ""  # the provider's item id, if it has one
    phase: str = ""  # what the provider said it is for: a comment on the way, or the answer
    raw: str = ""  # the provider's item as JSON text, where the dialect has one
    refused: bool = False  # in it the model says that it will not answer


class Thought(Struct, frozen=True, gc=False, kw_only=True, tag="thought", omit_defaults=True):
    """One piece of reasoning, exactly as its provider emitted it."""

    carrier: Carrier
    raw: str  # JSON text, to the byte
    text: str = ""  # readable text or summary, for display only
    id: str = ""  # the provider's item id
    seals: tuple[str, ...] = ()  # digests of the opaque values inside (see `keys.string_digest`)
    origin: Origin | None = None  # None: echoed by a client, provenance unknown
    timing: Timing | None = None
    prefix: str = ""  # digest of everything before it, for providers that bind to that
    forgotten: bool = False  # erased on request: raw is `null`, and it is never sent again
    handle: str = ""  # echoed by a client: what a translated answer gave it, never for a provider

    @property
    def unreadable(self) -> bool:
        """Whether it stands for a thought of the log that cannot be read."""
        return not self.raw

    @property
    def sealed(self) -> bool:
        """Encrypted or signed: only its own provider may ever see it again."""
        return bool(self.seals)


UNREADABLE_THOUGHT = Thought(carrier=Carrier.REASONING_CONTENT, raw="")
"""Stands for a thought of the log that is damaged, or of a newer version: it is never sent."""


class ToolKind(StrEnum):
    """What a tool takes."""

    FUNCTION = "function"  # a JSON object
    CUSTOM = "custom"  # free text, maybe by a grammar
    SEARCH = "search"  # a search for more tools, which the client runs


class Call(Struct, frozen=True, gc=False, kw_only=True, tag="call", omit_defaults=True):
    """A tool call the model asked for."""

    name: str
    arguments: str  # JSON text as emitted
    id: str = ""  # what the result refers to
    item: str = ""  # the provider's item id, where that is something else (fc_…)
    raw: str = ""
    kind: ToolKind = ToolKind.FUNCTION
    namespace: str = ""  # the server or group that the tool belongs to, where a dialect has those


class Result(Struct, frozen=True, gc=False, kw_only=True, tag="result", omit_defaults=True):
    """What a tool answered."""

    content: str
    call: str = ""  # the call's id
    name: str = ""  # the tool, where the dialect names it
    error: bool = False
    raw: str = ""
    media: tuple["Blob", ...] = ()  # images and files beside the text


class Decision(Struct, frozen=True, gc=False, kw_only=True, tag="decision", omit_defaults=True):
    """Whether a tool call was allowed, and by whom."""

    call: str
    verdict: str  # allow, deny or always
    reason: str = ""


class Blob(Struct, frozen=True, gc=False, kw_only=True, tag="blob", omit_defaults=True):
    """Any other content: images, files, parts of unknown kinds."""

    kind: str
    digest: str  # of the data, so that equal blobs are equal in every dialect
    raw: str = ""
    sealed: bool = False  # only its provider can read it: a summary that replaces a history
    # where it is an image or a file that another dialect can say, too
    mime: str = ""
    data: str = ""  # base64
    url: str = ""
    name: str = ""  # of the file
    detail: str = ""  # how closely an image is to be looked at


class Note(Struct, frozen=True, gc=False, kw_only=True, tag="note", omit_defaults=True):
    """An instruction of the program in the middle of a history; the log holds none."""

    text: str


Part = Text | Thought | Call | Result | Decision | Blob | Note
