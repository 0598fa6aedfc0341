"""What tests of commands share."""

import os

import pytest

from thoughtline.agents.simulated import STRICT
from thoughtline.providers.known_providers import PROVIDERS


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder and a data folder of one's own, and no keys."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("THOUGHTLINE_", "XDG_")) and name != STRICT:
            monkeypatch.delenv(name)
    for provider in PROVIDERS:
        for name in provider.keys:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("THOUGHTLINE_PORT", "0")
    return tmp_path
