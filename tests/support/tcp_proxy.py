"""A TCP proxy between a gateway and PostgreSQL that can delay, cut and swallow."""

import asyncio
import contextlib
import threading


class TcpProxy:
    """Forwards connections to a port of this machine, in a thread of its own.

    `delay` is how many seconds answers take longer; `cut` closes all connections and refuses new
    ones; `swallow` lets so many answers vanish, each with its connection: what was asked is done,
    and nobody hears of it.
    """

    def __init__(self, port):
        self._target = port
        self.delay = 0.0
        self.swallowed = 0
        self._swallow = 0
        self._closed = False  # for new connections
        self._open = set()
        self._serving = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self):
        self._thread.start()
        self._server = self._call(self._listen())
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def _listen(self):
        return await asyncio.start_server(self._serve, "127.0.0.1", 0)

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    def stop(self):
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    async def _end(self):
        self._server.close()
        await self._cut()
        if self._serving:
            await asyncio.wait(self._serving)
        await asyncio.sleep(0)  # what was aborted is closed

    def cut(self):
        """Close everything, and let nobody in."""
        self._call(self._cut())

    async def _cut(self):
        self._closed = True
        for writer in list(self._open):
            writer.transport.abort()
        await asyncio.sleep(0)

    def mend(self):
        self._closed = False

    def swallow(self, answers):
        self._swallow = answers

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._serving.add(task)
        ends = [writer]
        try:
            if not self._closed:
                back, forth = await asyncio.open_connection("127.0.0.1", self._target)
                ends.append(forth)
                if self._closed:  # meanwhile
                    return
                self._open.update(ends)
                asked = asyncio.ensure_future(self._pass_on(reader, forth))
                await self._answer(back, writer)
                asked.cancel()
        except OSError:
            pass  # nobody is there, or not any more
        finally:
            for end in ends:
                self._open.discard(end)
                end.transport.abort()
            self._serving.discard(task)

    async def _pass_on(self, reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.transport.abort()

    async def _answer(self, reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                if self._swallow and _is_committed(data):
                    self._swallow -= 1
                    self.swallowed += 1
                    return
                if self.delay:
                    await asyncio.sleep(self.delay)
                writer.write(data)
                await writer.drain()


def _is_committed(data):
    """Whether this is the answer to a statement that was done: it ends idle."""
    return data.endswith(b"Z\x00\x00\x00\x05I") and b"SELECT " in data
