"""Tools that go past the gateway are said."""

import pytest

from thoughtline.cli.doctor_tools import bypasses
from thoughtline.cli.launch_plan import make_plan
from thoughtline.cli.launch_tools import TOOLS
from thoughtline.gateway.settings import load

CLAUDE = next(tool for tool in TOOLS if tool.name == "claude")
CLOUDS = [
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_MANTLE",
    "CLAUDE_CODE_USE_GATEWAY",
    "CLAUDE_CODE_USE_ANTHROPIC_AWS",
    "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD",
]


@pytest.mark.parametrize("name", CLOUDS)
def test_a_tool_that_goes_elsewhere_is_said(name):
    (found,) = bypasses({name: "1"})
    assert (found.about, found.level) == ("claude", "note")
    assert name in found.text and "thoughtline launch claude" in found.advice
    for off in ("", "0", "false", "False"):
        assert list(bypasses({name: off})) == []


def test_launch_leaves_out_what_leads_past_it(tmp_path):
    settings = load({}, {"HOME": str(tmp_path)}, tmp_path)
    env = dict.fromkeys(CLOUDS, "1") | {"PATH": "/bin"}
    plan = make_plan(CLAUDE, "anthropic/claude-fable-5-2", settings, env, "http://127.0.0.1:7337")
    made = plan.environment(env)
    assert not made.keys() & set(CLOUDS)
    assert made["ANTHROPIC_DEFAULT_FABLE_MODEL"] == "claude-fable-5-2"
    assert made["PATH"] == "/bin"
