"""Chunks of a UI message stream, read as a client reads them."""

import json

NAMES = ("deepseek", "claude", "openai", "gemini", "mistral", "openrouter", "copilot")


def unframed(body):
    events = body.decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    return [json.loads(event.removeprefix("data: ")) for event in events[:-2]]


def merged(into, value):
    for key, more in value.items():
        both = isinstance(more, dict) and isinstance(into.get(key), dict)
        into[key] = merged(into[key], more) if both else more
    return into
