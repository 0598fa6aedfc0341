"""An upstream that breaks off, or waits."""

import contextlib
import itertools
import json
import socket
import threading

from thoughtline.engine.endpoints import Upstream

ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def answered(message):
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    body = json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


class Gate(threading.Event):
    """Opens when it is set, and knows when somebody stands before it."""

    def __init__(self):
        super().__init__()
        self.reached = threading.Event()

    def wait(self, timeout=None):
        self.reached.set()
        return super().wait(timeout)


@contextlib.contextmanager
def upstream(answer, go=None):
    """Answers each connection with these bytes, once it may `go`, and hangs up.

    Several answers are given one after the other.
    """
    answers = itertools.repeat(answer) if isinstance(answer, bytes) else iter(answer)

    def serve(listener):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = listener.accept()
                with peer, contextlib.suppress(OSError):
                    peer.recv(1 << 16)
                    if go is not None:
                        go.wait(60)
                    peer.sendall(next(answers))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        yield [Upstream(name="u", base_url=url, policy="deepseek")]
