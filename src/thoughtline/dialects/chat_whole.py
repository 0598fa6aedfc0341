"""A Chat Completions response that was not streamed: one body, read when all of it is there."""

from thoughtline.clock import Clock
from thoughtline.dialects.chat_bodies import REFUSED, decode, lenient
from thoughtline.dialects.chat_message import Making, Said, output
from thoughtline.dialects.chat_recorder import ChatRecorder
from thoughtline.errors import Unreadable
from thoughtline.events import AssistantMessage, Canonical, Happening, Outcome, Reasoning, ToolCall
from thoughtline.parts import Call, Origin, Thought, Timing


class ChatBody(ChatRecorder):
    """Reads one whole body. Nothing is told before the end, and there are no deltas."""

    def __init__(self, *, clock: Clock, origin: Origin, sent: int) -> None:
        super().__init__(clock=clock, origin=origin, sent=sent)
        self._body: list[bytes] = []

    def feed(self, data: bytes) -> list[Happening]:
        self._body.append(data)
        return []

    def close(self, *, reason: str = "") -> list[Happening]:
        if self._ended:
            return []
        self.tick()
        # One provider sends error bodies with the prefix of a stream.
        body = b"".join(self._body).strip().removeprefix(b"data:").strip()
        self._body = []
        try:
            parts = self._read(body)
        except (Unreadable, RecursionError):
            parts = []
        complete = self.outcome is not Outcome.FAILED
        told = [_told(part) for part in parts if complete or type(part) is Thought]
        return [*told, *self.ending(reason)]

    def _read(self, body: bytes) -> list[Said]:
        try:
            whole = decode(body)
        except REFUSED:
            whole = lenient(body)
        self.about(id=whole.id, model=whole.model, usage=whole.usage, error=whole.error)
        if whole.message is None:
            return []
        self.finish(whole.finish_reason)
        # When a thought began is unknown and stays so; when it was all there is known.
        timing = Timing(sent=self.sent, closed=self.now)
        return output(whole.message, Making(self.made(), timing, whole.raws))


def _told(part: Said) -> Canonical:
    if isinstance(part, Thought):
        return Reasoning(thought=part)
    if isinstance(part, Call):
        return ToolCall(call=part)
    return AssistantMessage(parts=(part,))
