"""What every stream reader does: time the thoughts, and say how the turn ended, once.

A dialect's reader derives from `Recorder`: a `Stopwatch` per thought, one clock reading per feed
for all events in it, and an ending that is told exactly once.
"""

from msgspec.structs import replace

from thoughtline import splice
from thoughtline.clock import Clock
from thoughtline.dialects.thoughts import thought
from thoughtline.errors import Unreadable
from thoughtline.events import (
    Happening,
    Outcome,
    Reasoning,
    ReasoningEnd,
    TurnEnded,
    Usage,
)
from thoughtline.parts import Carrier, Origin, Part, Thought, Timing


class Stopwatch:
    """The timing of one thought while it arrives."""

    __slots__ = ("at", "closed", "first", "last", "opened")

    def __init__(self, opened: int, at: float) -> None:
        self.opened = opened
        self.at = at
        self.first: int | None = None
        self.last: int | None = None
        self.closed: int | None = None

    def touch(self, now: int) -> None:
        """A delta arrived: it is not complete, whatever it looked like."""
        if self.first is None:
            self.first = now
        self.last = now
        self.closed = None


class Recorder:
    """State shared by the readers of all dialects."""

    done = False
    model = ""
    response = ""
    usage: Usage | None = None
    outcome: Outcome | None = None
    reason = ""
    _ended = False

    def __init__(self, *, clock: Clock, origin: Origin, sent: int) -> None:
        self.now = sent
        self.clock = clock
        self.origin = origin
        self.sent = sent
        self.watches: list[Stopwatch] = []  # of all thoughts so far

    def tick(self) -> int:
        """Read the clock, once per feed."""
        self.now = self.clock.mono()
        return self.now

    def watch(self) -> Stopwatch:
        """A thought opened now."""
        made = Stopwatch(self.now, self.clock.wall())
        self.watches.append(made)
        return made

    def timing(self, watch: Stopwatch, *, aborted: bool = False) -> Timing:
        """The readings of a thought that is complete, or cut."""
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

    def closing(self, watch: Stopwatch, item: str = "") -> ReasoningEnd:
        """What is told live when a thought is complete."""
        watch.closed = self.now
        return ReasoningEnd(self.timing(watch), item)

    @property
    def spoke(self) -> bool:
        """Whether anything but thoughts has come."""
        return False

    @property
    def pulse(self) -> tuple[bool, ...]:
        """What changes whenever a thought opens, begins to be told or closes, or a word is said."""
        told = ((w.closed is None, w.first is None) for w in self.watches)
        return (self.spoke, *(flag for pair in told for flag in pair))

    def glimpse(self) -> list[Part]:
        """What has come so far, in order; a thought that is growing has no end yet."""
        return []

    def seen(self, carrier: Carrier, watch: Stopwatch, text: str, id: str = "") -> Thought:
        """A thought as far as it has come, to be shown and never to be kept."""
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
        """A thought from its JSON text; what is nested too deeply is kept and not looked into.

        Without a watch nobody saw it open, as in a body that came whole: that stays unknown.
        """
        timing = Timing(sent=self.sent, closed=self.now)
        if watch is not None:
            timing = self.timing(watch, aborted=aborted)
        try:
            value = splice.loads(raw.encode())
            made = thought(carrier, value, raw, origin=self.made(), timing=timing)
        except (Unreadable, RecursionError):
            made = Thought(carrier=carrier, raw=raw, origin=self.made(), timing=timing)
        return Reasoning(thought=made)

    def made(self) -> Origin:
        """Where thoughts of this response were made, with the model as served."""
        if not self.model or self.model == self.origin.model:
            return self.origin
        asked = self.origin.asked or self.origin.model
        return replace(self.origin, model=self.model, asked=asked)

    def ending(self, reason: str = "") -> list[Happening]:
        """The turn's end, the first time it is asked for."""
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
            )
        ]
