"""One row of the policy table: what one endpoint demands of one dialect and model family."""

from collections.abc import Mapping

from msgspec import Struct

from thoughtline.log.capabilities import Capabilities
from thoughtline.log.parts import Carrier
from thoughtline.log.quirks import Need, Scope

Ask = tuple[str, str]
"""A path in a request's body, and the JSON value to stand there: see `engine.switches`."""
Legal = tuple[str, tuple[str, ...]]
"""A path in a request's body, and the values that may stand there: see `engine.legal_values`."""
Move = tuple[str, str]
"""A path in a request's body, and the one where an endpoint wants its value."""
STRICT = frozenset({"provider", "endpoint", "account", "model"})
"""The default guard for anything sealed."""
COMPANY = frozenset({"provider", "company"})
"""The default guard for a plain thought: its endpoint, or another known host of one company."""


class Policy(Struct, frozen=True, kw_only=True):
    """One row: what one endpoint demands of one dialect and model family."""

    name: str
    dialect: str
    models: tuple[str, ...] = ("*",)  # patterns, matched against the lower-cased model name
    need: Need = Need.RECOMMENDED
    scope: Scope = Scope.ALL
    beyond: Need = Need.RECOMMENDED  # what holds for outputs outside the scope
    demands_all: bool = False  # required also of outputs that were made without a thought
    with_tools: bool = False  # the need holds only while the request declares tools
    reads: tuple[Carrier, ...] = ()  # what the target understands, the preferred one first
    copies: bool = False  # send a plain thought under every key it reads, all equal
    every_call: bool = False  # a thought before each of parallel calls, not only the first
    binds: frozenset[str] = STRICT  # which fields of Origin a sealed thought is valid for
    plain: frozenset[str] = COMPANY  # the same for a plain one
    signed: bool = False  # it refuses a thought without a signature
    prefix: bool = False  # a sealed thought is also bound to everything before it
    lost: str = ""  # JSON text accepted in place of a lost thought; empty: nothing is
    off: tuple[str, str] | None = None  # member and JSON value that switch thinking off
    thinks: bool = True  # thinking is on unless the request says otherwise
    stateless: bool = False  # set `store: false` and ask for encrypted content
    phases: bool = False  # wants each message with what it was for: `phase`
    remembers: bool = False  # keeps responses for clients who ask for that (`store: true`)
    takes: Capabilities = Capabilities()  # beside thoughts, for requests that are translated
    legal: tuple[Legal, ...] = ()  # what it takes at a path of a request, as was learned
    moves: tuple[Move, ...] = ()  # members that it takes at another path
    asks: tuple[Ask, ...] = ()  # what a request has to say, or its thoughts are not read
    source: str = ""  # where this is documented or was seen


THINKING_OFF: Mapping[str, tuple[str, str]] = {
    "chat": ("thinking", '{"type":"disabled"}'),
    "messages": ("thinking", '{"type":"disabled"}'),
    "responses": ("reasoning", '{"effort":"none"}'),
}
"""By dialect: the member and the JSON value that most providers switch thinking off by."""
BYPASS = '"skip_thought_signature_validator"'
