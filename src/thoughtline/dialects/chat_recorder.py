"""What a streamed and a whole Chat Completions response have in common: facts about the turn."""

from typing import Any

from thoughtline.dialects.halves import mend
from thoughtline.dialects.recorder import Recorder
from thoughtline.events import Outcome, Usage

_FAILURES = frozenset({"error", "insufficient_system_resource"})
"""Reasons to finish that mean that the provider gave up."""


class ChatRecorder(Recorder):
    """Notes the model, the response's id, the tokens, and how the turn ended."""

    def about(self, *, id: Any, model: Any, usage: Any, error: Any) -> None:
        """Members of the body or of a chunk; each may be missing or of any type."""
        if not self.model and isinstance(model, str):
            self.model = mend(model)
        if not self.response and isinstance(id, str):
            self.response = mend(id)
        if isinstance(usage, dict):
            self.usage = tokens(usage)
        if error is not None:
            self.fail(error)

    def finish(self, reason: Any) -> None:
        """The provider said that it is finished, and why."""
        self.done = True
        if isinstance(reason, str) and reason in _FAILURES:
            self.fail(reason)
        elif reason == "length" and self.outcome is None:
            self.outcome, self.reason = Outcome.CAPPED, "length"

    def fail(self, error: Any) -> None:
        """The provider reported an error; the first one that says something is kept."""
        message = error.get("message") if isinstance(error, dict) else error
        if self.outcome is not Outcome.FAILED:
            said = isinstance(message, str) and message
            self.reason = mend(message) if said else "the provider reported an error"
        self.outcome = Outcome.FAILED


def tokens(counts: dict[str, Any]) -> Usage:
    """Tokens from a usage object, in the spellings of several providers."""
    spent, asked = counts.get("completion_tokens_details"), counts.get("prompt_tokens_details")
    return Usage(
        input=_count(counts.get("prompt_tokens")),
        output=_count(counts.get("completion_tokens")),
        reasoning=_count(
            spent.get("reasoning_tokens") if isinstance(spent, dict) else None,
            counts.get("reasoning_tokens"),
        ),
        cached=_count(
            asked.get("cached_tokens") if isinstance(asked, dict) else None,
            counts.get("prompt_cache_hit_tokens"),
            counts.get("cached_tokens"),
        ),
    )


def _count(*values: Any) -> int | None:
    """The first of these that is a number of tokens."""
    for value in values:
        if type(value) is int and 0 <= value < 2**63:
            return value
    return None
