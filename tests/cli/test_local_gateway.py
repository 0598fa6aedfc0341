"""A gateway on this machine, as commands reach it."""

import pytest

from support.postgres_server import free_port
from thoughtline.cli.local_gateway import address, ask, who_answers


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:7337"),
        ("0.0.0.0", "http://127.0.0.1:7337"),
        ("::", "http://[::1]:7337"),
        ("localhost", "http://localhost:7337"),
    ],
)
def test_an_address_that_can_be_reached(host, url):
    assert address(host, 7337) == url


def test_where_nothing_answers():
    port = free_port()
    assert who_answers(f"http://127.0.0.1:{port}") == ""
    assert ask(f"http://127.0.0.1:{port}/ready") is None
