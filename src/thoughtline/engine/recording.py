"""The recording of one answer: bytes in, and at its end one batch for the store.

A recording begins when the request leaves; a second try has a second one. The caller has its bytes
before they are fed to it. Pieces of a stream may be read later than they come, several at once:
each is read as of its arrival, and observers see all of them; those that differ only in a few
words wait in short. What cannot be read, or is
larger than any request could take back, is not kept, and the turn says why (`capture_error`).
"""

import asyncio
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any
from weakref import ref

from msgspec.structs import replace

from thoughtline.clock import Clock
from thoughtline.dialects.alike import EventShape, shape_of, shortened
from thoughtline.dialects.base import Reader
from thoughtline.dialects.limits import (
    CHECKED_SIZE,
    LETTERS_SIZE,
    MAX_SAID,
    NO_LETTERS,
    TooComplex,
    more_letters,
)
from thoughtline.engine.capture import Capture, output_parts
from thoughtline.engine.decision import RequestDecision
from thoughtline.engine.translation import Translation
from thoughtline.engine.unread import located
from thoughtline.errors import fault
from thoughtline.log.events import Outcome, StreamEvent, TurnEnded
from thoughtline.log.parts import Call, Text, Thought
from thoughtline.log.turns import Turn
from thoughtline.stores.base import Batch

MAX_BYTES = 64 << 20
"""Of an answer larger than this nothing is kept: no request would take it back."""
BROKE_OFF = "the upstream ended its answer before the end"
"""Why a turn failed whose answer just stops."""
MAX_UNREAD = 2 << 10
"""Bytes that have come and are not read yet, at most."""
_MAX_SHAPES = 8  # that are sought in one answer: not all have events that are alike
_FEW = 64
"""Recordings that are looked through as a matter of course."""
_EVENT_STREAM = (b"data:", b"event:", b":")
"""How a stream of events begins."""


class Recording:
    """What came back for a request so far, as its reader understands it."""

    capture_error = ""  # why the answer is not kept, if so
    finished = False  # the answer is over, one way or another
    discarded = False  # there is no turn in it
    _written = False
    _on_written: asyncio.Event | None = None  # for whoever waits for it
    _fed = 0
    _letters = NO_LETTERS  # of what has come, behind its beginning
    _broke_off = False  # the upstream ended it before its end
    _late: Reader | None = None  # of what comes after the end
    _held = b""  # the beginning of what may be a byte order mark
    _form_known = False  # the first bytes have come, which say whether it is a stream

    def __init__(
        self,
        decision: RequestDecision,
        *,
        tenant: str,
        clock: Clock,
        stream: bool,
        session: str = "",
        turn: str = "",
        translation: Translation | None = None,
        max_bytes: int = MAX_BYTES,
        heavy: bool = False,
    ) -> None:
        origin = decision.target.origin
        self.departed = clock.mono()
        self.tenant = tenant
        self.capture = Capture(
            path=decision.path,
            replay_plan=decision.replay_plan,
            origin=origin,
            tenant=tenant,
            clock=clock,
            session=session,
            turn=turn,
            translation=translation,
        )
        self._decision = decision
        self._dialect = decision.dialect
        self._origin = origin
        self._clock = clock
        self._stream = stream
        self._max_bytes = max_bytes
        self._heavy = heavy  # the request is
        # These are set here, and not above, so that a stream's recording takes less memory.
        self._unread: list[Any] = []  # arrival and bytes of each piece, in turn, in place of tuples
        self._unread_size = 0
        self._shape: EventShape | None = None  # of the events that come, where they are alike
        self._shapes_sought = 0
        self._arrived = 0  # when what is being read arrived, if that was earlier
        self._first_output = 0  # when the first token came, by the monotonic clock
        self._reader = self._new_reader()

    def _new_reader(self) -> Reader:
        reader = self._dialect.reader(
            stream=self._stream, clock=self._clock, origin=self._origin, sent=self.departed
        )
        reader.arrived = self._arrived
        return reader

    @property
    def session(self) -> str:
        """The session that the turn is written to."""
        return self.capture.session

    @property
    def turn(self) -> str:
        """The turn's id."""
        return self.capture.turn

    @property
    def heavy(self) -> bool:
        """Whether finishing may take long: not on the event loop."""
        return self._heavy or self._fed > CHECKED_SIZE

    @property
    def done(self) -> bool:
        """Whether the provider said that it is finished."""
        return self._caught_up().done

    @property
    def opening(self) -> bytes:
        """What a keep-alive repeats of how the answer began, if it does."""
        return self._caught_up().opening

    @property
    def running(self) -> bool:
        """Whether the turn is not written yet."""
        return not self.written

    @property
    def written(self) -> bool:
        """Whether the turn is in the store, or will never be."""
        return self._written

    @written.setter
    def written(self, written: bool) -> None:
        self._written = written
        if written and self._on_written is not None:
            self._on_written.set()

    async def until_written(self) -> None:
        """Wait until the turn is written."""
        if not self.written:
            self._on_written = self._on_written or asyncio.Event()
            await self._on_written.wait()

    @property
    def version(self) -> tuple[bool, ...]:
        """Changes whenever a thought opens or closes, or the model speaks."""
        return self._caught_up().version

    @property
    def spoke(self) -> bool:
        """Whether anything but thoughts has come."""
        return self._caught_up().has_output

    def snapshot(self) -> Turn:
        """The turn as far as it has come; a thought that is growing has no end yet."""
        reader, capture = self._caught_up(), self.capture
        return capture.snapshot(capture.output if self.finished else reader.snapshot())

    @property
    def refusal(self) -> str:
        """Why the provider failed inside its answer, before it had said anything."""
        ended = self.capture.ended
        if ended is None or ended.outcome is not Outcome.FAILED or self.capture.output:
            return ""
        return "" if self._broke_off else ended.reason

    def feed_later(self, data: bytes) -> None:
        """Take in a piece of the answer that has just come; it is read when somebody looks."""
        self._unread += (self._clock.mono(), data)
        self._unread_size += len(data)
        if self._unread_size >= MAX_UNREAD and not self._shorten():
            self.catch_up()

    def _shorten(self) -> bool:
        """Keep in short what has come; False where that is not possible, or too long as well."""
        unread = self._unread
        if self._fed > LETTERS_SIZE:  # there the letters of all that came are counted
            return False
        short = shortened(unread, self._shape)
        if short is None and self._shapes_sought < _MAX_SHAPES:
            self._shapes_sought += 1
            with suppress(Exception):  # no fault of ours may cost a client its answer
                self._shape = shape_of(unread[-1], self._reader.only_text)
                short = shortened(unread, self._shape)
        if short is None:
            return False
        size = len(short[1]) + len(short[3])
        self._fed += self._unread_size - size  # what is fed is shorter than what came
        self._unread, self._unread_size = short, size
        return size <= MAX_UNREAD // 2

    def catch_up(self) -> None:
        """Read the pieces that have come so far, each as of its arrival."""
        unread, self._unread, self._unread_size = iter(self._unread), [], 0
        try:
            for self._arrived in unread:
                self._reader.arrived = self._arrived
                self._feed(next(unread))
        except Exception as error:  # noqa: BLE001 (no fault of ours may cost a client its answer)
            self.give_up(fault(error))
        self._reader.arrived = self._arrived = 0

    def _caught_up(self) -> Reader:
        """The reader, which has read all that has come."""
        if self._unread:
            self.catch_up()
        return self._reader

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Take in a piece of the answer; what happened in it, for observers."""
        if self._unread:
            self.catch_up()
        return self._feed(data)

    def _feed(self, data: bytes) -> list[StreamEvent]:
        self._fed += len(data)
        if self._fed > self._max_bytes:
            self.give_up(f"the answer is larger than {self._max_bytes} bytes")
        if self.capture_error:
            return []
        if self.finished:
            self._feed_late(data)
            return []
        if not self._form_known:
            data = self._see_form(data)
        try:
            if self._fed > LETTERS_SIZE:  # what it all comes to is written in one piece
                self._letters = more_letters(self._letters, data)
            happenings = self._reader.feed(data)
        except TooComplex as error:
            self.give_up(str(error))
            return []
        if happenings:
            if self._stream and not self._first_output:
                self._first_output = self._arrived or self._clock.mono()
            self.capture.take(happenings)
        return happenings

    def _feed_late(self, data: bytes) -> None:
        """Take in what comes after the end: some upstreams go on, and some clients read on."""
        if not self.discarded and (self._late is not None or data.strip()):
            self._late = self._late or self._new_reader()
            with suppress(TooComplex):
                self._late.feed(data)

    @property
    def has_late(self) -> bool:
        """Whether something came after the end that is not written yet."""
        return self._late is not None

    def finish_late(self) -> Batch | None:
        """What was said after the end, to be written; None: nothing was."""
        late, self._late = self._late, None
        if late is None:
            return None
        late.done = True  # the end was said before
        return self.capture.extend(late.close())

    def _see_form(self, data: bytes) -> bytes:
        """The beginning of an answer without its byte order mark, which may come in pieces.

        Some upstreams answer a stream request with one body, or the other way round.
        """
        if not self._held and data.startswith(_EVENT_STREAM if self._stream else b"{"):
            self._form_known = True
            return data
        begun = self._held + data
        self._held = begun if BOM_UTF8.startswith(begun) and begun != BOM_UTF8 else b""
        if self._held:
            return b""
        begun = begun.removeprefix(BOM_UTF8)
        said = begun.lstrip()
        self._form_known = bool(said)
        if said.startswith(b"{" if self._stream else _EVENT_STREAM):
            self._stream = not self._stream
            self._reader = self._new_reader()
        return begun

    def discard(self) -> None:
        """Keep nothing of the answer: nothing is said in it."""
        self.finished = self.written = self.discarded = True

    def give_up(self, why: str) -> None:
        """Keep no more of the answer: the client has it, and the log has why not."""
        if not self.capture_error:
            self.capture_error = f"not captured: {why}"
            self._reader = self._new_reader()  # the other one may hold all that came so far

    def close(self, reason: str = "") -> list[StreamEvent]:
        """The answer is over, or cut: what remains, last of all the turn's end."""
        self._caught_up()
        remains = self._remains(reason)
        self.capture.take(remains)
        return remains

    def _remains(self, reason: str) -> list[StreamEvent]:
        if not self.capture_error:
            try:
                remains = self._reader.close(reason=reason)
                if self._fed > MAX_SAID:
                    _check_said(remains)
            except TooComplex as error:
                self.give_up(str(error))
            else:
                self.capture.damaged = self._reader.damaged
                return remains
        return [TurnEnded(outcome=Outcome.ABORTED, reason=self.capture_error)]

    def finish(self, reason: str = "", *, stopped: bool = False) -> Batch | None:
        """Everything about the turn, to be written in one transaction; None the second time.

        `stopped`: the client left, or the gateway was stopped. An answer that ends without its end
        for any other reason was broken off by the upstream: that turn failed.
        """
        if self.finished:
            return None
        reader = self._caught_up()
        self.finished = True
        self.capture.take(self._remains(reason))
        ended = self.capture.ended
        self._broke_off = not (stopped or self.capture_error or reader.done)
        if self._broke_off and ended is not None and ended.outcome is Outcome.ABORTED:
            reason = ended.reason or BROKE_OFF
            self.capture.ended = ended = replace(ended, outcome=Outcome.FAILED, reason=reason)
        if self._first_output and ended is not None:
            waited = round(max(0, self._first_output - self.departed) / 1e9, 3)
            self.capture.ended = ended = replace(ended, first_output=waited)
        if ended is not None and ended.unread:
            unread = located(ended.unread, self._decision)
            self.capture.ended = replace(ended, unread=unread)
        return self.capture.finish()


def _check_said(events: Iterable[StreamEvent]) -> None:
    """Raise `TooComplex` for an answer that says more than any model does."""
    said = 0
    for part in output_parts(events):
        if type(part) is Thought:
            said += max(len(part.text), len(part.raw))
        elif type(part) is Text:
            said += len(part.text)
        elif type(part) is Call:
            said += len(part.arguments)
    if said > MAX_SAID:
        raise TooComplex(f"more than {MAX_SAID} letters are said in it")


class RunningRecordings:
    """The recordings whose turns are not written yet, for the inspector."""

    def __init__(self) -> None:
        self._recordings: list[ref[Recording]] = []  # perhaps written, or gone
        self._most = _FEW  # of them, after which those are left out

    def __iter__(self) -> Iterator[Recording]:
        found = [recording() for recording in self._recordings]
        return iter([one for one in found if one is not None and one.running])

    def add(self, recording: Recording) -> None:
        """Add one that has just begun."""
        if len(self._recordings) >= self._most:
            self._recordings = [ref(one) for one in self]
            self._most = max(_FEW, 2 * len(self._recordings))
        self._recordings.append(ref(recording))
