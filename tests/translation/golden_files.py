"""One request and one answer for every pair of dialects, as they are translated.

    python tests/translation/golden_files.py

writes `golden/` anew: `CLIENT-PROVIDER.request.json` is what the provider is sent for the same
request in each client's dialect, `.answer.json` what the client is told of the provider's answer,
`.stream.txt` the same as a stream. Look at the difference before you commit it.
"""

import json
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from support.gateway import Answer
from support.scripted_upstream import ask, scripted_gateway
from support.translation import CONVERSATION, spoken

FOLDER = Path(__file__).parent / "golden"
PROVIDERS = {dialect: name for name, (dialect, _) in CONVERSATION.items()}
PAIRS = [(client, speaks) for client in PROVIDERS for speaks in PROVIDERS if client != speaks]
POLICIES = {"chat": "deepseek", "responses": "openai", "messages": "anthropic", "gemini": "gemini"}
MODELS = {
    "chat": "deepseek-v4-pro",
    "responses": "gpt-5.6",
    "messages": "claude-sonnet-4-5",
    "gemini": "gemini-3-pro-preview",
}

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
ARGUMENTS = '{"path": "a.txt"}'
PNG = "iVBORw0KGgo="
ANSWER = {"type": "object", "properties": {"done": {"type": "boolean"}}, "required": ["done"]}


def chat_request(model):
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "read", "arguments": ARGUMENTS},
    }
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    return "/v1/chat/completions", {
        "model": model,
        "messages": [
            {"role": "system", "content": "You help."},
            {"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]},
            {"role": "assistant", "content": "I look.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "A cat."},
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Well?"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "read", "description": "Read it.", "parameters": SCHEMA},
            }
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "reasoning_effort": "high",
        "max_completion_tokens": 9000,
        "stop": ["END"],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": ANSWER},
        },
    }


def responses_request(model):
    def message(role, content):
        return {"type": "message", "role": role, "content": content}

    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
    return "/v1/responses", {
        "model": model,
        "instructions": "You help.",
        "input": [
            message("user", [{"type": "input_text", "text": "What is this?"}, image]),
            message("assistant", [{"type": "output_text", "text": "I look."}]),
            {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": ARGUMENTS},
            {"type": "function_call_output", "call_id": "call_1", "output": "A cat."},
            message("developer", "Be brief."),
            message("user", "Well?"),
        ],
        "tools": [
            {
                "type": "function",
                "name": "read",
                "description": "Read it.",
                "parameters": SCHEMA,
                "strict": False,
            }
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "reasoning": {"effort": "high", "summary": "auto"},
        "max_output_tokens": 9000,
        "text": {"format": {"type": "json_schema", "name": "answer", "schema": ANSWER}},
        "store": False,
    }


def messages_request(model):
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    use = {"type": "tool_use", "id": "call_1", "name": "read", "input": json.loads(ARGUMENTS)}
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "A cat."}
    text = {"type": "text", "text": "What is this?"}
    return "/v1/messages", {
        "model": model,
        "max_tokens": 9000,
        "system": "You help.",
        "messages": [
            {"role": "user", "content": [text, {"type": "image", "source": source}]},
            {"role": "assistant", "content": [{"type": "text", "text": "I look."}, use]},
            {"role": "user", "content": [result]},
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Well?"},
        ],
        "tools": [{"name": "read", "description": "Read it.", "input_schema": SCHEMA}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": ANSWER}},
        "stop_sequences": ["END"],
    }


def gemini_request(model):
    image = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    call = {"functionCall": {"id": "call_1", "name": "read", "args": json.loads(ARGUMENTS)}}
    result = {
        "functionResponse": {"id": "call_1", "name": "read", "response": {"output": "A cat."}}
    }
    return f"/v1beta/models/{model}:generateContent", {
        "systemInstruction": {"parts": [{"text": "You help."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "What is this?"}, image]},
            {"role": "model", "parts": [{"text": "I look."}, call]},
            {"role": "user", "parts": [result, {"text": "Be brief."}, {"text": "Well?"}]},
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "read", "description": "Read it.", "parameters": SCHEMA}
                ]
            }
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "generationConfig": {
            "maxOutputTokens": 9000,
            "stopSequences": ["END"],
            "responseMimeType": "application/json",
            "responseJsonSchema": ANSWER,
            "thinkingConfig": {"thinkingLevel": "high", "includeThoughts": True},
        },
    }


REQUESTS = {
    "chat": chat_request,
    "responses": responses_request,
    "messages": messages_request,
    "gemini": gemini_request,
}


def request(client, speaks):
    """What the provider is sent."""
    gateway = scripted_gateway(Answer(500, b"{}"), speaks=speaks, policy=POLICIES[speaks])
    path, body = REQUESTS[client](MODELS[speaks])
    answer = ask(gateway, path, body)
    sent = json.loads(gateway.wire.sent[0].body)
    return _pretty({"translated": answer.header("x-thoughtline-translated"), "body": sent})


def answer(client, speaks):
    """What the client is told."""
    return _pretty(json.loads(spoken(PROVIDERS[speaks], client, stream=False, realistic=False)))


def stream(client, speaks):
    """What the client is told while it streams."""
    return (
        spoken(PROVIDERS[speaks], client, stream=True, realistic=False)
        .decode()
        .replace("\r\n", "\n")
    )


def _pretty(value):
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


KINDS = {"request.json": request, "answer.json": answer, "stream.txt": stream}


def place(client, speaks, kind):
    """The file of one pair."""
    return FOLDER / f"{client}-{speaks}.{kind}"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for client, speaks in PAIRS:
        for kind, make in KINDS.items():
            place(client, speaks, kind).write_text(make(client, speaks), "utf-8")
