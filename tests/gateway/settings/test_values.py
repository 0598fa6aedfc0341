"""Values: how they are written, and what does not fit."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.gateway.settings import (
    values,
)
from thoughtline.gateway.settings.keys import find


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
        ("[upstreams]\nX = {}", "entry called 'X' that cannot be used; expected a name of"),
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


def converted(path, written):
    """What a key holds when this is written for it; None when it does not fit."""
    try:
        return values.convert(find(path), written, text=False)
    except msgspec.ValidationError:
        return None


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
    assert converted(("store", "retention"), written) == seconds


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
    assert converted(("store", "memory_bytes"), written) == size


@given(st.integers(0, 10**9))
def test_quantities_are_spelled_exactly(amount):
    for units in (values.SECONDS, values.BYTES):
        assert values.parse_amount(values.spell_amount(amount, units), units) == amount
        assert values.parse_amount(values.spell_amount(float(amount), units), units) == amount
