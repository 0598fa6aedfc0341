"""The ring: what it takes, what it refuses, and that no error or repr shows a key."""

import base64
from datetime import UTC, datetime

import pytest

from thoughtline.errors import SealError
from thoughtline.stores.sealing.ring import KeyRing, MasterKey, new_key

ONE, TWO = MasterKey("one", b"1" * 32), MasterKey("2026-11-18-7f3a", b"2" * 32)


def test_a_ring_is_read_as_it_is_written():
    text = f"# kept apart\n{ONE.line()}  {TWO.line()} # the newer\n\n"
    ring = KeyRing.parse(text)
    assert ring.ids == ("one", "2026-11-18-7f3a")
    assert ring.newest.line() == TWO.line()
    assert "one" in ring and "three" not in ring


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing",
        "one",
        "one:",
        "one:short",
        f"one:{base64.b64encode(b'x' * 31).decode()}",
        f"o/ne:{base64.b64encode(b'x' * 32).decode()}",
        f"{ONE.line()} {ONE.line()}",
        "sixteen-bytes-of-text",
    ],
)
def test_a_ring_that_cannot_be_one_is_refused_without_quoting_it(text):
    with pytest.raises(SealError) as caught:
        KeyRing.parse(text)
    secret = text.partition(":")[2].split(" ")[0]
    assert not secret or secret not in str(caught.value)


def test_a_lost_key_is_named():
    with pytest.raises(SealError, match=r"the key three is not in the ring \(it has one\)"):
        KeyRing([ONE]).get("three")


def test_nothing_shows_a_key():
    for shown in (repr(ONE), repr(KeyRing([ONE])), ONE.fingerprint):
        assert "MTEx" not in shown and "1111" not in shown


def test_fingerprints_tell_keys_of_one_id_apart():
    assert ONE.fingerprint == MasterKey("other", b"1" * 32).fingerprint
    assert ONE.fingerprint != MasterKey("one", b"3" * 32).fingerprint


def test_a_new_key_has_a_day_and_an_id_that_is_free():
    now = datetime(2026, 11, 18, tzinfo=UTC)
    key = new_key(now=now)
    assert key.made == now
    assert ONE.made is None and MasterKey("2026-99-99", b"1" * 32).made is None
    taken = {f"2026-11-18-{n:04x}" for n in range(1 << 16)} - {"2026-11-18-0abc"}
    assert new_key(taken, now=now).id == "2026-11-18-0abc"
    assert new_key().line() != new_key().line()
