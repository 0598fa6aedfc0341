"""OpenAI's SDK and the Responses API, as its users write it."""

import json

import pytest

from e2e.ways import KEY, TOOLS, providers, schema, sdk

pytestmark = pytest.mark.filterwarnings("ignore")
RESPONSES = providers("responses")
STREAMED = {"codex"}  # answers as a stream only, and takes no request that could be stored
ENCRYPTED = ["reasoning.encrypted_content"]
DECLARED = [
    {"type": "function", "name": name, "parameters": schema(name), "strict": False}
    for name in TOOLS
]


def client(way):
    openai = sdk("openai")
    return openai.OpenAI(base_url=way.url, api_key=KEY, http_client=way.http(), max_retries=0)


def respond(way, openai, **more):
    """One response, streamed where the provider wants it so."""
    asked = {"model": way.model, "tools": DECLARED, "instructions": "Be brief.", **more}
    if way.name not in STREAMED:
        return openai.responses.create(**asked)
    with openai.responses.stream(**asked) as stream:
        return stream.get_final_response()


def answers(output):
    return [
        {
            "type": "function_call_output",
            "call_id": item.call_id,
            "output": TOOLS[item.name](**json.loads(item.arguments)),
        }
        for item in output
        if item.type == "function_call"
    ]


def question(way, number):
    return {"role": "user", "content": way.ask(number)}


def converse(way, keep, **more):
    """Carry the history along as a list; `keep` says how a response goes into it."""
    openai, history = client(way), []
    for number in range(3):
        history.append(question(way, number))
        while True:
            response = respond(way, openai, input=history, **more)
            results = answers(response.output)
            history += [*keep(response.output), *results]
            if not results:
                break
    way.judge()


@pytest.mark.parametrize("name", RESPONSES)
def test_append_the_output(way):
    """The way of the documentation without storage: `input += response.output`."""
    converse(way, list, store=False, include=ENCRYPTED)


@pytest.mark.parametrize("name", RESPONSES)
def test_append_the_output_and_ask_for_nothing(way):
    """As above by a client that has not heard of encrypted content."""
    converse(way, list, store=False)


@pytest.mark.parametrize("name", RESPONSES)
def test_write_down_what_is_seen(way):
    """The way of many frameworks: calls and texts go on with their ids, reasoning stays behind."""
    converse(way, lambda output: [i for i in output if i.type != "reasoning"], store=False)


@pytest.mark.parametrize("name", providers("responses", without=STREAMED))
def test_write_down_what_is_seen_with_storage(way):
    """The same by a client that leaves `store` as it is."""
    converse(way, lambda output: [i for i in output if i.type != "reasoning"])


@pytest.mark.parametrize("name", RESPONSES)
def test_write_down_what_is_seen_without_ids(way):
    def keep(output):
        kept = []
        for item in output:
            if item.type == "function_call":
                kept.append(item.model_dump(include={"type", "call_id", "name", "arguments"}))
            elif item.type == "message":
                text = "".join(part.text for part in item.content)
                kept.append({"role": "assistant", "content": text})
        return kept

    converse(way, keep, store=False)


@pytest.mark.parametrize("name", RESPONSES)
def test_the_stream_helper(way):
    openai, history = client(way), []
    for number in range(3):
        history.append(question(way, number))
        while True:
            with openai.responses.stream(
                model=way.model, tools=DECLARED, input=history, store=False, include=ENCRYPTED
            ) as stream:
                response = stream.get_final_response()
            results = answers(response.output)
            history += [*response.output, *results]
            if not results:
                break
    way.judge()


@pytest.mark.parametrize("name", providers("responses", without=STREAMED | {"deepseek-responses"}))
def test_go_on_from_the_previous_response(way):
    """With nothing but an id: the provider's memory, or ours where it has none."""
    openai, previous = client(way), None
    for number in range(3):
        said = [question(way, number)]
        while said:
            more = {"previous_response_id": previous} if previous else {}
            response = respond(way, openai, input=said, **more)
            previous, said = response.id, answers(response.output)
    way.judge()
