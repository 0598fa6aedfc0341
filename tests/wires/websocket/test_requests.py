"""Requests in their parts, and as frames."""

import json

from hypothesis import given
from hypothesis import strategies as st

from thoughtline.wires.websocket import requests
from wires.websocket.samples import CALL, RESULT, THOUGHT, USER, read, texts


def test_only_new_items_are_hashed(monkeypatch):
    hashed = []
    real = requests.comparable_item
    monkeypatch.setattr(requests, "comparable_item", lambda item: hashed.append(item) or real(item))
    first = read(USER, THOUGHT, CALL)
    second = read(USER, THOUGHT, CALL, RESULT, USER, after=first)
    assert hashed == texts(USER, THOUGHT, CALL, RESULT, USER)
    assert second.rolling_hash.digest == first.rolling_hash.extend(texts(RESULT, USER)).digest


@given(st.integers(0, 4), st.booleans())
def test_what_a_full_send_would_have_cost_is_known_exactly(since, stream):
    request = read(USER, THOUGHT, CALL, RESULT, stream=stream)
    frame_size = len(requests.create_frame(request, since=since, previous="resp_1"))
    whole = requests.full_frame_size(request, frame_size, since=since, previous="resp_1")
    assert whole == len(requests.create_frame(request))


def test_a_string_is_what_the_user_says():
    request = requests.read(b'{"input": "hel\\u006co", "model": "m"}')
    assert [json.loads(item) for item in request.items] == [USER]
