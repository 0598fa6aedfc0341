"""Each check of a policy row, against simulators that do otherwise."""

from msgspec.structs import replace

from support.verify import PRO, deepseek, differing, verified
from thoughtline.testing import simulator
from thoughtline.testing.sims.chat import ChatSimulator
from thoughtline.testing.sims.chat_checks import all_turns, call_turns
from thoughtline.testing.sims.chat_errors import Refusal
from thoughtline.testing.sims.chat_rows import ROWS as CHAT
from thoughtline.testing.sims.messages import MessagesSimulator
from thoughtline.testing.sims.messages_rows import ROWS as MESSAGES
from thoughtline.verify.report import CheckVerdict, Observed

SAYS = "The `reasoning_content` in the thinking mode must be passed back to the API."


async def test_another_model_refuses_a_seal():
    report = await verified(simulator("claude"), other="claude-opus-4-5")
    rows = {row.name: row for row in report.rows}
    assert rows["other-model"].observed is Observed.REFUSED
    assert rows["other-model"].verdict is CheckVerdict.AS_ASSUMED


async def test_another_model_that_does_not_exist_proves_nothing():
    report = await verified(simulator("claude"), other="no-such-model")
    rows = {row.name: row for row in report.rows}
    assert rows["other-model"].observed is Observed.FAILED
    assert rows["other-model"].verdict is CheckVerdict.UNKNOWN


async def test_a_missing_thought_that_is_accepted():
    report = await verified(deepseek(), PRO)
    assert {"missing", "missing-plain", "missing-earlier", "missing-running"} <= differing(report)
    assert report.override["need"] == "recommended"


async def test_a_narrower_scope():
    report = await verified(deepseek(call_turns(SAYS)), PRO)
    assert {"missing-plain", "empty"} == differing(report)
    assert report.override == {"scope": "calls", "lost": '""'}
    report = await verified(deepseek(call_turns(SAYS, loop=True)), PRO)
    assert report.override["scope"] == "loop"


async def test_a_demand_without_tools():
    def strict(case):
        lacks = any(m.get("reasoning_content") is None for _, m in case.view.assistants())
        return Refusal(400, SAYS) if case.thinking and lacks else None

    report = await verified(deepseek(strict, all_turns(SAYS)), PRO)
    assert differing(report) == {"missing-toolless"}
    assert report.override == {"with_tools": False}


async def test_a_blank_that_is_refused():
    def strict(case):
        values = [m.get("reasoning_content") for _, m in case.view.assistants()]
        blank = case.thinking and case.view.tools and any(not (v or "").strip() for v in values)
        return Refusal(400, SAYS) if blank else None

    report = await verified(deepseek(strict), PRO)
    assert differing(report) == {"blank"}
    assert report.override == {"lost": ""}


async def test_an_empty_value_that_is_accepted_after_all():
    report = await verified(deepseek(all_turns(SAYS, blank="nobody")), PRO)
    assert differing(report) == {"empty"} and report.override == {"lost": '""'}


async def test_thinking_that_cannot_be_switched_off():
    report = await verified(deepseek(all_turns(SAYS), thinks=lambda view: True), PRO)
    rows = {row.name: row for row in report.rows}
    assert differing(report) == {"off"} and report.override == {"off": []}
    assert rows["off"].observed in (Observed.REFUSED, Observed.IGNORED)


async def test_thinking_that_stays_on_without_a_word():
    row = replace(CHAT["glm"], thinks=lambda view: True)
    report = await verified(ChatSimulator("glm", row))
    rows = {row.name: row for row in report.rows}
    assert rows["off"].observed is Observed.IGNORED and "still thinks" in rows["off"].words
    assert report.override == {"off": []}


async def test_thinking_that_can_be_switched_off_after_all():
    row = replace(CHAT["kimi-k3"], thinks=CHAT["kimi"].thinks)
    report = await verified(ChatSimulator("kimi-k3", row))
    assert report.override == {"off": ["thinking", '{"type":"disabled"}']}


async def test_a_forbidden_thought_that_is_taken():
    row = replace(CHAT["deepseek-r1"], checks=CHAT["deepseek-r1"].checks[:-1])
    report = await verified(ChatSimulator("deepseek-r1", row))
    assert differing(report) == {"brought"} and report.override == {"need": "ignored"}


async def test_a_prefix_that_is_not_checked_and_one_that_is():
    bound, text = MESSAGES["claude-bound"], MESSAGES["claude"]
    loose = [replace(m, binds=False) for m in bound.models]
    sim = MessagesSimulator("claude-bound", replace(bound, models=tuple(loose), binding="text"))
    report = await verified(sim, "claude-opus-5-5")
    assert {"prefix-system", "prefix-gap"} <= differing(report)
    assert report.override["prefix"] is False
    tight = replace(text, models=tuple(replace(m, binds=True) for m in text.models))
    sim = MessagesSimulator("claude", replace(tight, binding="prefix"))
    assert (await verified(sim)).override["prefix"] is True
