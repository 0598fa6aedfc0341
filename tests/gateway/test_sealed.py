"""A gateway whose store is sealed: clients notice nothing, and neither file says a word."""

import asyncio
import contextlib
import json
import sqlite3

import httpx2
import pytest
from click.testing import CliRunner

from stores.damaging import flipped
from stores.samples import turn
from support.gateway_process import Process
from support.sqlite_files import held
from thoughtline.cli import main, serve
from thoughtline.errors import SettingsError
from thoughtline.gateway.settings import load
from thoughtline.stores.sealing.keychain import Keychain
from thoughtline.stores.sealing.ring import KeyRing, new_key
from thoughtline.stores.sealing.sources import add_key
from thoughtline.stores.sqlite import SqliteStore
from thoughtline.testing import serving

CANARY = "canary-7c2b"
SAID = [{"role": "user", "content": f"mend {CANARY}"}]


@pytest.fixture
def gateway(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    add_key(tmp_path / "ring.keys", new_key())
    with serving("deepseek") as sims:
        root = sims.root("deepseek")
        store = f"{tmp_path}/t.db?timeout=0.2"
        process = Process(tmp_path, root, store, settings='keys = "file:ring.keys"')
        yield process
        process.kill()


def replayed(reply):
    return reply.headers["x-thoughtline-replay"]


def on_disk(folder):
    files = list(folder.glob("t.db*"))
    assert files
    return b"".join(file.read_bytes() for file in files)


def keys(*arguments):
    """The output of `thoughtline keys …` in the gateway's folder."""
    done = CliRunner().invoke(main, ["keys", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def refused(folder):
    """Why a gateway in this folder does not start."""
    with pytest.raises(SettingsError) as caught:
        serve._store_trouble(load({}, {"HOME": str(folder)}, folder))
    return str(caught.value)


def test_nothing_is_readable_on_disk_and_everything_goes_back(gateway, tmp_path):
    _, messages = gateway.talk(3, SAID)
    secret = [m["tool_calls"][0]["id"] for m in messages if m.get("tool_calls")]
    with held(tmp_path / "t.db"):  # turns wait beside the store, sealed as well
        reply, messages = gateway.talk(2, messages)
        assert "restored=4; missed=0" in replayed(reply)
        assert list(tmp_path.glob("t.db-spill-*"))
        waiting = on_disk(tmp_path)
        gateway.kill()
    gateway.start()
    reply, messages = gateway.talk(1, messages)
    assert "restored=5; missed=0" in replayed(reply)
    for content in (waiting, on_disk(tmp_path)):
        for word in (CANARY, "reasoning_content", *secret):
            assert word.encode() not in content
    found = httpx2.get(gateway.url + f"/api/sessions?q={CANARY}").json()
    assert len(found["sessions"]) == 1  # a search opens what it looks at


def test_keys_change_under_load(gateway, tmp_path):
    _, messages = gateway.talk(2, SAID)
    old = json.loads(keys("list", "--json"))["keys"][0]["id"]
    keys("generate", "--file", "ring.keys")
    gateway.kill()
    gateway.start()  # with the new key in its ring
    for step in (("rotate",), ("re-encrypt",), ("retire", old, "--yes"), ("check",)):
        keys(*step)
        before = len([m for m in messages if m["role"] == "assistant"])
        reply, messages = gateway.talk(1, messages)
        assert f"restored={before}; missed=0" in replayed(reply)
    gateway.kill()
    gateway.start()
    before = len([m for m in messages if m["role"] == "assistant"])
    assert f"restored={before}; missed=0" in replayed(gateway.exchange(messages))


def test_a_gateway_without_the_key_does_not_start_and_says_which(tmp_path):
    store, ring = tmp_path / "t.db", tmp_path / "ring.keys"
    key = new_key()
    add_key(ring, key)

    async def fill():
        opened = SqliteStore(store, keychain=Keychain(KeyRing([key])))
        await opened.append(turn("s", "t1", '"x"'))
        await opened.close()

    asyncio.run(fill())
    settings = tmp_path / "thoughtline.toml"
    settings.write_text(f'[store]\nurl = "sqlite:///{store}"\nkeys = "file:ring.keys"\n')
    assert serve._store_trouble(load({}, {}, tmp_path)) == ""
    ring.unlink()
    assert "ring.keys cannot be read" in refused(tmp_path)
    add_key(ring, new_key([key.id]))
    assert f"the key {key.id} is not in the ring" in refused(tmp_path)
    settings.write_text(f'[store]\nurl = "sqlite:///{store}"\n')
    assert f"is sealed with the key {key.id}" in refused(tmp_path)


@pytest.mark.parametrize("column", ["memo", "thoughts", "said"])
def test_one_damaged_bit_costs_one_thought(gateway, tmp_path, column):
    other = [{"role": "user", "content": "something else"}]
    _, messages = gateway.talk(3, SAID)
    _, other = gateway.talk(2, other)
    gateway.kill()
    with contextlib.closing(sqlite3.connect(tmp_path / "t.db")) as db:
        [(place, value)] = db.execute(
            f"SELECT position, {column} FROM batches WHERE memo <> '' ORDER BY position LIMIT 1"
        )
        db.execute(f"UPDATE batches SET {column} = ? WHERE position = ?", (flipped(value), place))
        db.commit()
    gateway.start()
    lost = 0 if column == "said" else 1
    assert replayed(gateway.exchange(messages)).startswith(f"restored={3 - lost}; missed=0")
    assert replayed(gateway.exchange(other)).startswith("restored=2; missed=0")
    listed = httpx2.get(gateway.url + "/api/sessions").json()["sessions"]
    assert [row["damaged"] for row in listed] == [False, True]
    for path in ("/api/requests", f"/api/sessions/{listed[1]['id']}", "/api/sessions?q=mend"):
        assert httpx2.get(gateway.url + path).status_code == 200
    ready = httpx2.get(gateway.url + "/ready")
    assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
    assert f"values of 1 session(s) are damaged ({listed[1]['id']})" in ready.json()["reasons"][0]
    told = CliRunner().invoke(main, ["doctor", "--offline"])
    assert told.exit_code == 1 and f"damaged: {listed[1]['id']}" in " ".join(told.output.split())
    marked = CliRunner().invoke(main, ["sessions"]).output.count("(damaged)")
    assert marked == (column != "memo")  # a command reads no index
    if column == "memo":  # it can be made again from the log
        assert CliRunner().invoke(main, ["index", "--rebuild"]).exit_code == 0
        reply = gateway.exchange([*messages, {"role": "user", "content": "go on"}])
        assert replayed(reply).startswith("restored=3; missed=0")
