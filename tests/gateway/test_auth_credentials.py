"""Who a request belongs to."""

from thoughtline.gateway.auth import Auth


def test_whoever_shows_two_credentials_is_known_by_both():
    """Two people behind one proxy's token are two tenants."""
    auth, token = Auth(b"secret" * 8), (b"authorization", b"Bearer proxy")
    one, two = (auth.authenticate([token, (b"x-api-key", key)], "") for key in (b"one", b"two"))
    twice = auth.authenticate([(b"authorization", b"Bearer one"), (b"x-api-key", b"one")], "")
    assert one.tenant != two.tenant
    assert twice == auth.authenticate([(b"x-api-key", b"one")], "")
