"""Files, variables and flags: which one wins, and which one is refused."""

from support.settings import SECRET
from thoughtline.gateway.settings import (
    Secret,
    describe,
)


def test_flag_then_variable_then_project_then_user_then_default(place):
    place.user("[server]\nport = 1\nworkers = 4\nhost = '127.0.0.9'")
    assert place.load().server.port == 1
    place.project("[server]\nport = 2\nworkers = 5")
    assert place.load().server.port == 2
    assert place.load(THOUGHTLINE_PORT="3").server.port == 3
    assert place.load({"port": 4}, THOUGHTLINE_PORT="3").server.port == 4
    assert place.load({"port": None}, THOUGHTLINE_PORT="3").server.port == 3
    settings = place.load({"server.port": "6"})
    assert (settings.server.port, settings.server.workers) == (6, 5)
    assert settings.server.host == "127.0.0.9"
    assert settings.log.level == "info"


def test_a_long_variable_beats_a_short_one(place):
    settings = place.load(THOUGHTLINE_PORT="3", THOUGHTLINE_SERVER__PORT="4")
    assert settings.server.port == 4


def test_a_named_file_stands_in_place_of_the_others(place):
    place.user("[server]\nport = 1")
    place.project("[server]\nworkers = 2")
    (place.cwd / "other.toml").write_text("[log]\nlevel = 'debug'")
    for settings in (
        place.load({"config": "other.toml"}),
        place.load(THOUGHTLINE_CONFIG="other.toml"),
        place.load({"config": place.cwd / "other.toml"}, THOUGHTLINE_CONFIG="gone.toml"),
    ):
        assert (settings.server.port, settings.server.workers) == (7337, 1)
        assert settings.log.level == "debug"


def test_a_named_file_must_be_there(place):
    assert "--config: there is no file 'gone.toml'" in place.refused({"config": "gone.toml"})
    assert "$THOUGHTLINE_CONFIG: " in place.refused(THOUGHTLINE_CONFIG="gone\0.toml")


def test_every_value_knows_where_it_comes_from(place):
    place.user("[server]\nport = 1")
    place.project("[store]\nrecord = 'thoughts'\nurl = 'env:DB'")
    loaded = place.read({"host": "::1"}, THOUGHTLINE_LOG_LEVEL="debug", DB="memory://")
    assert loaded.source(("server", "port")).endswith("config/thoughtline/thoughtline.toml")
    assert loaded.source(("server", "host")) == "--host"
    assert loaded.source(("store", "record")) == "thoughtline.toml"
    assert loaded.source(("store", "url")) == "thoughtline.toml ($DB)"
    assert loaded.source(("log", "level")) == "$THOUGHTLINE_LOG_LEVEL"
    assert loaded.source(("log", "format")) == "default"
    assert len(loaded.files) == 2
    assert ("store.record", '"thoughts"', "thoughtline.toml") in describe(loaded)


def test_variables_reach_every_depth(place):
    settings = place.load(
        THOUGHTLINE_UPSTREAMS__DEEPSEEK__BASE_URL="https://mirror.example/v1",
        THOUGHTLINE_UPSTREAMS__DEEPSEEK__MODELS="deepseek-*, ds-*",
        THOUGHTLINE_UPSTREAMS__DEEPSEEK__HEADERS__X_TEAM="blue",
        THOUGHTLINE_UPSTREAMS__MY_OWN__BASE_URL="http://127.0.0.1:9",
        THOUGHTLINE_UPSTREAMS__MY_OWN__MODELS='["a,b"]',
        THOUGHTLINE_UPSTREAMS__MY_OWN__HEADERS='{"x-a": "1"}',
        THOUGHTLINE_STORE__URL="memory://",
        THOUGHTLINE_REPLAY__STRICT="yes",
        THOUGHTLINE_REPLAY__KEEP_LAST="3",
        THOUGHTLINE_ACCESS__CLIENTS__ALICE__KEY=SECRET,
        THOUGHTLINE_SERVER__MAX_BODY_BYTES="1MiB",
    )
    deepseek, own = settings.upstreams["deepseek"], settings.upstreams["my_own"]
    assert deepseek.base_url == "https://mirror.example/v1"
    assert deepseek.models == ("deepseek-*", "ds-*")
    assert deepseek.headers == {"x-team": Secret("blue")}
    assert own.models == ("a,b",)
    assert own.headers["x-a"].reveal() == "1"
    assert settings.store.url == "memory://"
    assert settings.replay.strict
    assert settings.replay.keep_last == 3
    assert settings.access.clients["alice"].key.matches(SECRET)
    assert settings.server.max_body_bytes == 1 << 20


def test_a_variable_finds_a_name_with_dashes(place):
    place.project("[upstreams.my-proxy]\nbase_url = 'http://a'")
    settings = place.load(
        THOUGHTLINE_UPSTREAMS__MY_PROXY__BASE_URL="http://b",
        THOUGHTLINE_UPSTREAMS__KIMI_CODING__POLICY="kimi",
    )
    assert settings.upstreams["my-proxy"].base_url == "http://b"
    assert "my_proxy" not in settings.upstreams
    assert settings.upstreams["kimi-coding"].source == "configured"


def test_an_empty_variable_is_not_set(place):
    assert place.load(THOUGHTLINE_PORT=" ", THOUGHTLINE_CONFIG="").server.port == 7337


def test_what_kubernetes_puts_into_a_pod_is_not_ours(place):
    settings = place.load(
        THOUGHTLINE_SERVICE_HOST="10.0.0.1",
        THOUGHTLINE_SERVICE_PORT="7337",
        THOUGHTLINE_SERVICE_PORT_HTTP="7337",
        THOUGHTLINE_PORT="tcp://10.0.0.1:7337",
        THOUGHTLINE_PORT_7337_TCP="tcp://10.0.0.1:7337",
        THOUGHTLINE_PORT_7337_TCP_ADDR="10.0.0.1",
    )
    assert settings.server.port == 7337


def test_files_that_cannot_be_read(place):
    (place.cwd / "thoughtline.toml").mkdir()
    assert "thoughtline.toml: cannot be read" in place.refused()
    (place.cwd / "thoughtline.toml").rmdir()
    (place.cwd / "thoughtline.toml").write_bytes(b"\xff\xfe")
    assert "is not UTF-8 text" in place.refused()
    (place.cwd / "thoughtline.toml").write_bytes(b"\xef\xbb\xbf[server]\nport = 9")
    assert place.load().server.port == 9
