"""A host that refuses a key that the gateway put in: it is taken out, once, and for good.

Such hosts are unknown, and so are their words. The texts below were seen, or are what common
servers say (pydantic, FastAPI, Go, Rust, Java, JSON Schema, protobuf).
"""

import json

import pytest

from support.gateway import Answer, InProcessGateway, SimWire, TurnClient, recovered
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import simulator

WORDS = {
    "openai": (
        '{"error":{"message":"Unknown parameter: \'messages[1].reasoning_content\'.",'
        '"type":"invalid_request_error","param":"messages[1].reasoning_content",'
        '"code":"unknown_parameter"}}'
    ),
    "old openai": (
        '{"error":{"message":"Unrecognized request argument supplied: reasoning_content",'
        '"type":"invalid_request_error"}}'
    ),
    "pydantic": (
        '{"error":{"message":"messages.1.reasoning_content: Extra inputs are not permitted"}}'
    ),
    "fastapi": (
        '{"detail":[{"type":"extra_forbidden","loc":["body","messages",1,"reasoning_content"],'
        '"msg":"Extra inputs are not permitted","input":"x"}]}'
    ),
    "vllm": (
        "{\"object\":\"error\",\"message\":\"[{'type': 'extra_forbidden', 'loc': ('body', "
        "'messages', 1, 'ChatCompletionAssistantMessageParam', 'reasoning_content'), 'msg': "
        '\'Extra inputs are not permitted\'}]","type":"BadRequestError","code":400}'
    ),
    "go": '{"error":"json: unknown field \\"reasoning_content\\""}',
    "rust": (
        '{"error":{"message":"messages[1]: unknown field `reasoning_content`, expected one of '
        '`role`, `content`, `name`, `tool_calls` at line 1 column 310"}}'
    ),
    "java": (
        '{"message":"Unrecognized field \\"reasoning_content\\" (class com.x.Message), not marked '
        'as ignorable (4 known properties)"}'
    ),
    "json schema": (
        '{"error":{"message":"Additional properties are not allowed (\'reasoning_content\' was '
        "unexpected) - 'messages.1'\"}}"
    ),
    "protobuf": (
        '{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name '
        '\\"reasoning_content\\" at \'messages[1]\': Cannot find field."}}'
    ),
}


class RefusingWire(SimWire):
    """A host that does not know a key, in front of a simulated provider."""

    def __init__(self, sim, words, key="reasoning_content", status=400):
        super().__init__(sim)
        self.words, self.key, self.status = words, key, status
        self.refused = 0

    def send(self, request):
        told = json.loads(request.body)
        if any(self.key in message for message in told["messages"]):
            self.refused += 1
            return _Refusal(self, request, Answer(self.status, self.words.encode()))
        return super().send(request)


class _Refusal:
    def __init__(self, wire, request, answer):
        wire.sent.append(request)
        self.answer = answer

    async def __aenter__(self):
        return self.answer

    async def __aexit__(self, *_):
        return None


def host(words, *, store=None, name="glm", **more):
    wire = RefusingWire(simulator(name), words, **more)
    gateway = InProcessGateway(wire, "generic", store=store)
    return gateway, TurnClient(gateway, "chat", wire.sim.models()[0], keep=False)


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
async def test_a_refused_key_is_taken_out_and_never_sent_again(words):
    gateway, client = host(words)
    await client.run(5)
    assert gateway.wire.refused == 1
    assert len(recovered(gateway)) == 1


VAGUE = {
    "bad request": '{"error":{"message":"Bad Request","type":"invalid_request_error"}}',
    "validation": '{"detail":"Validation error"}',
    "parsing": '{"error":"Failed to deserialize the JSON body into the target type"}',
    "a page": "<html><head><title>400 Bad Request</title></head></html>",
    "nothing": "",
}


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("words", VAGUE.values(), ids=VAGUE)
async def test_a_host_that_does_not_say_why_is_asked_once_without(words, status):
    gateway, client = host(words, status=status)
    await client.run(5)
    assert gateway.wire.refused == 1
    assert len(recovered(gateway)) == 1


async def test_a_host_that_has_taken_thoughts_refuses_for_another_reason():
    gateway, client = host(VAGUE["bad request"], key="nothing")
    await client.run(3)
    wire = gateway.wire
    wire.send = lambda request: _Refusal(wire, request, Answer(400, VAGUE["bad request"].encode()))
    assert (await client.say(*client.next())).status == 400
    assert len(wire.sent) == 4


async def test_a_request_that_is_wrong_by_itself_is_refused_in_the_hosts_own_words():
    gateway, client = host(VAGUE["bad request"])
    await client.run(1)
    wire = gateway.wire
    wire.send = lambda request: _Refusal(wire, request, Answer(400, VAGUE["bad request"].encode()))
    answer = await client.say(*client.next())
    assert (answer.status, answer.body.decode()) == (400, VAGUE["bad request"])
    assert len(wire.sent) == 3
    assert not await gateway.facts("endpoint_learned")


async def test_a_known_provider_that_does_not_say_why_is_not_asked_again():
    wire = RefusingWire(simulator("deepseek"), VAGUE["bad request"])
    gateway = InProcessGateway(wire, "deepseek")
    client = TurnClient(gateway, "chat", wire.sim.models()[0], keep=False)
    await client.run(1)
    assert (await client.say(*client.next())).status == 400
    assert len(wire.sent) == 2


async def test_it_is_remembered_after_a_restart():
    store = MemoryStore()
    _, client = host(WORDS["openai"], store=store)
    await client.run(2)
    gateway, again = host(WORDS["openai"], store=store)
    again.turns = client.turns
    await again.run(2)
    assert gateway.wire.refused == 0


async def test_a_key_that_the_client_itself_sends_is_its_own_business():
    gateway, client = host(WORDS["openai"])
    client.keep = True
    await client.run(1)
    answer = await client.say(*client.next())
    assert answer.status == 400
    assert answer.body.decode() == WORDS["openai"]
    assert len(gateway.wire.sent) == 2
    assert not recovered(gateway)


async def test_a_null_of_the_client_is_its_own_too():
    gateway, client = host(WORDS["pydantic"])
    await client.run(1)
    write = client.body
    client.body = lambda: write().replace(
        b'"role":"assistant"', b'"role":"assistant","reasoning_content":null'
    )
    answer = await client.say(*client.next())
    assert answer.status == 400
    assert len(gateway.wire.sent) == 2


@pytest.mark.parametrize(
    "words",
    [
        '{"error":{"message":"The model does not exist"}}',
        '{"error":{"message":"The model does not exist","type":"invalid_request_error"}}',
        '{"error":{"message":"Invalid request: the prompt exceeds the context window."}}',
        '{"error":{"message":"reasoning_content of messages[1] is longer than 10 characters"}}',
        '{"error":{"message":"Unknown parameter: \'messages[1].reasoning_contents\'"}}',
        '{"error":{"message":"Unknown parameter: \'messages[1].cache\'"}}',
    ],
)
async def test_other_refusals_go_through_as_they_are(words):
    gateway, client = host(words)
    await client.run(1)
    answer = await client.say(*client.next())
    assert (answer.status, answer.body.decode()) == (400, words)
    assert len(gateway.wire.sent) == 2


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500])
async def test_only_what_is_wrong_with_the_request_counts(status):
    gateway, client = host(WORDS["openai"], status=status)
    await client.run(1)
    assert (await client.say(*client.next())).status == status
    assert len(gateway.wire.sent) == 2


async def test_a_retry_that_is_refused_too_proves_nothing():
    """The host's words name the key, and it was something else."""
    gateway, client = host(WORDS["openai"])
    await client.run(1)
    wire = gateway.wire
    wire.send = lambda request: _Refusal(wire, request, Answer(400, WORDS["openai"].encode()))
    assert (await client.say(*client.next())).status == 400
    assert len(wire.sent) == 3  # the first turn, the refused one, and one retry
    assert not await gateway.facts("endpoint_learned")


async def test_the_short_key_is_not_taken_for_the_long_one():
    words = '{"error":{"message":"messages.1.reasoning: Extra inputs are not permitted"}}'
    gateway, client = host(words, name="vllm", key="reasoning")
    client.fields = {"reasoning": {"effort": "low"}}  # the client's own parameter of that name
    await client.run(4)
    assert gateway.wire.refused == 1


async def test_a_parameter_of_that_name_is_the_clients_own():
    gateway, client = host("", name="vllm", key="nothing")
    client.fields = {"reasoning": {"effort": "low"}}
    await client.run(1)
    wire = gateway.wire
    words = b'{"error":{"message":"Unknown parameter: reasoning"}}'
    wire.send = lambda request: _Refusal(wire, request, Answer(400, words))
    assert (await client.say(*client.next())).status == 400
    assert len(wire.sent) == 2


class RefusingBodies(SimWire):
    """A host that refuses every body with these bytes in it."""

    def __init__(self, sim, part, words):
        super().__init__(sim)
        self.part, self.words, self.refused = part, words, 0

    def send(self, request):
        if self.part in request.body:
            self.refused += 1
            return _Refusal(self, request, Answer(400, self.words))
        return super().send(request)


async def test_a_parameter_that_only_we_set_is_taken_out():
    words = b'{"error":{"message":"Unknown parameter: \'include\'","param":"include"}}'
    wire = RefusingBodies(simulator("openai"), b'"include"', words)
    gateway = InProcessGateway(wire, "openai")
    client = TurnClient(gateway, "responses", wire.sim.models()[0], keep=True)
    write = client.body
    client.body = lambda: json.dumps(
        {name: value for name, value in json.loads(write()).items() if name != "include"}
    ).encode()
    await client.run(1)
    assert wire.refused == 1
    await client.run(2)
    assert wire.refused == 1


async def test_blocks_that_a_host_does_not_know():
    words = (
        b'{"error":{"message":"messages.1.content.0: Input tag \'thinking\' found using \'type\' '
        b"does not match any of the expected tags: 'text', 'tool_use'\"}}"
    )
    wire = RefusingBodies(simulator("deepseek-anthropic"), b'"thinking"', words)
    gateway = InProcessGateway(wire, "generic")
    client = TurnClient(gateway, "messages", "deepseek-v4-flash", keep=False, tools=())
    await client.run(4)
    assert wire.refused == 1
