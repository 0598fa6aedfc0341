"""Keys that do not exist are answered with the nearest one that does."""

import pytest


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
    assert answer.startswith(f"thoughtline.toml: `{wrong}` is not a setting; ")
    assert meant in answer


def test_an_unknown_variable_is_named(place):
    answer = place.refused(THOUGHTLINE_SERVER__PRT="1")
    assert answer == (
        "$THOUGHTLINE_SERVER__PRT: `server.prt` is not a setting; did you mean `server.port`?"
    )
    assert "`server.port`" in place.refused(THOUGHTLINE_PORTS="1")
    assert "is a single value, not a table" in place.refused(THOUGHTLINE_SERVER__PORT__X="1")
    assert "is not a setting" in place.refused(THOUGHTLINE___="1")
    assert "expected a name of lower-case" in place.refused(THOUGHTLINE_UPSTREAMS____X="1")
    assert "expected a table: [server]" in place.refused(THOUGHTLINE_SERVER="1")


def test_an_unknown_flag_is_named(place):
    assert "did you mean `server.port`?" in place.refused({"server.prt": 1})
