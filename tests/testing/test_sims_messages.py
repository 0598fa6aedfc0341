"""The simulated Messages servers: what they accept, what they refuse, and in which words."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.clients import TOOL_NAMES, MessagesClient, load, sse
from support.junk import JUNK, places, put
from thoughtline.testing.sims.base import Request, Say, Think, Use
from thoughtline.testing.sims.messages import PROVIDERS
from thoughtline.testing.sims.spelling import letter, write

MODELS = {
    "claude": "claude-sonnet-4-5",
    "claude-bound": "claude-opus-5-5",
    "deepseek-anthropic": "deepseek-v4-flash",
}
ENABLED = {"type": "enabled", "budget_tokens": 2048}
CLEAN = "altered=0; missing=0; misplaced=0; foreign=0"
CONTROLS = {"anthropic-beta": "other-2026-01-01, thinking-binding-controls-2026-08-01"}
HEADERS = {"authorization": "Bearer key-one", "anthropic-version": "2023-06-01"}


def client(name="claude", *, options=None, **kwargs):
    sim = PROVIDERS[name](**(options or {}))
    if name == "claude":
        kwargs.setdefault("thinking", ENABLED)
    return MessagesClient(sim, model=kwargs.pop("model", MODELS[name]), **kwargs)


def refusal(reply, status=400, kind="invalid_request_error"):
    assert reply.status == status, reply.body
    body = load(reply.body)
    assert set(body) == {"type", "error", "request_id"}
    assert body["type"] == "error"
    assert body["error"]["type"] == kind
    return body["error"]["message"]


def thoughts(reply):
    return reply.headers["x-sim-thoughts"]


def thinking(block):
    return block["type"] in ("thinking", "redacted_thinking")


def kinds(one, at):
    return [block["type"] for block in one.blocks(at)]


# --- Bringing everything back ------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_everything_verbatim_is_accepted(name, stream):
    one = client(name, stream=stream)
    one.talk(13)
    count = len(one.sim.emitted)
    reply = one.send()
    assert reply.status == 200, reply.body
    assert thoughts(reply) == f"exact={count}; {CLEAN}"
    assert count >= 15


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("escaped", [False, True])
def test_stream_carries_what_the_body_carries(name, escaped):
    bodies = []
    for stream in (True, False):
        one = client(name, stream=stream, options={"escaped": escaped})
        one.talk(6)
        assert one.send().body.isascii() or not escaped
        bodies.append([letter(item) for item in one.history])
    assert bodies[0] == bodies[1]


def test_escaped_stream_cuts_emoji_in_two():
    one = client(stream=True, options={"escaped": True})
    deltas = [data for data in sse(one.send().body) if b"thinking_delta" in data]
    assert any(data.endswith(b'\\ud83d"}}') for data in deltas)


def test_stream_has_the_documented_order():
    one = client(stream=True)
    one.talk(1)
    reply = one.send()
    events = [load(data) for data in sse(reply.body)]
    names = [line for line in reply.body.split(b"\n") if line.startswith(b"event: ")]
    assert [name[7:].decode() for name in names] == [event["type"] for event in events]
    assert events[0]["type"] == "message_start"
    assert events[0]["message"]["content"] == []
    assert [event["type"] for event in events[-2:]] == ["message_delta", "message_stop"]
    first = [event for event in events if event.get("index") == 0]
    assert first[0]["content_block"] == {"type": "thinking", "thinking": "", "signature": ""}
    assert first[1]["delta"]["type"] == "thinking_delta"
    assert first[-2]["delta"]["type"] == "signature_delta"
    assert first[-1]["type"] == "content_block_stop"
    second = [event for event in events if event.get("index") == 1]
    assert second[0]["content_block"]["type"] == "redacted_thinking"
    assert len(second) == 2


def test_turns_have_what_clients_trip_over():
    one = client()
    one.talk(6)
    turns = [kinds(one, at) for at in one.assistants()]
    assert turns[0] == ["thinking", "tool_use", "tool_use"]
    assert turns[1] == ["thinking", "redacted_thinking", "text", "tool_use"]
    assert turns[3] == ["redacted_thinking", "tool_use"]
    assert turns[4] == ["thinking", "text", "thinking", "tool_use", "tool_use"]
    assert b'"input":{"path": "a-' in one.history[1]
    assert b'"n":5.0}' in one.history[1]


def test_newer_models_show_nothing_of_a_thought():
    one = client("claude-bound")
    one.talk(1)
    assert one.blocks(1)[0]["thinking"] == ""
    assert len(one.blocks(1)[0]["signature"]) > 400
    shown = client("claude-bound", thinking={"type": "adaptive", "display": "summarized"})
    shown.talk(3)
    assert shown.blocks(1)[0]["thinking"]
    assert thoughts(shown.send()) == f"exact=3; {CLEAN}"


def test_prompt_cache_counts_the_common_prefix():
    one = client("claude-bound")
    one.talk(2)
    first = load(one.send().body)["usage"]
    one.absorb(one.send())
    second = load(one.send().body)["usage"]
    prompt = first["input_tokens"] + first["cache_read_input_tokens"]
    assert second["cache_read_input_tokens"] >= prompt - 1


# --- Older models: the open tool loop ----------------------------------------------------------


def expected(at, found):
    return (
        f"messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found"
        f" `{found}`. When `thinking` is enabled, a final `assistant` message must start with a"
        " thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We"
        " recommend you include thinking blocks from previous turns. To avoid this requirement,"
        " disable `thinking`. Please consult our documentation at"
        " https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
    )


def strip(one, at):
    one.rewrite(at, [block for block in one.blocks(at) if not thinking(block)])


def test_stripped_in_the_loop():
    one = client()
    one.talk(1)
    strip(one, 1)
    assert refusal(one.send()) == expected(1, "tool_use")
    one = client()
    one.talk(2)
    strip(one, 3)
    assert refusal(one.send()) == expected(3, "text")
    one = client()
    one.talk(2)
    strip(one, 1)
    assert refusal(one.send()) == expected(1, "tool_use")


def test_stripped_outside_of_the_loop_is_accepted_and_reported():
    one = client()
    one.talk(3)
    for at in one.assistants():
        strip(one, at)
    reply = one.send()
    assert reply.status == 200
    assert thoughts(reply) == "exact=0; altered=0; missing=4; misplaced=0; foreign=0"


def test_thinking_switched_off():
    one = client()
    one.talk(3)
    assert one.send(thinking={"type": "disabled"}).status == 200
    assert one.send(thinking=None).status == 200
    loop = client()
    loop.talk(1)
    message = (
        "messages.1.content.0: When thinking is disabled, an `assistant` message in the final"
        " position cannot contain `thinking`."
    )
    assert refusal(loop.send(thinking={"type": "disabled"})) == message
    strip(loop, 1)
    assert loop.send(thinking={"type": "disabled"}).status == 200


def test_no_thoughts_without_thinking():
    one = client(thinking={"type": "disabled"})
    one.talk(4)
    assert not one.sim.emitted
    assert one.send().status == 200


def test_script_without_thoughts_is_not_asked_for_them():
    one = client(options={"script": lambda turn, sim: (Use("run", "{}"),)})
    one.talk(2)
    assert one.send().status == 200


# --- Older models: what is altered -------------------------------------------------------------


def modified(at, index):
    return (
        f"messages.{at}.content.{index}: `thinking` or `redacted_thinking` blocks in the latest"
        " assistant message cannot be modified. These blocks must remain as they were in the"
        " original response."
    )


def test_text_altered_in_the_latest_message():
    for spoil in (str.strip, lambda text: "", lambda text: text + "!"):
        one = client()
        one.talk(1)
        one.change(1, 0, thinking=spoil(one.blocks(1)[0]["thinking"]))
        assert refusal(one.send()) == modified(1, 0)


def test_text_altered_in_an_older_message():
    one = client()
    one.talk(3)
    one.change(1, 0, thinking="Something else.")
    reply = one.send()
    assert refusal(reply) == "messages.1.content.0: Invalid `signature` in `thinking` block"
    assert "altered=1" in thoughts(reply)


def test_block_dropped_or_moved_in_the_latest_message():
    one = client()
    one.talk(2)
    blocks = one.blocks(3)
    assert thinking(blocks[0])
    assert thinking(blocks[1])
    one.rewrite(3, [blocks[0], *blocks[2:]])
    assert refusal(one.send()) == modified(3, 0)
    one.rewrite(3, blocks[1:])
    assert refusal(one.send()) == modified(3, 0)
    one.rewrite(3, [blocks[1], blocks[0], *blocks[2:]])
    assert refusal(one.send()) == modified(3, 0)
    one.rewrite(3, [blocks[0], *blocks])
    assert refusal(one.send()) == modified(3, 0)
    one.rewrite(3, [blocks[0], *blocks[2:], blocks[1]])
    assert refusal(one.send()) == modified(3, 4 - 1)


def invalid(at, index):
    return f"messages.{at}.content.{index}: Invalid `signature` in `thinking` block"


@pytest.mark.parametrize("name", ["claude", "claude-bound"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda signature: "",
        lambda signature: signature[:-4],
        lambda signature: signature[:-8] + "AAAAAA==",
        lambda signature: signature[:50] + "A" + signature[51:] + "",
        lambda signature: "skip_thought_signature_validator",
    ],
)
def test_signature_altered(name, spoil):
    one = client(name)
    one.talk(2)
    kept = one.blocks(1)[0]["signature"]
    spoiled = spoil(kept)
    one.change(1, 0, signature=spoiled)
    assert spoiled == kept or refusal(one.send()) == invalid(1, 0)


def test_signature_missing_or_of_another_kind():
    one = client()
    one.talk(2)
    kept = one.history[3]
    one.change(3, 0, signature=None)
    assert refusal(one.send()) == "messages.3.content.0.thinking.signature: Field required"
    one.history[3] = kept
    data = one.blocks(3)[1]["data"]
    one.rewrite(3, [{"type": "thinking", "thinking": "", "signature": data}, *one.blocks(3)[2:]])
    assert refusal(one.send()) == invalid(3, 0)
    one.history[3] = kept
    one.change(3, 1, data=data[:-4])
    assert (
        refusal(one.send()) == "messages.3.content.1: Invalid `data` in `redacted_thinking` block"
    )


def test_other_family_is_invalid_and_other_account_is_not():
    one = client()
    one.talk(2)
    one.model = "claude-opus-4-5-20251101"
    assert refusal(one.send()) == invalid(1, 0)
    one.model = "claude-sonnet-4-5-20250929"
    one.key = "key-two"
    assert one.send().status == 200


def test_signature_of_another_server():
    one, other = client(), client(options={"seed": 1})
    one.talk(1)
    other.talk(1)
    one.change(1, 0, signature=other.blocks(1)[0]["signature"])
    assert refusal(one.send()) == invalid(1, 0)


# --- Newer models: the prefix ------------------------------------------------------------------


def bound(at, index, why="", hint=True):
    return (
        f"messages.{at}.content.{index}: Invalid `signature` in `thinking` block. The block is"
        " bound to a different conversation. Remove the block, or set"
        ' `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
        + (
            " The field needs the `anthropic-beta: thinking-binding-controls-2026-08-01` header."
            if hint
            else ""
        )
        + why
    )


SYSTEM = " The `system` prompt differs from when this block was created."
TOOLS = " The `tools` differ from when this block was created."
CONTENT = " Content before this block differs from when it was created."
GAP = (
    " The `thinking` block that preceded this one when it was created is missing from this request."
)
DROP = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
STRICT = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}


def bound_client(turns=4, **kwargs):
    one = client("claude-bound", **kwargs)
    one.talk(turns)
    return one


def test_system_changed():
    one = bound_client()
    assert refusal(one.send(system="You are another one.")) == bound(1, 0, SYSTEM)
    assert refusal(one.send(system=None)) == bound(1, 0, SYSTEM)


def test_tools_changed():
    one = bound_client()
    tools = one.request()["tools"]
    assert refusal(one.send(tools=tools[:-1])) == bound(1, 0, TOOLS)
    more = {"name": "more", "input_schema": {}}
    assert refusal(one.send(tools=[*tools, more])) == bound(1, 0, TOOLS)
    assert one.send(tools=tools[::-1]).status == 200
    assert one.send(tools=[*tools, {**more, "defer_loading": True}]).status == 200


def test_deferred_tool_counts_once_it_is_named():
    one = bound_client(3)
    tools = one.request()["tools"]
    one.body["tools"] = [*tools, {"name": "more", "input_schema": {}, "defer_loading": True}]
    use = {"type": "tool_use", "id": "t1", "name": "more", "input": {}}
    one.history += [
        write({"role": "assistant", "content": [use]}),
        write({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]}),
    ]
    one.talk(1)
    assert one.send().status == 200
    assert refusal(one.send(tools=tools)) == bound(9, 0, TOOLS)


@pytest.mark.parametrize(
    "edit",
    [
        lambda one: one.edit(0, content="Please go ahead!"),
        lambda one: one.change(1, 1, input={"path": "other"}),
        lambda one: one.change(1, 1, name="run"),
        lambda one: one.change(2, 0, content="trimmed"),
        lambda one: one.rewrite(2, [*one.blocks(2), {"type": "text", "text": "Remember."}]),
    ],
)
def test_earlier_content_changed(edit):
    one = bound_client()
    edit(one)
    at = 1 if load(one.history[0])["content"].endswith("!") else 3
    assert refusal(one.send()) == bound(at, 0, CONTENT)


def test_text_before_the_thought_in_its_own_message():
    one = bound_client(5)
    at = one.assistants()[-1]
    assert kinds(one, at) == ["thinking", "text", "thinking", "tool_use", "tool_use"]
    one.change(at, 1, text="trimmed")
    assert refusal(one.send()) == bound(at, 2, CONTENT)


def test_what_is_not_part_of_the_prefix():
    one = bound_client()
    system = [{"type": "text", "text": "You are a careful one.", "cache_control": {"type": "x"}}]
    changes = {
        "system": system,
        "max_tokens": 5,
        "metadata": {"user_id": "u"},
        "output_config": {"effort": "low"},
        "thinking": {"type": "adaptive", "display": "summarized"},
        "tool_choice": {"type": "auto"},
    }
    one.edit(0, content=[{"type": "text", "text": "Please go ahead.", "cache_control": {}}])
    one.history[1] = json.dumps(load(one.history[1]), indent=2, sort_keys=True).encode()
    blocks = one.blocks(1)
    one.rewrite(1, [{**blocks[0]}, {**blocks[1], "caller": None}, *blocks[2:]])
    one.rewrite(
        1,
        [
            b | {"input": b["input"] | {"n": 5}} if "n" in b.get("input", {}) else b
            for b in one.blocks(1)
        ],
    )
    one.change(2, 0, content=[{"type": "text", "text": "fine"}], is_error=False)
    reply = one.send(**changes)
    assert reply.status == 200, reply.body
    assert thoughts(reply) == f"exact=4; {CLEAN}"


def test_gap_in_the_middle():
    one = bound_client(6)
    places_of = one.assistants()
    strip(one, places_of[1])
    at = places_of[2]
    assert refusal(one.send()) == bound(at, 0, GAP)


def test_oldest_newest_or_all_may_be_left_out():
    for which in (slice(0, 2), slice(-2, None), slice(None)):
        one = bound_client(6)
        for at in one.assistants()[which]:
            strip(one, at)
        assert one.send().status == 200


def test_dropped_block_must_not_come_back():
    one = bound_client(2)
    kept = one.history[1], one.history[3]
    strip(one, 1)
    strip(one, 3)
    one.talk(2)
    assert one.send().status == 200
    one.history[1], one.history[3] = kept
    assert refusal(one.send()) == bound(5, 0, GAP)


def test_loop_without_its_thought_is_accepted_and_reported():
    one = bound_client(1)
    strip(one, 1)
    reply = one.send()
    assert reply.status == 200
    assert "missing=1" in thoughts(reply)


def test_shown_text_is_bound_too():
    one = client("claude-bound", thinking={"type": "adaptive", "display": "summarized"})
    one.talk(2)
    one.change(1, 0, thinking="[cleared]")
    assert refusal(one.send()) == invalid(1, 0)
    one = bound_client(1)
    one.change(1, 0, thinking="put in")
    assert refusal(one.send()) == modified(1, 0)


# --- Newer models: controls --------------------------------------------------------------------


def test_binding_field_needs_its_header():
    one = bound_client()
    message = "thinking.adaptive.block_binding: Extra inputs are not permitted"
    assert refusal(one.send(thinking=DROP)) == message
    one.headers |= CONTROLS
    reply = one.send(thinking=DROP)
    assert load(reply.body)["input_transformations"] == []
    bad = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "ignore"}}
    assert refusal(one.send(thinking=bad)) == (
        "thinking.adaptive.block_binding.prefix_mismatch_behavior: Input should be 'error' or"
        " 'drop_block'"
    )
    sonnet = client("claude-bound", model="claude-sonnet-5-5")
    sonnet.headers |= CONTROLS
    between = {**DROP, "type": "between_tools"}
    message = "thinking.between_tools.block_binding: Extra inputs are not permitted"
    assert refusal(sonnet.send(thinking=between)) == message


def dropped(at, reason="prefix_binding_mismatch", kind="thinking_dropped", index=0):
    return {"type": kind, "path": f"messages.{at}.content.{index}", "reason": reason}


@pytest.mark.parametrize("stream", [False, True])
def test_drop_block(stream):
    one = bound_client(4, stream=stream)
    one.headers |= CONTROLS
    one.body["thinking"] = DROP
    one.edit(0, content="Please go on.")
    reply = one.send()
    assert reply.status == 200
    message = load(sse(reply.body)[0])["message"] if stream else load(reply.body)
    assert message["input_transformations"] == [dropped(at) for at in one.assistants()]
    before = one.assistants()
    one.absorb(reply)
    one.absorb(one.send())
    # What was thought since then is bound to what was left, and stays valid.
    message = load(one.send(stream=False).body)
    assert message["input_transformations"] == [dropped(at) for at in before]


def test_without_the_header_nothing_is_reported():
    one = bound_client(1)
    assert "input_transformations" not in load(one.send().body)


def test_error_is_explicit():
    one = bound_client(2)
    one.headers |= CONTROLS
    one.body["thinking"] = STRICT
    assert one.send().status == 200
    assert refusal(one.send(system="x")) == bound(1, 0, SYSTEM, hint=False)


def test_drop_block_does_not_cover_a_bad_signature():
    one = bound_client(2)
    one.headers |= CONTROLS
    one.change(1, 0, signature="AAAA")
    assert refusal(one.send(thinking=DROP)) == invalid(1, 0)


def test_account_that_is_not_enforced():
    one = bound_client(2, options={"enforced": False})
    assert one.send(system="x").status == 200
    one.headers |= CONTROLS
    allowed = [dropped(at, kind="thinking_mismatch_allowed") for at in one.assistants()]
    assert load(one.send(system="x").body)["input_transformations"] == allowed
    assert refusal(one.send(system="x", thinking=STRICT)) == bound(1, 0, SYSTEM, hint=False)


def test_other_account_is_dropped_silently():
    one = bound_client(2)
    one.key = "key-two"
    assert one.send().status == 200
    one.headers |= CONTROLS
    assert load(one.send().body)["input_transformations"] == [
        dropped(at, "organization_binding_mismatch") for at in one.assistants()
    ]


def test_model_that_cannot_read_drops_and_reads_again_later():
    one = bound_client(2, model="claude-fable-5-1")
    one.headers |= CONTROLS
    one.model = "claude-opus-5-5"
    unread = [dropped(at, "model_binding_mismatch") for at in one.assistants()]
    reply = one.send()
    assert load(reply.body)["input_transformations"] == unread
    one.absorb(reply)
    one.absorb(one.send())
    one.model = "claude-fable-5-1"
    reply = one.send()
    assert load(reply.body)["input_transformations"] == []
    assert thoughts(reply) == f"exact=4; {CLEAN}"


def test_models_without_prefix_check():
    one = bound_client(3, model="claude-opus-5")
    assert one.send(system="x").status == 200
    one.model = "claude-opus-5-5"
    assert one.send(system="x").status == 200


def test_counting_tokens_checks_the_same():
    one = bound_client(2)
    body = one.request()
    del body["max_tokens"]
    for system, status in (("You are a careful one.", 200), ("x", 400)):
        raw = write({**body, "system": system})
        reply = one.sim.answer(Request("POST", "/v1/messages/count_tokens", HEADERS, raw))
        assert reply.status == status
        assert status != 200 or load(reply.body)["input_tokens"] > 0


# --- Configurations ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "model", "config", "message"),
    [
        (
            "claude-bound",
            "claude-opus-5-5",
            ENABLED,
            (
                '"thinking.type.enabled" is not supported for this model. Use'
                ' "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
            ),
        ),
        (
            "claude-bound",
            "claude-opus-5-5",
            {"type": "disabled"},
            (
                '"thinking.type.disabled" is not supported for this model. Use'
                ' "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
            ),
        ),
        (
            "claude",
            "claude-opus-4-5",
            {"type": "adaptive"},
            "adaptive thinking is not supported on this model",
        ),
        (
            "claude",
            "claude-opus-4-5",
            {"type": "enabled", "budget_tokens": 5},
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
        ),
        (
            "claude",
            "claude-opus-4-5",
            {"type": "enabled", "budget_tokens": 32000},
            "`max_tokens` must be greater than `thinking.budget_tokens`.",
        ),
        ("claude", "claude-opus-4-5", {}, "thinking.type: Field required"),
    ],
)
def test_thinking_that_a_model_does_not_accept(name, model, config, message):
    assert refusal(client(name, model=model).send(thinking=config)) == message


def test_forced_tools():
    forced = {"type": "tool", "name": "run"}
    message = "Thinking may not be enabled when tool_choice forces tool use."
    assert refusal(client().send(tool_choice=forced)) == message
    assert client().send(tool_choice=forced, thinking=None).status == 200
    fable = client("claude-bound", model="claude-fable-5-1")
    assert refusal(fable.send(tool_choice=forced)) == message
    assert client("claude-bound").send(tool_choice=forced).status == 200


def test_prefill():
    one = client("claude-bound")
    one.history.append(write({"role": "assistant", "content": "I"}))
    assert "does not support assistant message prefill" in refusal(one.send())
    one = client()
    one.history.append(write({"role": "assistant", "content": "I"}))
    assert refusal(one.send()) == expected(1, "text")
    assert one.send(thinking=None).status == 200


# --- DeepSeek ----------------------------------------------------------------------------------

MISSING = {
    "error": {
        "message": "The `content[].thinking` in the thinking mode must be passed back to the API.",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_request_error",
    }
}


def test_deepseek_wants_a_thought_where_a_tool_was_used():
    one = client("deepseek-anthropic")
    one.talk(3)
    strip(one, 5)  # a plain turn
    reply = one.send()
    assert reply.status == 200
    assert "missing=1" in thoughts(reply)
    strip(one, 1)
    reply = one.send()
    assert (reply.status, load(reply.body)) == (400, MISSING)
    assert one.send(thinking={"type": "disabled"}).status == 200


def test_deepseek_does_not_verify():
    one = client("deepseek-anthropic")
    one.talk(2)
    one.change(1, 0, signature="anything")
    one.change(3, 0, signature=None)
    one.key = "key-two"
    assert one.send().status == 200
    one.change(1, 0, thinking="")
    reply = one.send()
    assert reply.status == 200
    assert "missing=1" in thoughts(reply)
    assert load(one.send(model="deepseek-v4-pro").body) == MISSING


@pytest.mark.parametrize("stream", [False, True])
def test_deepseek_shows_its_thoughts_also_to_who_wants_them_omitted(stream):
    """Its API has no `display`: what Claude Code sends is read past (api-docs.deepseek.com)."""
    one = client("deepseek-anthropic", stream=stream, model="deepseek-v4-pro")
    one.body["thinking"] = {"type": "adaptive", "display": "omitted"}
    one.talk(4)
    shown = [b["thinking"] for at in one.assistants() for b in one.blocks(at) if thinking(b)]
    assert shown
    assert all(shown)
    assert one.send().status == 200


def test_deepseek_path():
    one = client("deepseek-anthropic")
    one.base = "/anthropic/v1"
    assert one.send().status == 200


# --- System messages among the others ----------------------------------------------------------

USER, SAID = {"role": "user", "content": "go"}, {"role": "assistant", "content": "done"}
REMINDER = {"role": "system", "content": [{"type": "text", "text": "be brief"}]}
EFFORT = {"role": "system", "content": [], "output_config": {"effort": "high"}}
EFFORT_BETA = {"anthropic-beta": "mid-conversation-output-config-2026-07-01"}
ANYWHERE = "; the directive-only form (content: [] with output_config) is accepted at any position"


@pytest.mark.parametrize(
    "messages",
    [
        [USER, REMINDER],
        [USER, REMINDER, REMINDER],
        [USER, REMINDER, SAID, USER],
        [EFFORT, USER],  # as Claude Code sends it after /compact
        [USER, EFFORT, USER],
        [USER, SAID, EFFORT, USER],
        [USER, SAID, USER, EFFORT],
    ],
)
def test_system_messages_that_are_accepted(messages):
    one = client("claude-bound")
    one.headers |= EFFORT_BETA
    assert one.send(messages=messages).status == 200


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        (
            [REMINDER, USER],
            "messages.0: use the top-level 'system' parameter for the initial system prompt"
            + ANYWHERE,
        ),
        (
            [USER, REMINDER, USER],
            "messages.1: role 'system' must precede an 'assistant' message or end the array"
            + ANYWHERE,
        ),
        (
            [USER, SAID, REMINDER, USER],
            (
                "messages.2: role 'system' must follow a 'user' message or an 'assistant' message"
                " ending in a server tool result"
            )
            + ANYWHERE,
        ),
        (
            [USER, {"role": "system", "content": []}],
            "messages.1: system content must contain at least one block",
        ),
        (
            [USER, {"role": "system", "content": [{"type": "image", "source": {}}]}],
            "messages.1: role 'system' supports text, tool_addition, and tool_removal blocks only",
        ),
    ],
)
def test_system_messages_that_are_refused(messages, message):
    one = client("claude-bound")
    one.headers |= EFFORT_BETA
    assert refusal(one.send(messages=messages)) == message


def test_effort_of_a_message_needs_its_header():
    one = client("claude-bound")
    said = refusal(one.send(messages=[USER, EFFORT]))
    assert said == "messages.1.output_config: Extra inputs are not permitted"


def test_older_models_know_no_system_message():
    said = refusal(client().send(messages=[USER, REMINDER]))
    assert said == "role 'system' is not supported on this model"


# --- The frame ---------------------------------------------------------------------------------


OFTEN = (
    "thinking: Input tag 'often' found using 'type' does not match any of the expected tags:"
    " 'adaptive', 'between_tools', 'disabled', 'enabled'"
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"messages": 5}, "messages: Input should be a valid list"),
        ({"messages": []}, "messages: at least one message is required"),
        ({"messages": [5]}, "messages.0: Input should be a valid dictionary"),
        ({"messages": [{"role": "user"}]}, "messages.0.content: Field required"),
        ({"max_tokens": "5"}, "max_tokens: Input should be a valid integer"),
        ({"max_tokens": True}, "max_tokens: Input should be a valid integer"),
        ({"foo": 1}, "foo: Extra inputs are not permitted"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]},
            "messages: text content blocks must be non-empty",
        ),
        (
            {"messages": [{"role": "user", "content": ""}]},
            (
                "messages.0: all messages must have non-empty content except for the optional final"
                " assistant message"
            ),
        ),
        (
            {"messages": [{"role": "assistant", "content": "x"}]},
            'messages: first message must use the "user" role',
        ),
        ({"tools": [{"name": "a"}]}, "tools.0.custom.input_schema: Field required"),
        ({"tools": [{}]}, "tools.0.custom.name: Field required"),
        (
            {"tools": [{"name": "a b", "input_schema": {}}]},
            "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        ),
        ({"tools": [{"name": "a", "input_schema": {}}] * 2}, "tools: Tool names must be unique."),
        ({"max_tokens": 0}, "max_tokens: Input should be greater than or equal to 1"),
        ({"system": [{}]}, "system.0.text: Input should be a valid string"),
        ({"thinking": {"type": "often"}}, OFTEN),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "redacted_thinking", "data": ""}]}
                ]
            },
            "messages.0.content.0: `redacted_thinking` blocks can only be in `assistant` messages",
        ),
    ],
)
def test_wrong_fields_are_named(changes, message):
    assert refusal(client().send(**changes)) == message


def test_calls_and_results_belong_together():
    one = client()
    one.talk(1)
    ids = [block["tool_use_id"] for block in one.blocks(2)]
    kept = one.history[2]
    one.rewrite(2, one.blocks(2)[:1])
    assert refusal(one.send()) == (
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after:"
        f" {ids[1]}. Each `tool_use` block must have a corresponding `tool_result` block in the"
        " next message."
    )
    one.history[2] = kept
    one.rewrite(2, [*one.blocks(2), {"type": "tool_result", "tool_use_id": "other"}])
    assert refusal(one.send()).startswith(
        "messages.2.content.2: unexpected `tool_use_id` found in `tool_result` blocks: other."
    )
    one.history[2] = kept
    one.rewrite(2, [*one.blocks(2), one.blocks(2)[0]])
    assert "each tool_use must have a single result" in refusal(one.send())
    one.history[2] = kept
    one.change(1, 1, id="bad id")
    assert refusal(one.send()) == (
        "messages.1.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    )


def test_unknown_model_path_credential_version_and_json():
    one = client()
    assert refusal(one.send(model="gpt-5"), 404, "not_found_error") == "model: gpt-5"
    sim = one.sim
    for path in ("/v1/nothing", "/v1/messages/nothing"):
        assert refusal(sim.answer(Request("POST", path, HEADERS, b"{}")), 404, "not_found_error")
    reply = sim.answer(Request("POST", "/v1/messages", {}, b"{}"))
    assert refusal(reply, 401, "authentication_error") == "x-api-key header is required"
    reply = sim.answer(Request("POST", "/v1/messages", {"x-api-key": "k"}, b"{}"))
    assert refusal(reply) == "anthropic-version: header is required"
    assert refusal(sim.answer(Request("POST", "/v1/messages", HEADERS, b"{")))
    models = load(sim.answer(Request("GET", "/v1/models", HEADERS, b"")).body)
    assert models["data"][0]["id"] == "claude-sonnet-4-5"


def test_required_fields_and_single_ids():
    one = client()
    for name in ("messages", "model", "max_tokens"):
        body = {key: value for key, value in one.request().items() if key != name}
        reply = one.sim.answer(Request("POST", "/v1/messages", HEADERS, write(body)))
        assert refusal(reply) == f"{name}: Field required"
    one.talk(1)
    one.history += one.history[1:3]
    assert refusal(one.send()) == "messages.3: `tool_use` ids must be unique"


def test_faults_have_the_servers_shape():
    one = client()
    one.sim.fail_next("529")
    assert refusal(one.send(), 529, "overloaded_error")
    one.sim.fail_next("500")
    assert refusal(one.send(), 500, "api_error")


def test_without_serials_conversations_look_alike():
    one = client(options={"serials": False})
    two = MessagesClient(one.sim, thinking=ENABLED)
    two.history = [two.user("Something else.")]
    one.talk(3)
    two.talk(3)
    two.rewrite(5, [one.blocks(5)[0], *two.blocks(5)[1:]])
    assert one.blocks(5)[1:] == two.blocks(5)[1:]
    reply = two.send()
    assert reply.status == 200  # an older signature does not know its conversation
    assert "foreign=1" in thoughts(reply)


def test_bound_thought_of_another_conversation():
    one = bound_client(3, options={"serials": False})
    two = MessagesClient(one.sim, model=one.model)
    two.history = [two.user("Something else.")]
    two.talk(3)
    two.rewrite(5, [one.blocks(5)[0], *two.blocks(5)[1:]])
    assert refusal(two.send()) == bound(5, 0, CONTENT)


def test_script_of_ones_own():
    def script(turn, sim):
        return Say(f"first {sim.mark}"), Think(f"then {sim.serial}"), Use("run", "{}")

    one = client("claude-bound", options={"script": script})
    one.talk(3)
    assert thoughts(one.send()) == f"exact=3; {CLEAN}"


# --- Whatever is sent --------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=60)
@given(data=st.data())
def test_wrong_types_anywhere_get_an_answer(name, data):
    one = client(name)
    one.headers |= CONTROLS
    one.talk(2)
    body = {**one.request(), "messages": [load(item) for item in one.history]}
    if name == "claude-bound":
        body["thinking"] = DROP
    path = data.draw(st.sampled_from(list(places(body))))
    raw = json.dumps(put(body, path, data.draw(JUNK))).encode()
    reply = one.sim.answer(Request("POST", "/v1/messages", HEADERS | CONTROLS, raw))
    assert reply.status in (200, 400, 404)
    if reply.status != 200:
        assert "message" in load(reply.body)["error"]


@given(st.binary(max_size=60))
def test_any_bytes_get_an_answer(raw):
    assert client().sim.answer(Request("POST", "/v1/messages", HEADERS, raw)).status == 400


def test_deep_nesting_gets_an_answer():
    deep = b"[" * 900 + b"]" * 900
    use = b'{"type":"tool_use","id":"a","name":"b","input":{"x":' + deep + b"}}"
    body = (
        b'{"model":"claude-opus-5-5","max_tokens":5,"messages":[{"role":"user","content":"x"},'
        b'{"role":"assistant","content":[' + use + b"]},"
        b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}'
    )
    for raw in (body, b"[" * 100000):
        reply = client("claude-bound").sim.answer(Request("POST", "/v1/messages", HEADERS, raw))
        assert reply.status == 400


def test_tool_names_are_those_of_the_client():
    assert set(TOOL_NAMES) == {"read_file", "run", "search"}
