import json

import pytest

from thoughtline.dialects import DIALECTS
from thoughtline.dialects.token_counts import estimated_tokens, read_count


def test_a_number_is_read_and_nothing_else():
    assert read_count(b'{"input_tokens": 7}', "input_tokens") == 7
    assert read_count(b'{"input_tokens": "7"}', "input_tokens") is None
    assert read_count(b"[]", "input_tokens") is None
    assert read_count(b"no", "input_tokens") is None


def test_an_estimate_grows_with_the_text_and_not_with_the_bytes_of_an_image():
    text = estimated_tokens(json.dumps({"text": "a" * 3000}).encode())
    assert 800 <= text <= 1100
    assert estimated_tokens(b"{}") >= 1
    assert estimated_tokens(("词" * 100).encode()) > estimated_tokens(b"w" * 100)
    image = json.dumps({"data": "QUJD" * 100_000}).encode()
    assert estimated_tokens(image) < 2000


@pytest.mark.parametrize("dialect", ["messages", "responses", "gemini"])
def test_only_what_counts_is_sent(dialect):
    counting = DIALECTS[dialect].token_count
    members = {"model": "m", "messages": [], "input": [], "contents": [], "stream": True}
    asked = counting.request("m", members)
    assert ("stream" in asked) is False
    if dialect == "gemini":
        assert asked["generateContentRequest"]["model"] == "models/m"


def test_chat_completions_do_not_count():
    assert DIALECTS["chat"].token_count is None
