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


def test_it_leaves_conversations_and_the_link_to_them_comes_last(tmp_path):
    store = f"sqlite:///{tmp_path}/demo.db"
    *_, last = run("demo", "--exchanges", "2", "--store", store).stdout.splitlines()
    session = last.partition("/inspect#/sessions/")[2]
    listed = run("sessions", "--store", store).stdout.splitlines()
    assert len(listed) == 4
    assert session in run("show", session, "--store", store).stdout


def test_a_store_that_keeps_nothing_gets_no_conversations(tmp_path, monkeypatch):
    monkeypatch.setenv("THOUGHTLINE_STORE__RECORD", "off")
    store = tmp_path / "demo.db"
    shown = run("demo", "--exchanges", "2", "--store", f"sqlite:///{store}").stdout
    assert "`store.record` is 'off'" in shown
    assert not store.exists()
