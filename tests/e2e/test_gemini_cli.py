"""Gemini CLI, through the gateway: three runs of one conversation, two of them resumed."""

import json

import pytest

from e2e.programs import Program
from e2e.ways import KEY

TRANSLATED = ["deepseek-tame", "kimi-k3-tame", "openai-tame", "claude-tame", "claude-bound-tame"]
"""Without U+2028: with Node 26 a resumed session lacks every message that has it."""
SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "tools": {"core": ["read_file", "glob"]},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False},
}
OPTIONS = ("--skip-trust", "--yolo")

by_gateway = pytest.mark.parametrize("way", ["gateway"], indirect=True)


@pytest.fixture
def gemini(way, tmp_path):
    program = Program(
        "gemini", tmp_path, GOOGLE_GEMINI_BASE_URL=way.root, GEMINI_API_KEY=KEY, CI="1"
    )
    settings = program.home / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps(SETTINGS), "utf-8")
    return program


@by_gateway
@pytest.mark.parametrize("name", TRANSLATED)
def test_prompt_and_resume(way, gemini):
    """A run that is resumed tells every result twice, and has lost every signature."""
    options = (*OPTIONS, "-m", way.alias)
    gemini(*options, "-p", way.ask(0))
    gemini(*options, "--resume", "latest", "-p", way.ask(1))
    gemini(*options, "--resume", "latest", "-p", way.ask(2))
    way.judge()
