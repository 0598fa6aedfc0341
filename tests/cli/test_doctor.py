"""`thoughtline doctor`: what it finds, what it advises, and that it touches nothing."""

import asyncio
import json
import os
import socket
import sqlite3
import threading

import pytest
from click.testing import CliRunner

from thoughtline.cli import checkups
from thoughtline.cli.doctor import doctor
from thoughtline.settings import PROVIDERS, load
from thoughtline.stores.base import Batch
from thoughtline.stores.urls import open_store

SECRET = "sk-hush-0123456789"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("THOUGHTLINE_", "XDG_")):
            monkeypatch.delenv(name)
    for provider in PROVIDERS:
        for name in provider.keys:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("THOUGHTLINE_PORT", "0")
    return tmp_path


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


def write(text):
    with open("thoughtline.toml", "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(text)


def run(*arguments):
    result = CliRunner().invoke(doctor, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert SECRET not in result.output
    return result


def examined(*arguments):
    result = run("--json", *arguments)
    report = json.loads(result.output)
    assert report["ok"] is (result.exit_code == 0)
    return report


def found(report, about, level=None):
    return [
        f"{finding['text']} {finding['advice']}"
        for finding in report["findings"]
        if finding["about"] == about and level in (None, finding["level"])
    ]


def test_all_is_well_without_any_configuration(folder):
    result = run()
    assert result.exit_code == 0
    assert "Settings files: none" in result.output
    assert "server.port = 0  $THOUGHTLINE_PORT" in result.output
    assert "everything else has its default" in result.output
    assert "thoughtline.db will be created" in result.output
    assert "also known, with the client's own credential: openai" in result.output
    assert "All is well." in result.output
    assert list(folder.iterdir()) == []


def test_it_says_where_each_value_comes_from(folder, monkeypatch):
    write(f"[store]\nurl = 'memory://'\n[access.clients.alice]\nkey = '{SECRET}'")
    monkeypatch.setenv("THOUGHTLINE_ADMIN_TOKEN", SECRET + "2")
    report = examined()
    assert report["files"] == [str(folder / "thoughtline.toml")]
    settings = report["settings"]
    assert settings["store.url"] == {"value": '"memory://"', "source": "thoughtline.toml"}
    assert settings["access.clients.alice.key"]["value"] == '"***"'
    assert settings["access.admin_token"]["source"] == "$THOUGHTLINE_ADMIN_TOKEN"
    assert settings["log.level"]["source"] == "default"
    assert found(report, "store", "note") == [
        "sessions are held in memory and end with the process "
    ]
    text = run().output
    assert "access.clients.alice.key = " in text
    assert "1 client key(s)" in text


def test_settings_that_are_wrong_are_told_one_by_one(folder):
    write("[server]\nprt = 1\nworkers = 0")
    report = examined()
    assert not report["ok"]
    assert len(found(report, "settings", "problem")) == 2
    text = run().output
    assert "did you mean `server.port`?" in text
    assert "2 problem(s)." in text
    assert run("--config", "gone.toml").exit_code == 1


def test_upstreams_that_answer_and_that_do_not(folder, listener):
    write(
        f"""
        [upstreams.here]
        base_url = "http://127.0.0.1:{listener.getsockname()[1]}/v1"
        models = ["a-*"]
        [upstreams.gone]
        base_url = "http://127.0.0.1:{closed_port()}"
        [upstreams.sim]
        models = ["sim/*"]
        """
    )
    report = examined()
    assert not report["ok"]
    assert any("answers" in text for text in found(report, "upstream here", "ok"))
    assert any("models: a-*" in text for text in found(report, "upstream here", "ok"))
    (gone,) = found(report, "upstream gone", "problem")
    assert "cannot be reached" in gone
    assert "check the address" in gone
    assert any("simulated" in text for text in found(report, "upstream sim", "ok"))
    offline = examined("--offline")
    assert offline["ok"]
    assert any("not checked" in text for text in found(offline, "upstream gone"))


def test_only_what_is_configured_or_has_a_key_is_reached(folder, monkeypatch):
    reached = []

    async def reach(about, url, patience):
        reached.append(url)
        return checkups.Finding(about=about, text="")

    monkeypatch.setattr(checkups, "_reach", reach)
    monkeypatch.setenv("DEEPSEEK_API_KEY", SECRET)
    write(f"[store]\ncache_url = 'redis://:{SECRET}@127.0.0.1:1'")
    report = examined()
    assert reached == ["https://api.deepseek.com", f"redis://:{SECRET}@127.0.0.1:1"]
    assert "the key in $DEEPSEEK_API_KEY" in found(report, "upstream deepseek")[0]


async def test_names_that_are_not_known_and_hosts_that_are_silent(monkeypatch):
    async def unknown(*_):
        raise socket.gaierror

    async def silent(*_):
        await asyncio.sleep(60)

    monkeypatch.setattr(asyncio, "open_connection", unknown)
    finding = await checkups._reach("upstream x", "https://nowhere.example", 1)
    assert (finding.level, "nowhere.example is not known" in finding.text) == ("problem", True)
    monkeypatch.setattr(asyncio, "open_connection", silent)
    finding = await checkups._reach("upstream x", "https://u:hush@nowhere.example", 0.01)
    assert "no answer within 0.01 seconds" in finding.text
    assert "hush" not in finding.text


def test_a_key_that_is_not_set(folder, listener):
    port = listener.getsockname()[1]
    write(f"[upstreams.x]\nbase_url = 'http://127.0.0.1:{port}'\nenv_key = 'MY_KEY'")
    (text,) = found(examined(), "upstream x", "problem")
    assert "names MY_KEY, which is not set" in text
    write(
        f"[upstreams.x]\nbase_url = 'http://127.0.0.1:{port}'\n"
        f"[access.clients.alice]\nkey = '{SECRET}'"
    )
    report = examined()
    assert report["ok"]
    assert "has no key" in found(report, "upstream x", "note")[0]


def test_a_door_that_is_open(folder):
    write("[server]\nhost = '0.0.0.0'")
    (text,) = found(examined(), "door", "problem")
    assert "without a key" in text
    write("[server]\nhost = '0.0.0.0'\nallow_remote = true")
    report = examined()
    assert report["ok"]
    assert found(report, "door", "note")


def test_ports(folder, listener, monkeypatch):
    port = listener.getsockname()[1]
    monkeypatch.setenv("THOUGHTLINE_PORT", str(port))
    thread = threading.Thread(target=answer, args=(listener, b"nginx"))
    thread.start()
    (text,) = found(examined(), "port", "problem")
    thread.join()
    assert f"{port} is taken by another program choose another `server.port`" in text
    thread = threading.Thread(target=answer, args=(listener, b'{"thoughtline": "1.0"}'))
    thread.start()
    report = examined()
    thread.join()
    assert report["ok"]
    assert "is running" in found(report, "port")[0]
    write("[server]\nhost = '192.0.2.1'\nallow_remote = true")
    (text,) = found(examined(), "port", "problem")
    assert "an address of this machine" in text


def answer(listener, body):
    connection, _ = listener.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + body)


# --- The store ---------------------------------------------------------------------------------


def make_store(path):
    async def make():
        store = open_store(f"sqlite:///{path}")
        await store.append(Batch(session="s", tenant="t", drafts=(), memories=()))
        await store.close()

    asyncio.run(make())


def test_a_store_that_is_there(folder):
    write("[store]\nurl = 'sqlite:///t.db'")
    make_store(folder / "t.db")
    before = (folder / "t.db").read_bytes()
    report = examined()
    assert report["ok"]
    assert found(report, "store") == [f"{folder}/t.db opens and can be written "]
    assert "GiB free" in found(report, "disk")[0]
    assert (folder / "t.db").read_bytes() == before


def test_a_store_that_is_none(folder):
    write("[store]\nurl = 'sqlite:///t.db'")
    (folder / "t.db").write_bytes(b"not a database" * 100)
    (text,) = found(examined(), "store", "problem")
    assert "t.db" in text
    write("[store]\nurl = 'sqlite:///file/t.db'")
    (folder / "file").write_text("")
    (text,) = found(examined(), "store", "problem")
    assert "cannot be created" in text


def test_a_store_that_is_locked(folder):
    write("[store]\nurl = 'sqlite:///t.db'")
    make_store(folder / "t.db")
    db = sqlite3.connect(folder / "t.db")
    db.execute("BEGIN IMMEDIATE")
    (text,) = found(examined(), "store", "problem")
    db.close()
    assert "locked" in text


def test_a_store_that_is_not_built(folder):
    write(f"[store]\nurl = 'postgresql://u:{SECRET}@127.0.0.1/x'")
    (text,) = found(examined(), "store", "problem")
    assert "postgresql" in text


@pytest.mark.parametrize(("free", "level"), [(1 << 40, "ok"), (1 << 29, "note"), (1, "problem")])
def test_disk_space(tmp_path, monkeypatch, free, level):
    usage = type("Usage", (), {"free": free})
    monkeypatch.setattr(checkups.shutil, "disk_usage", lambda _: usage)
    (finding,) = checkups._disk(tmp_path / "not" / "there" / "t.db")
    assert finding.level == level


async def test_what_it_looks_at_is_not_touched(tmp_path):
    settings = load({"port": 0}, {"HOME": str(tmp_path)}, tmp_path)
    found = await checkups.examine(settings, offline=True)
    assert all(finding.level == "ok" for finding in found)
    assert list(tmp_path.iterdir()) == []
