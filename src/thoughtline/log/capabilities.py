"""What an endpoint takes in a request, beside its history: facts of a provider's row."""

from enum import StrEnum

from msgspec import Struct


class EffortStyle(StrEnum):
    """The members by which an endpoint is told how hard to think."""

    DIALECT = "dialect"  # the dialect's own way
    SWITCH = "switch"  # `thinking: {type}` beside `reasoning_effort`
    ENABLE = "enable"  # `enable_thinking`
    ROUTER = "router"  # `reasoning: {effort}`
    BUDGET = "budget"  # a number of tokens
    ADAPTIVE = "adaptive"  # the model decides within an effort


class Capabilities(Struct, frozen=True, kw_only=True):
    """One endpoint's; the defaults are what most take."""

    late_system: bool = True  # instructions in the middle of a history
    developer_role: bool = False  # instructions as a developer, not as the system
    efforts: tuple[str, ...] = ()  # the steps it knows; empty: all
    effort_style: EffortStyle = EffortStyle.DIALECT
    thinking_off: bool = True  # thinking can be switched off
    thinks_at: str = ""  # the effort to name where a client names none; empty: no need for one
    max_output: int = 0  # tokens of an answer at most; 0: not known
    media_in_results: bool = True  # images in a tool's result; else a user shows them
    seed: bool = True
    top_k: bool = False
