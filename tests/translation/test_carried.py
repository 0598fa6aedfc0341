"""What an answer says beside thoughts, texts and calls, told to clients of every other dialect."""

import json
import runpy
from pathlib import Path

import pytest

from support.gateway import Answer
from support.scripted_upstream import ask, chat_message, events, scripted_gateway, streamed
from thoughtline.clock import SystemClock
from thoughtline.dialects import DIALECTS
from thoughtline.dialects.citations import MARK
from thoughtline.log.events import Citation, TurnEnded
from thoughtline.log.parts import Origin
from thoughtline.log.usage import Usage
from translation.test_filters import CLIENTS

MADE = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "generate_answers.py"))
PROVIDERS, SAID, ROWS = MADE["PROVIDERS"], MADE["SAID"], MADE["ROWS"]
PAIRS = [(client, speaks) for client in CLIENTS for speaks in PROVIDERS if client != speaks]
every_pair = pytest.mark.parametrize(("client", "speaks"), PAIRS)
either = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


# -- the same answers as streams -----------------------------------------------------------------


def chat_events(body):
    """As OpenAI says it: links with the last words, the usage behind the end; Groq's place."""
    (choice,), usage = body["choices"], body.pop("usage")
    message = choice["message"]
    deltas = [{"role": "assistant", "content": "", "refusal": None}]
    for key in ("content", "refusal"):
        deltas += [{key: letter} for letter in message.get(key) or ""]
    deltas += [{"annotations": message["annotations"]}] if message.get("annotations") else []
    for delta in deltas:
        yield {**body, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    last = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    yield {**body, "choices": [last], "x_groq": {"id": "req_1", "usage": usage}}


def responses_events(body):
    """As OpenAI says it: each link twice, with its event and with the item."""
    yield {"type": "response.created", "response": body | {"status": "in_progress", "output": []}}
    for index, item in enumerate(body["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        empty = item | ({"content": []} if "content" in item else {})
        yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        for part in item.get("content", ()):
            kind = "refusal" if part["type"] == "refusal" else "output_text"
            for letter in part.get("text") or part.get("refusal"):
                yield {"type": f"response.{kind}.delta", **place, "delta": letter}
            for link in part.get("annotations", ()):
                yield {
                    "type": "response.output_text.annotation.added",
                    **place,
                    "annotation": link,
                }
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{body['status']}", "response": body}


def messages_events(body):
    """As Claude says it: the links of a block amid its words."""
    begun = body | {"content": [], "stop_reason": None}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(body["content"]):
        place, text = {"index": index}, block.get("text", "")
        start = {"type": "text", "text": ""} if text else block
        yield {"type": "content_block_start", **place, "content_block": start}
        deltas = [{"type": "text_delta", "text": letter} for letter in text]
        links = [
            {"type": "citations_delta", "citation": link} for link in block.get("citations", ())
        ]
        for delta in (*deltas[:3], *links, *deltas[3:]):
            yield {"type": "content_block_delta", **place, "delta": delta}
        yield {"type": "content_block_stop", **place}
    delta = {key: body[key] for key in ("stop_reason", "stop_sequence")}
    yield {"type": "message_delta", "delta": delta, "usage": body["usage"]}
    yield {"type": "message_stop"}


def gemini_events(body):
    """As Gemini says it: the links come with the end, and once more with what it says of itself."""
    (candidate,) = body["candidates"]
    about = {key: body[key] for key in ("modelVersion", "responseId")}
    for part in candidate["content"]["parts"]:
        pieces = [{"text": letter} for letter in part["text"]] if "text" in part else [part]
        for piece in pieces:
            yield {"candidates": [{"content": {"role": "model", "parts": [piece]}}], **about}
    last = candidate | {"content": {"role": "model", "parts": [{"text": ""}]}}
    yield {"candidates": [last], **about}
    yield {"candidates": [last], **about, "usageMetadata": body["usageMetadata"]}


STREAMS = {
    "chat": chat_events,
    "responses": responses_events,
    "messages": messages_events,
    "gemini": gemini_events,
}


def answered(client, speaks, said, *, stream):
    """What a client is told of an answer of a provider of another dialect."""
    body = PROVIDERS[speaks]({**SAID, **said})
    upstream = streamed(*STREAMS[speaks](body)) if stream else Answer(body=body)
    path, request = CLIENTS[client]
    if client == "gemini":
        path += "streamGenerateContent" if stream else "generateContent"
    else:
        request = {**request, "model": "m", "stream": stream}
    if client == "chat" and stream:
        request = {**request, "stream_options": {"include_usage": True}}
    query = "alt=sse" if client == "gemini" else ""
    answer = ask(scripted_gateway(upstream, speaks=speaks), path, request, query=query)
    assert answer.status == 200, answer.body
    return answer


def read(dialect, body, *, stream):
    """What a reader of a dialect finds in an answer."""
    reader = DIALECTS[dialect].reader(stream=stream, clock=SystemClock(), origin=Origin(), sent=0)
    return [*reader.feed(body), *reader.close()]


# -- links ---------------------------------------------------------------------------------------

TEXT = "Größe zählt. Mehr weiß ich nicht."
PASSAGE = "Größe zählt."


@either
@every_pair
def test_links_arrive(client, speaks, stream):
    end = len(PASSAGE.encode() if speaks == "gemini" else PASSAGE)
    answer = answered(client, speaks, {"text": TEXT, "end": end}, stream=stream)
    (link,) = [e for e in read(client, answer.body, stream=stream) if isinstance(e, Citation)]
    assert (link.url, link.title) == (SAID["url"], SAID["title"])
    quotes = {"chat", "messages"}
    assert link.quote == (SAID["quote"] if {client, speaks} <= quotes else "")
    # Claude says it of all of a block, whoever asks; and its clients take it so.
    whole = "messages" in (client, speaks)
    assert TEXT[link.start : link.end] == (TEXT if whole else PASSAGE)


@either
@every_pair
def test_an_answer_without_links_has_no_place_for_them(client, speaks, stream):
    answer = answered(client, speaks, {"links": False}, stream=stream)
    assert b"grounding" not in answer.body
    assert b"citation" not in answer.body
    assert client == "responses" or b"annotation" not in answer.body


@either
@pytest.mark.parametrize("client", ["responses", "messages", "gemini"])
def test_lists_of_links_beside_the_message_arrive(client, stream):
    """Perplexity repeats them with every chunk."""
    about = {
        "citations": ["https://a.example", "https://b.example"],
        "search_results": [{"title": "B", "url": "https://b.example"}],
    }
    body = chat_message("Yes.").json | about
    upstream = Answer(body=body)
    if stream:
        upstream = streamed(*(event | about for event in chat_events(body)))
    path, request = CLIENTS[client]
    if client == "gemini":
        path += "streamGenerateContent" if stream else "generateContent"
    request = {**request, "model": "m", "stream": stream} if client != "gemini" else request
    query = "alt=sse" if client == "gemini" else ""
    answer = ask(scripted_gateway(upstream), path, request, query=query)
    links = [e for e in read(client, answer.body, stream=stream) if isinstance(e, Citation)]
    assert [(link.url, link.title) for link in links] == [
        ("https://a.example", ""),
        ("https://b.example", "B"),
    ]


@either
@pytest.mark.parametrize("client", ["chat", "responses", "gemini"])
def test_each_text_of_claude_keeps_its_own_links(client, stream):
    """Claude says each claim in a block of its own; for other clients all of it is one text."""
    body = PROVIDERS["messages"](SAID)
    (block,) = body["content"]
    other = {"citations": [block["citations"][0] | {"url": "https://b.example"}]}
    body["content"] = [
        {"type": "text", "text": "I looked. "},
        block | {"text": "Größe zählt. "},
        block | other | {"text": "Mehr nicht."},
    ]
    upstream = streamed(*messages_events(body)) if stream else Answer(body=body)
    path, request = CLIENTS[client]
    if client == "gemini":
        path += "streamGenerateContent" if stream else "generateContent"
    else:
        request = {**request, "model": "m", "stream": stream}
    query = "alt=sse" if client == "gemini" else ""
    answer = ask(scripted_gateway(upstream, speaks="messages"), path, request, query=query)
    found = read(client, answer.body, stream=stream)
    text = "I looked. Größe zählt. Mehr nicht."
    links = {e.url: text[e.start : e.end] for e in found if isinstance(e, Citation)}
    assert links == {"https://a.example": "Größe zählt. ", "https://b.example": "Mehr nicht."}


def test_links_of_a_translated_answer_do_not_go_to_claude():
    """A client that has gone on to Claude itself sends them back; Claude knows none of them."""
    answer = answered("messages", "gemini", {}, stream=False)
    assert MARK in answer.body
    history = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": answer.json["content"]},
        {"role": "user", "content": "Well?"},
    ]
    gateway = scripted_gateway(Answer(500, b"{}"), speaks="messages", policy="anthropic")
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": history}
    ask(gateway, "/v1/messages", body)
    (sent,) = gateway.wire.bodies
    assert sent["messages"][1]["content"] == [{"type": "text", "text": SAID["text"]}]
    assert MARK not in gateway.wire.sent[0].body


# -- refusals ------------------------------------------------------------------------------------

REFUSED = {"refusal": "I cannot help.", "links": False}


def refusal_in(client, answer, *, stream):
    """What a client that looks for refusals finds: the words, and why the answer ended."""
    told = events(answer) if stream else [answer.json]
    match client:
        case "chat":
            choices = [choice for event in told for choice in event["choices"]]
            said = [choice.get("delta") or choice.get("message") or {} for choice in choices]
            assert not any(one.get("content") for one in said)
            ends = [choice["finish_reason"] for choice in choices if choice["finish_reason"]]
            return "".join(one.get("refusal") or "" for one in said), ends[0]
        case "responses":
            last = told[-1]["response"] if stream else told[-1]
            ((part,),) = [item["content"] for item in last["output"]]
            return part["refusal"], last["status"]
        case "messages":
            parts = read(client, answer.body, stream=stream)
            texts = [part.text for e in parts for part in getattr(e, "parts", ())]
            return "".join(texts), told[-2]["delta"]["stop_reason"] if stream else told[0][
                "stop_reason"
            ]
    found = [event["candidates"][0] for event in told]
    texts = [part["text"] for one in found for part in one["content"]["parts"]]
    return "".join(texts), found[-1]["finishReason"]


ENDS = {"chat": "stop", "responses": "completed", "messages": "refusal", "gemini": "SAFETY"}


@either
@pytest.mark.parametrize(
    ("client", "speaks"), [pair for pair in PAIRS if pair[1] in ("chat", "responses")]
)
def test_a_refusal_in_words_is_one_for_every_client(client, speaks, stream):
    answer = answered(client, speaks, REFUSED, stream=stream)
    assert refusal_in(client, answer, stream=stream) == (REFUSED["refusal"], ENDS[client])


def test_a_stream_of_the_responses_api_says_a_refusal_as_openai_does():
    told = events(answered("responses", "chat", REFUSED, stream=True))
    types = [event["type"] for event in told]
    assert types.count("response.refusal.delta") == len(REFUSED["refusal"])
    (done,) = [event for event in told if event["type"] == "response.refusal.done"]
    assert done["refusal"] == REFUSED["refusal"]
    assert "response.output_text.delta" not in types


def test_a_refusal_goes_back_as_what_was_said():
    """The log holds it as a text; the client says it in its own member."""
    refused = Answer(body=PROVIDERS["responses"]({**SAID, **REFUSED}))
    gateway = scripted_gateway(refused, speaks="responses")
    asked = {"role": "user", "content": "Hi"}
    first = ask(gateway, "/v1/chat/completions", {"model": "m", "messages": [asked]})
    said = first.json["choices"][0]["message"]
    history = [asked, said, {"role": "user", "content": "Why?"}]
    second = ask(gateway, "/v1/chat/completions", {"model": "m", "messages": history})
    assert second.status == 200
    sent = gateway.wire.bodies[1]["input"]
    assert [item.get("content") for item in sent if item.get("role") == "assistant"] == [
        REFUSED["refusal"]
    ]


# -- usage ---------------------------------------------------------------------------------------

USAGE = Usage(input=1310, output=300, reasoning=250, cached=1000, cache_write=110)


@either
@every_pair
def test_tokens_arrive(client, speaks, stream):
    answer = answered(client, speaks, {}, stream=stream)
    ended = read(client, answer.body, stream=stream)[-1]
    assert isinstance(ended, TurnEnded)
    written = 110 if "gemini" not in (client, speaks) else None
    if speaks == "gemini" and client in ("responses", "messages"):
        written = 0
    expected = Usage(input=1310, output=300, reasoning=250, cached=1000, cache_write=written)
    assert ended.usage == expected


@either
@pytest.mark.parametrize("client", ["chat", "responses", "messages"])
def test_an_answer_of_nothing_but_thoughts_has_tokens(client, stream):
    counts = {"promptTokenCount": 10, "thoughtsTokenCount": 90, "totalTokenCount": 100}
    part = {"text": "Hm.", "thought": True}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "MAX_TOKENS"}
    body = {"candidates": [candidate], "modelVersion": "m", "usageMetadata": counts}
    upstream = streamed(body) if stream else Answer(body=body)
    path, request = CLIENTS[client]
    request = {**request, "model": "m", "stream": stream}
    if client == "chat" and stream:
        request["stream_options"] = {"include_usage": True}
    answer = ask(scripted_gateway(upstream, speaks="gemini"), path, request)
    usage = read(client, answer.body, stream=stream)[-1].usage
    assert (usage.input, usage.output, usage.reasoning) == (10, 90, 90)


def test_why_a_stream_of_groq_broke_is_told():
    broken = {"id": "c1", "model": "m", "choices": [], "x_groq": {"error": "Out of memory."}}
    path, request = CLIENTS["messages"]
    answer = ask(scripted_gateway(streamed(broken)), path, {**request, "stream": True})
    assert events(answer)[-1]["error"]["message"] == "Out of memory."


# -- the table -----------------------------------------------------------------------------------


def test_the_table_has_every_thing_and_every_pair():
    lines = MADE["answers"]()
    assert {line[0] for line in lines} == {row.name for row in ROWS}
    for name in ("link: address", "filter", "tokens: prompt"):
        (line,) = [line for line in lines if line[0] == name]
        assert line[1] == "chat, responses, messages, gemini"
        assert all(line[2:])
        assert MADE["NOWHERE"] not in line


def test_what_is_compared_says_it_where_it_is_said():
    for row in ROWS:
        bodies = [
            [make({**SAID, **said}) for said in (row.one, row.other)] for make in PROVIDERS.values()
        ]
        assert any(one != other for one, other in bodies), row.name
    json.dumps([make(SAID) for make in PROVIDERS.values()])
