"""OpenAI's SDK and the Chat Completions API, as its users write it."""

import json

import pytest

from e2e.ways import KEY, TOOLS, providers, schema, sdk

pytestmark = pytest.mark.filterwarnings("ignore")
CHAT = providers("chat")
DECLARED = [
    {"type": "function", "function": {"name": name, "parameters": schema(name)}} for name in TOOLS
]


def client(way):
    openai = sdk("openai")
    return openai.OpenAI(base_url=way.url, api_key=KEY, http_client=way.http(), max_retries=0)


def answers(message):
    """What the tools say to the calls of a message (an object of the SDK's)."""
    made = []
    for call in message.tool_calls or ():
        arguments = json.loads(call.function.arguments)
        content = TOOLS[call.function.name](**arguments)
        made.append({"role": "tool", "tool_call_id": call.id, "content": content})
    return made


def converse(way, turn):
    """Ask and work until all questions are answered; `turn` gives a message, and how it is kept."""
    messages = [{"role": "system", "content": "Be brief."}]
    for number in range(3):
        messages.append({"role": "user", "content": way.ask(number)})
        while True:
            message, kept = turn(messages)
            results = answers(message)
            messages += [kept, *results]
            if not results:
                break
    way.judge()


@pytest.mark.parametrize("name", CHAT)
def test_create_and_append_the_message(way):
    """The way of the documentation: the message object itself goes into the list."""
    openai = client(way)

    def turn(messages):
        reply = openai.chat.completions.create(model=way.model, messages=messages, tools=DECLARED)
        message = reply.choices[0].message
        return message, message

    converse(way, turn)


@pytest.mark.parametrize("name", CHAT)
def test_create_and_write_down_what_is_seen(way):
    """The way of most agents: role, content and calls, in dictionaries of their own."""
    openai = client(way)

    def turn(messages):
        reply = openai.chat.completions.create(model=way.model, messages=messages, tools=DECLARED)
        message = reply.choices[0].message
        return message, written(message)

    converse(way, turn)


def written(message):
    kept = {"role": "assistant", "content": message.content}
    if message.tool_calls:
        kept["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.function.name,
                    "arguments": json.dumps(json.loads(call.function.arguments)),
                },
            }
            for call in message.tool_calls
        ]
    return kept


def words(content):
    """The text of a delta; one provider has parts there."""
    parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    return "".join(part["text"] for part in parts if part["type"] == "text")


@pytest.mark.parametrize("name", CHAT)
def test_stream_and_gather_the_deltas(way):
    openai = client(way)

    def turn(messages):
        text, calls = "", {}
        for chunk in openai.chat.completions.create(
            model=way.model, messages=messages, tools=DECLARED, stream=True
        ):
            for choice in chunk.choices:
                text += words(choice.delta.content)
                for piece in choice.delta.tool_calls or ():
                    call = calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
                    call["id"] = piece.id or call["id"]
                    call["name"] += piece.function.name or ""
                    call["arguments"] += piece.function.arguments or ""
        types = sdk("openai.types.chat")
        message = types.ChatCompletionMessage.model_validate(
            {
                "role": "assistant",
                "content": text,
                "tool_calls": [
                    {
                        "id": call["id"],
                        "type": "function",
                        "function": {"name": call["name"], "arguments": call["arguments"]},
                    }
                    for call in calls.values()
                ]
                or None,
            }
        )
        return message, written(message)

    converse(way, turn)


@pytest.mark.parametrize("name", providers("chat", without={"mistral"}))
def test_the_stream_helper(way):
    """`.stream()` gathers by itself, and what it gives is appended as it is.

    It adds keys of its own (`parsed`, `refusal`), which Mistral refuses whatever the thoughts are.
    """
    openai = client(way)

    def turn(messages):
        with openai.chat.completions.stream(
            model=way.model, messages=messages, tools=DECLARED
        ) as stream:
            stream.until_done()
            message = stream.get_final_completion().choices[0].message
        return message, message

    converse(way, turn)
