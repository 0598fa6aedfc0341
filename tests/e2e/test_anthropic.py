"""Anthropic's SDK and the Messages API, as its users write it."""

import pytest

from e2e.ways import KEY, THINKING, TOOLS, providers, schema, sdk

pytestmark = pytest.mark.filterwarnings("ignore")
MESSAGES = providers("messages")
DECLARED = [{"name": name, "input_schema": schema(name)} for name in TOOLS]


def client(way):
    anthropic = sdk("anthropic")
    return anthropic.Anthropic(
        base_url=way.root, api_key=KEY, http_client=way.http(), max_retries=0
    )


def asked(way, messages):
    made = {
        "model": way.model,
        "max_tokens": 4096,
        "system": "Be brief.",
        "tools": DECLARED,
        "messages": messages,
    }
    if way.name in THINKING:
        made["thinking"] = THINKING[way.name]
    return made


def converse(way, turn, keep=list):
    """Ask and work until all questions are answered; `keep` says what of an answer is kept."""
    messages = []
    for number in range(3):
        messages.append({"role": "user", "content": way.ask(number)})
        while True:
            message = turn(asked(way, messages))
            messages.append({"role": "assistant", "content": keep(message.content)})
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": block.id,
                    "content": TOOLS[block.name](**block.input),
                }
                for block in message.content
                if block.type == "tool_use"
            ]
            if not results:
                break
            messages.append({"role": "user", "content": results})
    way.judge()


def seen(content):
    """What is shown: texts and calls."""
    return [block for block in content if block.type in ("text", "tool_use")]


def written(content):
    """The same in dictionaries of one's own; plain answers as strings."""
    made = [
        block.model_dump(include={"type", "text", "id", "name", "input"}) for block in seen(content)
    ]
    return made if len(made) > 1 or made[0]["type"] != "text" else made[0]["text"]


@pytest.mark.parametrize("name", MESSAGES)
def test_create_and_append_the_content(way):
    anthropic = client(way)
    converse(way, lambda request: anthropic.messages.create(**request))


@pytest.mark.parametrize("name", MESSAGES)
def test_create_and_keep_what_is_seen(way):
    anthropic = client(way)
    converse(way, lambda request: anthropic.messages.create(**request), seen)


@pytest.mark.parametrize("name", MESSAGES)
def test_create_and_write_down_what_is_seen(way):
    anthropic = client(way)
    converse(way, lambda request: anthropic.messages.create(**request), written)


@pytest.mark.parametrize("keep", [list, seen])
@pytest.mark.parametrize("name", MESSAGES)
def test_the_stream_helper(way, keep):
    anthropic = client(way)

    def turn(request):
        with anthropic.messages.stream(**request) as stream:
            return stream.get_final_message()

    converse(way, turn, keep)
