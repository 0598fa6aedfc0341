"""A client that disconnects before its answer has begun."""

import threading

import httpx2
import pytest

from support.breaking_upstream import ASKED, answered, until, upstream
from support.gateway_server import running
from thoughtline.gateway.options import ProxyOptions


@pytest.mark.parametrize(
    ("finish", "ended"), [(True, (200, "")), (False, (499, "the client left"))]
)
def test_an_answer_that_had_not_begun_is_kept_or_not(finish, ended):
    """Without a stream, the head comes with the words: a client leaves before either."""
    go = threading.Event()
    options = ProxyOptions(finish_on_disconnect=finish)
    with upstream(answered({"content": "x", "reasoning_content": "t"}), go) as ups:  # noqa: SIM117
        with running(ups, options=options) as gateway:
            with pytest.raises(httpx2.ReadTimeout):
                httpx2.post(f"{gateway.url}/u/u/v1/chat/completions", json=ASKED, timeout=0.4)
            if not finish:
                until(lambda: gateway.notes.records)
            go.set()
            until(lambda: gateway.notes.records)
            assert gateway.notes.records == [ended]
            assert gateway.proxy.in_flight.count == 0
