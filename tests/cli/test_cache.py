"""The commands that show and clear the cache, and that erase thoughts from the log."""

import json
import sqlite3
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from thoughtline.cli import main
from thoughtline.engine.secrets import CredentialHash, store_secret

STORE = "sqlite:///talk.db"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def run(*arguments, says="", store=STORE):
    return CliRunner().invoke(main, [*arguments, "--store", store], input=says)


@pytest.fixture(autouse=True)
def talk():
    assert run("chat", "--provider", "sim:deepseek", says="Hello\n").exit_code == 0


def shown():
    return run("show", "last", "--thoughts").output


def test_what_can_be_put_back():
    assert json.loads(run("cache", "--json").output)["entries"] == 1
    assert "1 thoughts" in run("cache").output


def test_clearing_leaves_the_log_alone():
    before = shown()
    assert "Thought deepseek" in before
    cleared = run("cache", "--clear", "--yes", "--json")
    assert json.loads(cleared.output) == {"cleared": 1}
    assert json.loads(run("cache", "--json").output)["entries"] == 0
    assert shown() == before


def test_what_was_cleared_comes_back_only_when_asked_for():
    run("cache", "--clear", "--yes")
    check = run("index", "--check")
    assert (check.exit_code, "1 entry cleared" in check.output) == (0, True)
    assert run("index", "--rebuild").exit_code == 0
    assert json.loads(run("cache", "--json").output)["entries"] == 0
    assert run("index", "--restore").exit_code == 2
    assert run("index", "--check", "--restore").exit_code == 2
    assert run("index", "--rebuild", "--restore").exit_code == 0
    assert json.loads(run("cache", "--json").output)["entries"] == 1


def test_nothing_is_done_without_an_answer():
    for command in (("cache", "--clear"), ("erase",), ("delete", "last")):
        asked = run(*command)
        assert asked.exit_code == 2
        assert "say --yes" in asked.output
    assert json.loads(run("cache", "--json").output)["entries"] == 1


def test_filters():
    assert run("cache", "--model", "x").exit_code == 2
    none = run("cache", "--clear", "--yes", "--model", "nobody", "--json")
    assert json.loads(none.output) == {"cleared": 0}
    assert json.loads(run("erase", "--yes", "--tenant", "x", "--json").output) == {"erased": 0}
    assert json.loads(run("cache", "--json").output)["entries"] == 1


def test_erasing_is_for_good():
    assert json.loads(run("erase", "--yes", "--json").output) == {"erased": 1}
    assert "Thought deepseek" not in shown()
    assert "Hello" in shown()
    run("index", "--rebuild", "--restore")
    assert json.loads(run("cache", "--json").output)["entries"] == 0


def made_at(endpoint, **account):
    """Let the thought have been made there."""
    with sqlite3.connect("talk.db") as db:
        [(memo,)] = db.execute("SELECT memo FROM batches WHERE memo <> x''")
        entry = msgspec.msgpack.decode(memo)
        entry["origin"] |= {"endpoint": endpoint, **account}
        values = (msgspec.msgpack.encode(entry), endpoint)
        db.execute("UPDATE batches SET memo = ?, endpoint = ? WHERE memo <> x''", values)


def test_two_upstreams_at_one_address_are_told_apart_by_their_accounts(monkeypatch):
    monkeypatch.setenv("WORK_KEY", "key-one")
    fingerprint = CredentialHash(store_secret(STORE, {}))
    made_at("https://mine.test", account=fingerprint("key-one"))
    there = 'base_url = "https://mine.test"\n'
    work = f'[upstreams.work]\n{there}env_key = "WORK_KEY"\n'
    Path("thoughtline.toml").write_text(f"{work}[upstreams.home]\n{there}")
    none = run("cache", "--clear", "--yes", "--provider", "home", "--json")
    assert json.loads(none.output) == {"cleared": 0}
    work = run("cache", "--clear", "--yes", "--provider", "work", "--json")
    assert json.loads(work.output) == {"cleared": 1}


def test_where_they_cannot_be_told_apart_it_is_said():
    made_at("https://mine.test")
    there = 'base_url = "https://mine.test"\n'
    Path("thoughtline.toml").write_text(f"[upstreams.work]\n{there}[upstreams.home]\n{there}")
    asked = run("cache", "--clear", "--provider", "work").output
    assert "all thoughts of provider work, and of home, which cannot be told apart" in asked
    cleared = run("cache", "--clear", "--yes", "--provider", "work", "--json")
    assert json.loads(cleared.output) == {"cleared": 1, "upstreams": ["home", "work"]}
    erased = run("erase", "--yes", "--provider", "work", "--json")
    assert json.loads(erased.output) == {"erased": 1, "upstreams": ["home", "work"]}


def test_a_provider_is_known_by_its_upstream_as_well():
    made_at("https://mine.test")
    Path("thoughtline.toml").write_text('[upstreams.mine]\nbase_url = "https://mine.test"\n')
    none = run("cache", "--clear", "--yes", "--provider", "other", "--json")
    assert none.exit_code == 0, none.output
    assert json.loads(none.output) == {"cleared": 0}
    mine = run("cache", "--clear", "--yes", "--provider", "Mine", "--json")
    assert json.loads(mine.output) == {"cleared": 1}
