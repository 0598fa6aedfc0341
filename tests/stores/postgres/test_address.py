"""Where the database is."""

import pytest

from thoughtline.errors import StoreError
from thoughtline.stores.postgres.address import Address


def test_what_people_are_shown_has_no_password():
    address = Address("postgresql://me:hush@db.test:6432/log?sslmode=require")
    assert address.label == "db.test:6432/log"
    assert "hush" not in repr(address)
    assert address.prepared


def test_several_servers():
    address = Address("postgresql://me:hush@one.test:6432,two.test/log")
    assert address.label == "one.test:6432,two.test:5432/log"


def test_our_own_options_do_not_go_to_the_server():
    address = Address("postgres://db.test/log?prepared=off&application_name=x")
    assert not address.prepared
    assert "prepared" not in address._dsn
    assert "application_name=x" in address._dsn
    assert "target_session_attrs=read-write" in address._dsn


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hush@db.test:5432",
        "postgresql://me:hush@db.test:99999999/log",
        "postgresql://me:hush@db.test,other.test:x/log",
        "postgresql://me:hush@db.test/log?prepared=maybe",
        "postgresql://[me:hush/log",
    ],
)
def test_a_wrong_url_is_explained_without_its_password(url):
    with pytest.raises(StoreError, match="postgresql URL") as caught:
        Address(url)
    assert "hush" not in str(caught.value)
