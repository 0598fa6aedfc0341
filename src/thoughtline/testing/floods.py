"""Floods: bodies and answers of nested and repeated shapes, to test what they cost.

Each is valid JSON with one list, or one nesting, blown up to a size; most are tiny elements where a
dialect expects messages, parts or calls.
"""

from collections.abc import Callable, Iterator

_ELEMENTS = {
    "empty objects": b"{}",
    "empty lists": b"[]",
    "numbers": b"0",
    "large numbers": b"12345",
    "letters": b'"a"',
    "words": b'"word"',
    "nulls": b"null",
    "objects": b'{"a":0}',
    "pairs": b"[[],[]]",
    "texts": b'{"type":"text","text":"a"}',
    "longer texts": b'{"type":"text","text":"a text of some forty letters and more"}',
    "parts": b'{"text":"a"}',
    "messages": b'{"role":"user","content":"hi"}',
    "answers": b'{"role":"assistant","content":"hi"}',
    "calls": b'{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}',
    "blocks": b'{"type":"tool_use","id":"a","name":"f","input":{}}',
    "items": b'{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}',
    "commas in texts": b'{"role":"user","content":",,,,{{{{[[[[,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,"}',
}
REQUESTS = {
    "chat": {
        "messages": '{"model":"m","messages":[%]}',
        "content": '{"model":"m","messages":[{"role":"user","content":[%]}]}',
        "output": '{"model":"m","messages":[{"role":"assistant","content":[%]}]}',
        "tool_calls": '{"model":"m","messages":[{"role":"assistant","tool_calls":[%]}]}',
        "tools": '{"model":"m","tools":[%],"messages":[{"role":"user","content":"hi"}]}',
    },
    "messages": {
        "messages": '{"model":"m","messages":[%]}',
        "content": '{"model":"m","messages":[{"role":"user","content":[%]}]}',
        "output": '{"model":"m","messages":[{"role":"assistant","content":[%]}]}',
        "input": '{"model":"m","messages":[{"role":"assistant","content":'
        '[{"type":"tool_use","id":"a","name":"f","input":{"x":[%]}}]}]}',
    },
    "responses": {
        "input": '{"model":"m","input":[%]}',
        "content": '{"model":"m","input":[{"type":"message","role":"assistant","content":[%]}]}',
        "summary": '{"model":"m","input":[{"type":"reasoning","id":"r","summary":[%]}]}',
    },
    "gemini": {
        "contents": '{"contents":[%]}',
        "parts": '{"contents":[{"role":"user","parts":[%]}]}',
        "output": '{"contents":[{"role":"model","parts":[%]}]}',
        "args": '{"contents":[{"role":"model","parts":'
        '[{"functionCall":{"name":"f","args":{"x":[%]}}}]}]}',
    },
}
"""By dialect and name: a request, with a place for the flood."""
_CHAT = '{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant",'
_MESSAGE = '{"id":"m","type":"message","role":"assistant","model":"m","content":['
ANSWERS = {
    "chat": {
        "content": _CHAT + '"content":[%]},"finish_reason":"stop"}]}',
        "tool_calls": _CHAT + '"content":null,"tool_calls":[%]},"finish_reason":"stop"}]}',
        "choices": '{"id":"c","model":"m","choices":[%]}',
    },
    "messages": {
        "content": _MESSAGE + '%],"stop_reason":"end_turn"}',
        "input": _MESSAGE + '{"type":"tool_use","id":"a","name":"f","input":{"x":[%]}}],'
        '"stop_reason":"end_turn"}',
    },
    "responses": {
        "output": '{"id":"r","status":"completed","model":"m","output":[%]}',
        "summary": '{"id":"r","status":"completed","model":"m","output":'
        '[{"type":"reasoning","id":"r","summary":[%]}]}',
    },
    "gemini": {
        "parts": '{"candidates":[{"content":{"role":"model","parts":[%]},"finishReason":"STOP"}]}',
        "candidates": '{"candidates":[%]}',
    },
}
"""By dialect and name: an answer that is not streamed, with a place for the flood."""
STREAMS = {
    "chat": '{"choices":[{"index":0,"delta":{"content":[%]}}]}',
    "messages": '{"type":"content_block_start","index":0,"content_block":'
    '{"type":"tool_use","id":"a","name":"f","input":{"x":[%]}}}',
    "responses": '{"type":"response.completed","response":'
    '{"id":"r","status":"completed","output":[%]}}',
    "gemini": '{"candidates":[{"content":{"role":"model","parts":[%]}}]}',
}
"""By dialect: an event of a stream, with a place for the flood."""


_WHOLE: dict[str, Callable[[int], bytes]] = {
    "nested": lambda size: b"[" * (size // 2) + b"]" * (size // 2),
    "one text": lambda size: b'"' + b"a" * size + b'"',
    "wide text": lambda size: b'"\xf0\x9f\x98\x80' + b"\xc3\xa4" * (size // 2) + b'"',
    "widened text": lambda size: (
        b'"' + (b"a" * min(size, 1000) + "\N{GRINNING FACE}".encode()) * max(1, size // 1004) + b'"'
    ),
    "escapes": lambda size: b'"' + b'\\n\\"' * (size // 4) + b'"',
}
_FRAMING = {
    "tiny events": b"data:\n\n",
    "broken events": b"data: {\n\n",
    "comments": b":\n\n",
}
SHAPES = (*_ELEMENTS, *_WHOLE)
"""The names of all shapes."""
STREAM_SHAPES = (*SHAPES, *_FRAMING)
"""The names of all shapes of streams."""


def flood(template: str, shape: str, size: int) -> bytes:
    """A body with a list of about this many bytes."""
    before, _, after = template.encode().partition(b"%")
    if shape in _WHOLE:
        return before + _WHOLE[shape](size) + after
    element = _ELEMENTS[shape]
    return before + b",".join([element] * max(1, size // (len(element) + 1))) + after


def floods(template: str, size: int) -> Iterator[tuple[str, bytes]]:
    """All floods of a template, by shape."""
    for shape in SHAPES:
        yield shape, flood(template, shape, size)


def stream(template: str, shape: str, size: int, *, each: int = 50_000) -> bytes:
    """A stream of about this many bytes, whose events have a flood of `each` bytes."""
    if shape in _FRAMING:
        return _FRAMING[shape] * (size // len(_FRAMING[shape]))
    framed = b"data: " + flood(template, shape, min(each, size)) + b"\n\n"
    return framed * max(1, size // len(framed))


def streams(template: str, size: int, *, each: int = 50_000) -> Iterator[tuple[str, bytes]]:
    """All streams of a template, by shape."""
    for shape in STREAM_SHAPES:
        yield shape, stream(template, shape, size, each=each)
