"""The base class of response readers: it times thoughts and emits the end of the turn, once.

A dialect's reader derives from `BaseReader`: a `Stopwatch` per thought, one time per feed for all
events in it (when the bytes arrived, which may be before they are read), and a `TurnEnded` that is
emitted exactly once.
"""

import json
from typing import Any

from msgspec.structs import replace

from thoughtline.clock import Clock
from thoughtline.dialects import splice
from thoughtline.dialects.limits import check_answer, check_answer_parts
from thoughtline.dialects.surrogates import SurrogateJoiner, replace_surrogates
from thoughtline.dialects.thoughts import make_thought
from thoughtline.dialects.upstream_errors import error_words
from thoughtline.errors import Unreadable
from thoughtline.log.events import (
    Outcome,
    Reasoning,
    ReasoningEnd,
    StopReason,
    StreamEvent,
    TurnEnded,
    Unread,
)
from thoughtline.log.parts import Carrier, Origin, Part, Thought, Timing
from thoughtline.log.usage import Usage

NO_WORDS = "the provider reported an error"
"""Why a turn failed whose provider does not say it."""


def load_leniently(data: bytes) -> dict[str, Any] | None:
    """Read an object that a strict decoder refuses (it has lone surrogates, or control characters).

    None for anything else: bad output of a provider must not break a stream that passes through.
    Raises `TooComplex`.
    """
    check_answer(data)
    try:
        document = json.loads(data.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


MAX_TOLD = 4096
"""So many thoughts that were kept from the model are noted of one answer."""
MAX_WORD = 200
MAX_COUNT = 2**63
"""Numbers of tokens are below this."""


def token_count(value: Any) -> int | None:
    """Return a number of tokens; None for anything else."""
    return value if type(value) is int and 0 <= value < MAX_COUNT else None


_SHOWN = "thinking_mismatch_allowed"  # it does not fit, and the model gets it all the same


def unread_thoughts(transformations: Any) -> tuple[Unread, ...]:
    """What a provider kept from the model, by its `input_transformations`; none without them."""
    told = transformations if isinstance(transformations, list) else []
    return tuple(
        Unread(at=_word(one.get("id") or one.get("path")), reason=_word(one.get("reason")))
        for one in told[:MAX_TOLD]
        if isinstance(one, dict) and one.get("type") != _SHOWN
    )


def _word(value: Any) -> str:
    return replace_surrogates(value[:MAX_WORD]) if isinstance(value, str) else ""


class Stopwatch:
    """Clock readings of one thought while it arrives."""

    __slots__ = ("at", "closed", "first", "last", "opened")

    def __init__(self, opened: int, at: float) -> None:
        self.opened = opened
        self.at = at
        self.first: int | None = None
        self.last: int | None = None
        self.closed: int | None = None

    def touch(self, now: int) -> None:
        """Note that a delta arrived: the thought is not complete, also where it seemed to be."""
        if self.first is None:
            self.first = now
        self.last = now
        self.closed = None


class BaseReader:
    """State and methods that the readers of all dialects share."""

    done = False
    model = ""
    response = ""
    usage: Usage | None = None
    outcome: Outcome | None = None
    reason = ""
    stop: StopReason | None = None  # why the model stopped, where the provider says so
    stop_text = ""  # the text at which it stopped, where the provider says which
    unread: tuple[Unread, ...] = ()  # what the provider says that it kept from the model
    opening = b""  # what a keep-alive repeats of how the answer began, if it does
    damaged = False  # something in it is not UTF-8, and was read with U+FFFD in its place
    arrived = 0  # when the bytes that are read arrived, by the monotonic clock; 0: just now
    _ended = False
    _elements = 0  # beside the first one of each list

    def __init__(self, *, clock: Clock, origin: Origin, sent: int) -> None:
        self.now = sent
        self.clock = clock
        self.origin = origin
        self.sent = sent
        self.watches: list[Stopwatch] = []  # of all thoughts so far
        self.joined_surrogates = SurrogateJoiner()

    def note_damage(self, data: bytes) -> None:
        """Look whether data that a strict decoder refuses is UTF-8 at all."""
        try:
            data.decode()
        except UnicodeDecodeError:
            self.damaged = True

    def count_elements(self, elements: list[Any]) -> None:
        """Count the elements of a list in an answer; one per event is what streams have.

        Raises `TooComplex`.
        """
        if len(elements) > 1:
            self._elements += len(elements) - 1
            check_answer_parts(self._elements)

    def only_text(self, data: bytes) -> str | None:
        """Return the text that is all that an event's data says; None where it says more."""
        return None

    def tick(self) -> int:
        """Note when the bytes arrived, once per feed."""
        self.now = self.arrived or self.clock.mono()
        return self.now

    def open_watch(self) -> Stopwatch:
        """Start the stopwatch of a thought that opens now."""
        late = (self.clock.mono() - self.arrived) / 1e9 if self.arrived else 0.0
        watch = Stopwatch(self.now, self.clock.wall() - late)
        self.watches.append(watch)
        return watch

    def timing(self, watch: Stopwatch, *, aborted: bool = False) -> Timing:
        """Return the timing of a thought that is complete, or that was cut off."""
        closed = self.now if watch.closed is None else watch.closed
        return Timing(
            sent=self.sent,
            opened=watch.opened,
            first=watch.first,
            last=watch.last,
            closed=None if aborted else closed,
            at=watch.at,
            aborted=aborted,
        )

    def reasoning_end(self, watch: Stopwatch, item: str = "") -> ReasoningEnd:
        """Close a thought, and return the event that says so to those who watch live."""
        watch.closed = self.now
        return ReasoningEnd(self.timing(watch), item)

    @property
    def has_output(self) -> bool:
        """Whether anything but thoughts has come."""
        return False

    @property
    def version(self) -> tuple[bool, ...]:
        """A value that changes when a thought opens, begins or closes, or other output begins."""
        flags = ((w.closed is None, w.first is None) for w in self.watches)
        return (self.has_output, *(flag for pair in flags for flag in pair))

    def snapshot(self) -> list[Part]:
        """Return what has come so far, in order; a thought that is growing has no end yet."""
        return []

    def partial_thought(
        self, carrier: Carrier, watch: Stopwatch, text: str, id: str = ""
    ) -> Thought:
        """Return a thought as far as it has come: for display, never to be stored."""
        timing = Timing(
            sent=self.sent,
            opened=watch.opened,
            first=watch.first,
            last=watch.last,
            closed=watch.closed,
            at=watch.at,
        )
        return Thought(carrier=carrier, raw="", text=text, id=id, timing=timing)

    def reasoning(
        self, carrier: Carrier, raw: str, watch: Stopwatch | None, *, aborted: bool = False
    ) -> Reasoning:
        """Return a thought from its JSON text; one that is nested too deeply is not decoded.

        Without a watch (in a body that was not streamed) the time it opened stays unknown.
        """
        timing = Timing(sent=self.sent, closed=self.now)
        if watch is not None:
            timing = self.timing(watch, aborted=aborted)
        try:
            value = splice.loads(raw.encode())
            thought = make_thought(carrier, value, raw, origin=self.served_origin(), timing=timing)
        except (Unreadable, RecursionError):
            thought = Thought(carrier=carrier, raw=raw, origin=self.served_origin(), timing=timing)
        return Reasoning(thought=thought)

    def served_origin(self) -> Origin:
        """Return the origin of this response's thoughts, with the model as served."""
        if not self.model or self.model == self.origin.model:
            return self.origin
        asked = self.origin.asked or self.origin.model
        return replace(self.origin, model=self.model, asked=asked)

    def fail(self, error: Any) -> None:
        """Take in an error of the provider, of any type: the turn failed."""
        words = replace_surrogates(error_words(error))
        self.reason = words or NO_WORDS
        self.outcome = Outcome.FAILED

    def turn_end(self, reason: str = "") -> list[StreamEvent]:
        """Return the end of the turn at the first call, and nothing at later ones."""
        if self._ended:
            return []
        self._ended = True
        outcome = self.outcome or (Outcome.COMPLETED if self.done else Outcome.ABORTED)
        return [
            TurnEnded(
                outcome=outcome,
                reason=self.reason or reason,
                usage=self.usage,
                response=self.response,
                model=self.model,
                stop=self.stop,
                stop_text=self.stop_text,
                unread=self.unread,
            )
        ]
