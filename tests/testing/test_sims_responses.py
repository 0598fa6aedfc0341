"""The simulated Responses servers: what they accept, what they refuse, and in which words."""

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.clients import ResponsesClient, load, sse
from support.junk import JUNK, places, put
from thoughtline.testing.sims.base import Request, Say, Think, Use
from thoughtline.testing.sims.responses import PROVIDERS
from thoughtline.testing.sims.responses_events import Event
from thoughtline.testing.sims.spelling import Fragment, fields, letter, plain, write

MODELS = {
    "openai": "gpt-5.6",
    "openai-ws": "gpt-5.6",
    "azure": "gpt-5",
    "codex": "gpt-5.3-codex",
    "xai": "grok-4.5",
    "deepseek-responses": "deepseek-v4-flash",
}
CLEAN = "altered=0; missing=0; misplaced=0; foreign=0"


def client(name="openai", *, options=None, **kwargs):
    sim = PROVIDERS[name](**(options or {}))
    kwargs.setdefault("stream", name == "codex")
    return ResponsesClient(sim, model=kwargs.pop("model", MODELS[name]), **kwargs)


def refusal(reply, status=400):
    assert reply.status == status, reply.body
    return load(reply.body)["error"]


def thoughts(reply):
    return reply.headers["x-sim-thoughts"]


# --- Bringing everything back ------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_everything_verbatim_is_accepted(name, stream):
    one = client(name, stream=stream or name == "codex")
    one.talk(13)
    reply = one.send()
    assert reply.status == 200
    assert thoughts(reply) == f"exact={len(one.sim.emitted) - emitted_by(reply, one)}; {CLEAN}"
    assert len(one.sim.emitted) >= 15


def emitted_by(reply, one):
    return sum(load(item)["type"] == "reasoning" for item in one.output(reply))


def test_turns_have_what_clients_trip_over():
    one = client()
    one.talk(7)
    items = [load(item) for item in one.history]
    kinds = [item.get("type") for item in items]
    pairs = list(itertools.pairwise(kinds))
    assert ("reasoning", "reasoning") in pairs
    assert ("function_call", "function_call") in pairs
    assert ("message", "reasoning") in pairs  # interleaved
    assert {item.get("phase") for item in items} >= {"commentary", "final_answer"}
    summaries = [len(item["summary"]) for item in items if item["type"] == "reasoning"]
    assert set(summaries) == {0, 1, 2}
    odd = [one.history[at] for at in one.find(lambda item: "x_trace" in item)]
    assert odd
    assert b'"steps":5.0' in odd[0]
    assert b"1E+2" in odd[0]
    assert list(fields(odd[0])) == ["summary", "x_trace", "encrypted_content", "type", "id"]


def test_emitted_blobs_look_like_the_real_ones():
    one = client()
    one.talk(1)
    assert load(one.history[1])["encrypted_content"].startswith("gAAAA")
    other = client("xai")
    other.talk(1)
    assert not load(other.history[1])["encrypted_content"].endswith("=")


def test_prompt_cache_counts_the_common_prefix():
    one = client()
    used = []
    for _ in range(4):
        reply = one.send()
        used.append(load(reply.body)["usage"])
        one.absorb(reply)
    for before, after in itertools.pairwise(used):
        assert after["input_tokens_details"]["cached_tokens"] >= before["input_tokens"] - 1
    one.edit(1, summary=[{"type": "summary_text", "text": "changed"}])
    cached = load(one.send().body)["usage"]["input_tokens_details"]["cached_tokens"]
    assert cached < used[1]["input_tokens"]


def test_without_tools_or_thinking():
    one = client(tools=False)
    one.talk(4)
    assert not one.kinds("function_call")
    other = client(reasoning={"effort": "none"})
    other.talk(3)
    assert not other.kinds("reasoning")


def test_same_serial_free_output_in_two_conversations():
    one = client(options={"serials": False})
    one.talk(3)
    two = ResponsesClient(one.sim)
    two.history = [two.user("Something else.")]
    two.talk(3)
    said = [[load(c.history[at])["content"] for at in c.kinds("message")] for c in (one, two)]
    assert said[0][1:2] == said[1][1:2]
    two.history[1] = one.history[1]
    two.history[2:4] = one.history[2:4]
    two.history[4:6] = one.history[4:6]
    assert "foreign=1" in thoughts(two.send())


# --- The stream --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("escaped", [False, True])
def test_stream_carries_what_the_body_carries(name, escaped):
    bodies = []
    for stream in (True, False):
        one = client(name, stream=stream, options={"escaped": escaped, "streamed": False})
        one.talk(5)
        bodies.append([letter(item) for item in one.history])
    assert bodies[0] == bodies[1]


def test_stream_has_the_documented_order():
    one = client(stream=True)
    one.absorb(one.send())
    reply = one.send()
    events = [load(data) for data in sse(reply.body)]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert "response.reasoning_summary_text.delta" in kinds
    assert "response.output_text.delta" in kinds
    assert "response.function_call_arguments.delta" in kinds
    names = [line for line in reply.body.split(b"\n") if line.startswith(b"event: ")]
    assert [name.removeprefix(b"event: ").decode() for name in names] == kinds
    told = "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
    done = next(e for e in events if e["type"] == "response.output_text.done")
    assert told == done["text"]


def test_blob_is_partial_when_announced():
    one = client(stream=True)
    events = [load(data) for data in sse(one.send().body)]
    added = next(e for e in events if e["type"] == "response.output_item.added")
    done = next(e for e in events if e["type"] == "response.output_item.done")
    partial, whole = added["item"]["encrypted_content"], done["item"]["encrypted_content"]
    assert partial
    assert whole.startswith(partial)
    assert len(partial) < len(whole)


def test_late_blob_is_only_in_the_last_event():
    one = client("azure", stream=True)
    events = [load(data) for data in sse(one.send().body)]
    done = next(e for e in events if e["type"] == "response.output_item.done")
    assert done["item"]["encrypted_content"] is None
    assert events[-1]["response"]["output"][0]["encrypted_content"].startswith("gAAAA")


def test_alias_of_the_finished_item():
    one = client(stream=True, options={"alias": True})
    done = [load(data) for data in sse(one.send().body)]
    done = [event for event in done if event["type"] == "response.output_item.done"]
    assert all("item" not in event for event in done)
    assert done[0]["output_item"]["type"] == "reasoning"


def test_blob_must_be_asked_for_where_it_is_not_given():
    one = client("azure", include=[])
    item = load(one.output(one.send())[0])
    assert "encrypted_content" not in item
    assert "encrypted_content" in load(client(include=[]).output(client(include=[]).send())[0])


def test_escaped_stream_cuts_emoji_in_two():
    one = client("deepseek-responses", stream=True, options={"escaped": True})
    reply = one.send()
    assert reply.body.isascii()
    deltas = [data for data in sse(reply.body) if b"reasoning_text.delta" in data]
    texts = [json.loads(data)["delta"] for data in deltas]
    assert any("\ud83d" in text and "\U0001f600" not in text for text in texts)
    joined = "".join(texts).encode("utf-16", "surrogatepass").decode("utf-16")
    assert "\U0001f600" in joined


# --- Pairing -----------------------------------------------------------------------------------


def test_call_without_its_reasoning():
    one = client()
    one.talk(1)
    pair = load(one.history.pop(1))["id"]
    call = load(one.history[1])["id"]
    error = refusal(one.send())
    assert error == {
        "message": f"Item '{call}' of type 'function_call' was provided without its required"
        f" 'reasoning' item: '{pair}'.",
        "type": "invalid_request_error",
        "param": "input",
        "code": None,
    }


def test_message_without_its_reasoning():
    one = client()
    one.talk(3)
    message = one.kinds("message")[-2]
    pair = load(one.history[message - 1])["id"]
    name = load(one.history[message])["id"]
    del one.history[message - 1]
    assert refusal(one.send())["message"] == (
        f"Item '{name}' of type 'message' was provided without its required 'reasoning' item:"
        f" '{pair}'."
    )


def test_all_ids_stripped_is_accepted_and_loses_the_thought():
    one = client()
    one.talk(2)
    one.history = [item for item in one.history if load(item).get("type") != "reasoning"]
    for at in range(len(one.history)):
        one.edit(at, id=None)
    reply = one.send()
    assert reply.status == 200
    assert "exact=0" in thoughts(reply)
    assert "missing=3" in thoughts(reply)


def test_blob_without_id_is_enough():
    one = client()
    one.talk(5)
    for at in one.kinds("reasoning"):
        if "x_trace" not in load(one.history[at]):
            one.edit(at, id=None)
    reply = one.send()
    assert reply.status == 200
    assert thoughts(reply) == f"exact=7; {CLEAN}"


@pytest.mark.parametrize("what", ["last", "separated", "swapped"])
def test_reasoning_without_its_follower(what):
    one = client()
    one.talk(1)
    name = load(one.history[1])["id"]
    if what == "last":
        one.history = one.history[:2]
    elif what == "separated":
        one.history.insert(2, one.user("Wait."))
    else:
        one.history[2], one.history[3] = one.history[3], one.history[2]
    error = refusal(one.send())
    assert error["message"] == (
        f"Item '{name}' of type 'reasoning' was provided without its required following item."
    )
    assert error["param"] == "input"


def test_follower_without_id_is_known_by_its_call_id():
    one = client()
    one.talk(2)
    for at in [*one.kinds("function_call"), *one.kinds("message")[1:]]:
        one.edit(at, id=None, status=None)
    assert one.send().status == 200
    one.edit(one.kinds("function_call")[0], call_id="call_other")
    one.edit(one.kinds("function_call_output")[0], call_id="call_other")
    assert "required following item" in refusal(one.send())["message"]


def test_item_twice():
    one = client()
    one.talk(1)
    one.history[1:1] = one.history[1:3]
    name = load(one.history[1])["id"]
    assert refusal(one.send())["message"] == (
        f"Duplicate item found with id {name}. Remove duplicate items from your input and try"
        " again."
    )


def test_item_twice_through_previous_response():
    one = client(store=True)
    reply = one.send()
    one.absorb(reply)
    again = one.send(previous_response_id=load(reply.body)["id"], input=one.raw()[1:])
    assert refusal(again)["message"].startswith("Duplicate item found with id rs_")


def test_calls_and_results_belong_together():
    one = client()
    one.talk(1)
    call = load(one.history[-1])["call_id"]
    whole = one.history
    one.history = whole[:-1]
    assert refusal(one.send())["message"] == f"No tool output found for function call {call}."
    one.history = [whole[0], whole[-1]]
    assert refusal(one.send())["message"] == (
        f"No tool call found for function call output with call_id {call}."
    )


# --- Seals -------------------------------------------------------------------------------------


def unverified(blob):
    return (
        f"The encrypted content {blob[:4]}...{blob[-4:]} could not be verified."
        " Reason: Encrypted content could not be decrypted or parsed."
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda blob: blob[:-8] + "AAAAAA==",
        lambda blob: blob[: len(blob) // 2],
        lambda blob: blob + "\n",
        lambda blob: blob[:30] + ("B" if blob[30] != "B" else "C") + blob[31:],
        lambda _: "sig-of-someone-else",
    ],
)
def test_altered_blob(spoil):
    one = client()
    one.talk(1)
    blob = spoil(load(one.history[1])["encrypted_content"])
    one.edit(1, encrypted_content=blob)
    error = refusal(one.send())
    assert error["message"] == unverified(blob)
    assert error["code"] == "invalid_encrypted_content"
    assert error["param"] is None


def test_blob_of_another_account():
    one = client()
    one.talk(1)
    blob = load(one.history[1])["encrypted_content"]
    one.key = "key-two"
    assert refusal(one.send())["message"] == unverified(blob)


def test_blob_of_another_provider_and_of_another_seed():
    for other in (client("xai"), client(options={"seed": 1})):
        one = client()
        one.talk(1)
        other.talk(1)
        one.edit(1, encrypted_content=load(other.history[1])["encrypted_content"])
        assert refusal(one.send())["code"] == "invalid_encrypted_content"


def test_blob_of_another_item():
    one = client()
    one.talk(2)
    first, second = one.kinds("reasoning")[:2]
    one.edit(first, encrypted_content=load(one.history[second])["encrypted_content"])
    assert refusal(one.send())["code"] == "invalid_encrypted_content"


def test_other_model_of_the_same_account_is_fine():
    one = client()
    one.talk(2)
    one.model = "gpt-5"
    assert one.send().status == 200


def test_codex_names_the_item():
    one = client("codex")
    one.talk(1)
    name = load(one.history[1])["id"]
    one.key = "key-two"
    assert refusal(one.send())["message"] == (
        f"The encrypted content for item {name} could not be verified."
        " Reason: Encrypted content could not be decrypted or parsed."
    )


def test_altered_spelling_is_reported_not_refused():
    one = client()
    one.talk(3)
    at = one.find(lambda item: "x_trace" in item)[0]
    one.history[at] = write(load(one.history[at]))
    reply = one.send()
    assert reply.status == 200
    assert "altered=1" in thoughts(reply)


def test_thought_of_another_turn_is_misplaced():
    one = client()
    one.talk(3)
    first, last = one.kinds("reasoning")[0], one.kinds("reasoning")[-1]
    one.history[first], one.history[last] = one.history[last], one.history[first]
    for at in one.kinds("reasoning"):
        one.edit(at, id=None)
    for at in [*one.kinds("function_call"), *one.kinds("message")[1:]]:
        one.edit(at, id=None)
    reply = one.send()
    assert reply.status == 200
    assert "misplaced=2" in thoughts(reply)


# --- Storage -----------------------------------------------------------------------------------

NOT_PERSISTED = (
    "Item with id '{}' not found. Items are not persisted when `store` is set to false. Try again"
    " with `store` set to true, or remove this item from your input."
)


def test_id_without_blob_needs_storage():
    one = client()
    one.talk(1)
    name = load(one.history[1])["id"]
    one.edit(1, encrypted_content=None)
    assert refusal(one.send())["message"] == NOT_PERSISTED.format(name)
    assert refusal(one.send(store=True))["message"] == NOT_PERSISTED.format(name)
    one.edit(1, id="rs_unknown")
    assert refusal(one.send(store=True), 404)["message"] == "Item with id 'rs_unknown' not found."


def test_stored_items_are_found_by_id_or_reference():
    one = client(store=True)
    one.talk(3)
    for at in one.kinds("reasoning"):
        one.edit(at, encrypted_content=None, summary=[])
    for at in one.kinds("message")[1:-1]:
        one.history[at] = write({"type": "item_reference", "id": load(one.history[at])["id"]})
    one.history[1] = write({"id": load(one.history[1])["id"]})
    reply = one.send()
    assert reply.status == 200, reply.body
    assert thoughts(reply) == f"exact=4; {CLEAN}"
    one.key = "key-two"
    assert refusal(one.send())["message"].startswith("Item with id '")


def test_previous_response():
    one = client(store=True)
    for turn in range(7):
        reply = one.send()
        assert reply.status == 200, reply.body
        assert thoughts(reply).endswith(CLEAN), turn
        items = one.output(reply)
        one.history = one.answers(items)
        one.body["previous_response_id"] = load(reply.body)["id"]
    assert thoughts(one.send()) == f"exact=9; {CLEAN}"
    one.key = "key-two"
    error = refusal(one.send())
    assert error["code"] == "previous_response_not_found"


@pytest.mark.parametrize("name", ["openai", "xai"])
def test_previous_response_that_is_not_stored(name):
    one = client(name)
    reply = one.send()
    one.absorb(reply)
    name = load(reply.body)["id"]
    reply = one.send(previous_response_id=name)
    assert reply.status == 400
    assert f"Previous response with id '{name}' not found." in reply.body.decode()


def test_stored_response_can_be_read_again():
    one = client(store=True)
    body = one.send().body
    name = load(body)["id"]
    headers = {"authorization": "Bearer key-one"}
    assert load(one.sim.answer(Request("GET", f"/v1/responses/{name}", headers, b"")).body) == load(
        body
    )
    headers = {"authorization": "Bearer key-two"}
    assert one.sim.answer(Request("GET", f"/v1/responses/{name}", headers, b"")).status == 400


def test_compaction_is_sealed_as_well():
    one = client()
    one.talk(2)
    body = write({"model": "gpt-5.6", "input": one.raw()})
    headers = {"authorization": "Bearer key-one"}
    reply = one.sim.answer(Request("POST", "/v1/responses/compact", headers, body))
    assert reply.status == 200, reply.body
    window = load(reply.body)["output"]
    assert window[-1]["type"] == "compaction"
    one.history = [write(item) for item in [*window, load(one.user("Go on."))]]
    assert one.send().status == 200
    one.edit(-2, encrypted_content=window[-1]["encrypted_content"][:-4] + "AAA=")
    assert refusal(one.send())["code"] == "invalid_encrypted_content"


# --- The other servers -------------------------------------------------------------------------


def test_codex_detail_errors():
    one = client("codex")
    reply = one.send(store=True)
    assert (reply.status, load(reply.body)) == (400, {"detail": "Store must be set to false"})
    body = one.request()
    del body["store"]
    headers = {"authorization": "Bearer k"}
    reply = one.sim.answer(Request("POST", "/backend-api/codex/responses", headers, write(body)))
    assert load(reply.body) == {"detail": "Store must be set to false"}
    reply = one.send(max_output_tokens=5)
    assert load(reply.body) == {"detail": "Unsupported parameter: max_output_tokens"}
    reply = one.send(stream=False)
    assert load(reply.body) == {"detail": "Stream must be set to true"}


def test_codex_lite_wants_all_turns_and_one_call():
    one = client("codex")
    one.headers["x-openai-internal-codex-responses-lite"] = "true"
    error = refusal(one.send())
    assert error["message"] == (
        "X-OpenAI-Internal-Codex-Responses-Lite requires `reasoning.context` to be `all_turns`."
    )
    assert error["code"] == "unsupported_value"
    one.body["reasoning"] = {"context": "all_turns"}
    one.talk(1)
    assert len(one.kinds("function_call")) == 1


def test_xai_words_and_shape():
    one = client("xai")
    one.talk(1)
    one.key = "key-two"
    reply = one.send()
    assert reply.status == 400
    unreadable = {
        "code": "invalid-argument",
        "error": "Could not decrypt the provided encrypted_content. Ensure the value is the"
        " unmodified encrypted_content from a previous response.",
    }
    assert load(reply.body) == unreadable
    one.key = "key-one"
    kept = one.history[1]
    one.edit(1, summary=None)
    assert load(one.send().body)["error"] == (
        "Could not decode the compaction blob. Ensure it is unmodified from the compact response."
    )
    one.history[1] = kept
    one.edit(1, encrypted_content=None)
    assert one.send().status == 200
    one.edit(1, summary=None)
    assert load(one.send().body)["error"] == "Input[1] missing required field `summary`"
    one.history[1] = kept
    one.edit(1, id="rs_renamed")
    reply = one.send()
    assert reply.status == 200
    assert thoughts(reply) == f"exact=1; {CLEAN}"


DEEPSEEK = {
    "error": {
        "message": "The `reasoning_text` in the thinking mode must be passed back to the API.",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_request_error",
    }
}


def test_deepseek_wants_a_thought_before_each_call():
    one = client("deepseek-responses")
    one.talk(3)
    kinds = [load(item)["type"] for item in one.history]
    assert all(
        kinds[at - 1] == "reasoning" for at, kind in enumerate(kinds) if kind == "function_call"
    )
    for at in one.kinds("function_call"):
        kept = one.history.pop(at - 1)
        reply = one.send()
        assert (reply.status, load(reply.body)) == (400, DEEPSEEK)
        one.history.insert(at - 1, kept)
    assert one.send().status == 200


def test_deepseek_wants_it_on_plain_turns_and_not_without_tools():
    one = client("deepseek-responses")
    one.talk(3)
    del one.history[one.kinds("message")[-2] - 1]
    assert load(one.send().body) == DEEPSEEK
    assert one.send(tools=[]).status == 200
    assert one.send(reasoning={"effort": "none"}).status == 200


def test_deepseek_empty_thought():
    for model, status in (("deepseek-v4-flash", 200), ("deepseek-v4-pro", 400)):
        one = client("deepseek-responses", model=model)
        one.talk(1)
        for at in one.kinds("reasoning"):
            one.edit(at, content=[{"type": "reasoning_text", "text": ""}])
        assert one.send().status == status
        for at in one.kinds("reasoning"):
            one.edit(at, content=[{"type": "reasoning_text", "text": " "}])
        reply = one.send()
        assert reply.status == 200
        assert "missing=2" in thoughts(reply)


# --- The frame ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "param", "code"),
    [
        ({"input": 5}, "input", "invalid_type"),
        ({"input": [5]}, "input[0]", "invalid_type"),
        ({"input": [{"type": "reasoning", "id": "rs_1"}]}, "input[0].summary", None),
        ({"input": [{"type": "nonsense"}]}, "input[0].type", "invalid_value"),
        ({"input": [{"role": "king", "content": ""}]}, "input[0].role", "invalid_value"),
        ({"store": "yes"}, "store", "invalid_type"),
        ({"include": ["all"]}, "include[0]", "invalid_value"),
        ({"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name", "invalid_value"),
        ({"stream_id": "a"}, "stream_id", "unknown_parameter"),
        ({"generate": False}, "generate", "unknown_parameter"),
        ({"reasoning": {"context": "none"}}, "reasoning.context", "invalid_value"),
        ({"model": None}, "model", "invalid_type"),
        ({"input": None}, "input", None),
        ({"tools": [{}]}, "tools[0].type", None),
        ({"tools": [{"type": "function"}]}, "tools[0].name", None),
        (
            {"input": [{"type": "function_call", "call_id": "", "name": "a", "arguments": ""}]},
            "input[0].call_id",
            "empty_string",
        ),
        ({"input": [{"role": "user", "content": [{}]}]}, "input[0].content[0].type", None),
        (
            {"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]},
            "input[0].content[0]",
            "invalid_value",
        ),
        (
            {"input": [{"type": "reasoning", "summary": [{"type": "summary_text"}]}]},
            "input[0].summary[0].text",
            None,
        ),
        ({"input": [{"type": "reasoning", "summary": []}]}, "input[0].id", None),
    ],
)
def test_wrong_parameters_are_named(changes, param, code):
    error = refusal(client().send(**changes))
    assert error["param"] == param
    assert error["code"] == (code or "missing_required_parameter")


def test_long_call_id():
    one = client()
    one.talk(1)
    at = one.kinds("function_call")[0]
    one.edit(at, call_id="c" * 65)
    error = refusal(one.send())
    assert error["message"] == (
        f"Invalid 'input[{at}].call_id': string too long. Expected a string with maximum length"
        " 64, but got a string with length 65 instead."
    )
    assert error["code"] == "string_above_max_length"


def test_id_prefix():
    one = client()
    one.talk(1)
    one.edit(2, id="call_1")
    assert refusal(one.send())["message"] == (
        "Invalid 'input[2].id': 'call_1'. Expected an ID that begins with 'fc'."
    )


def test_unknown_model_path_credential_and_json():
    one = client()
    assert refusal(one.send(model="claude"))["code"] == "model_not_found"
    headers = {"authorization": "Bearer k"}
    reply = one.sim.answer(Request("POST", "/v1/nothing", headers, b"{}"))
    assert refusal(reply, 404)["message"] == "Invalid URL (POST /v1/nothing)"
    assert refusal(one.sim.answer(Request("POST", "/v1/responses", headers, b"{")))
    assert refusal(one.sim.answer(Request("POST", "/v1/responses", {}, b"{}")), 401)
    models = one.sim.answer(Request("GET", "/v1/models", headers, b""))
    assert "gpt-5.6" in [model["id"] for model in load(models.body)["data"]]


def test_only_this_account():
    one = client(options={"account": "key-two"})
    error = refusal(one.send(), 401)
    assert error["code"] == "invalid_api_key"
    one.key = "key-two"
    assert one.send().status == 200
    assert one.send(input="Just a string.").status == 200


def test_faults_have_the_servers_shape():
    one = client(stream=True)
    one.sim.fail_next("500")
    assert refusal(one.send(), 500)["type"] == "server_error"
    one.sim.fail_next("cut:3")
    reply = one.send()
    assert (len(reply.chunks), reply.ending) == (3, "cut")


def test_phase_that_is_lost_is_reported():
    one = client()
    one.talk(3)
    assert one.send().headers["x-sim-phases"] == "kept=2; lost=0"
    one.edit(one.kinds("message")[1], phase=None)
    assert one.send().headers["x-sim-phases"] == "kept=1; lost=1"


def test_script_of_ones_own():
    def script(turn, sim):
        return Think(f"hm {sim.serial}"), Use("run", "{}"), Say(f"and so on {sim.mark}")

    one = client(options={"script": script})
    one.talk(2)
    assert thoughts(one.send()) == f"exact=3; {CLEAN}"  # the second thought is two items


# --- Whatever is sent --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["openai", "codex", "xai", "deepseek-responses"])
@settings(max_examples=60)
@given(data=st.data())
def test_wrong_types_anywhere_get_an_answer(name, data):
    one = client(name)
    one.talk(2)
    body = {**one.request(), "input": [load(item) for item in one.history]}
    path = data.draw(st.sampled_from(list(places(body))))
    body = put(body, path, data.draw(JUNK))
    raw = json.dumps(body).encode()
    reply = one.sim.answer(
        Request("POST", "/v1/responses", {"authorization": "Bearer key-one"}, raw)
    )
    assert reply.status in (200, 400, 404)
    if reply.status != 200:
        assert {"error", "detail"} & set(load(reply.body))


@given(st.binary(max_size=60))
def test_any_bytes_get_an_answer(raw):
    reply = client().sim.answer(
        Request("POST", "/v1/responses", {"authorization": "Bearer k"}, raw)
    )
    assert reply.status == 400


def test_deep_nesting_gets_an_answer():
    deep = b'{"model":"gpt-5","input":[{"role":"user","content":"x","y":' + b"[" * 900 + b"]" * 900
    for raw in (deep + b"}]}", b"[" * 200000):
        one = client()
        reply = one.sim.answer(Request("POST", "/v1/responses", {"authorization": "Bearer k"}, raw))
        assert reply.status == 400


# --- Spelling ----------------------------------------------------------------------------------


@given(JUNK)
def test_written_json_reads_back(value):
    for escaped in (False, True):
        raw = write(value, escaped=escaped)
        assert json.loads(raw) == value
        assert raw.isascii() or not escaped
    assert plain(json.loads(write(value))) == plain(value)


def test_letter_keeps_spelling_and_plain_does_not():
    assert letter(b'{ "b" : 5.0, "a":"\\u00e9" }') == letter('{"b":5.0,"a":"é"}'.encode())
    assert letter(b'{"b":5.0}') != letter(b'{"b":5}')
    assert plain({"b": 5.0, "a": 1}) == plain({"a": 1, "b": 5})
    assert write({"a": Fragment('{"x": 1E+2, "é":1}')}, escaped=True) == (
        b'{"a":{"x": 1E+2, "\\u00e9":1}}'
    )


def test_event_knows_its_kind():
    assert Event({"type": "response.created"}).kind == "response.created"
