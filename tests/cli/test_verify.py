"""`thoughtline verify`: its table, its file and its mistakes."""

import json
import os
import tomllib

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from support.verify import PRO
from thoughtline.agents import simulated
from thoughtline.agents.provider import resolve
from thoughtline.cli import main
from thoughtline.cli.doctor import doctor
from thoughtline.errors import SettingsError
from thoughtline.gateway.settings import load
from thoughtline.testing import serving
from thoughtline.verify import verifier


def run(*arguments, env=None):
    return CliRunner().invoke(main, ["verify", *arguments], env=env)


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
    provider = simulated.provider("deepseek-v3.2")
    assert resolve(provider, {}).target.policy.scope != "loop"
    assert resolve(replace(provider, overrides=file), {}).target.policy.scope == "loop"
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


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["--upstream", "sim:deepsek"], "did you mean 'deepseek'", 2),
        (["--upstream", "deepseek"], "name the model to ask with --model", 2),
        (["--upstream", "deepsek", "--model", "m"], "did you mean 'deepseek'", 3),
        (["--upstream", "deepseek", "--model", PRO], "DEEPSEEK_API_KEY", 3),
        (["--upstream", "deepseek", "--model", PRO, "--key-env", "NO_SUCH_KEY"], "is not set", 2),
        (["--upstream", "sim:kimi", "--set", "a=b"], "is not NAME=JSON", 2),
        (["--upstream", "sim:kimi", "--write", "/dev/null/x"], "cannot write", 3),
    ],
)
def test_mistakes_are_answered(arguments, words, code):
    result = run(*arguments, env={"DEEPSEEK_API_KEY": ""})
    assert result.exit_code == code and words in result.output
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


def test_nothing_reachable_ends_with_3(monkeypatch):
    async def at_once(seconds):
        pass

    monkeypatch.setattr(verifier, "pause", at_once)
    url = "http://127.0.0.1:9"
    result = run("--upstream", "mine", "--model", "m", "--base-url", url, "--yes")
    assert result.exit_code == 3 and "Nothing could be tested" in result.stdout


def test_a_provider_that_nobody_knows_is_said_before_a_model_is_asked_for():
    result = CliRunner().invoke(main, ["verify", "--upstream", "deepsek"])
    assert "did you mean 'deepseek'" in result.output and "--model" not in result.output
