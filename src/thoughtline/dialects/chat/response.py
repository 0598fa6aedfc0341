"""Chat Completions responses: the reader of a body that is not streamed, and the shared base.

A body is decoded as the chunks of a stream are. What that refuses may be read all the same: lone
surrogates, and other types than expected.
"""

from typing import Any

import msgspec

from thoughtline.clock import Clock
from thoughtline.dialects import splice
from thoughtline.dialects.chat.chunks import REFUSED, ChatChoice, ChatChunk, chunk_of, decode
from thoughtline.dialects.chat.citations import annotated, listed
from thoughtline.dialects.chat.message import (
    NAMES,
    OutputPart,
    Provenance,
    RawThoughts,
    output_parts,
    raw_thoughts,
)
from thoughtline.dialects.limits import (
    MAX_ANSWER_PARTS,
    TooComplex,
    check_answer,
    check_answer_parts,
)
from thoughtline.dialects.reader import BaseReader, token_count
from thoughtline.dialects.surrogates import replace_surrogates
from thoughtline.dialects.values import mapping, says_anything, sequence, string
from thoughtline.errors import Unreadable
from thoughtline.log.events import (
    AssistantMessage,
    Citation,
    Outcome,
    Reasoning,
    StopReason,
    StreamEvent,
    ToolCall,
)
from thoughtline.log.parts import Call, Origin, Thought, Timing
from thoughtline.log.usage import Usage, add_counts

_FAILURES = frozenset({"error", "insufficient_system_resource"})
"""Finish reasons of a turn that failed."""


_FILTERS = frozenset(
    {"content_filter", "data_inspection_failed", "DataInspectionFailed", 1026, 1027}
)
"""Codes of errors that say a filter in the middle of an answer: Azure's, Qwen's and MiniMax's."""
_STOPS = {
    "stop": StopReason.END,
    "tool_calls": StopReason.CALLS,
    "function_call": StopReason.CALLS,
    "length": StopReason.LENGTH,
    "content_filter": StopReason.FILTER,
    "sensitive": StopReason.FILTER,
}


_value = msgspec.json.Decoder().decode


class ChatBaseReader(BaseReader):
    """Keeps the model, the response's id, the usage, and how the turn ended."""

    def about(self, said: ChatChunk) -> None:
        """Take in members of the body or of a chunk; each may be missing or of any type."""
        if not self.model and isinstance(model := said.model, str):
            self.model = model if model.isascii() else replace_surrogates(model)
        if not self.response and isinstance(id := said.id, str):
            self.response = id if id.isascii() else replace_surrogates(id)
        self.count(said.usage)
        if says_anything(said.error):
            self.fail(said.error)

    def count(self, usage: Any) -> None:
        """Take in a usage object; one of nothing but zeros says nothing."""
        if isinstance(usage, dict) and says_anything(usage):
            self.usage = read_usage(usage)

    def about_groq(self, said: Any) -> None:
        """Take in Groq's member of a chunk: its usage, and why the stream broke off."""
        self.count(mapping(said).get("usage"))
        if says_anything(error := mapping(said).get("error")):
            self.fail(error)

    def fail_if_refused(self, base: Any) -> None:
        """Take in MiniMax's `base_resp`: an error where its code is not 0."""
        if isinstance(base, dict) and (code := base.get("status_code")):
            self.fail(base.get("status_msg"))
            self.stop = StopReason.FILTER if code in _FILTERS else self.stop

    def finish(self, reason: Any) -> None:
        """Take in the finish reason, where there is one."""
        self.done = True
        if not isinstance(reason, str):
            return
        self.stop = _STOPS.get(reason, self.stop)
        if reason in _FAILURES:
            self.fail(reason)
        elif reason == "length" and self.outcome is None:
            self.outcome, self.reason = Outcome.CAPPED, "length"

    def fail(self, error: Any) -> None:
        """Take in an error of the provider; the reason of the first one stays."""
        if self.outcome is not Outcome.FAILED:
            super().fail(error)
            if string(mapping(error).get("code")) in _FILTERS:
                self.stop = StopReason.FILTER


_MORE_COUNTS = frozenset(
    {
        "reasoning_tokens",
        "prompt_cache_hit_tokens",
        "cached_tokens",
        "cache_creation_input_tokens",
        "completion_tokens_details",
        "prompt_tokens_details",
    }
)
"""Members of a usage object that say more than what was asked and answered."""


def read_usage(counts: dict[str, Any]) -> Usage:
    """Return the tokens of a usage object, under the keys of several providers."""
    prompt = token_count(counts.get("prompt_tokens"))
    written = token_count(counts.get("completion_tokens"))
    if _MORE_COUNTS.isdisjoint(counts):
        return Usage(input=prompt, output=written)
    spent = mapping(counts.get("completion_tokens_details"))
    asked = mapping(counts.get("prompt_tokens_details"))
    reasoning = _count(spent.get("reasoning_tokens"), counts.get("reasoning_tokens"))
    if reasoning:
        with_thoughts = add_counts(written, reasoning)
        if counts.get("total_tokens") == add_counts(prompt, with_thoughts):
            written = with_thoughts  # counted apart: the total says so
    return Usage(
        input=prompt,
        output=written,
        reasoning=reasoning,
        cached=_count(
            asked.get("cached_tokens"),
            counts.get("prompt_cache_hit_tokens"),
            counts.get("cached_tokens"),
        ),
        cache_write=_count(
            asked.get("cache_write_tokens"),
            asked.get("cache_creation_input_tokens"),
            asked.get("cache_creation_tokens"),
            counts.get("cache_creation_input_tokens"),
        ),
    )


def _count(*values: Any) -> int | None:
    """Return the first of these values that is a number of tokens."""
    for value in values:
        if (count := token_count(value)) is not None:
            return count
    return None


def _deep(message: dict[str, Any]) -> bool:
    """Whether there are content lists or calls that may hold thoughts."""
    if isinstance(message.get("content"), list):
        return True
    calls = message.get("tool_calls")
    return isinstance(calls, list) and any("extra_content" in c for c in calls if type(c) is dict)


Message = tuple[dict[str, Any], RawThoughts]
"""A message, and the provider's own spelling of its thoughts."""


def _strictly(body: bytes) -> tuple[ChatChunk, Any, Message | None]:
    """Read a valid body in one pass: its thoughts are their values and their JSON texts at once.

    Returns why it ended and the message, beside what it says of itself. Raises `REFUSED`.
    """
    answer = decode(body)
    choice = answer.choices[0] if answer.choices else ChatChoice()
    if choice.message is None:  # what is filtered may have none
        return answer, choice.finish_reason, None
    message = {name: _value(raw) for name, raw in choice.message.items()}
    if _deep(message):
        return answer, choice.finish_reason, (message, _raws(body))
    own = [name for name in choice.message if name in NAMES]
    raws = {(NAMES[name], 0): str(choice.message[name], "utf-8") for name in own}
    return answer, choice.finish_reason, (message, raws)


def _leniently(body: bytes) -> tuple[ChatChunk, Any, Message | None]:
    """Read any body that is JSON, with what is valid in it. Raises `Unreadable` for others."""
    document = mapping(splice.loads(body))
    choices = sequence(document.get("choices"))
    choice = mapping(choices[0]) if choices else {}
    message = choice.get("message")
    said = (message, _raws(body)) if isinstance(message, dict) else None
    return chunk_of(document), choice.get("finish_reason"), said


def _raws(body: bytes) -> RawThoughts:
    try:
        choice = splice.elements(body, splice.members(body)["choices"])[0]
        return raw_thoughts(body, splice.members(body, choice)["message"])
    except (Unreadable, LookupError):
        return {}


class ChatBodyReader(ChatBaseReader):
    """Reads one body that is not streamed: all events come at the end, and no deltas."""

    def __init__(self, *, clock: Clock, origin: Origin, sent: int) -> None:
        super().__init__(clock=clock, origin=origin, sent=sent)
        self._body: list[bytes] = []
        self._links: list[Citation] = []

    def feed(self, data: bytes) -> list[StreamEvent]:
        self._body.append(data)
        return []

    def close(self, *, reason: str = "") -> list[StreamEvent]:
        if self._ended:
            return []
        self.tick()
        # One provider sends error bodies with the prefix of a stream.
        body = b"".join(self._body).strip().removeprefix(b"data:").strip()
        self._body = []
        check_answer(body)
        try:
            parts = self._read(body)
        except TooComplex:
            raise
        except (Unreadable, RecursionError):
            parts = []
        complete = self.outcome is not Outcome.FAILED
        emitted: list[StreamEvent] = [*self._links]
        emitted += [_event(part) for part in parts if complete or type(part) is Thought]
        emitted += self.turn_end(reason)
        return emitted

    def _read(self, body: bytes) -> list[OutputPart]:
        try:
            answer, stopped, said = _strictly(body)
        except REFUSED:
            answer, stopped, said = _leniently(body)
        self.about(answer)
        if answer.base_resp is not None:
            self.fail_if_refused(answer.base_resp)
        if said is not None or stopped is not None:
            self.finish(stopped)
        if said is None:
            return []
        message, raws = said
        if len(body) > MAX_ANSWER_PARTS:  # a smaller one does not have so many
            for name in ("content", "tool_calls"):
                if isinstance(elements := message.get(name), list):
                    check_answer_parts(len(elements))
        if annotations := message.get("annotations"):
            self._links = annotated(annotations)
        if answer.citations:
            self._links += listed(answer.citations, answer.search_results)
        # When a thought began is unknown and stays so; when it was all there is known.
        timing = Timing(sent=self.sent, closed=self.now)
        return output_parts(message, Provenance(self.served_origin(), timing, raws))


def _event(part: OutputPart) -> StreamEvent:
    if isinstance(part, Thought):
        return Reasoning(thought=part)
    if isinstance(part, Call):
        return ToolCall(call=part)
    return AssistantMessage(parts=(part,))
