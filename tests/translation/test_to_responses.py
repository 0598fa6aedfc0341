"""Clients of Chat Completions, Messages and Gemini on providers of the Responses API."""

import json

import pytest

from support.gateway import Answer
from support.scripted_upstream import ask, scripted_gateway, streamed
from support.translating_gateway import TranslatingGateway
from thoughtline.testing import Say, Think, Use

SUMMARY = "I weigh it."
THOUGHT = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": SUMMARY}],
    "encrypted_content": "gAAAAsealed",
}
CALL = {
    "id": "fc_1",
    "type": "function_call",
    "status": "completed",
    "call_id": "call_9",
    "name": "run",
    "arguments": "{}",
}
COMMENT = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "phase": "commentary",
    "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
}


def response(*items, status="completed"):
    usage = {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12}
    return {
        "id": "resp_1",
        "object": "response",
        "status": status,
        "model": "gpt-5.6",
        "output": list(items),
        "usage": usage,
    }


def gateway_of(*answers):
    return scripted_gateway(*answers, speaks="responses", policy="openai")


TOOLS = [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}]
GO = {"role": "user", "content": "Go."}


def chat(gateway, *messages, **more):
    body = {"model": "gpt-5.6", "messages": [GO, *messages], "tools": TOOLS, **more}
    return ask(gateway, "/v1/chat/completions", body)


def second_request(gateway, message):
    """What goes upstream when a client that keeps only what is visible sends results."""
    kept = {k: v for k, v in message.items() if not k.startswith("reasoning")}
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "ok"}
        for call in message.get("tool_calls", ())
    ]
    assert chat(gateway, kept, *(results or [{"role": "user", "content": "More."}])).status == 200
    return gateway.wire.bodies[-1]["input"]


def test_a_sealed_item_returns_before_its_call():
    gateway = gateway_of(Answer(body=response(THOUGHT, CALL)), Answer(body=response(COMMENT)))
    message = chat(gateway).json["choices"][0]["message"]
    assert message["reasoning_content"] == SUMMARY
    sent = second_request(gateway, message)
    assert [item.get("type", "message") for item in sent] == [
        *("message", "reasoning", "function_call", "function_call_output"),
    ]
    assert sent[1] == THOUGHT
    assert sent[2]["call_id"] == sent[3]["call_id"] == "call_9"


@pytest.mark.parametrize("dialect", ["chat", "messages", "gemini"])
def test_ids_of_sealed_items_and_their_calls_fit_a_strict_server(dialect):
    def script(turn, sim):
        if turn % 3 == 2:
            return Think(f"c {sim.serial}"), Say(f"Done {sim.mark}.")
        return Think(f"a {sim.serial}"), Use("run", "{}"), Use("search", f'{{"q":"{sim.mark}"}}')

    gateway = TranslatingGateway("openai", sim={"script": script})
    gateway.client(dialect, echo="strip", stream=True).talk(6)
    audit = gateway.records[-1].audit
    assert audit.clean, str(audit)


def test_a_summary_is_shown_and_what_goes_back_is_the_item():
    gateway = gateway_of(Answer(body=response(THOUGHT, COMMENT)), Answer(body=response(COMMENT)))
    body = {"model": "gpt-5.6", "max_tokens": 99, "messages": [GO]}
    told = ask(gateway, "/v1/messages", body).json["content"]
    assert told[0]["thinking"] == SUMMARY
    assert "gAAAAsealed" not in json.dumps(told)
    more = {"role": "user", "content": "More."}
    body["messages"] = [GO, {"role": "assistant", "content": told}, more]
    assert ask(gateway, "/v1/messages", body).status == 200
    sent = gateway.wire.bodies[1]["input"]
    thoughts = [item for item in sent if item.get("type") == "reasoning"]
    assert thoughts in ([THOUGHT], [])  # of a loop that is over, none is needed
    assert json.dumps(sent).count(SUMMARY) == len(thoughts)


def test_what_a_message_is_for_is_kept():
    gateway = gateway_of(Answer(body=response(THOUGHT, COMMENT, CALL)), Answer(body=response()))
    message = chat(gateway).json["choices"][0]["message"]
    sent = second_request(gateway, message)
    said = next(item for item in sent if item.get("role") == "assistant")
    assert (said["content"], said["phase"]) == ("I look.", "commentary")


def test_a_seal_that_comes_only_with_the_end_is_kept():
    bare = {**THOUGHT, "encrypted_content": None}
    values = [
        {"type": "response.created", "response": response(status="in_progress")},
        {"type": "response.output_item.added", "output_index": 0, "item": {**bare, "summary": []}},
        {
            "type": "response.reasoning_summary_text.delta",
            "item_id": "rs_1",
            "output_index": 0,
            "summary_index": 0,
            "delta": SUMMARY,
        },
        {"type": "response.output_item.done", "output_index": 0, "item": bare},
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {**CALL, "arguments": ""},
        },
        {
            "type": "response.function_call_arguments.delta",
            "item_id": "fc_1",
            "output_index": 1,
            "delta": "{}",
        },
        {"type": "response.output_item.done", "output_index": 1, "item": CALL},
        {"type": "response.completed", "response": response(THOUGHT, CALL)},
    ]
    gateway = gateway_of(streamed(*values), Answer(body=response(COMMENT)))
    answer = chat(gateway, stream=True)
    chunks = [json.loads(line[6:]) for line in answer.body.split(b"\n") if line[:7] == b"data: {"]
    calls = [c["choices"][0]["delta"].get("tool_calls") for c in chunks if c["choices"]]
    id = next(call[0]["id"] for call in calls if call)
    call = {"id": id, "type": "function", "function": {"name": "run", "arguments": "{}"}}
    sent = second_request(gateway, {"role": "assistant", "content": None, "tool_calls": [call]})
    assert sent[1] == THOUGHT


def test_nothing_is_stored_there_and_seals_are_asked_for():
    gateway = gateway_of(Answer(body=response(COMMENT)))
    chat(gateway, stop=["END"], seed=3, user="me", metadata={"a": "b"})
    sent = gateway.wire.bodies[0]
    assert sent["store"] is False
    assert sent["include"] == ["reasoning.encrypted_content"]
    assert not {"user", "metadata", "seed", "stop", "prompt_cache_key"} & sent.keys()


def test_a_late_instruction_is_a_developers_in_its_place():
    gateway = TranslatingGateway("openai")
    said = {"role": "assistant", "content": "Hello."}
    body = {
        "model": gateway.model,
        "messages": [GO, said, {"role": "system", "content": "Be brief."}, GO],
    }
    answer = ask(gateway, "/v1/chat/completions", body)
    assert answer.status == 200, answer.body
    roles = [item.get("role") for item in gateway.wire.bodies[0]["input"]]
    assert roles == ["user", "assistant", "developer", "user"]
