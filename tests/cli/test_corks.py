"""Heads that wait for a body: together where there is one at once, alone where there is not."""

import asyncio

from thoughtline.cli.corks import MOST, Corked

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


class Line:
    """A transport that notes its packets."""

    def __init__(self):
        self.packets = []
        self.closed = False

    def write(self, data):
        self.packets.append(data)

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    def get_extra_info(self, name):
        return name


def corked():
    line = Line()
    return Corked(line, asyncio.get_running_loop()), line


async def test_a_head_goes_with_its_body():
    transport, line = corked()
    transport.write(HEAD)
    transport.write(b"body")
    transport.write(b"more")
    await asyncio.sleep(0)
    assert line.packets == [HEAD + b"body", b"more"]


async def test_a_head_without_a_body_waits_for_no_one():
    transport, line = corked()
    transport.write(HEAD)
    assert line.packets == []
    await asyncio.sleep(0)
    assert line.packets == [HEAD]
    transport.write(b"body")
    assert line.packets == [HEAD, b"body"]


async def test_a_large_body_is_not_copied():
    transport, line = corked()
    transport.write(HEAD)
    transport.write(b"x" * (MOST + 1))
    assert line.packets == [HEAD, b"x" * (MOST + 1)]


async def test_what_is_held_is_written_before_the_end():
    transport, line = corked()
    transport.write(HEAD)
    transport.close()
    assert line.packets == [HEAD]
    assert transport.is_closing()
    assert transport.get_extra_info("socket") == "socket"


async def test_a_body_that_looks_like_a_head_stays_in_its_place():
    transport, line = corked()
    for piece in (HEAD, HEAD, b"end"):
        transport.write(piece)
    await asyncio.sleep(0)
    assert b"".join(line.packets) == HEAD + HEAD + b"end"
