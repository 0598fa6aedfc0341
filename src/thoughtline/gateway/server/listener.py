"""The socket that a gateway listens on, and how it is closed without failing a request.

A load balancer that connects is answered by the system before the gateway knows of it, and sends
its request at once. Closing a socket with such connections in its queue resets them, and a
request that was sent may not be sent again to another gateway: it may cost money twice. So the
system is told first to open no more connections, those that are there are accepted, and only then
the socket is closed. Who connects meanwhile tries again, is refused, and asks another gateway.
"""

import asyncio
import ctypes
import socket
import struct
import sys
import time
from contextlib import suppress

import uvicorn
from uvicorn.supervisors import Multiprocess

HANDSHAKE_TIME = 0.2
"""Seconds within which a connection that has begun to open is open, and accepted."""

_ATTACH_FILTER = 26  # SO_ATTACH_FILTER of Linux
_SYN = 0x02
_NO_SYN = (  # a program for the packets of the socket, which begin with the header of TCP
    (0x30, 0, 0, 13),  # load the byte of the flags
    (0x45, 0, 1, _SYN),  # does it ask for a connection?
    (0x06, 0, 0, 0),  # then drop it
    (0x06, 0, 0, 0xFFFFFFFF),
)


def open_no_more(listener: socket.socket) -> None:
    """Let no more connections be opened; those that are being opened are not disturbed."""
    if sys.platform != "linux":
        return
    program = b"".join(struct.pack("HBBI", *step) for step in _NO_SYN)
    steps = ctypes.create_string_buffer(program, len(program))
    with suppress(OSError):
        where = struct.pack("HL", len(_NO_SYN), ctypes.addressof(steps))
        listener.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, where)


class GatewayServer(uvicorn.Server):
    """Serves in one process."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept what is in the queue, then close the socket and end."""
        for listener in sockets or ():
            open_no_more(listener)
        await asyncio.sleep(HANDSHAKE_TIME)
        await super().shutdown(sockets)


class GatewayWorkers(Multiprocess):
    """Serves in several processes that have one socket."""

    def terminate_all(self) -> None:
        """End all processes, after they have accepted what is in the queue."""
        for listener in self.sockets:
            open_no_more(listener)
        time.sleep(HANDSHAKE_TIME)
        super().terminate_all()
        for listener in self.sockets:  # theirs are closed: or connections would wait for nobody
            listener.close()
