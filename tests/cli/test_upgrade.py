"""Whoever waits for a file of an earlier version sees how far it is, and may interrupt it."""

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import written_before
from thoughtline.cli import main
from thoughtline.cli.serve import _store_trouble
from thoughtline.gateway.settings import load
from thoughtline.stores.sqlite import one_row_per_turn
from thoughtline.stores.sqlite.upgrade import missing_steps

OLD = Path(written_before.__path__[0]) / "layout_3.db.gz"
URL = "sqlite:///old.db"


@pytest.fixture(autouse=True)
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(one_row_per_turn, "WINDOW", 20)
    path = tmp_path / "old.db"
    path.write_bytes(gzip.decompress(OLD.read_bytes()))
    return path


@pytest.mark.parametrize(
    "command",
    [
        ("sessions",),
        ("store", "check"),
        ("store", "migrate"),
        ("store", "copy", URL, "sqlite:///copy.db"),
    ],
)
def test_commands_say_how_far_it_is(command, path):
    options = () if "copy" in command else ("--store", URL)
    ran = CliRunner().invoke(main, [*command, *options])
    assert ran.exit_code == 0, ran.output
    assert "old.db was written by an earlier version" in ran.stderr
    assert "old.db: 50 % of" in ran.stderr and "old.db: 100 % of" in ran.stderr
    assert "earlier version" not in ran.stdout
    again = CliRunner().invoke(main, [*command, *options])
    assert again.exit_code == 0 and again.stderr == ""


def test_a_migration_is_told_to_scripts(path):
    told = CliRunner().invoke(main, ["store", "migrate", "--store", URL, "--json"])
    assert "0004_turns.sql" in json.loads(told.stdout)["migrations"]


def test_the_gateway_says_it_before_it_listens(path, capsys):
    assert _store_trouble(load({"store_url": URL}, {}, path.parent)) == ""
    assert "100 %" in capsys.readouterr().err


def test_an_interrupted_file_is_as_it_was(path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(one_row_per_turn, "_move_left_entries", stop)
        ran = CliRunner().invoke(main, ["sessions", "--store", URL])
        assert ran.exit_code == 130 and "Interrupted: " in ran.stderr
        assert missing_steps(path)
    assert CliRunner().invoke(main, ["sessions", "--store", URL]).exit_code == 0
    assert not missing_steps(path)
