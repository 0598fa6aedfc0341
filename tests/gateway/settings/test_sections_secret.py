"""Secrets are shown nowhere."""

import pickle

import msgspec
import pytest

from support.settings import SECRET
from thoughtline.gateway.settings import (
    Secret,
    describe,
    mask,
)
from thoughtline.gateway.settings.keys import ANY, KEYS, dotted


def test_secrets_are_not_shown(place):
    place.project(
        f"""
        [store]
        url = "postgresql://user:{SECRET}@db/x"
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


@pytest.mark.parametrize(
    "key", [key for key in KEYS if key.kind == "secret"], ids=lambda k: dotted(k.path)
)
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
