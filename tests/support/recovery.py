"""Requests and answers for gateways whose provider refuses once."""

from support.gateway import Answer
from thoughtline.dialects import DIALECTS

TOOLS = [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}]


CALL = {"id": "call_1", "type": "function", "function": {"name": "run", "arguments": "{}"}}


ASKED = {"role": "user", "content": "hi"}


CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}


TOLD = {"role": "tool", "tool_call_id": "call_1", "content": "ok"}


STRANGER = [ASKED, CALLED, TOLD]
"""A history that nobody remembers."""


def chat(messages=STRANGER, model="deepseek-v4-pro", **more):
    return {"model": model, "messages": messages, "tools": TOOLS, **more}


async def post(gateway, messages=STRANGER, model="deepseek-v4-pro", headers=None, **more):
    return await gateway.post("/v1/chat/completions", chat(messages, model, **more), headers)


SAID = {
    "id": "x",
    "object": "chat.completion",
    "model": "m",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Fine."}}
    ],
}


V4 = "The `reasoning_content` in the thinking mode must be passed back to the API."


REFUSED = Answer(400, {"error": {"message": V4, "type": "invalid_request_error"}})


FINE = Answer(200, SAID)
GPT = "gpt-5.6"


RESPONSES = DIALECTS["responses"]


DONE = Answer(200, {"id": "resp_9", "status": "completed", "output": []})
