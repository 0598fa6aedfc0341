"""A streamed answer of Gemini that its client sends back part by part leaves as it came."""

import json

import pytest

from support.gateway import (
    Answer,
    InProcessGateway,
    ScriptedWire,
    audit,
    gateway_with,
    statuses,
)

PATH = "/v1beta/models/gemini-3-pro-preview:streamGenerateContent"
TOOLS = [{"functionDeclarations": [{"name": name} for name in ("read_file", "run", "search")]}]
TOLD = {"thinkingConfig": {"includeThoughts": True}}


def parts_of(answer):
    """All parts of a stream, chunk by chunk."""
    return [
        part
        for chunk in json.loads(answer.body)
        for part in chunk["candidates"][0].get("content", {}).get("parts", ())
    ]


def results(parts):
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    told = [
        {"functionResponse": {"name": call["name"], "response": {"result": "ok"}}} for call in calls
    ]
    return {"role": "user", "parts": told or [{"text": "And then?"}]}


def one_content(parts):
    return [{"role": "model", "parts": parts}]


def in_pairs(parts):
    """Another client joins what it got two by two."""
    made = []
    for part in parts:
        before = made[-1] if made else {}
        joins = part.get("thought") and before.get("thought") and not before.get("joined")
        if joins and "thoughtSignature" not in before:
            made[-1] = {**part, "text": before["text"] + part["text"], "joined": True}
        else:
            made.append(dict(part))
    return [
        {"role": "model", "parts": [{k: v for k, v in p.items() if k != "joined"} for p in made]}
    ]


def joined(parts):
    """A third one joins all texts that follow one another, with the signature that ends them."""
    made = []
    for part in parts:
        before = made[-1] if made else {}
        texts = "text" in part and "text" in before and not before.get("thoughtSignature")
        if texts and bool(part.get("thought")) == bool(before.get("thought")):
            made[-1] = {**before, **part, "text": before["text"] + part["text"]}
        else:
            made.append(dict(part))
    return one_content(made)


@pytest.mark.parametrize("echo", [one_content, in_pairs, joined])
async def test_a_run_of_thoughts_leaves_as_it_came(echo):
    gateway = gateway_with("gemini", "gemini")
    contents = [{"role": "user", "parts": [{"text": "Please go ahead."}]}]
    cut = 0
    for _ in range(5):
        body = {"contents": contents, "tools": TOOLS, "generationConfig": TOLD}
        raw = json.dumps(body, ensure_ascii=False, indent=1).encode()
        answer = await gateway.post(PATH, raw)
        assert answer.status == 200, answer.body
        assert gateway.wire.sent[-1].body == raw
        parts = parts_of(answer)
        cut += sum(bool(part.get("thought")) for part in parts)
        contents = [*contents, *echo(parts), results(parts)]
    assert cut > 8
    assert set(statuses(gateway)) == {200}
    assert "altered=0; missing=0; misplaced=0; foreign=0" in audit(gateway)


async def test_a_run_that_lost_a_piece_is_put_back():
    gateway = gateway_with("gemini", "gemini")
    contents = [{"role": "user", "parts": [{"text": "Please go ahead."}]}]
    body = {"contents": contents, "tools": TOOLS, "generationConfig": TOLD}
    parts = parts_of(await gateway.post(PATH, body))
    told = "".join(part["text"] for part in parts if part.get("thought"))
    contents = [*contents, *one_content(parts[1:]), results(parts)]
    answer = await gateway.post(PATH, {**body, "contents": contents})
    assert "corrected=1" in answer.header("x-thoughtline-replay")
    sent = json.loads(gateway.wire.sent[-1].body)["contents"][1]["parts"]
    assert "".join(part["text"] for part in sent if part.get("thought")) == told


class InEvents(Answer):
    """A stream whose events come one by one."""

    async def chunks(self):
        for event in self.body.split(b"\n\n")[:-1]:
            yield event + b"\n\n"


def said(*parts, tokens, **more):
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0, **more}
    counts = {"promptTokenCount": 5, "candidatesTokenCount": tokens}
    chunk = {"candidates": [candidate], "usageMetadata": counts}
    return b"data: %b\n\n" % json.dumps(chunk).encode()


@pytest.mark.parametrize("kind", [Answer, InEvents])
async def test_an_answer_that_goes_on_after_its_first_end_is_one_turn(kind):
    """Gemini says why it stopped when it has written code, runs that, and goes on."""
    code = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
    ran = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
    spoken = {"text": "It is one."}
    stream = {"content-type": "text/event-stream"}
    events = [
        said({"text": "I run it.", "thought": True}, tokens=1),
        said({**code, "thoughtSignature": "c2lnMQ=="}, tokens=4, finishReason="STOP"),
        said(ran, tokens=5),
        said(spoken, tokens=9),
        said({"text": "", "thoughtSignature": "c2lnMg=="}, tokens=10, finishReason="STOP"),
    ]
    wire = ScriptedWire(kind(200, b"".join(events), stream))
    gateway = InProcessGateway(wire, "gemini")
    question = {"role": "user", "parts": [{"text": "Count."}]}
    answer = await gateway.post(PATH, {"contents": [question]}, query="alt=sse")
    assert answer.body == b"".join(events)
    (ended,) = await gateway.facts("turn_ended")
    assert (ended.outcome, ended.usage.output) == ("completed", 10)
    echo = {"role": "model", "parts": [code, ran, spoken]}
    await gateway.post(PATH, {"contents": [question, echo, question]}, query="alt=sse")
    assert gateway.wire.bodies[-1]["contents"][1]["parts"] == [
        {"text": "I run it.", "thought": True},
        {**code, "thoughtSignature": "c2lnMQ=="},
        ran,
        spoken,
        {"text": "", "thoughtSignature": "c2lnMg=="},
    ]
