"""What an endpoint wants of thoughts, and in which ways it differs from its policy row.

A `Quirk` is learned from a refusal and the answer that proved the correction right. It is a value
of the log (`EndpointLearned`), so that the next request is right at once: after a restart, and in
other processes.
"""

from enum import StrEnum

from msgspec import Struct, field

from thoughtline.log.parts import Carrier


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


class Quirk(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """In which ways an endpoint differs from its policy row; None: it does not."""

    # columns of the row
    need: Need | None = None
    scope: Scope | None = None
    demands_all: bool | None = None
    with_tools: bool | None = None
    reads: tuple[Carrier, ...] | None = None
    copies: bool | None = None
    every_call: bool | None = None
    lost: str | None = None
    off: tuple[str, str] | None = None
    thinks: bool | None = None
    # beyond the row; the names in the log are older
    strip_item_ids: bool | None = field(default=None, name="nameless")  # of sealed items
    add_summaries: bool | None = field(default=None, name="summaries")  # to reasoning items
    short_call_ids: bool | None = field(default=None, name="nine")  # of nine characters
    strip_null_reasoning: bool | None = field(default=None, name="bare")  # keys that hold null
    all_turns: bool | None = None  # `reasoning.context` must be said
    no_store: bool | None = field(default=None, name="unstored")  # `store` must be false
    no_encrypted_reasoning: bool | None = field(default=None, name="unsealed")  # nor asked for
    drops: tuple[str, ...] = ()  # parameters that it does not take
    legal: tuple[tuple[str, tuple[str, ...]], ...] = ()  # paths, and what may stand there
    moves: tuple[tuple[str, str], ...] = ()  # from path to path
    refused_asks: tuple[str, ...] = ()  # switches of its row that it does not take
    anywhere: bool | None = None  # whatever the model
