"""The JSON that the inspector's API answers with: answers and `/openapi.json` come from these.

Times are seconds since the epoch. The text of a thought is null unless it was asked for.
"""

from msgspec import Struct, field

from thoughtline.inspector.snippets import Snippet
from thoughtline.inspector.spending import Spending
from thoughtline.inspector.timeline import Segment

# -- parts ---------------------------------------------------------------------------------------


class TextPart(Struct, tag_field="type", tag="text", frozen=True, kw_only=True, rename="camel"):
    """Words that a person or a model said aloud."""

    text: str


class CallPart(Struct, tag_field="type", tag="call", frozen=True, kw_only=True, rename="camel"):
    """A tool call; its arguments are JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


class ResultPart(Struct, tag_field="type", tag="result", frozen=True, kw_only=True, rename="camel"):
    """What a tool answered."""

    call: str
    name: str
    content: str
    error: bool


class BlobPart(Struct, tag_field="type", tag="blob", frozen=True, kw_only=True, rename="camel"):
    """Any other part: an image, a file, or a kind that this version does not know."""

    kind: str


class DecisionPart(
    Struct, tag_field="type", tag="decision", frozen=True, kw_only=True, rename="camel"
):
    """Whether a call was allowed."""

    call: str
    verdict: str
    reason: str


class Duration(Struct, frozen=True, kw_only=True, rename="camel"):
    """How long a thought took."""

    state: str  # open, complete, aborted or unknown
    seconds: int | None  # whole, rounded up, at least 1; null: unknown, or still open
    label: str  # for people
    started_at: float | None  # the server's time of day when it opened, for a timer
    buffered: bool  # it came in one piece, so it is counted from the request


class ThoughtPart(
    Struct, tag_field="type", tag="thought", frozen=True, kw_only=True, rename="camel"
):
    """One thought; what one item or one message says of it in several parts is one."""

    key: str | None  # in its message: the item's id, else part-N; null: part of a call or text
    carrier: str
    sealed: bool  # encrypted or signed
    bytes: int
    text: str | None
    replayed: int  # how many later requests of this session carried it back
    quarantined: bool  # its provider refused it once: it is never sent again
    forgotten: bool  # deleted from the cache: nothing is left of it but its time
    damaged: bool  # what is stored of it cannot be read
    duration: Duration


PartShape = TextPart | CallPart | ResultPart | BlobPart | DecisionPart | ThoughtPart


# -- turns ---------------------------------------------------------------------------------------


class TargetShape(Struct, frozen=True, kw_only=True, rename="camel"):
    """Where a request went."""

    provider: str
    endpoint: str
    dialect: str
    model: str


class UsageShape(Struct, frozen=True, kw_only=True, rename="camel"):
    """Tokens as the provider counted them; `input` and `output` are the sums."""

    input: int | None
    output: int | None
    reasoning: int | None  # of the output
    cached: int | None  # of the input: read from the provider's cache
    cache_write: int | None  # of the input: written to it


class DecisionShape(Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of the thoughts of one earlier output."""

    turn: str | None  # the logged turn; null: none was found
    position: int  # of the output in the request
    action: str
    reason: str
    level: str = field(name="rung")  # how it was recognised
    thoughts: int  # how many went out
    left: int  # how many were left out
    unread: str = ""  # why the model did not get them, as the provider says; empty: it says nothing


class DecisionCounts(Struct, frozen=True, kw_only=True, rename="camel"):
    """How many earlier outputs of a request were decided in each way."""

    restored: int = 0
    replaced: int = 0
    exact: int = 0
    absent: int = 0
    placeholder: int = 0
    dropped: int = 0
    missed: int = 0  # those of absent, placeholder and dropped whose turn is not in the log
    tied: int = 0  # those for which several turns in the log fit equally well


class ReplayShape(DecisionCounts, frozen=True, kw_only=True, rename="camel"):
    """What a request put back and what it left out."""

    decisions: list[DecisionShape] = field(name="rulings")
    more: int  # earlier decisions that are not shown here
    unread: int  # thoughts that went out, and that the model did not get
    thinking_off: bool  # switched off for this exchange: a demanded thought was lost


class Thinking(Struct, frozen=True, kw_only=True, rename="camel"):
    """How long a message was thought about, all thoughts together."""

    seconds: int | None
    label: str


class TurnShape(Struct, frozen=True, kw_only=True, rename="camel"):
    """One exchange."""

    id: str
    parent: str | None
    started: float
    ended: float | None
    outcome: str | None  # null: it runs
    reason: str
    running: bool
    elsewhere: bool  # no end is written: it runs in another process, or that one died
    target: TargetShape | None
    usage: UsageShape | None
    input: list[PartShape]
    output: list[PartShape]
    reasoning_durations: dict[str, int]
    thinking: Thinking
    replay: ReplayShape
    cost: float | None = None  # US dollars; null: not known
    cost_approximate: bool = False  # by the price of the model's family
    timeline: list[Segment] = []  # where its time went; empty: not known
    first_token: float | None = None  # seconds until the first token, where that was observed
    client: str = ""  # the dialect of the client, where the upstream speaks another
    tools: bool = False  # a conversation begins with it, and the request declared tools


# -- answers -------------------------------------------------------------------------------------


class SessionShape(Struct, frozen=True, kw_only=True, rename="camel"):
    """One session in a listing.

    `restored` and the like count earlier outputs, each once, however many requests repeat it.
    """

    id: str
    tenant: str
    created: float
    touched: float
    turns: int
    events: int
    status: str | None  # running, completed, failed, capped or aborted; null: no turn yet
    title: str
    providers: list[str]
    models: list[str]
    restored: int
    replaced: int
    exact: int
    missed: int
    tied: int
    dropped: int
    placeholder: int
    thoughts: int
    thinking_off: int = 0  # turns that went out with thinking switched off
    failed: int = 0  # turns that failed
    damaged: bool = False  # some of what is stored of it cannot be read
    spending: Spending = Spending()
    snippet: Snippet | None = None  # where it has what was searched for


class Sessions(Struct, frozen=True, kw_only=True, rename="camel"):
    """A page of sessions, the most recently used first."""

    sessions: list[SessionShape]
    next_cursor: str | None
    now: float


class ForkShape(Struct, frozen=True, kw_only=True, rename="camel"):
    """The turn of another session that a fork goes on from."""

    session: str
    turn: str


class SessionPage(Struct, frozen=True, kw_only=True, rename="camel"):
    """One session: its tree, and a page of its turns in the order they started."""

    session: SessionShape
    turns: list[TurnShape]
    heads: list[str]
    branches: dict[str, list[str]]
    replayed: dict[str, int]
    """With `after`: earlier turns whose thoughts the last of these sent back, and how often."""
    forked_from: ForkShape | None
    next_after: str | None
    now: float


class ThoughtChange(Struct, frozen=True, kw_only=True, rename="camel"):
    """A thought that was put in or left out."""

    carrier: str
    bytes: int | None  # null: it is not in this session's log
    text: str | None


class MessageShape(Struct, frozen=True, kw_only=True, rename="camel"):
    """One message of a request, and what the gateway did to it."""

    position: int
    role: str
    turn: str | None
    preview: str
    changed: bool
    added: list[ThoughtChange]
    removed: list[ThoughtChange]
    decision: DecisionShape | None = field(name="ruling")


class RequestShape(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the client sent, and what went upstream in its place."""

    messages: list[MessageShape]


class TurnPage(Struct, frozen=True, kw_only=True, rename="camel"):
    """One turn with its request."""

    turn: TurnShape
    request: RequestShape
    now: float


class Deleted(Struct, frozen=True, kw_only=True, rename="camel"):
    """How many sessions were deleted."""

    deleted: int


class Bucket(DecisionCounts, frozen=True, kw_only=True, rename="camel"):
    """Counts of one interval."""

    at: float  # when the interval began
    turns: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None  # US dollars, of the turns whose price is known
    new: DecisionCounts = DecisionCounts()  # as above, but each output counts once


class Continuity(Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of thoughts, over time and by provider and model."""

    buckets: list[Bucket]
    seconds: float  # length of a bucket
    total: Bucket
    hit_rate: float | None  # of the outputs that needed a thought: how many got it back
    cached_share: float | None  # of the input tokens
    by_provider: dict[str, Bucket]
    by_model: dict[str, Bucket]
    now: float
