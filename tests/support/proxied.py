"""A gateway with simulated providers, asked over a real socket."""

import contextlib
import socket
import threading

KEY = {"authorization": "Bearer a-key"}


TOOLS = [
    {
        "type": "function",
        "function": {"name": "run", "parameters": {"type": "object", "properties": {}}},
    }
]


def body(messages, **more):
    return {"model": "deepseek-v4-pro", "messages": messages, "tools": TOOLS, **more}


@contextlib.contextmanager
def recording():
    """An upstream that keeps what it was sent, to the byte."""
    seen = []

    def answer(listener):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = listener.accept()
                with peer:
                    seen.append(peer.recv(1 << 16))
                    peer.sendall(
                        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
                    )

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", seen
