"""`thoughtline demo`: what is lost without the gateway and kept with it, shown and as JSON."""

import json

import pytest

from support.command_line import run
from thoughtline.cli.demo import SHOWN


def test_what_is_lost_directly_is_kept_through_the_gateway():
    translated, *played = json.loads(run("demo", "--json").stdout)
    assert (translated["provider"], translated["speaks"]) == ("deepseek", "responses")
    assert (translated["direct"]["status"], translated["kept"]["status"]) == (400, 200)
    assert translated["kept"]["thoughts"]["exact"] == 7
    assert [one["provider"] for one in played] == [*SHOWN]
    for one in played:
        kept = one["kept"]
        assert (kept["status"], kept["exchanges"], kept["refusal"]) == (200, 8, "")
        assert (kept["thoughts"]["missing"], kept["thoughts"]["altered"]) == (0, 0)
        direct = one["direct"]
        assert direct["refusal"] or direct["thoughts"]["missing"]


def test_it_is_shown_to_people():
    shown = run("demo", "--provider", "deepseek", "--exchanges", "4").stdout
    assert "must be passed back to the API" in shown
    assert "4 exchanges, 3 thoughts back, byte for byte" in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(("--exchanges", "0"), "at least 1"), (("--provider", "nobody"), "no simulated provider")],
)
def test_what_cannot_be(arguments, says):
    assert says in run("demo", *arguments, fails=True).output
