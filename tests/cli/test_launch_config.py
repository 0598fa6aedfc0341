"""The entry in a tool's file: what was there comes back, byte for byte where nobody else wrote."""

import json
import os

import pytest

from thoughtline.cli import launch_config
from thoughtline.cli.launch_config import backup_of, restore_entry, with_entry, write_entry
from thoughtline.errors import SettingsError

OURS = ("providers", "thoughtline")
TYPE = ("security", "auth", "selectedType")
KEY = "gemini-api-key"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "agent" / "models.json"


def written(file, text):
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, "utf-8")
    return file


def test_a_file_that_was_not_there_is_gone_again(file):
    assert write_entry(file, OURS, {"a": 1})
    assert json.loads(file.read_text()) == {"providers": {"thoughtline": {"a": 1}}}
    assert restore_entry(file, OURS, {})
    assert list(file.parent.iterdir()) == []


@pytest.mark.parametrize(
    "before",
    ['{"providers":{}, "x" : [1,2]}', '{\n\t"providers": {"mine": {}}}', '{"é": 1}', "{}\n"],
)
def test_what_was_there_comes_back_byte_for_byte(file, before):
    written(file, before)
    file.chmod(0o640)
    write_entry(file, OURS, {"a": 1})
    write_entry(file, OURS, {"a": 2})  # another model: the backup stays the first one
    assert backup_of(file).read_text("utf-8") == before
    assert restore_entry(file, OURS, {})
    assert file.read_text("utf-8") == before
    assert file.stat().st_mode & 0o777 == 0o640
    assert not backup_of(file).exists()


def test_both_can_be_done_again_and_again(file):
    written(file, '{"x": 1}')
    assert write_entry(file, OURS, {"a": 1})
    assert not write_entry(file, OURS, {"a": 1})
    assert restore_entry(file, OURS, {})
    assert not restore_entry(file, OURS, {})
    assert file.read_text() == '{"x": 1}'


def test_what_the_user_changes_in_between_stays(file):
    written(file, '{"providers": {"mine": {}}}')
    write_entry(file, OURS, {"a": 1})
    content = json.loads(file.read_text())
    content["providers"]["new"] = {}
    written(file, json.dumps(content))
    assert restore_entry(file, OURS, {})
    assert json.loads(file.read_text()) == {"providers": {"mine": {}, "new": {}}}


def test_a_choice_that_was_made_before_is_made_again(file):
    before = '{"security":{"auth":{"selectedType":"oauth-personal"}},"ui":{}}'
    written(file, before)
    write_entry(file, TYPE, KEY)
    assert json.loads(file.read_text())["security"]["auth"]["selectedType"] == KEY
    assert restore_entry(file, TYPE, KEY)
    assert file.read_text() == before


def test_a_choice_that_the_user_had_made_anyhow_is_not_taken_back(file):
    before = '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'
    written(file, before)
    assert not write_entry(file, TYPE, KEY)
    assert not restore_entry(file, TYPE, KEY)
    assert file.read_text() == before


def test_a_choice_that_the_user_makes_during_the_run_stays(file):
    written(file, '{"security": {"auth": {"selectedType": "oauth-personal"}}}')
    write_entry(file, TYPE, KEY)
    written(file, '{"security": {"auth": {"selectedType": "vertex-ai"}}}')
    assert not restore_entry(file, TYPE, KEY)
    assert "vertex-ai" in file.read_text() and not backup_of(file).exists()


@pytest.mark.parametrize("text", ["// mine\n{}", "[1]", '{"providers": 3}'])
def test_a_file_that_is_not_understood_is_left_alone(file, text):
    written(file, text)
    with pytest.raises(SettingsError, match="nothing was changed"):
        write_entry(file, OURS, {"a": 1})
    assert [one.name for one in file.parent.iterdir()] == [file.name]
    assert file.read_text() == text


def test_an_interruption_leaves_the_old_file(file, monkeypatch):
    written(file, '{"x": 1}')

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(launch_config.os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_entry(file, OURS, {"a": 1})
    assert [one.name for one in file.parent.iterdir()] == [file.name]
    assert file.read_text() == '{"x": 1}'


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_symbolic_link_stays_one(file, tmp_path):
    real = tmp_path / "dotfiles.json"
    real.write_text('{"x": 1}')
    file.parent.mkdir()
    file.symlink_to(real)
    write_entry(file, OURS, {"a": 1})
    assert file.is_symlink() and "thoughtline" in real.read_text()
    restore_entry(file, OURS, {})
    assert file.is_symlink() and real.read_text() == '{"x": 1}'


def test_what_would_be_written_can_be_shown(file):
    written(file, '{"x": 1}')
    assert json.loads(with_entry(file, OURS, {"a": 1})) == {
        "x": 1,
        "providers": {"thoughtline": {"a": 1}},
    }
    assert file.read_text() == '{"x": 1}'
