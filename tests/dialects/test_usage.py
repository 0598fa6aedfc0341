"""Usage means the same in every dialect: the whole prompt, and everything that was written.

The usage objects are those of the providers, whose APIs count differently.
"""

import json

import pytest

from thoughtline.dialects import DIALECTS
from thoughtline.log.parts import Origin
from thoughtline.log.usage import Usage
from thoughtline.testing import FrozenClock

CHAT = {
    "openai": (
        {
            "prompt_tokens": 1200,
            "completion_tokens": 300,
            "total_tokens": 1500,
            "prompt_tokens_details": {"cached_tokens": 1024, "cache_write_tokens": 128},
            "completion_tokens_details": {"reasoning_tokens": 256},
        },
        Usage(input=1200, output=300, reasoning=256, cached=1024, cache_write=128),
    ),
    "deepseek": (
        {
            "prompt_tokens": 339,
            "completion_tokens": 83,
            "total_tokens": 422,
            "prompt_cache_hit_tokens": 320,
            "prompt_cache_miss_tokens": 19,
            "completion_tokens_details": {"reasoning_tokens": 39},
        },
        Usage(input=339, output=83, reasoning=39, cached=320),
    ),
    "kimi": (
        {"prompt_tokens": 120, "completion_tokens": 44, "total_tokens": 164, "cached_tokens": 96},
        Usage(input=120, output=44, cached=96),
    ),
    "xai": (  # completion_tokens without the thoughts, total_tokens with them
        {
            "prompt_tokens": 32,
            "completion_tokens": 9,
            "total_tokens": 135,
            "prompt_tokens_details": {"text_tokens": 32, "cached_tokens": 6},
            "completion_tokens_details": {"reasoning_tokens": 94},
        },
        Usage(input=32, output=103, reasoning=94, cached=6),
    ),
    "qwen": (
        {
            "prompt_tokens": 3019,
            "completion_tokens": 104,
            "total_tokens": 3123,
            "prompt_tokens_details": {"cached_tokens": 2048, "cache_creation_input_tokens": 900},
        },
        Usage(input=3019, output=104, cached=2048, cache_write=900),
    ),
}
RESPONSES = (
    {
        "input_tokens": 812,
        "input_tokens_details": {"cached_tokens": 640, "cache_write_tokens": 100},
        "output_tokens": 377,
        "output_tokens_details": {"reasoning_tokens": 320},
        "total_tokens": 1189,
    },
    Usage(input=812, output=377, reasoning=320, cached=640, cache_write=100),
)
MESSAGES = {
    "read": (
        {
            "input_tokens": 318,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 1082,
            "output_tokens": 280,
        },
        Usage(input=1400, output=280, cached=1082, cache_write=0),
    ),
    "written": (
        {
            "input_tokens": 10,
            "cache_creation_input_tokens": 10238,
            "cache_read_input_tokens": 22383,
            "cache_creation": {"ephemeral_5m_input_tokens": 10238},
            "output_tokens": 41,
            "output_tokens_details": {"thinking_tokens": 34},
            "service_tier": "standard",
        },
        Usage(input=32631, output=41, reasoning=34, cached=22383, cache_write=10238),
    ),
    "without a cache": (
        {"input_tokens": 25, "output_tokens": 7},
        Usage(input=25, output=7),
    ),
}
GEMINI = (
    {
        "promptTokenCount": 412,
        "cachedContentTokenCount": 256,
        "candidatesTokenCount": 37,
        "thoughtsTokenCount": 502,
        "toolUsePromptTokenCount": 20,
        "totalTokenCount": 971,
    },
    Usage(input=432, output=539, reasoning=502, cached=256),
)


def read(dialect, document):
    origin = Origin(dialect=dialect)
    reader = DIALECTS[dialect].reader(stream=False, clock=FrozenClock(), origin=origin, sent=1)
    reader.feed(json.dumps(document).encode())
    return reader.close(reason="closed")[-1].usage


@pytest.mark.parametrize("provider", CHAT)
def test_chat(provider):
    counts, usage = CHAT[provider]
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "a"}}
    assert read("chat", {"id": "i", "model": "m", "choices": [choice], "usage": counts}) == usage


def test_responses():
    counts, usage = RESPONSES
    response = {"id": "r", "object": "response", "status": "completed", "output": []}
    assert read("responses", response | {"usage": counts}) == usage


@pytest.mark.parametrize("case", MESSAGES)
def test_messages(case):
    counts, usage = MESSAGES[case]
    message = {"id": "m", "type": "message", "role": "assistant", "content": []}
    assert read("messages", message | {"stop_reason": "end_turn", "usage": counts}) == usage


def test_messages_counts_of_a_stream_are_added_up_once():
    """The prompt's counts come at the start, and the later versions repeat them at the end."""
    counts, usage = MESSAGES["written"]
    begun = {"type": "message_start", "message": {"id": "m", "content": [], "usage": counts}}
    ended = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": counts}
    reader = DIALECTS["messages"].reader(
        stream=True, clock=FrozenClock(), origin=Origin(dialect="messages"), sent=1
    )
    for event in (begun, ended, {"type": "message_stop"}):
        reader.feed(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
    assert reader.close(reason="closed")[-1].usage == usage


def test_gemini():
    counts, usage = GEMINI
    content = {"role": "model", "parts": [{"text": "a"}]}
    candidates = [{"content": content, "finishReason": "STOP"}]
    assert read("gemini", {"candidates": candidates, "usageMetadata": counts}) == usage
