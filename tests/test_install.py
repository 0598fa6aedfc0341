"""The command of README's third line installs Thoughtline, with its address in the package."""

import importlib.util
import os
import re
import runpy
import shutil
import subprocess
import sys
from email.parser import HeaderParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILT_FROM = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "src")
MODULES = ("pip", "hatchling")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not shutil.which("git") or not all(map(importlib.util.find_spec, MODULES)),
        reason="installing needs git, pip and hatchling: make setup",
    ),
]


def run(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """The URL of a git repository with what a build reads."""
    folder = tmp_path_factory.mktemp("repository")
    for name in BUILT_FROM:
        here, there = ROOT / name, folder / name
        shutil.copytree(here, there) if here.is_dir() else shutil.copy(here, there)
    git = ("git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@example.com")
    run(*git, "init", "--quiet")
    run(*git, "add", ".")
    run(*git, "commit", "--quiet", "--message", "A release")
    return folder.as_uri()


def third_line(source):
    readme = (ROOT / "README.md").read_text("utf-8")
    text = runpy.run_path(str(ROOT / "hatch_build.py"))["package_readme"](readme, source)
    return text.splitlines()[2]


@pytest.fixture(scope="module")
def installed(repository, tmp_path_factory):
    """The folder that the README's requirement was installed into, without its dependencies."""
    [requirement] = set(re.findall(r"`(?:uv tool|pipx) install (\S+)`", third_line(repository)))
    target = tmp_path_factory.mktemp("installed")
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
    run(
        *(sys.executable, "-m", "pip", "install", "--quiet", *offline),
        *("--target", str(target), requirement),
        env=os.environ | {"SOURCE_URL": repository},
    )
    return target


def test_the_command_has_the_address_in_place_of_its_name(repository):
    line = third_line(repository)
    assert f"`uv tool install git+{repository}`" in line
    assert f"`pipx install git+{repository}`" in line
    assert "REPOSITORY" not in line


def test_what_it_installs_runs(installed):
    command = (sys.executable, "-m", "thoughtline", "--version")
    env = os.environ | {"PYTHONPATH": str(installed)}
    assert re.search(r"\d+\.\d+", run(*command, env=env, cwd=installed))
    where = (sys.executable, "-c", "import thoughtline; print(thoughtline.__file__)")
    assert run(*where, env=env, cwd=installed).startswith(str(installed))
    assert (installed / "bin" / "thoughtline").exists()


def test_the_package_says_where_it_comes_from(installed, repository):
    [file] = installed.glob("thoughtline-*.dist-info/METADATA")
    metadata = HeaderParser().parsestr(file.read_text("utf-8"))
    assert f"Source, {repository}" in metadata.get_all("Project-URL")
    assert f"uv tool install git+{repository}" in metadata.get_payload()
