"""The application: what it lets go of at its end."""

import asyncio

import pytest

from support.built_gateway import BuiltGateway, converse
from thoughtline.errors import Unavailable


def test_closing_lets_go_of_everything():
    built = BuiltGateway()
    with built.client() as client:
        converse(client, 1)
        assert not built.proxy.draining
    assert built.proxy.draining
    with pytest.raises(Unavailable):
        asyncio.run(built.inner.sessions())
