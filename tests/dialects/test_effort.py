"""How hard to think, put into a client's own body."""

import json

import pytest

from support.gateway import Answer, InProcessGateway, ScriptedWire
from thoughtline.dialects import DIALECTS, splice
from thoughtline.dialects.effort import with_effort
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.engine.model_names import ModelNames, ModelRow
from thoughtline.providers.contracts import find_policy
from translation.test_efforts import ROWS, asked

SAID = {
    "chat": [
        {},
        {"reasoning_effort": "low", "temperature": 0.5},
        {"thinking": {"type": "disabled"}, "enable_thinking": False, "thinking_budget": 7},
        {"reasoning": {"max_tokens": 99}, "think": False, "stop": ["a"]},
        {"chat_template_kwargs": {"enable_thinking": False, "x": 1}, "user": "u"},
    ],
    "responses": [
        {},
        {"reasoning": None},
        {"reasoning": {"effort": "minimal", "summary": "detailed"}, "text": {"verbosity": "low"}},
    ],
    "messages": [
        {},
        {"thinking": {"type": "enabled", "budget_tokens": 5000}, "stop_sequences": ["a"]},
        {"thinking": {"type": "disabled"}, "output_config": {"effort": "low", "format": {"a": 1}}},
    ],
    "gemini": [
        {},
        {"generationConfig": {"temperature": 0.5, "responseModalities": ["TEXT"]}},
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}, "topK": 1}},
        {"generation_config": {"thinking_config": {"thinking_budget": 0}, "top_k": 1}},
    ],
}
"""What clients of a dialect say of it themselves, and beside it."""
CASES = [(*row, said) for row in ROWS for said in SAID[row[1]]]


def changed(dialect, policy, model, effort, body):
    """A body with the effort put in, and whether it thinks."""
    spoken, raw = DIALECTS[dialect], json.dumps(body).encode()
    takes = find_policy(policy, dialect, model).takes
    request, fields = with_effort(spoken.read(raw), spoken, effort, takes)
    made = splice.with_members(raw, fields)
    assert request.body == raw
    return json.loads(made), request.thinking


def efforts(body):
    """The members that say how hard to think, under the names that the table has for them."""
    config = body.get("generationConfig") or body.get("generation_config") or {}
    nested = {"thinkingConfig": config.get("thinkingConfig") or config.get("thinking_config")}
    if output := (body.get("output_config") or {}).get("effort"):
        nested["output_config"] = {"effort": output}
    names = ("thinking", "reasoning_effort", "enable_thinking", "thinking_budget", "think")
    found = {name: body.get(name) for name in (*names, "reasoning")} | nested
    return {name: value for name, value in found.items() if value}


def without_switches(fields):
    """The members without those that make a provider read thoughts: they are no part of an effort."""
    made = {}
    for name, value in fields.items():
        of = value.items() if isinstance(value, dict) else None
        made[name] = {k: v for k, v in of if k != "clear_thinking"} if of else value
    return made


@pytest.mark.parametrize(("policy", "dialect", "model", "effort", "fields", "left", "said"), CASES)
def test_a_row_says_it_as_the_provider_wants_it(policy, dialect, model, effort, fields, left, said):
    _, body = asked(dialect, "mine", **said)
    made, thinking = changed(dialect, policy, model, effort, body)
    if left:
        assert made == body  # the client's own, as it was
        return
    if "clear_thinking" in fields.get("thinking", {}):  # which is said when it is decided
        fields = {**fields, "thinking": {"type": fields["thinking"]["type"]}}
    if dialect == "responses":  # whether summaries are shown is the client's own matter
        fields = {"reasoning": {**(body.get("reasoning") or {}), "effort": effort}}
    assert efforts(made) == without_switches(fields)
    assert thinking is (effort != "none")
    assert changed(dialect, policy, model, effort, made)[0] == made
    others = {"text", "stop", "stop_sequences", "user", "messages", "input", "contents", "model"}
    assert {n: v for n, v in made.items() if n in others} == {
        n: v for n, v in body.items() if n in others
    }
    assert made.get("output_config", {}).get("format") == body.get("output_config", {}).get(
        "format"
    )


def test_what_thinking_excludes_goes_out():
    body = asked("messages", "mine", temperature=0.5, top_k=3)[1]
    made, _ = changed("messages", "anthropic", "claude-sonnet-4-5", "high", body)
    assert "temperature" not in made and "top_k" not in made
    assert made["thinking"]["type"] == "enabled"
    kept, _ = changed("messages", "anthropic", "claude-sonnet-4-5", "none", body)
    assert (kept["temperature"], kept["top_k"]) == (0.5, 3)


def test_other_members_of_the_same_object_stay():
    body = asked("gemini", "mine", generation_config={"top_k": 1, "temperature": 0.5})[1]
    made, _ = changed("gemini", "gemini", "gemini-3-pro-preview", "high", body)
    assert set(made) == set(body)
    assert made["generation_config"].items() >= body["generation_config"].items()
    body = asked("chat", "mine", chat_template_kwargs={"enable_thinking": False, "x": 1})[1]
    made, _ = changed("chat", "generic", "m", "high", body)
    assert made["chat_template_kwargs"] == {"x": 1}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("effort", ["high", ""])
async def test_a_request_that_is_not_translated_gets_the_effort_of_its_row(dialect, effort):
    policy, model, fields = next(
        (row[0], row[2], row[4]) for row in ROWS if row[1] == dialect and not row[5]
    )
    effort = effort and next(row[3] for row in ROWS if row[1] == dialect and not row[5])
    made = InProcessGateway(ScriptedWire(Answer(500, b"{}")), policy)
    upstream = Upstream(name="up", base_url="http://sim", policy=policy, dialects=(dialect,))
    row = ModelRow(pattern="mine", upstream="up", model=model, effort=effort)
    made.proxy.directory = Directory([upstream], model_names=ModelNames([row]))
    path, body = asked(dialect, "mine")
    await made.post(path, body)
    (sent,) = made.wire.bodies
    assert bool(efforts(sent)) is bool(effort)
    if effort and dialect != "responses":
        assert efforts(sent) == fields
    if dialect == "messages":
        await made.post(f"{path}/count_tokens", body)
        assert efforts(made.wire.bodies[-1]) == {}  # counting takes no effort
