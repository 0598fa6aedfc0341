"""The gateway as it is put together from the settings."""

import os
import stat
import threading

import pytest
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from built import Built, configured, converse
from rooms import SimWire
from thoughtline.errors import SettingsError, StoreError
from thoughtline.gateway import keyfile
from thoughtline.gateway.build import More, build
from thoughtline.settings import (
    Access,
    Client,
    Replay,
    Secret,
    Server,
    Store,
    Telemetry,
    Upstream,
    load,
)
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.sqlite import SqliteStore
from thoughtline.testing import simulator

ENV = {"HOME": "/nowhere"}


def stored(path, **fields):
    return configured(store=Store(url=f"sqlite:///{path}", **fields))


# -- who may come in -----------------------------------------------------------------------------


def test_it_refuses_to_be_open_to_other_machines():
    with pytest.raises(SettingsError, match=r"no client keys are set.*--allow-remote"):
        build(configured(server=Server(host="0.0.0.0")), env=ENV)


@pytest.mark.parametrize(
    "sections",
    [
        {"server": Server(host="0.0.0.0", allow_remote=True)},
        {
            "server": Server(host="0.0.0.0"),
            "access": Access(clients={"alice": Client(key=Secret("k"))}),
        },
        {"server": Server(host="localhost")},
    ],
)
def test_unless_it_is_told_to_or_has_keys(sections):
    assert build(configured(**sections), env=ENV).proxy.store


# -- the secret ----------------------------------------------------------------------------------


def test_the_secret_lies_beside_the_database_for_its_user_alone(tmp_path):
    path = tmp_path / "data" / "thoughts.db"
    one = build(stored(path), env=ENV)
    secret = path.with_suffix(".secret")
    assert len(secret.read_bytes()) == 32
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert stat.S_IMODE(secret.parent.stat().st_mode) == 0o700
    two = build(stored(path), env=ENV)
    assert one.proxy.door.fingerprint("key") == two.proxy.door.fingerprint("key")
    other = build(stored(tmp_path / "else.db"), env=ENV)
    assert one.proxy.door.fingerprint("key") != other.proxy.door.fingerprint("key")
    assert list(tmp_path.rglob(".secret-*")) == []


def test_without_a_file_for_sessions_the_secret_is_in_the_users_folder(tmp_path):
    env = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "xdg")}
    assert keyfile.place("postgresql://db/x", env).is_relative_to(tmp_path)
    assert keyfile.place("memory://", env) is None
    assert keyfile.place("sqlite:////a/b.db?timeout=3", env).as_posix() == "/a/b.secret"


def test_a_secret_that_others_can_read_is_closed(tmp_path):
    path = tmp_path / "a.secret"
    path.write_bytes(b"s" * 32)
    path.chmod(0o644)
    assert keyfile.secret(path) == b"s" * 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
def test_a_secret_that_is_none_is_refused_and_kept(tmp_path, content):
    path = tmp_path / "a.secret"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=r"a\.secret has \d+ bytes, expected 32; put back"):
        build(stored(tmp_path / "a.db"), env=ENV)
    assert path.read_bytes() == content


def test_a_secret_that_cannot_be_read_is_explained(tmp_path):
    (tmp_path / "a.secret").mkdir()
    with pytest.raises(SettingsError, match=r"a\.secret cannot be read or made \(Is a directory\)"):
        build(stored(tmp_path / "a.db"), env=ENV)


def test_a_folder_that_cannot_be_made_is_explained(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match=r"store\.url.*cannot be made"):
        build(stored(tmp_path / "file" / "a.db"), env=ENV)


def test_many_processes_at_once_have_one_secret(tmp_path):
    path = tmp_path / "a.secret"
    found, start = [], threading.Barrier(8)

    def make():
        start.wait()
        found.append(keyfile.secret(path))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["a.secret"]


def test_on_a_disk_without_links(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "a.secret"
    assert keyfile.secret(path) == path.read_bytes()
    assert [file.name for file in tmp_path.iterdir()] == ["a.secret"]


# -- stores --------------------------------------------------------------------------------------


def test_everything_is_there_after_a_restart(tmp_path):
    settings = stored(tmp_path / "a.db")
    sim = simulator("deepseek")
    for _ in range(2):
        app = build(settings, wire=SimWire(sim), env=ENV)
        assert isinstance(app.proxy.store.store, SqliteStore)
        with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 1)) as client:
            converse(client, 2)
            shown = client.get("/api/cache/reasoning").json()
        assert shown["stats"]["totalEntries"] == len(shown["entries"])
    assert len({e["turn"] for e in shown["entries"]}) == 4
    assert len({e["tenant"] for e in shown["entries"]}) == 1


def test_where_nothing_is_recorded_nothing_is_written(tmp_path):
    app = build(stored(tmp_path / "a.db", record="off"), env=ENV)
    assert isinstance(app.proxy.store.store, MemoryStore)
    assert list(tmp_path.iterdir()) == []


def test_stores_that_do_not_exist_are_said_so():
    with pytest.raises(StoreError, match="names no store"):
        build(configured(store=Store(url="mysql://db")), env=ENV)
    with pytest.raises(SettingsError, match=r"store\.cache_url"):
        build(configured(store=Store(url="memory://", cache_url="redis://h")), env=ENV)


def test_workers_share_a_store_and_have_metrics_of_their_own(tmp_path):
    settings = configured(server=Server(workers=2), store=Store(url=f"sqlite:///{tmp_path}/a.db"))
    app = build(settings, env=ENV)
    assert app.proxy.store._shared
    page, _ = app.proxy.observer.metrics.page()
    assert f'worker="{os.getpid()}"'.encode() in page


# -- settings reach the rooms --------------------------------------------------------------------


def test_settings_reach_the_walk():
    settings = configured(
        server=Server(
            max_body_bytes=1234,
            keepalive_interval=3.0,
            finish_on_disconnect=True,
            shutdown_grace=7.0,
            connect_timeout=1.0,
            first_byte_timeout=2.0,
            idle_timeout=3.0,
        ),
        store=Store(url="memory://", commit_wait=0.5, record="thoughts"),
        replay=Replay(strict=True, keep_last=3, loop_only=True),
        upstreams={
            "a": Upstream(
                name="a",
                base_url="https://a.test",
                policy="kimi",
                key=Secret("upstream-key"),
                models=("k-*",),
                headers={"x-team": Secret("blue")},
                endpoints={"messages": "https://a.test/anthropic/v1"},
                supports_websockets=True,
                idle_timeout=99.0,
            ),
            "b": Upstream(name="b", base_url="https://b.test", policy="openai", standing="known"),
            "sim": Upstream(name="sim", base_url="sim://", standing="known"),
        },
    )
    app = build(settings, env=ENV)
    options = app.proxy.options
    assert (options.max_body_bytes, options.keepalive, options.commit_wait) == (1234, 3.0, 0.5)
    assert options.finish_on_disconnect
    assert options.strict
    assert not options.whole
    assert (options.limits.last, options.limits.loop_only) == (3, True)
    assert app._grace == 7.0
    one, two = app.proxy.directory
    assert (one.key, one.policy, one.headers) == ("upstream-key", "kimi", {"x-team": "blue"})
    assert one.url("messages", "/v1/messages") == "https://a.test/anthropic/v1/messages"
    assert (one.configured, one.supports_websockets, two.configured) == (True, True, False)
    assert (one.patience.connect, one.patience.first_byte, one.patience.idle) == (1.0, 2.0, 99.0)
    assert two.patience.idle == 3.0


def test_no_configuration_at_all(tmp_path):
    env = {"HOME": str(tmp_path), "DEEPSEEK_API_KEY": "sk-1"}
    app = build(load({}, env, tmp_path), env=env)
    with TestClient(app, base_url="http://127.0.0.1:7337", client=("127.0.0.1", 1)) as client:
        assert client.get("/ready").status_code == 200
        listed = client.get("/v1/models").json()["data"]
    assert [(m["id"], m["owned_by"]) for m in listed] == [("deepseek-*", "deepseek")]
    assert (tmp_path / ".local/share/thoughtline/thoughtline.db").exists()


def test_more_pages_behind_the_same_door():
    def pages(rooms):
        async def shelf(request):
            return PlainTextResponse(str(len(await rooms.store.sessions())))

        return More(routes=[Route("/inspect/{path:path}", shelf), Route("/api/sessions", shelf)])

    built = Built(pages=pages)
    with built.client() as client:
        converse(client, 1)
        assert client.get("/api/sessions").text == "1"
        assert client.get("/inspect/x").text == "1"
    with Built(pages=pages).client(peer="203.0.113.9", host="gateway.test") as client:
        assert client.get("/inspect/x").status_code == 403


def test_traces_without_the_package_are_explained(monkeypatch):
    import importlib

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    settings = configured(telemetry=Telemetry(otel_endpoint="http://localhost:4318"))
    with pytest.raises(SettingsError, match=r"pip install 'thoughtline\[otel\]'"):
        build(settings, env=ENV)
