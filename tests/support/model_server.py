"""A model of what a Responses server remembers, on sockets in memory, and what may go wrong there.

It is written from the provider's documentation and knows nothing of the wire: each connection has
lanes, each lane remembers its latest response, a continuation is put together from that, and a
failed one makes the lane forget. Every request that it puts together is handed to `judge`.
"""

import json

from thoughtline.errors import WireError
from thoughtline.wires.websocket.connection import UpgradeRefused

OWN = {"type", "input", "previous_response_id", "stream", "stream_id", "generate"}


def dumps(value):
    return json.dumps(value, ensure_ascii=False).encode()


class Say:
    """What the model answers next, and what goes wrong meanwhile."""

    def __init__(self, items=(), fault="", at=0, late=False, output=True):
        self.items, self.fault, self.at, self.late, self.output = items, fault, at, late, output


class Server:
    def __init__(self, judge, lanes="lanes", forgetful=True, nasty=False):
        self.judge = judge
        # Keeps the fields of the request before, and counts ids anew in each connection: a wire
        # that continues what it should not is found out.
        self.nasty = nasty
        self.lanes = lanes  # "lanes", "single" (refuses stream_id) or "ignores"
        self.forgetful = forgetful  # whether a failed continuation makes it forget
        self.script = []  # one `Say` per request; the last one again when they run out
        self.sockets = []
        self.refuse = []  # statuses for the next upgrades

    async def dial(self, url, headers):
        if self.refuse:
            raise UpgradeRefused(self.refuse.pop(0))
        self.sockets.append(Socket(self))
        return self.sockets[-1]

    def next(self):
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def hang_up(self):
        for socket in self.sockets:
            socket.open = False


class Socket:
    def __init__(self, server):
        self.server = server
        self.count = 0 if server.nasty else 1000 * len(server.sockets)
        self.open = True
        self.entry = {}  # lane → (response id, items, fields)
        self.out = []
        self.closed = False

    @property
    def alive(self):
        return self.open

    async def send(self, frame):
        if not self.open:
            raise WireError("closed")
        self.out += self._answer(json.loads(frame))

    async def receive(self):
        if self.out:
            frame = self.out.pop(0)
            if frame is not None:
                return frame
            self.open = False
        self.open = False
        raise WireError("cut")

    async def close(self):
        self.open, self.closed = False, True

    # -- what the server does --------------------------------------------------------------------

    def _answer(self, body):
        server, name = self.server, body.get("stream_id")
        if name is not None and server.lanes == "single":
            self._forget(None, body)
            error = {"code": "unknown_parameter", "param": "stream_id", "message": "no lanes"}
            return [dumps({"type": "error", "status": 400, "error": error})]
        lane = None if server.lanes == "ignores" else name
        say = server.next()
        frames = self._frames(body, lane, say)
        if say.fault in ("cut", "garbage"):
            at = min(say.at, len(frames))
            if say.fault == "cut":
                return [*frames[:at], None]
            return [*frames[:at], b'{"type":"response.outp', *frames[at:]]
        return frames

    def _frames(self, body, lane, say):
        """Everything that is sent for one request; None is where the line is cut."""

        def frame(type, **more):
            return dumps({"type": type, **more, **({"stream_id": lane} if lane else {})})

        def refuse(code, status=400):
            self._forget(lane, body)
            return frame("error", status=status, error={"code": code, "message": code})

        if say.fault == "limit":
            return [refuse("websocket_connection_limit_reached"), None]
        if say.fault == "forgot":
            self.entry.clear()
        previous = body.get("previous_response_id")
        known = next((m for m in self.entry.values() if m[0] == previous), None)
        if previous and known is None:
            return [refuse("previous_response_not_found")]
        if say.fault == "refuse":
            return [refuse("server_error", 500)]
        held = [*(known[1] if known else ()), *body.get("input", ())]
        fields = {name: value for name, value in body.items() if name not in OWN}
        if known and self.server.nasty:
            fields = known[2]
        self.server.judge(fields, held, delta=bool(previous))
        self.count += 1
        id = f"resp_{self.count:08d}"
        items = [] if body.get("generate") is False else [json.loads(item) for item in say.items]
        begun = {"id": id, "output": []}
        frames = [frame("response.created", response=begun)]
        frames.append(frame("response.in_progress", response=begun))
        frames.append(dumps({"type": "codex.rate_limits"}))
        for index, item in enumerate(items):
            if say.fault in ("fail", "error") and index == min(say.at, len(items) - 1):
                failed = {"id": id, "error": {"message": "oh"}}
                broken = refuse("server_error", 500)  # it forgets, in either case
                if say.fault == "fail":
                    broken = frame("response.failed", response=failed)
                return [*frames, broken]
            frames += self._item(frame, say, index, item)
        self.entry[lane] = (id, [*held, *items], fields)
        kind = "incomplete" if say.fault == "incomplete" else "completed"
        return [*frames, frame(f"response.{kind}", response=self._response(say, id, items))]

    def _response(self, say, id, items):
        response = {"id": "" if say.fault == "nameless" else id}
        if say.output or say.late or say.fault == "skip":
            response["output"] = items
        return response

    def _item(self, frame, say, index, item):
        frames = [frame("response.output_item.added", output_index=index, item={"type": "x"})]
        frames.append(frame("response.output_text.delta", output_index=index, delta="…"))
        late = say.late and item.get("encrypted_content")
        done = {**item, "encrypted_content": None} if late else item
        if not (say.fault == "skip" and index == say.at):
            place = 0 if say.fault == "shuffle" else index
            frames.append(frame("response.output_item.done", output_index=place, item=done))
        return frames

    def _forget(self, lane, body):
        held = self.entry.get(lane)
        if held and held[0] == body.get("previous_response_id") and self.server.forgetful:
            del self.entry[lane]
