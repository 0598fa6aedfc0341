"""The reader of Gemini responses: server-sent events, a streamed JSON array, or one body.

All three are GenerateContentResponses, one or many, and are told apart by their first byte. Most
of them hold nothing but a piece of plain text or of a thought's summary: those fit the strict
structs below, everything else is read with `json`. Parts that continue one another are one text
or one thought (see `parts`); the canonical events come at the end, in order of arrival.
"""

from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct, field

from thoughtline.clock import Clock
from thoughtline.dialects import splice
from thoughtline.dialects.gemini.citations import Passage, located, passages
from thoughtline.dialects.gemini.json_objects import JsonObjects
from thoughtline.dialects.gemini.parts import (
    SEPARATE,
    PendingRun,
    continues,
    member,
    part_kind,
    raw_parts,
    signature,
    text,
)
from thoughtline.dialects.limits import check_answer, check_answer_parts
from thoughtline.dialects.reader import BaseReader, load_leniently, token_count
from thoughtline.dialects.sse import SseParser
from thoughtline.dialects.surrogates import replace_surrogates
from thoughtline.dialects.values import mapping, says_anything
from thoughtline.errors import Unreadable
from thoughtline.log.events import (
    Citation,
    Delta,
    Outcome,
    ReasoningDelta,
    ReasoningStart,
    StopReason,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
)
from thoughtline.log.parts import Call, Carrier, Origin, Part, Text
from thoughtline.log.usage import Usage, add_counts

_STOPS = {
    "STOP": StopReason.END,
    "MAX_TOKENS": StopReason.LENGTH,
    "SAFETY": StopReason.FILTER,
    "RECITATION": StopReason.FILTER,
    "BLOCKLIST": StopReason.FILTER,
    "PROHIBITED_CONTENT": StopReason.FILTER,
    "SPII": StopReason.FILTER,
    "MODEL_ARMOR": StopReason.FILTER,
    "IMAGE_SAFETY": StopReason.FILTER,
    "IMAGE_PROHIBITED_CONTENT": StopReason.FILTER,
    "IMAGE_RECITATION": StopReason.FILTER,
}
_UNEXPECTED = "UNEXPECTED_TOOL_CALL"
"""Why an answer ends that calls a tool which was not declared."""
_FINISHES = {1: "STOP", 2: "MAX_TOKENS", 3: "SAFETY", 4: "RECITATION", 5: "OTHER"}
_BLOCKS = {1: "SAFETY", 2: "OTHER", 3: "BLOCKLIST", 4: "PROHIBITED_CONTENT"}
"""Numbers of reasons that clients may ask for; later ones differ from endpoint to endpoint."""
_NONE = Raw()


class _Part(Struct, gc=False):
    text: str
    thought: bool = False
    signed: None = field(default=None, name="thoughtSignature")
    thought_signature: None = None


class _Content(Struct, gc=False):
    parts: tuple[_Part]


class _Candidate(Struct, gc=False):
    content: _Content
    finish: None = field(default=None, name="finishReason")
    finish_reason: None = None
    grounding: None = field(default=None, name="groundingMetadata")
    grounding_metadata: None = None
    copied: None = field(default=None, name="citationMetadata")
    citation_metadata: None = None
    index: Literal[0] | None = None


class _Plain(Struct, gc=False):
    """A response that holds one piece of text and nothing else; the decoder refuses all others."""

    candidates: tuple[_Candidate]
    counts: Raw = field(default=_NONE, name="usageMetadata")  # only the last one is looked at
    usage_metadata: None = None
    error: None = None


_decode = msgspec.json.Decoder(_Plain).decode


class GeminiReader(BaseReader):
    """Reads one `generateContent` or `streamGenerateContent` response."""

    def __init__(self, *, stream: bool, clock: Clock, origin: Origin, sent: int) -> None:
        super().__init__(clock=clock, origin=origin, sent=sent)
        self._stream = stream
        self._sse: SseParser | None = None
        self._objects: JsonObjects | None = None
        self._body: list[bytes] | None = None  # of a response that is not streamed
        self._runs: list[PendingRun] = []  # in order of arrival
        self._calls = 0
        self._counts = _NONE
        self._broken = False  # the provider reported an error
        self._passages: list[Passage] = []

    def feed(self, data: bytes) -> list[StreamEvent]:
        self.tick()
        emitted: list[Delta] = []
        if self._sse is not None:
            for event in self._sse.feed_data(data):
                self._event(event, emitted)
        elif self._objects is not None:
            for document in self._objects.feed(data):
                self._event(document, emitted)
        elif self._body is not None:
            self._body.append(data)
        elif data := data.lstrip(b"\xef\xbb\xbf \t\r\n"):
            if data[:1] in (b"[", b"{") and not self._stream:
                self._body = []
            elif data[:1] in (b"[", b"{"):
                self._objects = JsonObjects()
            else:
                self._sse = SseParser()
            return self.feed(data)
        return list[StreamEvent](emitted)

    def close(self, *, reason: str = "") -> list[StreamEvent]:
        self.tick()
        emitted: list[Delta] = []
        for event in self._sse.finish() if self._sse is not None else ():
            self._event(event.data, emitted)
        if self._body is not None:
            body, self._body = b"".join(self._body), None
            check_answer(body)
            said: list[Delta] = []
            for document in JsonObjects(max_size=len(body)).feed(body):
                self._event(document, said)
            if self.stop is StopReason.FILTER:  # nothing of it is canonical
                emitted += said
        if self._ended:
            return [*emitted]
        self._count()
        return [*emitted, *self._citations(), *self._canonical(), *self.turn_end(reason)]

    # -- one response of many --------------------------------------------------------------------

    def _event(self, data: bytes, emitted: list[Delta]) -> None:
        try:
            if self._grow(_decode(data), emitted):
                return
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass  # anything but a piece of text
        deltas: list[Delta] = []
        self._read_any(data, deltas)
        emitted += map(self.joined_surrogates, deltas)

    def _grow(self, plain: _Plain, emitted: list[Delta]) -> bool:
        """Take in one more piece of the run that is growing; False where something new begins."""
        part = plain.candidates[0].content.parts[0]
        run = self._runs[-1] if self._runs else None
        more = part.text
        if run is None or run.signature_value or not more:
            return False
        if part.thought:
            if run.kind != "thought":
                return False
            if run.watch is not None:
                run.watch.touch(self.now)
            emitted.append(ReasoningDelta(more))
        elif run.kind == "text":
            emitted.append(TextDelta(more))
        else:
            return False
        run.texts.append(more)
        if plain.counts is not _NONE:
            self._counts = plain.counts
        return True

    def _read_any(self, data: bytes, emitted: list[Delta]) -> None:
        document = load_leniently(data)
        if document is None:
            return
        self.note_damage(data)
        self._about(document)
        candidates = document.get("candidates")
        for place, candidate in enumerate(candidates if isinstance(candidates, list) else ()):
            if isinstance(candidate, dict) and candidate.get("index") in (0, None):
                content = candidate.get("content")
                parts = content.get("parts") if isinstance(content, dict) else None
                if isinstance(parts, list):
                    self.count_elements(parts)
                    self._parts(parts, raw_parts(data, place, parts), emitted)
                self._passages += passages(candidate)
                check_answer_parts(len(self._passages))
                self._finish(_reason(member(candidate, "finishReason"), _FINISHES), emitted)
                break

    def _about(self, document: dict[str, Any]) -> None:
        model, id = member(document, "modelVersion"), member(document, "responseId")
        if isinstance(model, str) and model:
            self.model = replace_surrogates(model)
        if isinstance(id, str) and id:
            self.response = replace_surrogates(id)
        if says_anything(counts := mapping(member(document, "usageMetadata"))):
            self.usage, self._counts = _usage(counts), _NONE
        blocked = _reason(member(member(document, "promptFeedback"), "blockReason"), _BLOCKS)
        if blocked:
            self.fail(blocked)
            self.stop = StopReason.FILTER
        if says_anything(error := document.get("error")):
            self.fail(error)

    def fail(self, error: Any) -> None:
        self._broken = True
        super().fail(error)

    def _finish(self, reason: str, emitted: list[Delta]) -> None:
        """Take in why the model stopped: the last word counts, it may go on after running code."""
        if not reason:
            return
        self.done = True
        self.stop = _STOPS.get(reason, StopReason.OTHER)
        self._close_thought(emitted)
        if self._broken:
            return
        self.outcome, self.reason = None, ""
        if reason == _UNEXPECTED and any(run.kind == "call" for run in self._runs):
            self.stop = StopReason.CALLS  # whole and signed: the client says what becomes of it
        elif reason != "STOP":
            self.outcome = Outcome.CAPPED if reason == "MAX_TOKENS" else Outcome.FAILED
            self.reason = reason

    # -- parts -----------------------------------------------------------------------------------

    def _parts(self, parts: list[Any], raws: list[bytes], emitted: list[Delta]) -> None:
        border = True
        for part, raw in zip(parts, raws, strict=True):
            if raw and isinstance(part, dict) and part_kind(part):
                self._part(part, raw, emitted, border=border)
                border = False

    def _part(
        self, part: dict[str, Any], raw: bytes, emitted: list[Delta], *, border: bool
    ) -> None:
        what, signed = part_kind(part), bool(signature(part))
        run = self._runs[-1] if self._runs and border else None
        if run is not None and continues(run.kind, bool(run.signature_value), what, signed):
            run.grow(part)
        else:
            self._close_thought(emitted)
            run = PendingRun(part, raw)
            if self._stream and (signed or what == "thought"):
                run.watch = self.open_watch()
            if run.watch is not None and what == "thought":
                emitted.append(ReasoningStart("", run.watch.at))
            self._runs.append(run)
            check_answer_parts(len(self._runs))
        if what == "thought" and (more := text(part)):
            if run.watch is not None:
                run.watch.touch(self.now)
            emitted.append(ReasoningDelta(more))
        elif what == "text":
            emitted.append(TextDelta(part["text"]))
        elif what == "call":
            call = run.call()
            emitted.append(ToolCallDelta(self._calls, call.arguments, call.name, call.id))
            self._calls += 1
        if signed:
            self._close_thought(emitted)

    def _close_thought(self, emitted: list[Delta]) -> None:
        """Close the thought that was growing: nothing more can come."""
        run = self._runs[-1] if self._runs else None
        if run is not None and run.watch is not None and run.watch.closed is None:
            ended = self.reasoning_end(run.watch)
            if run.kind == "thought":  # a signature on another part is not shown
                emitted.append(ended)

    # -- in between ------------------------------------------------------------------------------

    @property
    def has_output(self) -> bool:
        return any(run.kind not in SEPARATE for run in self._runs)

    def snapshot(self) -> list[Part]:
        parts: list[Part] = []
        for run in self._runs:
            thinks = run.kind in SEPARATE
            if run.watch is not None and (thinks or run.signature_value):
                carrier = Carrier.PART if thinks else Carrier.SIGNATURE
                text = "".join(run.texts) if thinks else ""
                parts.append(self.partial_thought(carrier, run.watch, text))
            if run.kind == "call":
                parts.append(Call(name=run.call().name, arguments=""))
            elif not thinks:
                parts.append(Text(text=""))
        return parts

    # -- the end ---------------------------------------------------------------------------------

    def _count(self) -> None:
        """Read the usage of the last chunk: every chunk repeats it, and most are not decoded."""
        try:
            counts = splice.loads(bytes(self._counts))
        except Unreadable:
            return
        if isinstance(counts, dict):
            self.usage = _usage(counts)

    def _citations(self) -> list[Citation]:
        """Return the links, which are counted from the beginning of all that is said."""
        if not self._passages:
            return []
        said = "".join(more for run in self._runs if run.kind == "text" for more in run.texts)
        return located(self._passages, replace_surrogates(said))

    def _canonical(self) -> list[StreamEvent]:
        """Return the canonical events of everything that is complete, in order of arrival.

        A call comes in one piece, however the answer ends, and with it all that is before it.
        """
        finished = self.done and self.outcome is not Outcome.FAILED
        calls = [at for at, run in enumerate(self._runs, 1) if run.kind == "call"]
        whole = len(self._runs) if finished else max(calls, default=0)
        emitted: list[StreamEvent] = []
        for at, run in enumerate(self._runs):
            if (found := run.thought()) is not None:
                aborted = not finished and run.watch is not None and run.watch.closed is None
                carrier, raw = found
                emitted.append(self.reasoning(carrier, raw, run.watch, aborted=aborted))
            if at < whole and run.kind not in SEPARATE:
                emitted.append(run.event())
        return emitted


def _reason(value: Any, names: dict[int, str]) -> str:
    """Return a reason by its name, or by its number where that has none; empty: none is given."""
    if type(value) is int and value:
        return names.get(value, str(value))
    given = isinstance(value, str) and not value.endswith("_UNSPECIFIED")
    return replace_surrogates(value) if given else ""


def _usage(counts: dict[str, Any]) -> Usage:
    """Return the tokens of a usage object, which lacks what is zero."""

    def count(name: str) -> int | None:
        return token_count(member(counts, name))

    reasoning, written = count("thoughtsTokenCount"), count("candidatesTokenCount")
    if written is None and reasoning is not None:
        written = 0  # it only thought
    return Usage(
        input=add_counts(count("promptTokenCount"), count("toolUsePromptTokenCount")),
        output=add_counts(written, reasoning),
        reasoning=reasoning,
        cached=count("cachedContentTokenCount"),
    )
