"""What `thoughtline doctor` looks at: ports, upstreams, keys, the store."""

import asyncio
import socket
import sqlite3
import threading

import pytest

from support.doctor import SECRET, examined, found, write
from thoughtline.cli import doctor_checks as doctor
from thoughtline.gateway.settings import load
from thoughtline.stores import open_store
from thoughtline.stores.base import Batch
from thoughtline.stores.spill import SpillFile


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


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

    async def reach(about, url, seconds):
        reached.append(url)
        return doctor.Diagnostic(about=about, text="")

    monkeypatch.setattr(doctor, "_reach", reach)
    monkeypatch.setenv("DEEPSEEK_API_KEY", SECRET)
    write("[telemetry]\notel_endpoint = 'http://127.0.0.1:1'")
    report = examined()
    assert reached == ["https://api.deepseek.com", "http://127.0.0.1:1"]
    assert "the key in $DEEPSEEK_API_KEY" in found(report, "upstream deepseek")[0]


async def test_names_that_are_not_known_and_hosts_that_are_silent(monkeypatch):
    async def unknown(*_):
        raise socket.gaierror

    async def silent(*_):
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "open_connection", unknown)
    finding = await doctor._reach("upstream x", "https://nowhere.example", 1)
    assert (finding.level, "nowhere.example is not known" in finding.text) == ("problem", True)
    monkeypatch.setattr(asyncio, "open_connection", silent)
    finding = await doctor._reach("upstream x", "https://u:hush@nowhere.example", 0.01)
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
    (text,) = found(examined(), "access", "problem")
    assert "without a key" in text
    write("[server]\nhost = '0.0.0.0'\nallow_remote = true")
    report = examined()
    assert report["ok"]
    assert found(report, "access", "note")


def test_ports(folder, listener, monkeypatch):
    port = listener.getsockname()[1]
    monkeypatch.setenv("THOUGHTLINE_PORT", str(port))
    thread = threading.Thread(target=answer, args=(listener, b"nginx"))
    thread.start()
    (text,) = found(examined(), "port", "problem")
    thread.join()
    assert f"{port} is in use by another program choose another `server.port`" in text
    said = b'{"thoughtline": "1.0"}'
    thread = threading.Thread(target=answer, args=(listener, said, said))
    thread.start()
    report = examined()
    thread.join()
    assert report["ok"]
    assert "is running" in found(report, "port")[0]
    ready = b'{"status": "not ready", "reasons": ["it is damaged"], "lost": 3}'
    thread = threading.Thread(target=answer, args=(listener, said, ready))
    thread.start()
    (text,) = found(examined(), "port", "problem")
    thread.join()
    assert "it is damaged; it has lost 3 turn(s)" in text
    write("[server]\nhost = '192.0.2.1'\nallow_remote = true")
    (text,) = found(examined(), "port", "problem")
    assert "an address of this machine" in text


def answer(listener, *bodies):
    for body in bodies:
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + body)


def make_store(path):
    async def make():
        store = open_store(f"sqlite:///{path}")
        await store.append(Batch(session="s", tenant="t", drafts=(), index=()))
        await store.close()

    asyncio.run(make())


def test_a_store_that_is_there(folder):
    write("[store]\nurl = 'sqlite:///t.db'")
    make_store(folder / "t.db")
    before = (folder / "t.db").read_bytes()
    report = examined()
    assert report["ok"]
    assert found(report, "store") == [
        f"{folder}/t.db opens and can be written; all of it can be read "
    ]
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


def test_a_store_that_is_damaged(folder):
    write("[store]\nurl = 'sqlite:///t.db'")
    make_store(folder / "t.db")
    with (folder / "t.db").open("r+b") as file:
        file.seek(4096 * 5)
        file.write(b"\xa5" * 4096)
    (text,) = found(examined(), "store", "problem")
    assert "is damaged" in text
    assert "python -m thoughtline.stores.sqlite.salvage" in text


def test_a_store_that_is_too_large_to_look_through(folder, monkeypatch):
    write("[store]\nurl = 'sqlite:///t.db'")
    make_store(folder / "t.db")
    monkeypatch.setattr(doctor, "quick_check", lambda path, seconds: None)
    (text,) = found(examined(), "store", "note")
    assert "too short" in text
    assert "PRAGMA quick_check" in text


def test_turns_that_wait_beside_the_store(folder):
    write("[store]\nurl = 'sqlite:///t.db'")
    make_store(folder / "t.db")
    file = SpillFile.create(folder / "t.db")
    file.append(Batch(session="s", tenant="t", drafts=()))
    file.close()
    report = examined()
    assert report["ok"]
    (text,) = found(report, "store", "note")
    assert "1 turn(s) wait" in text
    assert "keep these files" in text


def test_a_store_that_is_locked(folder):
    write("[store]\nurl = 'sqlite:///t.db'")
    make_store(folder / "t.db")
    db = sqlite3.connect(folder / "t.db")
    db.execute("BEGIN IMMEDIATE")
    (text,) = found(examined(), "store", "problem")
    db.close()
    assert "locked" in text


def test_a_database_that_does_not_answer(folder):
    url = f"url = 'postgresql://u:{SECRET}@127.0.0.1:1/x'"
    write(f"[store]\n{url}")
    (text,) = found(examined(), "store", "problem")
    assert "look at `store.secret`" in text
    write(f"[store]\n{url}\nsecret = 'exec:echo {'ab' * 32}'")
    (text,) = found(examined(), "store", "problem")
    assert "PostgreSQL at 127.0.0.1:1/x" in text and SECRET not in text


@pytest.mark.parametrize(("free", "level"), [(1 << 40, "ok"), (1 << 29, "note"), (1, "problem")])
def test_disk_space(tmp_path, monkeypatch, free, level):
    usage = type("Usage", (), {"free": free})
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: usage)
    (finding,) = doctor._disk(tmp_path / "not" / "there" / "t.db")
    assert finding.level == level


async def test_what_it_looks_at_is_not_touched(tmp_path):
    settings = load({"port": 0}, {"HOME": str(tmp_path)}, tmp_path)
    found = await doctor.examine(settings, offline=True)
    assert all(finding.level == "ok" for finding in found)
    assert list(tmp_path.iterdir()) == []
