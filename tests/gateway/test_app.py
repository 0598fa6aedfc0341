"""The application: what it lets go of at its end."""

from support.built_gateway import BuiltGateway, converse


def test_closing_lets_go_of_everything():
    built = BuiltGateway()
    with built.client() as client:
        converse(client, 1)
        assert not built.proxy.draining
    assert built.proxy.draining
    assert built.inner._closed
