"""The gateway as it is put together from the settings."""

import os
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from support.built_gateway import BuiltGateway, configured, converse
from support.gateway import Answer, ScriptedWire, SimWire
from thoughtline.errors import SettingsError, StoreError
from thoughtline.gateway.build import ExtraPages, build
from thoughtline.gateway.settings import (
    AccessSettings,
    ClientSettings,
    ReplaySettings,
    Secret,
    ServerSettings,
    StoreSettings,
    TelemetrySettings,
    UpstreamSettings,
    load,
)
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.sqlite import SqliteStore
from thoughtline.testing import simulator

ENV = {"HOME": "/nowhere"}


def stored(path, **fields):
    return configured(store=StoreSettings(url=f"sqlite:///{path}", **fields))


# -- who may come in -----------------------------------------------------------------------------


def test_it_refuses_to_be_open_to_other_machines():
    with pytest.raises(SettingsError, match=r"no client keys are set.*--allow-remote"):
        build(configured(server=ServerSettings(host="0.0.0.0")), env=ENV)


@pytest.mark.parametrize(
    "sections",
    [
        {"server": ServerSettings(host="0.0.0.0", allow_remote=True)},
        {
            "server": ServerSettings(host="0.0.0.0"),
            "access": AccessSettings(clients={"alice": ClientSettings(key=Secret("k"))}),
        },
        {"server": ServerSettings(host="localhost")},
    ],
)
def test_unless_it_is_told_to_or_has_keys(sections):
    assert build(configured(**sections), env=ENV).proxy.store


# -- the secret ----------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_made_is_explained(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match=r"store\.url.*cannot be made"):
        build(stored(tmp_path / "file" / "a.db"), env=ENV)


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
        assert shown["stats"]["totalEntries"] == len({one["turn"] for one in shown["entries"]})
    assert len({e["turn"] for e in shown["entries"]}) == 4
    assert len({e["tenant"] for e in shown["entries"]}) == 1


def test_where_nothing_is_recorded_nothing_is_written(tmp_path):
    app = build(stored(tmp_path / "a.db", record="off"), env=ENV)
    assert isinstance(app.proxy.store.store, MemoryStore)
    assert list(tmp_path.iterdir()) == []


def test_stores_that_do_not_exist_are_said_so():
    with pytest.raises(StoreError, match="names no store"):
        build(configured(store=StoreSettings(url="mysql://db")), env=ENV)
    with pytest.raises(SettingsError, match=r"store\.cache_url"):
        load({"store.cache_url": "redis://h"}, ENV, Path("/nowhere"))


def test_workers_have_metrics_of_their_own(tmp_path):
    settings = configured(
        server=ServerSettings(workers=2), store=StoreSettings(url=f"sqlite:///{tmp_path}/a.db")
    )
    app = build(settings, env=ENV)
    page, _ = app.proxy.observer.metrics.page()
    assert f'worker="{os.getpid()}"'.encode() in page


# -- settings reach the proxy --------------------------------------------------------------------


def test_settings_reach_the_proxy():
    settings = configured(
        server=ServerSettings(
            max_body_bytes=1234,
            keepalive_interval=3.0,
            finish_on_disconnect=True,
            shutdown_grace=7.0,
            connect_timeout=1.0,
            first_byte_timeout=2.0,
            idle_timeout=3.0,
        ),
        store=StoreSettings(url="memory://", commit_wait=0.5, record="thoughts"),
        replay=ReplaySettings(strict=True, keep_last=3, loop_only=True),
        upstreams={
            "a": UpstreamSettings(
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
            "b": UpstreamSettings(
                name="b", base_url="https://b.test", policy="openai", source="known"
            ),
            "sim": UpstreamSettings(name="sim", base_url="sim://", source="known"),
        },
    )
    app = build(settings, env=ENV)
    options = app.proxy.options
    assert (options.max_body_bytes, options.keepalive, options.commit_wait) == (1234, 3.0, 0.5)
    assert options.finish_on_disconnect
    assert options.strict
    assert not options.records_all
    assert (options.limits.last, options.limits.loop_only) == (3, True)
    assert app._grace == 7.0
    one, two = app.proxy.directory
    assert (one.key, one.policy, one.headers) == ("upstream-key", "kimi", {"x-team": "blue"})
    assert one.url("messages", "/v1/messages") == "https://a.test/anthropic/v1/messages"
    assert (one.configured, one.supports_websockets, two.configured) == (True, True, False)
    assert (one.timeouts.connect, one.timeouts.first_byte, one.timeouts.idle) == (1.0, 2.0, 99.0)
    assert two.timeouts.idle == 3.0


def test_no_configuration_at_all(tmp_path):
    env = {"HOME": str(tmp_path), "DEEPSEEK_API_KEY": "sk-1"}
    wire = ScriptedWire(Answer(body={"data": [{"id": "deepseek-v4-pro"}, {"id": "other"}]}))
    app = build(load({}, env, tmp_path), env=env, wire=wire)
    with TestClient(app, base_url="http://127.0.0.1:7337", client=("127.0.0.1", 1)) as client:
        assert client.get("/ready").status_code == 200
        listed = client.get("/v1/models").json()["data"]
    assert [(m["id"], m["owned_by"]) for m in listed] == [("deepseek-v4-pro", "deepseek")]
    assert (tmp_path / ".local/share/thoughtline/thoughtline.db").exists()


def test_more_pages_behind_the_same_auth():
    def pages(gateway):
        async def shelf(request):
            return PlainTextResponse(str(len(await gateway.store.sessions())))

        return ExtraPages(
            files=[Route("/inspect/{path:path}", shelf), Route("/api/sessions", shelf)]
        )

    built = BuiltGateway(pages=pages)
    with built.client() as client:
        converse(client, 1)
        assert client.get("/api/sessions").text == "1"
        assert client.get("/inspect/x").text == "1"
    with BuiltGateway(pages=pages).client(peer="203.0.113.9", host="gateway.test") as client:
        assert client.get("/inspect/x").status_code == 403


def test_traces_without_the_package_are_explained(monkeypatch):
    import importlib

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    settings = configured(telemetry=TelemetrySettings(otel_endpoint="http://localhost:4318"))
    with pytest.raises(SettingsError, match=r"install `opentelemetry-sdk`"):
        build(settings, env=ENV)
