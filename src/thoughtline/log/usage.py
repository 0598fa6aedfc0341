"""Token counts of a turn, with one meaning for all providers.

APIs count differently: Anthropic's `input_tokens` leave out what was read from the prompt cache and
written to it, Google's `candidatesTokenCount` leaves out the thoughts. The dialects add up, so that
`input` is always the whole prompt and `output` everything that the model wrote. Logs of before hold
the providers' own numbers: `usage_of` adds those up when they are read.
"""

from msgspec import Struct
from msgspec.structs import replace


class Usage(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Token counts; None where the provider gave none."""

    input: int | None = None  # the whole prompt, cached or not
    output: int | None = None  # everything written, thoughts included
    reasoning: int | None = None  # of `output`: thoughts
    cached: int | None = None  # of `input`: read from the provider's cache
    cache_write: int | None = None  # of `input`: written to the provider's cache


_EXCLUSIVE = {"messages": ("input", "cached"), "gemini": ("output", "reasoning")}
"""Before version 2 of a turn_ended: the dialects that left a count out of another one."""


def usage_of(usage: Usage | None, *, version: int, dialect: str) -> Usage | None:
    """Return the counts of a turn_ended of this version and dialect, in the meaning of today."""
    if usage is None or version > 1 or dialect not in _EXCLUSIVE:
        return usage
    total, part = _EXCLUSIVE[dialect]
    return replace(usage, **{total: add_counts(getattr(usage, total), getattr(usage, part))})


def add_counts(first: int | None, *more: int | None) -> int | None:
    """Return the sum of a count and its parts; None where the count itself is missing."""
    return None if first is None else first + sum(n for n in more if n)
