"""The simulated Gemini: what it accepts, what it refuses, and in which words."""

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.clients import GeminiClient, load, sse
from support.junk import JUNK, places, put
from thoughtline.testing.sims.base import Request, Say, Think, Use
from thoughtline.testing.sims.gemini import PROVIDERS
from thoughtline.testing.sims.spelling import letter, write

CLEAN = "altered=0; missing=0; misplaced=0; foreign=0"
PATH = "/v1beta/models/gemini-3-pro-preview:generateContent"
KEY = {"x-goog-api-key": "key-one"}
SKIP = "skip_thought_signature_validator"
ENGINEERING = "context_engineering_is_the_way_to_go"


def client(name="gemini", *, options=None, **kwargs):
    return GeminiClient(PROVIDERS[name](**(options or {})), **kwargs)


def refusal(reply, status=400, kind="INVALID_ARGUMENT"):
    assert reply.status == status, reply.body
    error = load(reply.body)["error"]
    assert error["code"] == status
    assert error["status"] == kind
    return error["message"]


def thoughts(reply):
    return reply.headers["x-sim-thoughts"]


def models(one):
    return one.find(lambda content: content["role"] == "model")


def signed(one, at):
    return [index for index, part in enumerate(one.parts(at)) if "thoughtSignature" in part]


# --- Bringing everything back ------------------------------------------------------------------


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["gemini", "gemini-vertex"])
def test_everything_verbatim_is_accepted(name, stream, told):
    config = {"thinkingConfig": {"includeThoughts": told}}
    one = client(name, stream=stream, generationConfig=config)
    one.talk(13)
    count = len(one.sim.emitted)
    reply = one.send()
    assert reply.status == 200, reply.body
    assert thoughts(reply) == f"exact={count}; {CLEAN}"
    assert count == 15


def test_turns_have_what_clients_trip_over():
    one = client(generationConfig={"thinkingConfig": {"includeThoughts": True}})
    one.talk(5)
    turns = [one.parts(at) for at in models(one)]
    assert [part.get("thought", False) for part in turns[0]] == [True, False, False]
    assert [sorted(part) for part in turns[0][1:]] == [
        ["functionCall", "thoughtSignature"],
        ["functionCall"],
    ]
    assert [sorted(part) for part in turns[1][1:]] == [
        ["text"],
        ["functionCall", "thoughtSignature"],
    ]
    kinds = [next(name for name in ("functionCall", "text") if name in part) for part in turns[4]]
    assert kinds == ["text", "text", "text", "functionCall", "functionCall"]
    assert [i for i, part in enumerate(turns[4]) if "thoughtSignature" in part] == [1, 3]
    assert "id" not in turns[0][1]["functionCall"]
    assert b'"n":5.0}' in one.history[1]


def test_calls_may_have_ids():
    one = client(options={"ids": True})
    one.talk(1)
    assert one.parts(1)[0]["functionCall"]["id"]


def test_streamed_text_is_signed_by_an_empty_part():
    one = client(stream=True, tools=False)
    reply = one.send()
    assert reply.body.endswith(b"\r\n\r\n")
    parts = [load(part) for part in one.output(reply)]
    assert parts[-1]["text"] == ""
    assert parts[-1]["thoughtSignature"]
    assert not any("thoughtSignature" in part for part in parts[:-1])
    last = load(reply.chunks[-1].removeprefix(b"data: "))
    assert last["candidates"][0]["finishReason"] == "STOP"


def merged(parts):
    """Text in one piece, a signature where it belongs: what stream and body have in common."""
    out = []
    for part in parts:
        same = bool(out) and "text" in part and "text" in out[-1]
        if same and out[-1].get("thought") == part.get("thought"):
            out[-1] = {**out[-1], **part, "text": out[-1]["text"] + part["text"]}
        else:
            out.append(part)
    return [letter(write(part)) for part in out]


@pytest.mark.parametrize("told", [False, True])
def test_stream_carries_what_the_body_carries(told):
    config = {"thinkingConfig": {"includeThoughts": told}}
    ways = [client(stream=stream, generationConfig=config) for stream in (True, False)]
    for _ in range(6):
        replies = [one.send() for one in ways]
        streamed, whole = (
            [load(part) for part in one.output(r)] for one, r in zip(ways, replies, strict=True)
        )
        assert merged(streamed) == merged(whole)
        for one in ways:
            one.absorb(replies[1]) if not one.stream else one.absorb(replies[0])


def test_stream_without_sse_is_an_array():
    one = client(stream=True)
    reply = one.sim.answer(Request("POST", one.path, KEY, write(one.request())))
    assert len(reply.chunks) > 1
    assert load(reply.body)[0]["candidates"][0]["content"]["role"] == "model"
    reply = one.sim.answer(Request("POST", one.path, KEY, b"{}"))
    assert load(reply.body)[0]["error"]["code"] == 400


def test_escaped_stream_cuts_emoji_in_two():
    config = {"thinkingConfig": {"includeThoughts": True}}
    one = client(stream=True, options={"escaped": True}, generationConfig=config)
    reply = one.send()
    assert reply.body.isascii()
    texts = [
        json.loads(data)["candidates"][0]["content"]["parts"][0].get("text", "")
        for data in sse(reply.body.replace(b"\r\n", b"\n"))
    ]
    assert any(text.endswith("\ud83d") for text in texts)


def test_prompt_cache_counts_the_common_prefix():
    one = client()
    one.talk(2)
    first = load(one.send().body)["usageMetadata"]
    one.absorb(one.send())
    second = load(one.send().body)["usageMetadata"]
    assert second["cachedContentTokenCount"] >= first["promptTokenCount"] - 1


# --- Missing -----------------------------------------------------------------------------------


def missing(name, position):
    return (
        "Function call is missing a thought_signature in functionCall parts. This is required for"
        " tools to work correctly, and missing thought_signature may lead to degraded model"
        f" performance. Additional data, function call `default_api:{name}` , position {position}."
        " Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more"
        " details."
    )


def test_first_call_of_a_step_without_its_signature():
    one = client()
    one.talk(1)
    one.change(1, 0, thoughtSignature=None)
    reply = one.send()
    assert refusal(reply) == missing("read_file", 2)
    assert "missing=1" in thoughts(reply)


def test_every_step_of_the_current_turn_counts():
    one = client(options={"script": lambda turn, sim: (Think("x"), Use("run", "{}"))})
    one.talk(3)
    for at in models(one):
        kept = one.history[at]
        one.change(at, 0, thoughtSignature=None)
        assert refusal(one.send()) == missing("run", at + 1)
        one.history[at] = kept
    assert one.send().status == 200


def test_signature_on_the_parallel_call_instead():
    one = client()
    one.talk(1)
    signature = one.parts(1)[0]["thoughtSignature"]
    one.change(1, 0, thoughtSignature=None)
    one.change(1, 1, thoughtSignature=signature)
    assert refusal(one.send()) == missing("read_file", 2)
    one.change(1, 0, thoughtSignature=signature)
    reply = one.send()
    assert reply.status == 200
    assert thoughts(reply) == "exact=1; altered=0; missing=0; misplaced=1; foreign=0"


def test_earlier_turns_and_texts_are_reported_only():
    one = client()
    one.talk(3)
    for at in models(one):
        for index in signed(one, at):
            one.change(at, index, thoughtSignature=None)
    reply = one.send()
    assert reply.status == 200
    assert thoughts(reply) == "exact=0; altered=0; missing=3; misplaced=0; foreign=0"


def test_vertex_says_it_otherwise():
    one = client("gemini-vertex")
    one.talk(1)
    one.change(1, 0, thoughtSignature=None)
    assert refusal(one.send()) == (
        "Unable to submit request because function call `default_api:read_file` in the 2. content"
        " block is missing a `thought_signature`."
    )


def test_older_models_do_not_ask():
    one = client(model="gemini-2.5-flash")
    one.talk(1)
    one.change(1, 0, thoughtSignature=None)
    assert one.send().status == 200


def test_text_beside_results_does_not_begin_a_turn():
    one = client()
    one.talk(1)
    one.edit(2, parts=[*one.parts(2), {"text": "Remember."}])
    one.change(1, 0, thoughtSignature=None)
    assert refusal(one.send()) == missing("read_file", 2)


# --- Wrong values ------------------------------------------------------------------------------


def test_corrupted_signature():
    one = client()
    one.talk(2)
    kept = one.parts(1)[0]["thoughtSignature"]
    for spoiled in (kept[:-4], kept[:40] + "AAAA" + kept[44:], "AAAA", kept + kept):
        one.change(1, 0, thoughtSignature=spoiled)
        assert refusal(one.send()) == "Corrupted thought signature."
    one.change(1, 0, thoughtSignature="not base64!")
    assert refusal(one.send()) == (
        "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding"
        ' failed for "not base64!"'
    )


def test_signature_of_another_account_model_or_server():
    one = client()
    one.talk(3)
    one.key = "key-two"
    assert refusal(one.send()) == "Invalid thought signature."
    one.key = "key-one"
    one.model = "gemini-3-flash-preview"
    assert refusal(one.send()) == "Invalid thought signature."
    one.model = "gemini-3-pro-preview"
    assert one.send().status == 200
    other = client(options={"seed": 1})
    other.talk(1)
    one.history[1] = other.history[1]
    assert refusal(one.send()) == "Corrupted thought signature."
    vertex = client("gemini-vertex")
    vertex.talk(1)
    vertex.history[1] = other.history[1]
    message = "Unable to submit request because Thought signature is not valid"
    assert refusal(vertex.send()) == message


def test_signature_of_an_earlier_turn_is_checked_too():
    one = client()
    one.talk(3)
    one.change(1, 0, thoughtSignature="AAAA")
    assert refusal(one.send()) == "Corrupted thought signature."


@pytest.mark.parametrize("value", [SKIP, ENGINEERING])
@pytest.mark.parametrize("encoded", [False, True])
def test_bypass(value, encoded):
    text = base64.b64encode(value.encode()).decode() if encoded else value
    one = client()
    one.talk(2)
    for at in models(one):
        for index in signed(one, at):
            one.change(at, index, thoughtSignature=text)
    reply = one.send()
    assert reply.status == 200, reply.body
    assert thoughts(reply) == "exact=0; altered=0; missing=2; misplaced=0; foreign=0"
    vertex = client("gemini-vertex")
    vertex.talk(1)
    vertex.change(1, 0, thoughtSignature=text)
    assert (vertex.send().status == 200) is (value == SKIP)


def test_either_alphabet_of_base64():
    one = client()
    one.talk(2)
    for at in models(one):
        for index in signed(one, at):
            text = one.parts(at)[index]["thoughtSignature"]
            text = text.replace("+", "-").replace("/", "_").rstrip("=")
            one.change(at, index, thoughtSignature=text)
    reply = one.send()
    assert reply.status == 200
    assert thoughts(reply) == f"exact=2; {CLEAN}"


def test_snake_case_is_the_same():
    one = client()
    one.talk(1)
    first, second = one.parts(1)
    call = {"function_call": first["functionCall"], "thought_signature": first["thoughtSignature"]}
    one.edit(1, parts=[call, second])
    reply = one.send()
    assert reply.status == 200
    assert thoughts(reply) == f"exact=1; {CLEAN}"


def test_thought_of_another_turn_or_conversation():
    one = client(options={"serials": False})
    one.talk(3)
    first, last = one.parts(1)[0]["thoughtSignature"], one.parts(5)[0]["thoughtSignature"]
    one.change(5, 0, thoughtSignature=first)
    assert "misplaced=1" in thoughts(one.send())
    two = GeminiClient(one.sim)
    two.history = [two.user("Something else.")]
    two.talk(3)
    two.change(5, 0, thoughtSignature=last)
    assert "foreign=1" in thoughts(two.send())


# --- Turns -------------------------------------------------------------------------------------


def test_calls_and_responses_belong_together():
    one = client()
    one.talk(1)
    count = (
        "Please ensure that the number of function response parts is equal to the number of"
        " function call parts of the function call turn."
    )
    kept = one.history[:]
    one.edit(2, parts=one.parts(2)[:1])
    assert refusal(one.send()) == count
    one.history = kept[:2]
    assert refusal(one.send()) == count
    one.history = [kept[0], kept[2]]
    assert refusal(one.send()) == (
        "Please ensure that function response turn comes immediately after a function call turn."
    )
    one.history = kept[1:]
    assert refusal(one.send()) == (
        "Please ensure that function call turn comes immediately after a user turn or after a"
        " function response turn."
    )
    parts = one.parts(0)
    one.history = [kept[0], *kept[1:]]
    responses = load(kept[2])["parts"]
    one.history = [
        kept[0],
        write({"role": "model", "parts": parts[:1]}),
        write({"role": "user", "parts": responses[:1]}),
        write({"role": "model", "parts": parts[1:]}),
        write({"role": "user", "parts": responses[1:]}),
    ]
    assert refusal(one.send()) == missing("search", 4)


def test_results_of_parallel_calls_come_in_one_content_and_once():
    """Replayed against Vertex: split is 400, joined is 200 (llumiverse#620, hermes-agent#22261).

    Nor may a resumed run send a result twice: one response per call (TanStack/ai#1198).
    """
    one = client()
    one.talk(1)
    count = "Please ensure that the number of function response parts is equal to the number"
    asked, responses = one.history[:2], load(one.history[2])["parts"]
    assert len(responses) == 2
    split = [write({"role": "user", "parts": [part]}) for part in responses]
    one.history = [*asked, *split]
    assert refusal(one.send()).startswith(count)
    one.history = [*asked, write({"role": "user", "parts": [*responses, responses[0]]})]
    assert refusal(one.send()).startswith(count)
    one.history = [*asked, write({"role": "user", "parts": responses})]
    assert one.send().status == 200


def test_no_tools_and_none_mode():
    one = client(tools=False)
    one.talk(2)
    assert not any(b"functionCall" in content for content in one.history)
    config = {"functionCallingConfig": {"mode": "NONE"}}
    other = client(toolConfig=config)
    other.talk(2)
    assert not any(b"functionCall" in content for content in other.history)


# --- The frame ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "* GenerateContentRequest.contents: contents is not specified\n"),
        ({"foo": 1}, 'Invalid JSON payload received. Unknown name "foo": Cannot find field.'),
        (
            {"contents": [{"parts": [{"foo": 1}]}]},
            (
                "Invalid JSON payload received. Unknown name \"foo\" at 'contents[0].parts[0]':"
                " Cannot find field."
            ),
        ),
        (
            {"contents": [{"parts": [{"text": 5}]}]},
            "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 5",
        ),
        (
            {"contents": [{"role": "king", "parts": [{"text": "x"}]}]},
            "Please use a valid role: user, model.",
        ),
        (
            {"contents": [{"parts": [{}]}]},
            (
                "* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data'"
                " must have one initialized field\n"
            ),
        ),
        (
            {"contents": [{"parts": []}]},
            "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty.\n",
        ),
        (
            {"contents": [{"parts": [{"functionResponse": {"response": {}}}]}]},
            (
                "* GenerateContentRequest.contents[0].parts[0].function_response.name: Name"
                " cannot be empty.\n"
            ),
        ),
    ],
)
def test_wrong_fields_are_named(body, message):
    reply = client().sim.answer(Request("POST", PATH, KEY, write(body)))
    assert refusal(reply) == message


def test_unknown_model_path_credential_and_json():
    sim = client().sim
    path = "/v1beta/models/gpt-5:generateContent"
    assert refusal(sim.answer(Request("POST", path, KEY, b"{}")), 404, "NOT_FOUND") == (
        "models/gpt-5 is not found for API version v1beta, or is not supported for"
        " generateContent. Call ListModels to see the list of available models and their supported"
        " methods."
    )
    assert refusal(sim.answer(Request("POST", "/v1/x", KEY, b"{}")), 404, "NOT_FOUND")
    assert refusal(sim.answer(Request("POST", PATH, {}, b"{}")), 401, "UNAUTHENTICATED")
    assert refusal(sim.answer(Request("POST", PATH, KEY, b"{")))
    listed = load(sim.answer(Request("GET", "/v1beta/models", KEY, b"")).body)["models"]
    assert "models/gemini-3-pro-preview" in [one["name"] for one in listed]
    reply = sim.answer(Request("POST", PATH, {}, client_body(), "key=key-one"))
    assert reply.status == 200


def client_body():
    return write(client().request())


def test_vertex_path_and_counting():
    sim = client("gemini-vertex").sim
    root = "/v1/projects/p/locations/global/publishers/google/models/gemini-3-pro-preview"
    reply = sim.answer(Request("POST", f"{root}:generateContent", KEY, client_body()))
    assert reply.status == 200
    reply = sim.answer(Request("POST", f"{root}:countTokens", KEY, client_body()))
    assert load(reply.body)["totalTokens"] > 0


def test_faults_have_the_servers_shape():
    one = client()
    one.sim.fail_next("503")
    assert refusal(one.send(), 503, "UNAVAILABLE")


def test_thought_that_nothing_comes_of():
    def script(turn, sim):
        return Say(f"so {sim.mark}"), Think("hm")

    one = client(options={"script": script})
    one.talk(2)
    assert one.parts(1)[-1]["text"] == ""
    assert thoughts(one.send()) == f"exact=2; {CLEAN}"


# --- Whatever is sent --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gemini", "gemini-vertex"])
@settings(max_examples=80)
@given(data=st.data())
def test_wrong_types_anywhere_get_an_answer(name, data):
    one = client(name, generationConfig={"thinkingConfig": {"includeThoughts": True}})
    one.talk(2)
    body = {**one.request(), "contents": [load(content) for content in one.history]}
    path = data.draw(st.sampled_from(list(places(body))))
    raw = json.dumps(put(body, path, data.draw(JUNK))).encode()
    reply = one.sim.answer(Request("POST", PATH, KEY, raw))
    assert reply.status in (200, 400)
    if reply.status != 200:
        assert refusal(reply)


@given(st.binary(max_size=60))
def test_any_bytes_get_an_answer(raw):
    assert client().sim.answer(Request("POST", PATH, KEY, raw)).status == 400


def test_deep_nesting_gets_an_answer():
    deep = b"[" * 900 + b"]" * 900
    call = b'{"functionCall":{"name":"a","args":{"x":' + deep + b'}},"thoughtSignature":"AAAA"}'
    body = b'{"contents":[{"parts":[{"text":"x"}]},{"role":"model","parts":[' + call + b"]}]}"
    for raw in (body, b"[" * 100000):
        assert client().sim.answer(Request("POST", PATH, KEY, raw)).status == 400
