"""`thoughtline launch` with the programs themselves, each on a model of another provider."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from thoughtline.agents.simulated import STRICT
from thoughtline.cli.background import BackgroundGateway
from thoughtline.cli.launch_tools import tool_names

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FOLDERS = {
    "node": Path(os.environ.get("E2E_NODE_MODULES", HERE / "node" / "node_modules")) / ".bin",
    "tools": Path(os.environ.get("E2E_TOOLS_MODULES", HERE / "tools" / "node_modules")) / ".bin",
    "aider": Path(os.environ.get("E2E_AIDER", ROOT / ".venv-aider")) / "bin",
}
QUESTIONS = {
    ("node", "claude"): ["-p", "hi", "--tools=Read,Glob"],
    ("node", "codex"): ["exec", "--skip-git-repo-check", "hi"],
    ("node", "gemini"): ["--skip-trust", "-p", "hi"],
    ("tools", "kimi"): ["-p", "hi"],
    ("tools", "pi"): ["-p", "hi"],
    ("tools", "opencode"): ["run", "hi"],
    ("tools", "qwen"): ["-p", "hi"],
    ("aider", "aider"): ["--no-git", "--yes", "--no-check-update", "--message", "hi"],
}
"""Folder and program → a question."""


@pytest.fixture
def launch(tmp_path):
    """Run the command in a home and a folder of its own."""
    home, folder = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    folder.mkdir()

    alone = {"HOME": str(home), "THOUGHTLINE_PORT": "0"}

    def run(programs, name, *arguments):
        path = f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin"  # with its own version of node
        env = {**alone, "PATH": path, "CI": "1", STRICT: "1"}
        command = [sys.executable, "-m", "thoughtline", "launch", name, "--model", "sim/deepseek"]
        return subprocess.run(
            [*command, "--", *arguments],
            cwd=folder,
            env={**env, "LANG": "C.UTF-8", "TERM": "xterm-256color"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )

    yield run
    background = BackgroundGateway(0, alone)
    if (state := background.state()) is not None:
        background.stop(state, 60)


def test_every_tool_is_tried():
    assert {name for _, name in QUESTIONS} == set(tool_names())


@pytest.mark.parametrize(("folder", "name"), QUESTIONS)
def test_each_tool_talks_and_its_thoughts_are_kept(launch, folder, name):
    found = shutil.which(name, path=str(FOLDERS[folder]))
    if not found:
        pytest.skip(f"{name} is not installed; `make clients` installs it")
    made = launch(Path(found).parent, name, *QUESTIONS[folder, name])
    said = made.stdout[-2000:] + made.stderr[-2000:]
    assert made.returncode == 0, said
    kept = re.search(r"(\d+) thoughts? kept, in ", made.stderr)
    assert kept and int(kept[1]) > 0, said
