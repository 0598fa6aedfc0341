"""Callers without an event loop: one in a thread, and streams that cross over."""

import gc
import threading

import httpx2
import pytest

from support.transports import URL, Stream, Upstream, asked, events, talk
from thoughtline.transports import Transport


class Plain(httpx2.BaseTransport):
    """An inner transport that knows no loop."""

    def __init__(self):
        self.threads, self.closed = set(), False

    def handle_request(self, request):
        self.threads.add(threading.current_thread().name)
        head = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=head, content=iter(events()))

    def close(self):
        self.closed = True


def running():
    return [t for t in threading.enumerate() if t.name == "thoughtline-transport"]


def test_a_plain_inner_transport_is_called_in_threads():
    inner = Plain()
    with httpx2.Client(transport=Transport("memory://", inner=inner)) as kept:
        with kept.stream("POST", URL, **asked(stream=True)) as reply:
            assert b"".join(reply.iter_raw()) == b"".join(events())
        assert threading.current_thread().name not in inner.threads
    assert inner.closed


def test_what_is_raised_on_the_loop_is_raised_here():
    error = httpx2.ConnectError("no route")
    kept = httpx2.Client(transport=Transport("memory://", inner=Upstream(error)))
    with kept, pytest.raises(httpx2.ConnectError) as caught:
        kept.post(URL, **asked())
    assert caught.value is error


def test_the_thread_starts_with_the_first_request_and_ends_with_the_last_user():
    mount = Transport("memory://", inner=Upstream(Stream(events())))
    assert not running()
    kept = httpx2.Client(transport=mount)
    kept.post(URL, **asked(stream=True))
    (thread,) = running()
    del mount, kept
    gc.collect()
    thread.join(60)
    assert not running()


def test_closed_is_closed():
    mount = Transport("memory://", inner=Upstream(Stream(events())))
    with httpx2.Client(transport=mount) as kept:
        kept.post(URL, **asked(stream=True))
    mount.close()
    with pytest.raises(RuntimeError, match="closed"):
        mount.handle_request(httpx2.Request("POST", URL, **asked()))


def test_many_threads_share_one(sims):
    url = sims.url("deepseek") + "/chat/completions"
    replies = {}
    with httpx2.Client(transport=Transport("memory://", policy="deepseek"), timeout=60) as kept:

        def one(number):
            replies[number] = talk(kept, url, 4, opening=f"thread {number}")

        threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    audits = {talked[-1].headers["x-sim-thoughts"] for talked in replies.values()}
    assert audits == {"exact=3; altered=0; missing=0; misplaced=0; foreign=0"}
