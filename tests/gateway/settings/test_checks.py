"""What must hold between settings, and who may reach the gateway."""

import pytest

from thoughtline.errors import SettingsError
from thoughtline.gateway.settings import (
    exposed,
    is_loopback,
    refuse_exposure,
)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("[server]\nhost = ''", "`server.host` is not an address"),
        ("[server]\nworkers = 2\n[store]\nurl = 'memory://'", "use one worker, or a store they"),
        ("[store]\nurl = 'mysql://u:hush@h/d'", "`store.url` is not a URL of a store"),
        ("[store]\nurl = 'thoughtline.db'", "for a file, write sqlite:///thoughtline.db"),
        (
            "[store]\ncache_url = 'redis://:hush@cache'",
            "`store.cache_url` is set, and this version",
        ),
        ("[store]\ncache_url = ['hush']", "has no shared hot tier; leave it empty"),
        ("[store]\nkeys = 'one:hush'", "`store.keys` does not say where the keys are"),
        ("[store]\nkeys = 'file:'", "expected file:PATH, env:NAME or exec:COMMAND"),
        ("[store]\nrequire_sealed = true", "is set, and `store.keys` is not"),
        ("[telemetry]\notel_endpoint = 'collector:4318'", "expected http://host:4318"),
        ("[upstreams.x]", "`upstreams.x.base_url` is missing"),
        ("[upstreams.x]\nbase_url = 'ftp://x'", "is not an http:// or https:// URL"),
        ("[upstreams.x]\nbase_url = 'http://[x'", "is not a URL"),
        ("[upstreams.x]\nbase_url = 'http://x:99999'", "is not a URL"),
        ("[upstreams.x]\nbase_url = 'http://u:hush@x'", "has a credential in it"),
        ("[upstreams.x]\nbase_url = 'http://x?key=hush'", "has a query or a fragment"),
        ("[upstreams.x]\nbase_url = 'http://x/a b'", "has a space in it"),
        ("[upstreams.deepseek]\npolicy = 'deepsek'", "did you mean 'deepseek'?"),
        ("[upstreams.deepseek]\npolicy = 'zzz'", "known: anthropic, azure"),
        ("[upstreams.deepseek]\nenv_key = 'sk-hush'", "is not the name of a variable"),
        ("[upstreams.deepseek.endpoints]\ncaht = 'http://x'", "expected one of chat, responses"),
        ("[upstreams.deepseek.endpoints]\nchat = 'x'", "is not an http:// or https:// URL"),
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
