"""Which session and which turn a name means."""

import json

import pytest

from support.command_line import chat, run
from thoughtline.cli.rendering import short_ids

pytestmark = pytest.mark.usefixtures("home")


def ids():
    return [one["session"] for one in json.loads(run("sessions", "--json").stdout)]


def test_an_id_from_the_list_can_be_pasted():
    chat()
    chat()
    for line, id in zip(run("sessions").stdout.splitlines(), ids(), strict=True):
        listed = line.split()[0]
        assert run("show", listed).stdout.startswith(f"session {id}\n")
        assert run("show", f"…{listed}").stdout.startswith(f"session {id}\n")  # as others print it


def test_beginnings_and_ends_are_enough():
    chat()
    [id] = ids()
    for part in (id, id[:8], id[-6:]):
        assert run("show", part).stdout.startswith(f"session {id}\n")


def test_a_part_of_several_ids_is_explained():
    for _ in range(7):
        chat()
    said = run("show", ids()[0][:3], fails=True).output
    assert "could be 7 sessions; type more of the one you mean:" in said
    assert sum(id in said for id in ids()) == 5
    assert "just now" in said and "and 2 more" in said


def test_a_part_of_no_id():
    chat()
    said = run("show", "nothing", fails=True).output
    assert "no session is called 'nothing'; `thoughtline sessions` lists them" in said
    assert "no session is called '…'" in run("show", "…", fails=True).output


def test_turns_have_numbers_and_ids():
    chat(says="One\nTwo\n")
    turns = json.loads(run("show", "last", "--json").stdout)["turns"]
    for name in ("1", turns[0]["id"][-12:]):
        assert len(json.loads(run("show", "last", "--at", name, "--json").stdout)["turns"]) == 1
    said = run("show", "last", "--at", turns[0]["id"][:3], fails=True).output
    assert "could be 2 turns" in said and "number 2" in said


def test_ids_with_the_same_end_are_shown_whole():
    assert short_ids(["a-long-one-0123456789ab", "b-long-one-0123456789ab", "short"]) == [
        "a-long-one-0123456789ab",
        "b-long-one-0123456789ab",
        "short",
    ]
