"""What goes upstream is what version 98340cd sent, byte for byte, in every conversation.

`recorded.json` was written by that version (before the modules were put into layers), with
`python tests/upstream_bytes/recording.py recorded.json`. A change that is meant to send something
else records again and says in its commit which conversations differ, and why.
`--bodies FOLDER` on both versions, and `diff -r`, shows what is different.
"""

from pathlib import Path

import pytest

from upstream_bytes.recording import digested, hold, parse, record_library

RECORDED = parse((Path(__file__).parent / "recorded.json").read_text())
AGENT = "-agent"
RECOVERY = "-agent-recovers"
"""What the library sends after a refusal may differ: version 98340cd looked for the guilty thought
by bisection (up to eight probes); one controlled retry, as the gateway does it, replaces that."""


def until_refused(rows):
    """The requests of a conversation up to the first that was refused, included."""
    refused = [at for at, row in enumerate(rows) if row[-1] >= 400]
    return rows[: refused[0] + 1] if refused else rows


def differences(wanted, arrived):
    """The conversations that differ, each with the first request that does."""
    assert sorted(wanted) == sorted(arrived)
    told = {}
    for mount, rows in wanted.items():
        pairs = zip(rows, arrived[mount], strict=False)
        first = next((at for at, (one, other) in enumerate(pairs) if one != other), None)
        if first is None and len(rows) != len(arrived[mount]):
            first = min(len(rows), len(arrived[mount]))
        if first is not None:
            told[mount] = (first, rows[first : first + 1], arrived[mount][first : first + 1])
    return told


REUSING = (
    "import sys; from thoughtline.engine import prefix_cache; prefix_cache.MIN_SIZE = 0;"
    " from thoughtline.cli import main; sys.exit(main())"
)
"""A program that reuses settled beginnings however short a history is."""
REUSED = 'thoughtline_histories_total{walk="reused",why=""} '


@pytest.mark.slow
@pytest.mark.parametrize("program", [(), ("-c", REUSING)], ids=["as it is", "reusing always"])
def test_the_gateway_sends_the_same_bytes(program):
    wanted = {mount: rows for mount, rows in RECORDED.items() if AGENT not in mount}
    stage = hold(*program)
    assert differences(wanted, digested(stage.recorded.arrived)) == {}
    if program:
        counted = stage.metrics.partition(REUSED)[2].partition("\n")[0]
        assert float(counted) > 500


@pytest.mark.slow
def test_the_library_sends_the_same_bytes():
    arrived = digested(record_library())
    wanted = {mount: rows for mount, rows in RECORDED.items() if AGENT in mount}
    for mount in [mount for mount in wanted if mount.endswith(RECOVERY)]:
        assert arrived[mount][-1][-1] == 200, mount  # and it did recover
        wanted[mount], arrived[mount] = map(until_refused, (wanted[mount], arrived[mount]))
    assert differences(wanted, arrived) == {}
