"""Settings: precedence, names, kinds, secrets, and what is known without any of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.settings import SECRET, Place, written
from thoughtline.gateway.settings import (
    load,
)
from thoughtline.gateway.settings.keys import ANY, KEYS, dotted

# --- Order -------------------------------------------------------------------------------------


def test_load_depends_on_its_arguments_alone(place, monkeypatch):
    monkeypatch.setenv("THOUGHTLINE_PORT", "1")
    monkeypatch.setenv("XDG_DATA_HOME", "/elsewhere")
    monkeypatch.setenv("DEEPSEEK_API_KEY", SECRET)
    settings = place.load()
    assert settings.server.port == 7337
    assert str(place.home) in settings.store.url
    assert not settings.upstreams["deepseek"].key


def test_without_a_home_the_system_is_asked(place, monkeypatch):
    monkeypatch.setenv("HOME", "/somewhere")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert "/somewhere" in load({}, {}, place.cwd).store.url


# --- Variables ---------------------------------------------------------------------------------


def test_a_key_file_lies_beside_the_settings_that_name_it(place):
    place.project('[store]\nkeys = "file:ring.keys"')
    assert place.load().store.keys == f"file:{place.cwd / 'ring.keys'}"
    named = place.cwd.parent / "elsewhere.toml"
    named.write_text('[store]\nkeys = "file: sub/ring.keys"')
    assert place.load({"config": str(named)}).store.keys == f"file:{named.parent / 'sub/ring.keys'}"
    assert place.load(THOUGHTLINE_STORE__KEYS="file:/k").store.keys == "file:/k"


def test_where_keys_are_is_kept_and_not_looked_up(place):
    place.project('[store]\nkeys = "env:RING"\nsecret = "env:SHARED"')
    store = place.load(RING=SECRET, SHARED=SECRET).store
    assert (store.keys, store.secret) == ("env:RING", "env:SHARED")


def test_values_can_stand_in_variables(place):
    place.project(
        f"""
        [server]
        port = "env:PORT"
        [access.clients.alice]
        key = "env:ALICE_KEY"
        [upstreams.x]
        base_url = "http://x"
        headers = {{ x-key = "env:X_KEY", plain = "{SECRET}" }}
        """
    )
    settings = place.load(PORT="81", ALICE_KEY=f" {SECRET}\n", X_KEY="k")
    assert settings.server.port == 81
    assert settings.access.clients["alice"].key.reveal() == SECRET
    assert settings.upstreams["x"].headers["x-key"].reveal() == "k"


def test_a_variable_that_is_missing_is_named(place):
    place.project('[access.clients.alice]\nkey = "env:ALICE_KEY"')
    for text in (place.refused(), place.refused(ALICE_KEY="")):
        assert "thoughtline.toml: `access.clients.alice.key`" in text
        assert "the variable ALICE_KEY, which is not set" in text
    place.project('[server]\nhost = "env:"')
    assert 'expected "env:NAME"' in place.refused()


def test_only_winning_references_are_looked_up(place):
    place.project('[server]\nport = "env:MISSING"')
    assert place.load({"port": 5}).server.port == 5


@pytest.mark.parametrize("file", ["", '[access]\nadmin_token = "env:THOUGHTLINE_ADMIN_TOKEN"'])
def test_the_admin_token_may_be_unset(place, file):
    place.project(file)
    assert not place.load().access.admin_token
    assert place.load(THOUGHTLINE_ADMIN_TOKEN=SECRET).access.admin_token.matches(SECRET)
    place.project("[access]\nadmin_token = 'env:ELSEWHERE'")
    assert "ELSEWHERE" in place.refused()


# --- Mistakes ----------------------------------------------------------------------------------


def test_all_problems_are_told_at_once(place):
    place.project("[server]\nprt = 1\nworkers = 'x'\n[log]\nlevel = 1")
    assert len(place.refused(THOUGHTLINE_PORT="x", THOUGHTLINE_X="1").splitlines()) == 5


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PLAIN = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    TEXT,
    st.sampled_from(
        ["env:NAME", "env:", "30d", "none", "sqlite:///", "http://", "{", "[", "sim://"]
    ),
    st.dates(),
    st.datetimes(),
    st.times(),
)
VALUES = st.recursive(
    PLAIN, lambda v: st.lists(v, max_size=3) | st.dictionaries(TEXT, v, max_size=3), max_leaves=6
)
PATHS = st.sampled_from([tuple(n if n != ANY else "x" for n in key.path) for key in KEYS])


@given(PATHS, st.integers(0, 4), VALUES)
def test_no_value_at_any_place_breaks_loading(tmp_path_factory, path, depth, value):
    place = Place(tmp_path_factory.getbasetemp())
    path = path[: max(1, len(path) - depth)]
    place.project(f"{dotted(path)} = {written(value)}")
    said = place.outcome()
    assert all(line.startswith("thoughtline.toml") for line in said.splitlines())
    said.encode()


@given(PATHS, TEXT)
def test_no_variable_breaks_loading(tmp_path_factory, path, value):
    place = Place(tmp_path_factory.getbasetemp())
    place.project("")
    said = place.outcome(**{f"THOUGHTLINE_{'__'.join(path).upper()}": value})
    assert all(line.startswith("$THOUGHTLINE_") for line in said.splitlines())


@given(st.dictionaries(TEXT.map("THOUGHTLINE_{}".format), TEXT, max_size=3))
def test_no_variable_name_breaks_loading(tmp_path_factory, env):
    place = Place(tmp_path_factory.getbasetemp())
    place.project("")
    place.outcome(**env).encode()


@given(st.binary(max_size=60))
def test_no_file_breaks_loading(tmp_path_factory, data):
    place = Place(tmp_path_factory.getbasetemp())
    (place.cwd / "thoughtline.toml").write_bytes(data)
    said = place.outcome()
    assert not said or said.startswith("thoughtline.toml: ")


# --- Kinds -------------------------------------------------------------------------------------


def test_a_file_of_sqlite_does_not_depend_on_where_the_process_stands(place):
    place.project("[store]\nurl = 'sqlite:///data/t.db?synchronous=full'")
    assert place.load().store.url == f"sqlite:///{place.cwd}/data/t.db?synchronous=full"
    assert place.load({"store_url": "sqlite:////t.db"}).store.url == "sqlite:////t.db"


# --- Upstreams ---------------------------------------------------------------------------------


def test_the_file_of_the_design_loads(place):
    place.project(DESIGN)
    settings = place.load(DEEPSEEK_API_KEY=SECRET)
    assert settings.store.url == f"sqlite:///{place.cwd}/thoughtline.db"
    assert settings.upstreams["deepseek"].key.reveal() == SECRET
    assert next(iter(settings.upstreams)) == "deepseek"


DESIGN = """
[server]
host = "127.0.0.1"
port = 7337
workers = 1

[store]
url = "sqlite:///thoughtline.db"
cache_url = ""
retention = "30d"
memory_entries = 20000
record = "sessions"

[access]
admin_token = "env:THOUGHTLINE_ADMIN_TOKEN"

[replay]
strict = false

[upstreams.deepseek]
base_url = "https://api.deepseek.com"
env_key = "DEEPSEEK_API_KEY"
policy = "deepseek"
models = ["deepseek-*"]
supports_websockets = false
"""


def test_where_the_secret_is_said_stays_said(place):
    place.project('[store]\nurl = "postgresql://db/log"\nsecret = "env:SHARED"\n')
    assert place.load(SHARED="ab" * 32).store.secret == "env:SHARED"
