"""The columns of the policy table."""

from enum import StrEnum

from msgspec import Struct

from thoughtline.parts import Carrier


class Need(StrEnum):
    """What happens to a request that lacks a thought, or brings one."""

    REQUIRED = "required"  # lacking: rejected
    SOFT = "soft"  # lacking: accepted, the model gets worse
    RECOMMENDED = "recommended"  # lacking: accepted, sending helps
    IGNORED = "ignored"  # brought: accepted and not read
    FORBIDDEN = "forbidden"  # brought: rejected
    NONE = "none"  # the dialect has no place for it here


class Scope(StrEnum):
    """Which outputs of a history a need speaks of."""

    ALL = "all"
    LOOP = "loop"  # since the last message of a person: the tool loop that is running
    CALLS = "calls"  # outputs with tool calls, anywhere in the history
    FIRST_CALL = "first_call"  # the first call of each output of the running loop


STRICT = frozenset({"provider", "endpoint", "account", "model"})
"""The default guard for anything sealed."""


class Policy(Struct, frozen=True, kw_only=True):
    """One row: what one endpoint demands of one dialect and model family."""

    name: str
    dialect: str
    models: tuple[str, ...] = ("*",)  # patterns, matched against the lower-cased model name
    need: Need
    scope: Scope = Scope.ALL
    beyond: Need = Need.RECOMMENDED  # what holds for outputs outside the scope
    with_tools: bool = False  # the need holds only while the request declares tools
    reads: tuple[Carrier, ...] = ()  # what the target understands, the preferred one first
    copies: bool = False  # send a plain thought under every key it reads, all equal
    every_call: bool = False  # a thought before each of parallel calls, not only the first
    binds: frozenset[str] = STRICT  # which fields of Origin a sealed thought is valid for
    plain: frozenset[str] = frozenset({"provider"})  # the same for a plain one
    prefix: bool = False  # a sealed thought is also bound to everything before it
    lost: str = ""  # JSON text accepted in place of a lost thought; empty: nothing is
    off: tuple[str, str] | None = None  # member and JSON value that switch thinking off
    thinks: bool = True  # thinking is on unless the request says otherwise
    stateless: bool = False  # set `store: false` and ask for encrypted content
    remembers: bool = False  # keeps responses for clients who ask for that (`store: true`)
    source: str = ""  # where this is documented or was seen
