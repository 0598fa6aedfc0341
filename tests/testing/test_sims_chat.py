"""The Chat Completions simulators: what they accept, reject, report and emit."""

from __future__ import annotations

import copy
import json

import pytest

from support.clients import (
    TOOLS,
    ChatClient,
    audit,
    chat_events,
    counts,
    message_of,
    post,
    strip_message,
)
from thoughtline.testing import Say, Think, Use, simulator
from thoughtline.testing.sims.chat import PROVIDERS

V4 = "The `reasoning_content` in the thinking mode must be passed back to the API."
KIMI = (
    "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"
)
GEMINI = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools"
    " to work correctly, and missing thought_signature may lead to degraded model performance."
    " Additional data, function call `default_api:read_file` , position 2. Please refer to"
    " https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)
# What each says to the second request of a client that strips: status and body.
STRICT = {
    "deepseek": {
        "message": V4,
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_request_error",
    },
    "deepseek-v3.2": {
        "message": "Missing `reasoning_content` field in the assistant message at message index 1. "
        "For more information, please refer to "
        "https://api-docs.deepseek.com/guides/thinking_mode#tool-calls",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_request_error",
    },
    "kimi": {"message": KIMI, "type": "invalid_request_error"},
    "kimi-k3": {"message": KIMI, "type": "invalid_request_error"},
    "mimo": {
        "code": "400",
        "message": "Param Incorrect",
        "param": V4.replace("`", ""),
        "type": "",
    },
    "gemini-compat": {"code": 400, "message": GEMINI, "status": "INVALID_ARGUMENT"},
}
SOFT = sorted(set(PROVIDERS) - set(STRICT) - {"deepseek-r1"})
KEEPERS = sorted(set(PROVIDERS) - {"deepseek-r1"})
TURNS = 9


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", KEEPERS)
def test_a_client_that_keeps_everything_is_accepted(name, stream):
    talk = ChatClient(simulator(name), stream=stream)
    reply = talk.run(TURNS)
    assert reply.status == 200
    # The last reply's own thoughts have not been returned yet.
    returned = [e for e in talk.sim.emitted if e.turn < TURNS - 1]
    assert returned
    assert audit(reply) == counts(exact=len(returned))


@pytest.mark.parametrize("name", sorted(STRICT))
def test_a_strict_provider_rejects_a_client_that_strips(name):
    talk = ChatClient(simulator(name), alter=strip_message)
    assert talk.turn().status == 200
    reply = talk.turn()
    assert reply.status == 400
    body = json.loads(reply.body)
    assert (body[0] if name == "gemini-compat" else body) == {"error": STRICT[name]}
    assert audit(reply) == counts(missing=1)


@pytest.mark.parametrize("name", SOFT)
def test_a_soft_provider_accepts_a_client_that_strips_and_reports_it(name):
    talk = ChatClient(simulator(name), alter=strip_message)
    reply = talk.run(TURNS)
    assert reply.status == 200
    assert audit(reply) == counts(missing=len([e for e in talk.sim.emitted if e.turn < TURNS - 1]))


def test_r1_takes_no_thought_back():
    kept = ChatClient(simulator("deepseek-r1")).run(2)
    assert kept.status == 400
    assert json.loads(kept.body)["error"]["message"] == (
        "The reasoning_content is an intermediate result for display purposes only and will not be "
        "included in the context for inference. Please remove the reasoning_content from your "
        "message to reduce network traffic."
    )
    talk = ChatClient(simulator("deepseek-r1"), alter=strip_message)
    assert talk.run(TURNS).status == 200


def _edit(message):
    """Change one character of every thought, and nothing that is visible."""
    out = copy.deepcopy(message)
    for key in ("reasoning_content", "reasoning", "reasoning_text"):
        if key in out:
            out[key] = out[key].strip()
    content = out.get("content")
    if isinstance(content, list):
        for chunk in content:
            if chunk["type"] == "thinking":
                chunk["thinking"][0]["text"] = chunk["thinking"][0]["text"].strip()
    elif isinstance(content, str):
        out["content"] = content.replace("Thought", "thought")
    return out


@pytest.mark.parametrize(
    "name", [n for n in KEEPERS if n not in ("gemini-compat", "openrouter", "copilot")]
)
def test_an_altered_thought_is_reported(name):
    talk = ChatClient(simulator(name), alter=_edit)
    reply = talk.run(TURNS)
    assert reply.status == 200
    returned = [e for e in talk.sim.emitted if e.turn < TURNS - 1]
    assert audit(reply) == counts(altered=len(returned))


def test_half_a_thought_is_altered():
    # What the stream helper of one SDK sends back: the last delta only.
    talk = ChatClient(simulator("glm"), alter=lambda m: {**m, "reasoning_content": "twice.\t \n"})
    assert audit(talk.run(3)) == counts(altered=2)


@pytest.mark.parametrize("blank", ["", " "])
def test_a_placeholder_is_a_missing_thought(blank):
    talk = ChatClient(simulator("glm"), alter=lambda m: {**m, "reasoning_content": blank})
    assert audit(talk.run(4)) == counts(missing=3)


def test_a_thought_at_the_wrong_turn_is_misplaced():
    talk = ChatClient(simulator("glm"))
    talk.run(3)
    first, second = (m for m in talk.history if m["role"] == "assistant" and m.get("tool_calls"))
    first["reasoning_content"], second["reasoning_content"] = (
        second["reasoning_content"],
        first["reasoning_content"],
    )
    assert audit(talk.ask()) == counts(exact=1, misplaced=2, missing=2)


@pytest.mark.parametrize("serials", [True, False])
def test_a_thought_of_another_conversation_is_foreign(serials):
    sim = simulator("glm", serials=serials)
    one, two = ChatClient(sim, opening="one"), ChatClient(sim, opening="two")
    one.run(3)
    two.run(3)
    for mine, theirs in zip(one.history, two.history, strict=True):
        if "reasoning_content" in mine:
            mine["reasoning_content"] = theirs["reasoning_content"]
    assert audit(one.ask()) == counts(foreign=3, missing=3)
    assert audit(two.ask()) == counts(exact=3)


def test_a_thought_of_another_account_is_foreign():
    sim = simulator("glm", serials=False)
    one, two = ChatClient(sim, key="one"), ChatClient(sim, key="two")
    one.run(3)
    two.run(3)
    one.history = two.history
    assert audit(one.ask()) == counts(foreign=3, missing=3)


def test_without_serials_conversations_look_alike_but_for_thoughts():
    sim = simulator("kimi", serials=False)
    one, two = ChatClient(sim, opening="one"), ChatClient(sim, opening="two")
    one.run(TURNS)
    two.run(TURNS)
    assert one.history[1:] != two.history[1:]
    assert [strip_message(m) for m in one.history[1:]] == [
        strip_message(m) for m in two.history[1:]
    ]
    assert len({e.value for e in sim.emitted}) == 2 * TURNS


@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_stream_and_whole_carry_the_same(name):
    whole, stream = ChatClient(simulator(name)), ChatClient(simulator(name), stream=True)
    if name == "deepseek-r1":
        whole.alter = stream.alter = strip_message
    for _ in range(7):
        first, second = whole.turn(), stream.turn()
        one, two = message_of(first), message_of(second)
        for message in (one, two):  # a stream may open with "" where the whole has null
            message["content"] = message.get("content") or None
        assert one == two
        reason = json.loads(first.body)["choices"][0]["finish_reason"]
        finals = [c["finish_reason"] for e in chat_events(second) for c in e["choices"]]
        assert finals[-1] == reason
        assert set(finals[:-1]) == {None}


@pytest.mark.parametrize("name", [n for n in sorted(PROVIDERS) if n != "gemini-compat"])
def test_escaped_streams_cut_emoji_in_two(name):
    sim = simulator(name, escaped=True)
    talk = ChatClient(sim, stream=True)
    reply = talk.turn()
    assert reply.body.isascii()
    assert b"\\ud83d" in reply.body
    halves = [e for e in reply.chunks if b"\\ud83d" in e and b"\\ud83d\\u" not in e]
    assert halves
    if name != "deepseek-r1":
        assert audit(talk.turn()) == counts(exact=len([e for e in sim.emitted if e.turn == 0]))


def test_the_awkward_things_are_in_there():
    sim = simulator("deepseek")
    talk = ChatClient(sim)
    talk.run(6)
    thought = sim.emitted[0].value
    assert {"\u2028", "\U0001f600", '"', "\\"} <= set(thought)
    assert thought != thought.strip()
    assert len({e.value for e in sim.emitted}) == len(sim.emitted)
    calls = [c for m in talk.history for c in m.get("tool_calls") or []]
    arguments = [c["function"]["arguments"] for c in calls]
    assert all(json.dumps(json.loads(a)) != a for a in arguments)
    assert any("5.0" in a for a in arguments)
    said = [m["content"] for m in talk.history if m["role"] == "assistant" and m["content"]]
    assert all(text != text.strip() for text in said)


# DeepSeek


def test_deepseek_asks_for_plain_turns_too_but_only_with_tools():
    def plain(message):
        return message if message.get("tool_calls") else strip_message(message)

    talk = ChatClient(simulator("deepseek"), alter=plain)
    reply = talk.run(4)
    assert reply.status == 400
    assert json.loads(reply.body)["error"]["message"] == V4
    talk.tools = False
    reply = talk.ask()
    assert reply.status == 200
    assert reply.headers["x-sim-reads"] == "none"
    assert audit(reply) == counts(exact=2, missing=1)


@pytest.mark.parametrize(
    ("model", "value", "status"),
    [
        ("deepseek-v4-pro", "", 400),
        ("deepseek-v4-pro", " ", 200),
        ("deepseek-v4-flash", "", 200),
        ("deepseek-v4-flash", None, 400),
        ("deepseek-v4-pro", None, 400),
    ],
)
def test_deepseek_placeholders(model, value, status):
    talk = ChatClient(simulator("deepseek"), model=model)
    talk.alter = lambda m: {**m, "reasoning_content": value}
    assert talk.run(2).status == status


@pytest.mark.parametrize("name", ["deepseek", "kimi", "mimo"])
def test_disabled_thinking_lifts_the_rule(name):
    talk = ChatClient(simulator(name), alter=strip_message)
    talk.turn()
    talk.body["thinking"] = {"type": "disabled"}
    reply = talk.turn()
    assert reply.status == 200
    assert "reasoning_content" not in message_of(reply)


def test_k3_cannot_be_disabled():
    talk = ChatClient(simulator("kimi-k3"), alter=strip_message, thinking={"type": "disabled"})
    assert talk.run(2).status == 400


def test_v32_lets_go_of_earlier_turns():
    talk = ChatClient(simulator("deepseek-v3.2"))
    talk.run(3)  # two tool turns, a plain one, and a new user message
    talk.history = [strip_message(m) for m in talk.history]
    assert talk.ask().status == 200


def test_deepseek_keeps_the_key_of_an_empty_thought():
    talk = ChatClient(simulator("deepseek", script=lambda turn, sim: (Say("hi"),)))
    assert message_of(talk.turn())["reasoning_content"] == ""
    assert audit(talk.ask()) == counts(exact=1)


def test_deepseek_rejects_unanswered_calls_and_orphan_results():
    talk = ChatClient(simulator("deepseek"))
    talk.turn()
    results = [m for m in talk.history if m["role"] == "tool"]
    talk.history.remove(results[0])
    text = json.loads(talk.ask().body)["error"]["message"]
    assert text.endswith("(insufficient tool messages following tool_calls message)")
    talk.history = [talk.history[0], results[0]]
    text = json.loads(talk.ask().body)["error"]["message"]
    assert text == (
        "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
    )


def test_kimi_names_the_unanswered_calls():
    talk = ChatClient(simulator("kimi"))
    talk.turn()
    talk.history.pop()
    text = json.loads(talk.ask().body)["error"]["message"]
    assert text.endswith("tool_call_ids did not have response messages: functions.search:1")
    talk.history[-1]["tool_call_id"] = ""
    assert json.loads(talk.ask().body)["error"]["message"] == "tool_call_id  is not found"


def test_deepseek_knows_no_developer_and_only_functions():
    talk = ChatClient(simulator("deepseek"))
    talk.history.insert(0, {"role": "developer", "content": "x"})
    text = json.loads(talk.ask().body)["error"]["message"]
    assert "messages[0].role: unknown variant `developer`, expected one of `system`" in text
    talk.history.pop(0)
    talk.body["tools"] = [*TOOLS, {"type": "custom", "name": "x"}]
    assert "unknown variant `custom`" in json.loads(talk.ask().body)["error"]["message"]


# Others


def _ids(talk):
    return [c["id"] for m in talk.history for c in m.get("tool_calls") or []]


def test_tool_call_ids_have_their_providers_form():
    kimi, k3 = ChatClient(simulator("kimi")), ChatClient(simulator("kimi-k3"))
    kimi.run(5)
    k3.run(5)
    assert _ids(kimi)[:4] == [
        "functions.read_file:0",
        "functions.search:1",
        "functions.run:2",
        "functions.search:3",
    ]
    assert _ids(k3)[:4] == ["read_file:0", "search:1", "run:0", "search:0"]
    mistral = ChatClient(simulator("mistral"))
    mistral.run(5)
    assert all(len(id) == 9 and id.isalnum() for id in _ids(mistral))
    deepseek = ChatClient(simulator("deepseek"))
    deepseek.run(5)
    assert _ids(deepseek)[1].startswith("call_01_")
    assert len(set(_ids(deepseek))) == len(_ids(deepseek))


def test_a_mimo_stream_error_is_prefixed():
    talk = ChatClient(simulator("mimo"), alter=strip_message, stream=True)
    reply = talk.run(2)
    assert reply.status == 400
    assert reply.body.startswith(b'data:{"error":{"code":"400","message":"Param Incorrect"')


def _renamed(message):
    kept = strip_message(message)
    return {**kept, "reasoning_content": message.get("reasoning")}


def test_groq_and_cerebras_reject_the_other_name():
    reply = ChatClient(simulator("groq"), alter=_renamed).run(2)
    assert reply.status == 400
    assert json.loads(reply.body) == {
        "error": {
            "message": "'messages.1' : for 'role:assistant' the following must be satisfied"
            "[('messages.1' : property 'reasoning_content' is unsupported)]",
            "type": "invalid_request_error",
        }
    }
    talk = ChatClient(simulator("cerebras"))
    talk.run(2)
    talk.history = [_renamed(m) if m["role"] == "assistant" else m for m in talk.history]
    reply = talk.ask()
    assert reply.status == 400
    line = "messages.{0}.assistant.reasoning_content: property "
    line += "'messages.{0}.assistant.reasoning_content' is unsupported"
    assert json.loads(reply.body) == {
        "message": f"{line.format(1)}\n{line.format(4)}",
        "type": "invalid_request_error",
        "param": "validation_error",
        "code": "wrong_api_format",
    }


@pytest.mark.parametrize("name", ["groq", "cerebras"])
def test_reasoning_format(name):
    hidden = message_of(ChatClient(simulator(name), reasoning_format="hidden").turn())
    assert "Thought" not in json.dumps(hidden)
    talk = ChatClient(simulator(name), reasoning_format="raw")
    assert "<think>" in message_of(talk.turn())["content"]
    assert audit(talk.ask()) == counts(exact=1)


def test_mistral_forbids_extras_and_long_ids():
    talk = ChatClient(simulator("mistral"))
    talk.turn()
    talk.history[1]["reasoning_content"] = "x"
    reply = talk.ask()
    assert reply.status == 422
    assert json.loads(reply.body) == {
        "object": "error",
        "message": {
            "detail": [
                {
                    "type": "extra_forbidden",
                    "loc": ["body", "messages", 1, "assistant", "reasoning_content"],
                    "msg": "Extra inputs are not permitted",
                    "input": "x",
                }
            ]
        },
        "type": "invalid_request_error",
        "param": None,
        "code": None,
    }
    del talk.history[1]["reasoning_content"]
    talk.history[1]["tool_calls"][0]["id"] = "call_1"
    reply = talk.ask()
    assert reply.status == 400
    assert json.loads(reply.body) == {
        "object": "error",
        "message": "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
        "type": "invalid_function_call",
        "param": None,
        "code": "3280",
        "raw_status_code": 400,
    }


def test_mistral_streams_its_calls_in_one_piece():
    """All calls in one delta, each whole: comet-ml/opik#7385, semantic-kernel#6316."""
    talk = ChatClient(simulator("mistral"), stream=True)
    made = []
    for _ in range(6):
        deltas = [e["choices"][0]["delta"] for e in chat_events(talk.turn()) if e["choices"]]
        calls = [delta["tool_calls"] for delta in deltas if delta.get("tool_calls")]
        assert len(calls) <= 1
        made += calls
    assert any(len(calls) == 2 for calls in made)
    for calls in made:
        assert [call["index"] for call in calls] == list(range(len(calls)))
        assert all(call["function"]["name"] for call in calls)
        assert all(json.loads(call["function"]["arguments"]) for call in calls)


def test_mistral_without_effort_answers_with_a_string():
    talk = ChatClient(simulator("mistral"), reasoning_effort="none")
    talk.run(2)
    assert all(not isinstance(m.get("content"), list) for m in talk.history)


def test_vllm_reads_both_names():
    talk = ChatClient(simulator("vllm"), alter=_renamed)
    assert audit(talk.run(4)) == counts(exact=3)
    both = ChatClient(simulator("vllm"), alter=lambda m: {**m, "reasoning_content": m["reasoning"]})
    assert audit(both.run(4)) == counts(exact=3)


def test_minimax_split():
    talk = ChatClient(simulator("minimax"), reasoning_split=True)
    reply = talk.run(TURNS)
    assert "<think>" not in json.dumps(talk.history)
    assert audit(reply) == counts(exact=len([e for e in talk.sim.emitted if e.turn < TURNS - 1]))
    talk.history[2]["tool_call_id"] = "other"
    text = json.loads(talk.ask().body)["error"]["message"]
    assert text == "invalid params, tool result's tool id(other) not found (2013)"


def test_qwen_and_glm_say_what_they_read():
    talk = ChatClient(simulator("qwen"), model="qwen3.6-plus")
    assert talk.turn().headers["x-sim-reads"] == "none"
    talk.body["preserve_thinking"] = True
    assert talk.turn().headers["x-sim-reads"] == "all"
    talk = ChatClient(simulator("qwen"), model="qwen3.8-max")
    assert talk.turn().headers["x-sim-reads"] == "all"
    talk.body["preserve_thinking"] = False
    assert talk.turn().headers["x-sim-reads"] == "none"
    talk = ChatClient(simulator("glm"), thinking={"type": "enabled", "clear_thinking": False})
    assert talk.turn().headers["x-sim-reads"] == "all"


def _openrouter_error(reply):
    error = json.loads(reply.body)["error"]
    assert (error["message"], error["code"]) == ("Provider returned error", 400)
    return error["metadata"]["provider_name"], json.loads(error["metadata"]["raw"])["error"]


def test_openrouter_details_are_opaque_and_ordered():
    talk = ChatClient(simulator("openrouter"))
    talk.run(5)
    latest = next(m for m in reversed(talk.history) if m["role"] == "assistant")
    whole = latest["reasoning_details"]
    assert len(whole) == 2
    for changed in (whole[::-1], whole[:1], whole[1:]):
        latest["reasoning_details"] = changed
        provider, error = _openrouter_error(talk.ask())
        assert provider == "Anthropic"
        assert "cannot be modified" in error["message"]
    latest["reasoning_details"] = [{**whole[0], "text": "other"}, whole[1]]
    _, error = _openrouter_error(talk.ask())
    at = talk.history.index(latest)
    assert error["message"] == f"messages.{at}.content.0: Invalid `signature` in `thinking` block"
    latest["reasoning_details"] = whole
    assert talk.ask().status == 200
    talk.key = "somebody else"
    assert "Invalid `signature`" in _openrouter_error(talk.ask())[1]["message"]


def test_deepseek_behind_openrouter_wants_the_plain_field():
    talk = ChatClient(simulator("openrouter"), model="deepseek/deepseek-v4-pro")
    assert _openrouter_error(talk.run(2)) == (
        "DeepSeek",
        {
            "type": "invalid_request_error",
            "message": V4,
            "param": None,
            "code": "invalid_request_error",
        },
    )
    talk = ChatClient(simulator("openrouter"), model="deepseek/deepseek-v4-pro")
    talk.alter = lambda m: {**m, "reasoning_content": m["reasoning"]}
    assert audit(talk.run(4)) == counts(exact=3)


def test_copilot_verifies_the_opaque_twin():
    talk = ChatClient(simulator("copilot"))
    talk.run(2)
    talk.history[1]["reasoning_opaque"] = "AAAA" + talk.history[1]["reasoning_opaque"][4:]
    reply = talk.ask()
    assert reply.status == 400
    assert "The encrypted content AAAA... could not be verified" in reply.body.decode()


def _signature(message, value):
    out = copy.deepcopy(message)
    for call in out.get("tool_calls") or []:
        if "extra_content" in call:
            call["extra_content"]["google"]["thought_signature"] = value
    return out


@pytest.mark.parametrize(
    ("value", "status", "text"),
    [
        ("skip_thought_signature_validator", 200, None),
        ("c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=", 200, None),
        ("not base64!", 400, "Corrupted thought signature."),
        ("AAAA", 400, "Invalid thought signature."),
    ],
)
def test_gemini_signatures(value, status, text):
    talk = ChatClient(simulator("gemini-compat"), alter=lambda m: _signature(m, value))
    reply = talk.run(2)
    assert reply.status == status
    if text:
        assert json.loads(reply.body)[0]["error"]["message"] == text


def test_gemini_asks_only_within_the_current_turn_and_only_of_the_first_call():
    talk = ChatClient(simulator("gemini-compat"))
    talk.run(3)
    calls = talk.history[1]["tool_calls"]
    assert "extra_content" in calls[0]
    assert "extra_content" not in calls[1]
    talk.history = [strip_message(m) for m in talk.history]
    assert talk.ask().status == 200
    older = ChatClient(simulator("gemini-compat"), model="gemini-2.5-pro", alter=strip_message)
    assert older.run(4).status == 200


def test_gemini_signatures_belong_to_an_account():
    talk = ChatClient(simulator("gemini-compat"))
    talk.turn()
    talk.key = "somebody else"
    assert talk.ask().status == 400


# Usage, tools, scripts


@pytest.mark.parametrize("name", KEEPERS)
def test_an_unchanged_prefix_is_cached(name):
    talk = ChatClient(simulator(name))
    before = 0
    for _ in range(5):
        reply = talk.turn()
        usage = json.loads(reply.body)["usage"]
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        assert cached == before  # all of the last request
        before = usage["prompt_tokens"]
    talk.history[0]["content"] += "!"
    usage = json.loads(talk.ask().body)["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] == 0


def test_a_changed_thought_costs_the_cache():
    talk = ChatClient(simulator("glm"))
    talk.run(3)
    size = json.loads(talk.ask().body)["usage"]["prompt_tokens"]
    talk.history = [strip_message(m) for m in talk.history]
    cached = json.loads(talk.ask().body)["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached < size // 2


@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_without_tools_none_is_called(name):
    talk = ChatClient(simulator(name), alter=strip_message)
    talk.tools = False
    talk.run(7)
    assert not any(m.get("tool_calls") for m in talk.history)
    said = [m for m in talk.history if m["role"] == "assistant"]
    assert len(said) == 7
    assert all(m["content"] for m in said)


def test_parallel_calls_can_be_refused():
    message = message_of(ChatClient(simulator("kimi"), parallel_tool_calls=False).turn())
    assert len(message["tool_calls"]) == 1
    assert not message_of(ChatClient(simulator("kimi"), tool_choice="none").turn()).get(
        "tool_calls"
    )


def test_tools_of_ones_own_are_called_with_what_they_require():
    schema = {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "n": {"type": "integer"},
            "mode": {"enum": ["r", "w"]},
            "all": {"type": "boolean"},
            "list": {"type": "array"},
            "map": {"type": "object"},
        },
        "required": ["path", "n", "mode", "all", "list", "map", "free"],
    }
    tool = {"type": "function", "function": {"name": "open", "parameters": schema}}
    talk = ChatClient(simulator("kimi"), tools=[tool])
    call = message_of(talk.turn())["tool_calls"][0]["function"]
    assert call["name"] == "open"
    given = json.loads(call["arguments"])
    assert set(given) == set(schema["required"])
    assert (given["n"], given["mode"], given["list"], given["map"]) == (5, "r", [], {})
    assert audit(talk.turn()) == counts(exact=1)


def test_a_script_of_ones_own():
    def script(turn, sim):
        if turn == 0:
            return Think("hm"), Use("run", "{}")
        return Think("hm"), Say("bye")

    talk = ChatClient(simulator("deepseek", script=script))
    talk.run(4)
    assert talk.history[1]["reasoning_content"] == "hm"
    assert talk.history[3]["content"] == "bye"
    assert audit(talk.ask()) == counts(exact=4)


@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_models_are_listed_and_echoed(name):
    sim = simulator(name)
    reply = post(sim, {"model": "any", "messages": [{"role": "user", "content": "x"}]})
    assert json.loads(reply.body)["model"] == "any"
