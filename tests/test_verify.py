"""`thoughtline verify`: policy rows against simulators that agree with them, and some that do not."""

import json
import os
import tomllib

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from rooms import ScriptedWire, SimWire
from thoughtline.cli import simulated
from thoughtline.cli.conversation import FIELDS, POLICIES
from thoughtline.cli.doctor import doctor
from thoughtline.cli.talking import sim_provider
from thoughtline.cli.verify import verify as command
from thoughtline.clock import SystemClock
from thoughtline.errors import SettingsError
from thoughtline.library.providers import Provider, endpoint
from thoughtline.settings import load
from thoughtline.testing import serving, simulator
from thoughtline.testing.sims.chat import ChatSimulator
from thoughtline.testing.sims.chat_checks import all_turns, call_turns
from thoughtline.testing.sims.chat_errors import Refusal
from thoughtline.testing.sims.chat_rows import ROWS as CHAT
from thoughtline.testing.sims.messages import MessagesSimulator
from thoughtline.testing.sims.messages_rows import ROWS as MESSAGES
from thoughtline.testing.sims.responses import ResponsesSimulator
from thoughtline.testing.sims.responses_rows import ROWS as RESPONSES
from thoughtline.verifying import Outcome, Verdict, estimate, reports, running, verify


def provider(sim, model="", **more):
    name = sim.provider
    policy = "gemini" if name.startswith("gemini") else POLICIES.get(name, name)
    said = {"key": "k", "policy": policy, "options": FIELDS.get(name, {}), **more}
    return Provider(
        name,
        model=model or sim.models()[0],
        base_url="http://sim",
        dialect=sim.dialect,
        **said,
    )


async def verified(sim, model="", *, other="", wire=None, **more):
    asked = provider(sim, model, **more)
    elsewhere = endpoint(replace(asked, model=other), {}) if other else None
    return await verify(
        endpoint(asked, {}), wire or SimWire(sim), SystemClock(), elsewhere=elsewhere
    )


def verdicts(report):
    return {row.name: row.verdict for row in report.rows}


def differing(report):
    return {name for name, verdict in verdicts(report).items() if verdict is Verdict.DIFFERS}


def deepseek(*checks, thinks=None):
    row = CHAT["deepseek"]
    row = replace(row, checks=(*row.checks[:-1], *checks), thinks=thinks or row.thinks)
    return ChatSimulator("deepseek", row)


PRO = "deepseek-v4-pro"
SAYS = "The `reasoning_content` in the thinking mode must be passed back to the API."


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
    target = endpoint(provider(sim, model), {})
    assert report.requests <= estimate(target.target.policy, sim.dialect)


async def test_what_one_key_cannot_show_is_said():
    report = await verified(simulator("claude"))
    rows = {row.name: row for row in report.rows}
    assert rows["other-account"].verdict is Verdict.UNKNOWN
    assert "one key" in rows["other-account"].words
    assert "--other-model" in rows["other-model"].words


async def test_another_model_refuses_a_seal():
    report = await verified(simulator("claude"), other="claude-opus-4-5")
    rows = {row.name: row for row in report.rows}
    assert rows["other-model"].observed is Outcome.REFUSED
    assert rows["other-model"].verdict is Verdict.AS_ASSUMED


async def test_another_model_that_does_not_exist_proves_nothing():
    report = await verified(simulator("claude"), other="no-such-model")
    rows = {row.name: row for row in report.rows}
    assert rows["other-model"].observed is Outcome.FAILED
    assert rows["other-model"].verdict is Verdict.UNKNOWN


async def test_a_seal_that_another_model_takes_proves_nothing():
    report = await verified(simulator("openai"), "gpt-5.6", other="gpt-5")
    rows = {row.name: row for row in report.rows}
    assert rows["other-model"].observed is Outcome.ACCEPTED
    assert rows["other-model"].verdict is Verdict.UNKNOWN and report.override == {}


@pytest.mark.parametrize(("name", "found"), [("openai", "by id"), ("xai", "not checked")])
async def test_how_items_are_paired_is_found_out(name, found):
    report = await verified(simulator(name))
    assert report.findings == {"pairing": found}


# -- rows that are not -----------------------------------------------------------------------------


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
    assert rows["off"].observed in (Outcome.REFUSED, Outcome.IGNORED)


async def test_thinking_that_stays_on_without_a_word():
    row = replace(CHAT["glm"], thinks=lambda view: True)
    report = await verified(ChatSimulator("glm", row))
    rows = {row.name: row for row in report.rows}
    assert rows["off"].observed is Outcome.IGNORED and "still thinks" in rows["off"].words
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


async def test_a_seal_that_is_not_verified_never_loosens_a_guard():
    row = replace(RESPONSES["xai"], style=None)
    report = await verified(ResponsesSimulator("xai", row))
    assert "binds" not in report.override
    row = replace(MESSAGES["claude"], binding="none")
    report = await verified(MessagesSimulator("claude", row))
    assert "altered" in differing(report) and "binds" not in report.override


# -- when nothing can be said ----------------------------------------------------------------------


async def test_a_key_that_is_refused_is_a_problem_and_no_verdict():
    report = await verified(simulator("deepseek", account="another"), PRO)
    assert "401" in report.problem and report.rows == () and not report.differs
    assert report.requests == 1


async def test_a_failing_server_is_no_refusal(monkeypatch):
    async def at_once(seconds):
        pass

    monkeypatch.setattr(running, "pause", at_once)
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
    assert named["missing"].observed is Outcome.FAILED
    assert named["missing"].verdict is Verdict.UNKNOWN
    assert not report.differs and report.override == {}


async def test_a_model_without_thoughts_is_told_apart():
    report = await verified(simulator("deepseek", script=lambda turn, sim: ()), PRO)
    assert "thoughts" in report.findings and "turns" in report.findings
    assert report.problem == "" and differing(report) == set()


# -- the command -----------------------------------------------------------------------------------


def run(*arguments, env=None):
    return CliRunner().invoke(command, list(arguments), env=env)


def test_the_command_shows_a_table():
    result = run("--upstream", "sim:deepseek", "--model", PRO)
    assert result.exit_code == 0, result.output
    assert "small requests to sim://deepseek" in result.stderr
    assert "every thought is missing" in result.stdout and "as assumed" in result.stdout


def test_the_command_writes_what_differs(tmp_path):
    file = tmp_path / "override.toml"
    result = run("--upstream", "sim:deepseek-v3.2", "--json", "--write", str(file))
    assert result.exit_code == 1, result.output
    told = json.loads(result.stdout)
    assert told["differs"] and told["override"]["scope"] == "loop"
    (made,) = tomllib.loads(file.read_text("utf-8"))["policies"]
    where = {"policy": "deepseek", "endpoint": "sim://deepseek-v3.2", "dialect": "chat"}
    assert made == {**where, "models": ["deepseek-reasoner"], **told["override"]}


def test_what_was_written_is_what_settings_doctor_and_library_go_by(tmp_path, monkeypatch):
    """From a provider that deviates to the gateway and a chat that know it, and back again."""
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert run("--upstream", "sim:deepseek-v3.2", "--write").exit_code == 1
    assert run("--upstream", "sim:kimi", "--write").exit_code == 0  # beside the other one
    assert run("--upstream", "sim:deepseek-v3.2", "--write").exit_code == 1  # in its own place
    settings = load({}, os.environ, tmp_path)
    assert [row.policy for row in settings.replay.overrides] == ["kimi", "deepseek"]
    upstream = simulated.upstream("sim/deepseek-v3.2", settings.replay.overrides)
    target = upstream.target(dialect="chat", model="", account="a")
    assert target.policy.scope == "loop"
    assert (
        simulated.upstream("sim/deepseek-v3.2")
        .target(dialect="chat", model="", account="a")
        .policy.scope
        != "loop"
    )
    other = simulated.upstream("sim/deepseek", settings.replay.overrides)
    assert other.target(dialect="chat", model="", account="a").policy.scope != "loop"
    file = settings.replay.policies
    provider = sim_provider("deepseek-v3.2", None, {})
    assert endpoint(provider, {}).target.policy.scope != "loop"
    assert endpoint(replace(provider, overrides=file), {}).target.policy.scope == "loop"
    told = CliRunner().invoke(doctor, ["--offline"]).output
    assert f"policies: {file} changes kimi (chat" in told and "deepseek (chat" in told


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[policies]]\npolicy='kimy'\ndialect='chat'", "did you mean 'kimi'?"),
        ("[[policies]]\npolicy='kimi'", "missing required field `dialect`"),
        ("[[policies]]\npolicy='kimi'\ndialect='chat'\nneed='never'", "Invalid enum value"),
        ("[[policies]]\npolicy='kimi'\ndialect='chat'\noff=['x']", "`off` of 'kimi'"),
        ("what", "not as `thoughtline verify --write` writes it"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path, text, says):
    (tmp_path / "p.toml").write_text(text)
    (tmp_path / "thoughtline.toml").write_text("[replay]\npolicies = 'p.toml'")
    with pytest.raises(SettingsError) as caught:
        load({}, {}, tmp_path)
    assert says in str(caught.value) and "replay.policies" in str(caught.value)


async def test_a_file_without_differences_says_so():
    text = reports.toml(await verified(simulator("kimi")))
    assert "Nothing differs" in text and tomllib.loads(text)["policies"][0]["policy"] == "kimi"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--upstream", "sim:deepsek"], "did you mean 'deepseek'"),
        (["--upstream", "deepseek"], "which model"),
        (["--upstream", "deepsek", "--model", "m"], "did you mean 'deepseek'"),
        (["--upstream", "deepseek", "--model", PRO], "DEEPSEEK_API_KEY"),
        (["--upstream", "deepseek", "--model", PRO, "--key-env", "NO_SUCH_KEY"], "is not set"),
        (["--upstream", "sim:kimi", "--set", "a=b"], "not JSON"),
    ],
)
def test_mistakes_are_answered(arguments, words):
    result = run(*arguments, env={"DEEPSEEK_API_KEY": ""})
    assert result.exit_code not in (0, None) and words in result.output
    assert not isinstance(result.exception, KeyError)


def test_the_command_over_a_real_socket():
    with serving("kimi") as sims:
        base = ["--upstream", "mine", "--base-url", sims.root("kimi"), "--policy", "kimi"]
        env = {"SOME_KEY": "k"}
        result = run(*base, "--model", "kimi-k2.6", "--key-env", "SOME_KEY", "--json", env=env)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["problem"] == "" and len(told["rows"]) > 5
    assert {row["verdict"] for row in told["rows"]} == {"as assumed"}


def test_nothing_reachable_ends_with_2(monkeypatch):
    async def at_once(seconds):
        pass

    monkeypatch.setattr(running, "pause", at_once)
    url = "http://127.0.0.1:9"
    result = run("--upstream", "mine", "--model", "m", "--base-url", url, "--yes")
    assert result.exit_code == 2 and "Nothing could be tested" in result.stdout
