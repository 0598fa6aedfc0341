"""Items and requests to prove something with."""

import json

from thoughtline.wires.websocket import requests

FIELDS = {"model": "m", "instructions": "be brief", "tools": [{"type": "function", "name": "run"}]}


USER = {"role": "user", "content": "hello"}


THOUGHT = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}


CALL = {"type": "function_call", "call_id": "c1", "name": "run", "arguments": "{}"}


RESULT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}


def read(*items, after=None, **fields):
    body = json.dumps({**FIELDS, **fields, "input": list(items)}).encode()
    return requests.read(body, after)


def texts(*items):
    return [json.dumps(item).encode() for item in items]
