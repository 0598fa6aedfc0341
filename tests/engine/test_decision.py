"""What goes upstream for one request, and that it never changes."""

import json

import pytest

from support.engine import answered, asked, finish, message, target
from thoughtline.engine.decision import Overrides
from thoughtline.errors import Unavailable
from thoughtline.stores.memory import MemoryStore

CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"id": "call_0", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    ],
}


TOOLS = [{"type": "function", "function": {"name": "ls", "parameters": {}}}]


SUMMARY = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA-a-summary"}


SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA-a-thought"}


@pytest.mark.parametrize(
    ("hints", "known"), [((), False), (("a-session",), True), (("my-app",), True)]
)
async def test_a_cache_key_that_conversations_share_is_no_proof(hints, known):
    """Many conversations of one application go under one `prompt_cache_key`; a session is one's own."""
    store, where = MemoryStore(), target("deepseek", "chat", "deepseek-v4-pro")
    common = {"model": "deepseek-v4-pro", "prompt_cache_key": "my-app", "tools": TOOLS}
    one = {**common, "messages": [{"role": "user", "content": "one"}]}
    choice = {"index": 0, "finish_reason": "tool_calls"}
    reply = {"choices": [{**choice, "message": {**CALL, "reasoning_content": "thought of one"}}]}
    await answered(store, "chat", where, one, reply, hints)
    history = [
        {"role": "user", "content": "another"},
        CALL,
        {"role": "tool", "tool_call_id": "call_0", "content": "b.txt"},
    ]
    exchange = await asked(store, "chat", where, {**common, "messages": history}, hints)
    assert (b"thought of one" in exchange.decision.body) is known


@pytest.fixture
async def compacted():
    store, where = MemoryStore(), target("openai", "responses", "gpt-5.6")
    body = {"model": "gpt-5.6", "input": [{"role": "user", "content": "go"}]}
    output = [SUMMARY, SEALED, message("done", id="msg_1")]
    reply = {"id": "resp_1", "model": "gpt-5.6", "status": "completed", "output": output}
    await answered(store, "responses", where, body, reply)
    return store


@pytest.mark.parametrize(
    ("policy", "model", "goes"),
    [
        ("openai", "gpt-5.6", True),
        ("azure", "gpt-5.6", False),
        ("xai", "grok-4.5", False),
        ("deepseek", "deepseek-v4-flash", False),
        ("generic", "m", False),
    ],
)
@pytest.mark.parametrize(
    "history",
    [
        [SUMMARY],
        [{**SUMMARY, "id": None}, message("done")],
        [{"role": "user", "content": "go"}, SUMMARY, SEALED, message("done", id="msg_1")],
    ],
)
async def test_a_sealed_summary_stays_with_its_provider(compacted, history, policy, model, goes):
    body = {"model": model, "input": [*history, {"role": "user", "content": "go on"}]}
    exchange = await asked(compacted, "responses", target(policy, "responses", model), body)
    assert (b"gAAAA-a-summary" in exchange.decision.body) is goes
    assert json.loads(exchange.decision.body)["input"][-1] == body["input"][-1]
    if not goes:
        assert b"gAAAA" not in exchange.decision.body


async def test_a_decision_never_changes():
    """What recovery tries is another decision; the one that was refused stays as it was."""
    where = target("deepseek", "chat", "deepseek-v4-pro")
    body = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "Hello."}]}
    decision = (await asked(MemoryStore(), "chat", where, body)).decision
    before = decision.body
    revised = decision.revise(overrides=Overrides(fields={"thinking": b"null"}))
    assert revised.body != before
    assert decision.body is before
    assert decision.overrides == Overrides()


class Outage(MemoryStore):
    """A store whose look-ups fail for a while."""

    down = False

    async def find(self, tenant, keys):
        if self.down:
            raise Unavailable("the server restarts")
        return await super().find(tenant, keys)


def said_again(dialect):
    """What the second answer has in place of the first one's."""
    if dialect == "chat":
        said = {"role": "assistant", "content": "b", "reasoning_content": "second thought"}
        return {"choices": [{"index": 0, "finish_reason": "stop", "message": said}]}
    block = {"type": "thinking", "thinking": "second thought", "signature": "c2Vjb25k"}
    return {"content": [block, {"type": "text", "text": "b"}]}


@pytest.mark.parametrize(
    ("policy", "dialect", "model", "sticky"),
    [
        ("deepseek", "chat", "deepseek-v4-pro", False),
        ("anthropic", "messages", "claude-opus-5-5", True),
    ],
)
async def test_a_miss_by_an_outage_is_sticky_only_where_the_prefix_is_bound(
    policy, dialect, model, sticky
):
    """Elsewhere the thought goes back as soon as it can be found again."""
    store, where = Outage(), target(policy, dialect, model)
    if dialect == "chat":
        said = {"role": "assistant", "content": "a", "reasoning_content": "first thought"}
        reply = {"choices": [{"index": 0, "finish_reason": "stop", "message": said}]}
    else:
        block = {"type": "thinking", "thinking": "first thought", "signature": "c2lnbmF0dXJl"}
        reply = {"role": "assistant", "content": [block, {"type": "text", "text": "a"}]}
        reply |= {"type": "message", "stop_reason": "end_turn", "model": model}
    common = {"model": model, "max_tokens": 9000, "thinking": {"type": "adaptive"}}
    if dialect == "chat":
        common = {"model": model, "tools": TOOLS}
    first = [{"role": "user", "content": "one"}]
    await answered(store, dialect, where, {**common, "messages": first}, reply)
    history = [*first, {"role": "assistant", "content": "a"}, {"role": "user", "content": "two"}]
    store.down = True
    lost = await asked(store, dialect, where, {**common, "messages": history})
    assert lost.decision.lookup_error == "the server restarts"
    reply = {**reply, **said_again(dialect)}
    lost.recording.feed(json.dumps(reply).encode())
    store.down = False
    await finish(store, lost)
    history += [{"role": "assistant", "content": "b"}, {"role": "user", "content": "three"}]
    later = await asked(store, dialect, where, {**common, "messages": history})
    assert (b"first thought" in later.decision.body) is not sticky
    assert b"second thought" in later.decision.body
