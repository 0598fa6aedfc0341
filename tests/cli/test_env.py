"""`thoughtline env`: lines that a shell takes, with keys named and not shown."""

import shutil
import subprocess

import pytest
from click.testing import CliRunner

from thoughtline.cli import main

NAMED = "http://127.0.0.1:7337/u/deepseek;claude-*=deepseek-v4-pro"
"""Where names of models that are built in mean the chosen one."""


@pytest.fixture
def run(folder, monkeypatch):
    monkeypatch.delenv("THOUGHTLINE_PORT")
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-never-shown")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "other")

    def invoke(*arguments):
        result = CliRunner().invoke(main, ["env", *arguments])
        assert "sk-never-shown" not in result.output
        return result

    return invoke


def test_a_shell_that_evaluates_it_is_set_up(run, monkeypatch):
    lines = run("claude", "--model", "deepseek/deepseek-v4-pro", "--shell", "sh").output
    told = subprocess.run(
        ["/bin/sh", "-c", f'eval "{escaped(lines)}"; env'],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert f"ANTHROPIC_BASE_URL={NAMED}" in told
    assert "ANTHROPIC_AUTH_TOKEN=sk-never-shown" in told
    assert "ANTHROPIC_MODEL=deepseek-v4-pro" in told
    assert not any(line.startswith("ANTHROPIC_API_KEY") for line in told)


def escaped(text):
    for character in ("\\", '"', "$", "`"):
        text = text.replace(character, f"\\{character}")
    return text


def test_inline_json_is_quoted(run):
    lines = run("opencode", "--model", "deepseek/deepseek-v4-pro", "--shell", "sh").output
    (line,) = lines.splitlines()
    assert line.startswith("export OPENCODE_CONFIG_CONTENT='{")
    assert "{env:DEEPSEEK_API_KEY}" in line


@pytest.mark.parametrize(
    ("shell", "lines"),
    [
        (
            "fish",
            [
                f"set -gx ANTHROPIC_BASE_URL '{NAMED}'",
                'set -gx ANTHROPIC_AUTH_TOKEN "$DEEPSEEK_API_KEY"',
                "set -e ANTHROPIC_API_KEY",
            ],
        ),
        (
            "powershell",
            [
                f"$env:ANTHROPIC_BASE_URL = '{NAMED}'",
                "$env:ANTHROPIC_AUTH_TOKEN = $env:DEEPSEEK_API_KEY",
                "Remove-Item Env:ANTHROPIC_API_KEY -ErrorAction Ignore",
            ],
        ),
    ],
)
def test_other_shells(run, shell, lines):
    said = run("claude", "--model", "deepseek/deepseek-v4-pro", "--shell", shell).output
    assert set(lines) <= set(said.splitlines())


@pytest.mark.skipif(
    not shutil.which("fish"), reason="fish is not installed; `make clients` installs it"
)
def test_fish_takes_it(run):
    lines = run("opencode", "--model", "deepseek/deepseek-v4-pro", "--shell", "fish").output
    subprocess.run(["fish", "-c", lines], check=True)


def test_what_is_no_variable_is_a_comment(run):
    codex = run("codex", "--model", "kimi/kimi-k3").stdout.splitlines()
    assert any(line.startswith("# start it as: codex -c") for line in codex)
    pi = run("pi", "--model", "deepseek/deepseek-v4-pro").output
    assert "models.json: thoughtline launch pi --model deepseek/deepseek-v4-pro --print" in pi


def test_a_missing_key_is_said_where_a_shell_does_not_swallow_it(run):
    result = run("codex", "--model", "kimi/kimi-k3")
    assert result.stderr == "no key for kimi was found: set MOONSHOT_API_KEY\n"
    assert "MOONSHOT" not in result.stdout
    assert run("claude", "--model", "deepseek/deepseek-v4-pro").stderr == ""


def test_an_effort_stands_in_the_path(run):
    told = run("claude", "--model", "deepseek/deepseek-v4-pro", "--effort", "high").output
    assert f"{NAMED};effort=high" in told
    assert (
        "there is no effort 'hard'; expected one of none, minimal, low"
        in run("claude", "--effort", "hard").output
    )


@pytest.mark.parametrize(
    ("name", "says"), [("claud", "did you mean 'claude'?"), ("emacs", "known are: claude, codex")]
)
def test_an_unknown_tool(run, name, says):
    result = run(name)
    assert result.exit_code == 2 and says in result.output


def test_an_unknown_model(run):
    result = run("claude", "--model", "deepsek/x")
    assert result.exit_code == 1 and "did you mean 'deepseek'?" in result.output
