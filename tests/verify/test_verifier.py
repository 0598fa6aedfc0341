"""`thoughtline verify`: policy rows against simulators that agree with them, and some that do not."""

import pytest

from support.gateway import ScriptedWire, SimWire
from support.verify import PRO, differing, provider, verified
from thoughtline.agents.provider import resolve
from thoughtline.testing import simulator
from thoughtline.verify import verifier
from thoughtline.verify.checks import estimate
from thoughtline.verify.report import CheckVerdict, Observed

# -- rows that are right ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("deepseek", "deepseek-v4-pro"),
        ("deepseek", "deepseek-v4-flash"),
        ("deepseek-r1", ""),
        ("deepseek-anthropic", "deepseek-v4-flash"),
        ("kimi", ""),
        ("kimi-k3", ""),
        ("mimo", ""),
        ("glm", ""),
        ("minimax", ""),
        ("qwen", ""),
        ("groq", ""),
        ("cerebras", ""),
        ("mistral", ""),
        ("vllm", ""),
        ("openrouter", "anthropic/claude-sonnet-4.5"),
        ("openrouter", "deepseek/deepseek-v4-pro"),
        ("copilot", ""),
        ("openai", ""),
        ("azure", ""),
        ("codex", ""),
        ("xai", ""),
        ("claude", ""),
        ("claude-bound", "claude-opus-5-5"),
        ("gemini", ""),
        ("gemini-vertex", ""),
        ("gemini-compat", ""),
    ],
)
async def test_the_rows_hold_against_the_simulators(name, model):
    sim = simulator(name)
    report = await verified(sim, model)
    assert report.problem == "" and report.rows
    assert differing(report) == set() and report.override == {} and not report.differs
    assert report.requests == len(sim.requests)
    target = resolve(provider(sim, model), {})
    assert report.requests <= estimate(target.target.policy, sim.dialect)


async def test_what_one_key_cannot_show_is_said():
    report = await verified(simulator("claude"))
    rows = {row.name: row for row in report.rows}
    assert rows["other-account"].verdict is CheckVerdict.UNKNOWN
    assert "one key" in rows["other-account"].words
    assert "--other-model" in rows["other-model"].words


# -- rows that are not -----------------------------------------------------------------------------


# -- when nothing can be said ----------------------------------------------------------------------


async def test_a_key_that_is_refused_is_a_problem_and_no_verdict():
    report = await verified(simulator("deepseek", account="another"), PRO)
    assert "401" in report.problem and report.rows == () and not report.differs
    assert report.requests == 1


async def test_a_failing_server_is_no_refusal(monkeypatch):
    async def at_once(seconds):
        pass

    monkeypatch.setattr(verifier, "pause", at_once)
    sim = simulator("deepseek")
    wire = SimWire(sim)
    busy = {"left": 5}

    class Flaky(ScriptedWire):
        def __init__(self):
            self.sent = []

        def send(self, request):
            self.sent.append(request)
            if len(self.sent) > 5 and busy["left"]:
                busy["left"] -= 1
                sim.fail_next("503")
            return wire.send(request)

    report = await verified(sim, PRO, wire=Flaky())
    named = {row.name: row for row in report.rows}
    assert named["missing"].observed is Observed.FAILED
    assert named["missing"].verdict is CheckVerdict.UNKNOWN
    assert not report.differs and report.override == {}


async def test_a_model_without_thoughts_is_told_apart():
    report = await verified(simulator("deepseek", script=lambda turn, sim: ()), PRO)
    assert "thoughts" in report.findings and "turns" in report.findings
    assert report.problem == "" and differing(report) == set()


# -- the command -----------------------------------------------------------------------------------
