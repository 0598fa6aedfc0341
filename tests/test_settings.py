"""Settings: precedence, names, kinds, secrets, and what is known without any of them."""

import json
import pickle
from datetime import date, datetime, time
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.dialects import DIALECTS
from thoughtline.errors import SettingsError, ThoughtlineError
from thoughtline.policies import infer, names
from thoughtline.settings import (
    PROVIDERS,
    Secret,
    Settings,
    checks,
    describe,
    exposed,
    is_loopback,
    load,
    mask,
    quantities,
    read,
    refuse_exposure,
)
from thoughtline.settings.schema import ANY, KEYS, dotted

SECRET = "sk-hush-0123456789"


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


class Place:
    """A working directory, a home and an environment."""

    def __init__(self, root):
        self.cwd = root / "work"
        self.home = root / "home"
        self.cwd.mkdir(exist_ok=True)
        self.env = {"HOME": str(self.home)}

    def project(self, text):
        (self.cwd / "thoughtline.toml").write_text(text, "utf-8")

    def user(self, text):
        folder = self.home / "config"
        folder.mkdir(parents=True, exist_ok=True)
        self.env["XDG_CONFIG_HOME"] = str(folder)
        (folder / "thoughtline").mkdir(exist_ok=True)
        (folder / "thoughtline" / "thoughtline.toml").write_text(text, "utf-8")

    def load(self, flags=None, **env):
        return load(flags or {}, {**self.env, **env}, self.cwd)

    def read(self, flags=None, **env):
        return read(flags or {}, {**self.env, **env}, self.cwd)

    def refused(self, flags=None, **env):
        with pytest.raises(SettingsError) as caught:
            self.load(flags, **env)
        assert isinstance(caught.value, ThoughtlineError)
        assert caught.value.__cause__ is None
        return str(caught.value)

    def outcome(self, **env):
        """What is wrong, or nothing; and never any other exception."""
        try:
            assert isinstance(self.load(**env), Settings)
        except SettingsError as error:
            return str(error)
        return ""


# --- Order -------------------------------------------------------------------------------------


def test_nothing_is_needed(place):
    settings = place.load()
    assert (settings.server.host, settings.server.port, settings.server.workers) == (
        "127.0.0.1",
        7337,
        1,
    )
    assert settings.store.retention == 30 * 86400
    assert settings.store.url.startswith("sqlite:////")
    assert settings.store.url.endswith("/thoughtline/thoughtline.db")
    assert str(place.home) in settings.store.url
    assert not settings.access.admin_token
    assert not place.home.exists()  # nothing was created
    assert not exposed(settings)


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
    assert settings.upstreams["kimi-coding"].standing == "configured"


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


@pytest.mark.parametrize(
    ("text", "wrong", "meant"),
    [
        ("[server]\nprt = 1", "server.prt", "server.port"),
        ("[sever]\nport = 1", "sever", "server"),
        ("port = 1", "port", "server.port"),
        ("[store]\nretension = '1d'", "store.retension", "store.retention"),
        ("[server]\nurl = 'x'", "server.url", "store.url"),
        ("[server]\nadmin_tokn = 'x'", "server.admin_tokn", "access.admin_token"),
        ("[upstream.x]\nbase_url = 'x'", "upstream", "upstreams"),
        ("[upstreams.x]\nbaseurl = 'x'", "upstreams.x.baseurl", "upstreams.x.base_url"),
        ("[access.clients.a]\nkeys = 'x'", "access.clients.a.keys", "access.clients.a.key"),
        ("[upstreams.x]\nname = 'x'", "upstreams.x.name", "known here: `base_url`"),
    ],
)
def test_a_key_that_does_not_exist_is_answered_with_the_nearest(place, text, wrong, meant):
    place.project(text)
    answer = place.refused()
    assert answer.startswith(f"thoughtline.toml: `{wrong}` is no setting; ")
    assert meant in answer


def test_an_unknown_variable_is_named(place):
    answer = place.refused(THOUGHTLINE_SERVER__PRT="1")
    assert answer == (
        "$THOUGHTLINE_SERVER__PRT: `server.prt` is no setting; did you mean `server.port`?"
    )
    assert "`server.host`" in place.refused(THOUGHTLINE_HOSTS="1")
    assert "nothing stands below it" in place.refused(THOUGHTLINE_SERVER__PORT__X="1")
    assert "is no setting" in place.refused(THOUGHTLINE___="1")
    assert "expected a name of lower-case" in place.refused(THOUGHTLINE_UPSTREAMS____X="1")
    assert "expected a table: [server]" in place.refused(THOUGHTLINE_SERVER="1")


def test_an_unknown_flag_is_named(place):
    assert "did you mean `server.port`?" in place.refused({"server.prt": 1})


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (
            "[server]\nport = 'abc'",
            '`server.port` is "abc", a string; expected a whole number from 0 to 65535',
        ),
        ("[server]\nport = 65536", "is 65536, a whole number; expected a whole number from 0"),
        ("[server]\nport = true", "is true, a boolean; expected"),
        ("[server]\nport = 7337.0", "is 7337.0, a number; expected"),
        ("[server]\nport = 0x" + "f" * 5000, "is a huge number; expected"),
        ("[server]\nport = [1]", "is a list; expected"),
        ("[server.port]\nx = 1", "`server.port` is a table; expected a whole number"),
        ("[server]\nworkers = 0", "expected a whole number from 1 to 256"),
        ("[server]\nidle_timeout = 0", 'expected seconds above 0, as a number or as "30s"'),
        ("[server]\nidle_timeout = inf", "is inf, a number; expected seconds"),
        ("[server]\nidle_timeout = nan", "is nan, a number; expected seconds"),
        ("[server]\nidle_timeout = -1", "is -1, a whole number; expected seconds"),
        ("[server]\nallow_remote = 'yes'", "expected true or false"),
        ("[server]\nmax_body_bytes = '64 apples'", 'expected bytes, as a whole number or as "512'),
        ("[server]\nhost = 1979-05-27", "a date or time; expected a string"),
        ('[server]\nhost = "a\\nb"', "expected a string without control characters"),
        ("server = 1", "`server` is a whole number; expected a table: [server]"),
        ("upstreams = []", "`upstreams` is a list; expected a table: [upstreams]"),
        ("[upstreams]\nx = 1", "`upstreams.x` is a whole number; expected a table: [upstreams.x]"),
        ("[upstreams]\nX = {}", "entry called 'X' that cannot be; expected a name of"),
        ("[upstreams.x]\nbase_url = 'http://x'\nmodels = 'a'", "expected a list of strings"),
        ("[upstreams.x]\nbase_url = 'http://x'\nmodels = [1]", "expected a list of strings"),
        ("[upstreams.x.headers]\n'a b' = ''", "`upstreams.x.headers` has an entry that cannot be"),
        ("[store]\nretention = '30 days'", "`store.retention` is "),
        ("[store]\nrecord = 'session'", 'or "off"; did you mean "sessions"?'),
        ("[store]\nrecord = 1", '"sessions", "thoughts" or "off"'),
        ("[replay]\nkeep_last = -1", 'expected a whole number, 0 or more or "none"'),
        ("[log]\nlevel = 'warn'", 'did you mean "warning"?'),
        ("x", "is not valid TOML: "),
        ("a = " + "[" * 5000, "nested too deeply"),
        ("[server]\nport = " + "1" * 5000, "is not valid TOML"),
    ],
)
def test_a_value_that_does_not_fit(place, text, answer):
    place.project(text)
    refused = place.refused()
    assert refused.startswith("thoughtline.toml: ")
    assert answer in refused


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("[server]\nhost = ''", "`server.host` is no address"),
        ("[server]\nworkers = 2\n[store]\nurl = 'memory://'", "use one worker, or a store they"),
        ("[store]\nurl = 'mysql://u:hush@h/d'", "`store.url` names no store"),
        ("[store]\nurl = 'thoughtline.db'", "expected sqlite:///file.db"),
        ("[store]\ncache_url = 'memcached://x'", "`store.cache_url` names no cache"),
        ("[telemetry]\notel_endpoint = 'collector:4318'", "expected http://host:4318"),
        ("[upstreams.x]", "`upstreams.x.base_url` is missing"),
        ("[upstreams.x]\nbase_url = 'ftp://x'", "is no http:// or https:// URL"),
        ("[upstreams.x]\nbase_url = 'http://[x'", "is no URL"),
        ("[upstreams.x]\nbase_url = 'http://x:99999'", "is no URL"),
        ("[upstreams.x]\nbase_url = 'http://u:hush@x'", "has a credential in it"),
        ("[upstreams.x]\nbase_url = 'http://x?key=hush'", "has something after its path"),
        ("[upstreams.x]\nbase_url = 'http://x/a b'", "has a space in it"),
        ("[upstreams.deepseek]\npolicy = 'deepsek'", "did you mean 'deepseek'?"),
        ("[upstreams.deepseek]\npolicy = 'zzz'", "known: anthropic, azure"),
        ("[upstreams.deepseek]\nenv_key = 'sk-hush'", "is not the name of a variable"),
        ("[upstreams.deepseek.endpoints]\ncaht = 'http://x'", "expected one of chat, responses"),
        ("[upstreams.deepseek.endpoints]\nchat = 'x'", "is no http:// or https:// URL"),
        ("[access.clients.a]", "`access.clients.a.key` is missing"),
        ("[access.clients.a]\nkey = ''", "`access.clients.a.key` is missing"),
        (
            "[access.clients.a]\nkey = 'hush'\n[access.clients.b]\nkey = 'hush'",
            "`access.clients.b.key` is the key of 'a' too",
        ),
        ("[access]\nadmin_token = 'hush'\n[access.clients.a]\nkey = 'hush'", "is the admin token"),
    ],
)
def test_settings_that_do_not_go_together(place, text, answer):
    place.project(text)
    refused = place.refused()
    assert refused.startswith("thoughtline.toml: ")
    assert answer in refused
    assert "hush" not in refused


def test_all_problems_are_told_at_once(place):
    place.project("[server]\nprt = 1\nworkers = 'x'\n[log]\nlevel = 1")
    assert len(place.refused(THOUGHTLINE_PORT="x", THOUGHTLINE_X="1").splitlines()) == 5


def test_files_that_cannot_be_read(place):
    (place.cwd / "thoughtline.toml").mkdir()
    assert "thoughtline.toml: cannot be read" in place.refused()
    (place.cwd / "thoughtline.toml").rmdir()
    (place.cwd / "thoughtline.toml").write_bytes(b"\xff\xfe")
    assert "is not UTF-8 text" in place.refused()
    (place.cwd / "thoughtline.toml").write_bytes(b"\xef\xbb\xbf[server]\nport = 9")
    assert place.load().server.port == 9


def written(value):
    """A value in TOML."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case datetime() | date() | time():
            return value.isoformat()
        case list():
            return f"[{', '.join(map(written, value))}]"
        case dict():
            return "{" + ", ".join(f"{written(k)} = {written(v)}" for k, v in value.items()) + "}"
        case _:
            return str(value)


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


# --- Secrets -----------------------------------------------------------------------------------


def test_secrets_are_not_shown(place):
    place.project(
        f"""
        [store]
        url = "postgresql://user:{SECRET}@db/x"
        cache_url = "redis://:{SECRET}@cache"
        [access]
        admin_token = "{SECRET}1"
        [access.clients.alice]
        key = "{SECRET}2"
        [upstreams.x]
        base_url = "http://x"
        env_key = "X_KEY"
        headers = {{ authorization = "Bearer {SECRET}" }}
        """
    )
    loaded = place.read(X_KEY=SECRET, DEEPSEEK_API_KEY=SECRET)
    settings = loaded.settings
    assert settings.upstreams["x"].key.reveal() == SECRET
    shown = [repr(settings), str(settings), f"{settings}", repr(loaded), str(describe(loaded))]
    shown += [f"{settings.access.admin_token}", f"{settings.upstreams['x'].key!s:>30}"]
    assert [text for text in shown if SECRET in text] == []
    assert ("upstreams.x.base_url", '"http://x"', "thoughtline.toml") in describe(loaded)
    assert "postgresql://***@db/x" in repr(settings)
    assert SECRET in settings.store.url
    with pytest.raises(TypeError):
        msgspec.json.encode(settings)


def test_what_stands_in_place_of_a_variables_name_may_be_the_key_itself(place):
    place.project("[upstreams.x]\nbase_url = 'https://x'\nenv_key = 424242")
    refused = place.refused()
    assert "upstreams.x.env_key" in refused and "424242" not in refused


@pytest.mark.parametrize("key", [key for key in KEYS if key.secret], ids=lambda k: dotted(k.path))
def test_secrets_are_not_in_errors(place, key):
    path = dotted(name if name != ANY else "x" for name in key.path)
    for value in (f'["{SECRET}"]', f'{{ {SECRET} = "{SECRET}" }}', f'"{SECRET}\\u0000"'):
        place.project(f"{path} = {value}\n")
        assert SECRET not in place.refused()


def test_what_a_variable_holds_is_not_in_errors(place):
    place.project('[server]\nport = "env:DB"\n[store]\nrecord = "env:DB"\nurl = "env:DB"')
    text = place.refused(DB=SECRET)
    assert SECRET not in text
    assert "thoughtline.toml ($DB): `server.port` is a string; expected" in text


def test_a_secret_behaves():
    secret = Secret(SECRET)
    assert secret
    assert not Secret()
    assert secret == Secret(SECRET) != Secret("x")
    assert secret != SECRET
    assert hash(secret) == hash(Secret(SECRET))
    assert (str(secret), repr(secret), str(Secret())) == ("***", "Secret('***')", "")
    assert secret.matches(SECRET)
    assert not secret.matches("ü\udc80")
    assert pickle.loads(pickle.dumps(secret)) == secret


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("redis://:hush@h:1/0?x=1", "redis://***@h:1/0?x=1"),
        ("http://h/a@b", "http://h/a@b"),
        ("postgresql://h/d?user=a&password=hush&x=1", "postgresql://h/d?user=a&password=***&x=1"),
        ("https://h/?api_key=hush#f", "https://h/?api_key=***#f"),
    ],
)
def test_urls_are_masked(text, shown):
    assert mask(text) == shown


# --- Kinds -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("30d", 2592000),
        ("2w", 1209600),
        ("12h", 43200),
        ("90m", 5400),
        ("45s", 45),
        ("45", 45),
        ("1.5h", 5400),
        (" 7 D ", 604800),
        (0, 0),
        (2.5, 2.5),
        ("", None),
        ("d", None),
        ("-1d", None),
        ("1y", None),
        ("1d2h", None),
        ("１d", None),
        (True, None),
        (float("inf"), None),
        (float("nan"), None),
        (10**400, None),
        ([], None),
    ],
)
def test_durations(written, seconds):
    assert quantities.seconds(written) == seconds


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("64MiB", 64 << 20),
        ("1gib", 1 << 30),
        ("0.5KiB", 512),
        ("12", 12),
        ("7 B", 7),
        (5, 5),
        ("0.3B", None),
        ("1MB", None),
        (1.0, None),
        (True, None),
        (-1, None),
    ],
)
def test_sizes(written, size):
    assert quantities.size(written) == size


@given(st.integers(0, 10**9))
def test_quantities_are_spelled_exactly(amount):
    assert quantities.seconds(quantities.spell_seconds(float(amount))) == amount
    assert quantities.size(quantities.spell_size(amount)) == amount


def test_retention_in_a_file(place):
    place.project("[store]\nretention = '12h'\nmemory_bytes = '1GiB'\n[replay]\nkeep_last = 'none'")
    settings = place.load()
    assert settings.store.retention == 43200
    assert settings.store.memory_bytes == 1 << 30
    assert settings.replay.keep_last is None
    assert place.load(THOUGHTLINE_STORE__RETENTION="0").store.retention == 0


def test_a_file_of_sqlite_does_not_depend_on_where_the_process_stands(place):
    place.project("[store]\nurl = 'sqlite:///data/t.db?synchronous=full'")
    assert place.load().store.url == f"sqlite:///{place.cwd}/data/t.db?synchronous=full"
    assert place.load({"store_url": "sqlite:////t.db"}).store.url == "sqlite:////t.db"


# --- Upstreams ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "name", "host"),
    [
        ("OPENAI_API_KEY", "openai", "api.openai.com"),
        ("ANTHROPIC_API_KEY", "anthropic", "api.anthropic.com"),
        ("DEEPSEEK_API_KEY", "deepseek", "api.deepseek.com"),
        ("MOONSHOT_API_KEY", "kimi", "api.moonshot.ai"),
        ("KIMI_API_KEY", "kimi-coding", "api.kimi.com"),
        ("GEMINI_API_KEY", "gemini", "generativelanguage.googleapis.com"),
        ("GOOGLE_API_KEY", "gemini", "generativelanguage.googleapis.com"),
        ("XAI_API_KEY", "xai", "api.x.ai"),
        ("ZAI_API_KEY", "glm", "api.z.ai"),
        ("ZHIPU_API_KEY", "glm", "api.z.ai"),
        ("MINIMAX_API_KEY", "minimax", "api.minimax.io"),
        ("DASHSCOPE_API_KEY", "qwen", "dashscope-intl.aliyuncs.com"),
        ("XIAOMI_API_KEY", "mimo", "api.xiaomimimo.com"),
        ("MIMO_API_KEY", "mimo", "api.xiaomimimo.com"),
        ("HUNYUAN_API_KEY", "hunyuan", "api.hunyuan.cloud.tencent.com"),
        ("STEPFUN_API_KEY", "stepfun", "api.stepfun.com"),
        ("MISTRAL_API_KEY", "mistral", "api.mistral.ai"),
        ("OPENROUTER_API_KEY", "openrouter", "openrouter.ai"),
        ("GROQ_API_KEY", "groq", "api.groq.com"),
        ("CEREBRAS_API_KEY", "cerebras", "api.cerebras.ai"),
        ("FIREWORKS_API_KEY", "fireworks", "api.fireworks.ai"),
        ("TOGETHER_API_KEY", "together", "api.together.xyz"),
        ("SILICONFLOW_API_KEY", "siliconflow", "api.siliconflow.com"),
    ],
)
def test_a_key_in_the_environment_is_an_upstream(place, variable, name, host):
    settings = place.load(**{variable: SECRET})
    upstream = settings.upstreams[name]
    assert f"//{host}" in upstream.base_url
    assert upstream.key.reveal() == SECRET
    assert (upstream.env_key, upstream.standing) == (variable, "environment")
    assert upstream.models
    assert upstream.policy == infer(upstream.base_url) != "generic"
    assert next(iter(settings.upstreams)) == name  # before those without a key
    keyed = [u.name for u in settings.upstreams.values() if u.key]
    assert keyed == [name]
    known = place.load().upstreams[name]
    assert (known.standing, known.env_key, bool(known.key)) == ("known", "", False)
    assert known.base_url == upstream.base_url


def test_every_variable_of_the_table_is_tested():
    tested = test_a_key_in_the_environment_is_an_upstream.pytestmark[0].args[1]
    assert {variable for variable, _, _ in tested} == {k for p in PROVIDERS for k in p.keys}


def test_the_table_is_sound(place):
    upstreams = place.load().upstreams
    assert list(upstreams) == [provider.name for provider in PROVIDERS]
    assert len(upstreams) == len(PROVIDERS)
    for name, upstream in upstreams.items():
        assert upstream.name == name
        assert upstream.policy in names()
        assert list(checks._upstream(upstream)) == []
    assert set(checks.DIALECTS) == set(DIALECTS)


@pytest.mark.parametrize("name", ["openrouter", "groq", "cerebras", "together", "siliconflow"])
def test_hosts_claim_models_only_with_a_key(place, name):
    assert place.load().upstreams[name].models == ()
    assert place.load(**{f"{name.upper()}_API_KEY": SECRET}).upstreams[name].models


@pytest.mark.parametrize(
    ("env", "model", "name"),
    [
        ({}, "gpt-5.6", "openai"),
        ({}, "claude-opus-5-5", "anthropic"),
        ({}, "deepseek-v4-pro", "deepseek"),
        ({}, "kimi-k3", "kimi"),
        ({}, "kimi-for-coding", "kimi-coding"),
        ({"KIMI_API_KEY": "k"}, "kimi-k3", "kimi-coding"),
        ({"KIMI_API_KEY": "k", "MOONSHOT_API_KEY": "m"}, "kimi-k3", "kimi"),
        ({}, "MiniMax-M2", "minimax"),
        ({}, "sim/deepseek", "sim"),
        ({"OPENROUTER_API_KEY": "o"}, "sim/deepseek", "sim"),
        ({}, "deepseek/deepseek-v4", None),
        ({"OPENROUTER_API_KEY": "o"}, "deepseek/deepseek-v4", "openrouter"),
        ({"GROQ_API_KEY": "g"}, "openai/gpt-oss-120b", "groq"),
        ({"GROQ_API_KEY": "g", "OPENROUTER_API_KEY": "o"}, "qwen/qwen3.7-max", "openrouter"),
        ({"CEREBRAS_API_KEY": "c"}, "gpt-oss-120b", "cerebras"),
        ({"FIREWORKS_API_KEY": "f", "GROQ_API_KEY": "g"}, "accounts/a/models/b", "fireworks"),
        ({}, "llama3", None),
        ({"THOUGHTLINE_UPSTREAMS__MINE__MODELS": "gpt-*"}, "gpt-5.6", "mine"),
        ({"THOUGHTLINE_UPSTREAMS__MINE__MODELS": "g*"}, "gpt-5.6", "mine"),
    ],
)
def test_patterns_lead_to_the_right_upstream(place, env, model, name):
    base = {"THOUGHTLINE_UPSTREAMS__MINE__BASE_URL": "http://m"}
    settings = place.load(**env, **(base if any("MINE" in n for n in env) else {}))
    claims = [
        (upstream.standing == "configured", len(pattern), -position, upstream.name)
        for position, upstream in enumerate(settings.upstreams.values())
        for pattern in upstream.models
        if fnmatchcase(model, pattern)
    ]
    assert max(claims, default=(None,))[-1] == name


def test_the_simulated_provider_is_always_there(place):
    sim = place.load().upstreams["sim"]
    assert (sim.base_url, sim.models) == ("sim://", ("sim/*",))


def test_local_servers_are_not_offered_to_others(place):
    assert "ollama" in place.load().upstreams
    assert "ollama" not in place.load({"host": "0.0.0.0", "allow_remote": True}).upstreams


def test_a_configured_upstream_takes_over_what_it_does_not_say(place):
    place.project("[upstreams.deepseek]\nidle_timeout = '1m'")
    settings = place.load(DEEPSEEK_API_KEY=SECRET)
    upstream = settings.upstreams["deepseek"]
    assert upstream.standing == "configured"
    assert upstream.base_url == "https://api.deepseek.com"
    assert upstream.models == ("deepseek-*",)
    assert upstream.key.reveal() == SECRET
    assert upstream.base("messages") == "https://api.deepseek.com/anthropic/v1"
    assert upstream.base("chat") == "https://api.deepseek.com"
    assert settings.timeouts(upstream).idle == 60
    assert settings.timeouts(upstream).connect == settings.server.connect_timeout


def test_a_key_goes_only_where_it_belongs(place):
    place.project("[upstreams.deepseek]\nbase_url = 'https://mirror.example/'")
    upstream = place.load(DEEPSEEK_API_KEY=SECRET).upstreams["deepseek"]
    assert upstream.base_url == "https://mirror.example"
    assert not upstream.key
    assert not upstream.endpoints
    assert upstream.policy == "deepseek"  # a mirror is named after what it mirrors
    place.project("[upstreams.deepseek]\nbase_url = 'http://api.deepseek.com'")
    assert not place.load(DEEPSEEK_API_KEY=SECRET).upstreams["deepseek"].key


def test_a_key_can_be_declined(place):
    place.project("[upstreams.deepseek]\nenv_key = ''")
    assert not place.load(DEEPSEEK_API_KEY=SECRET).upstreams["deepseek"].key


@pytest.mark.parametrize("env_key", ["MY_KEY", "env:MY_KEY"])
def test_a_key_from_a_variable_of_ones_own(place, env_key):
    place.project(f"[upstreams.x]\nbase_url = 'https://api.x.ai/v1'\nenv_key = '{env_key}'")
    upstream = place.load(MY_KEY=SECRET).upstreams["x"]
    assert (upstream.key.reveal(), upstream.env_key) == (SECRET, "MY_KEY")
    assert upstream.policy == "xai"
    assert not place.load().upstreams["x"].key


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


# --- The door ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("LocalHost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.2", False),
        ("example.com", False),
    ],
)
def test_loopback(place, host, ours):
    assert is_loopback(host) is ours
    settings = place.load({"host": host})
    assert exposed(settings) is not ours
    if ours:
        refuse_exposure(settings)
    else:
        with pytest.raises(SettingsError, match="--allow-remote"):
            refuse_exposure(settings)
        refuse_exposure(place.load({"host": host, "allow_remote": True}))
        refuse_exposure(place.load({"host": host}, THOUGHTLINE_ACCESS__CLIENTS__A__KEY="k"))


def test_settings_travel_to_workers(place):
    settings = place.load(DEEPSEEK_API_KEY=SECRET)
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert Path(place.cwd).exists()
