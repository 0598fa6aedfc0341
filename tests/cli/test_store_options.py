"""Which store and which session a command means."""

import json

import pytest

from support.command_line import chat, run

pytestmark = pytest.mark.usefixtures("home")


def test_the_default_store_is_the_gateways(home):
    chat()
    assert (home / "data" / "thoughtline" / "thoughtline.db").exists()
    chat("--store", "sqlite:///mine.db")
    assert (home / "here" / "mine.db").exists()
    assert len(json.loads(run("sessions", "--json").stdout)) == 1


@pytest.mark.parametrize(
    "command",
    [
        ["sessions"],
        ["show"],
        ["tail", "x"],
        ["fork", "last"],
        ["export", "last"],
        ["index", "--check"],
    ],
)
def test_reading_creates_no_file(command, home):
    said = run(*command, "--store", "sqlite:///typo.db", fails=True).output
    assert "there is no store at" in said and "typo.db; check `--store`" in said
    assert list((home / "here").iterdir()) == []
    run(*command, fails=command[0] not in ("sessions", "index"))  # the gateway's own, not there yet
    assert not (home / "data").exists()


def test_a_path_that_is_no_url_is_explained(home):
    said = run("sessions", "--store", "typo.db", fails=True).output
    assert "'typo.db', which is not a store URL" in said and "sqlite:///typo.db" in said
    assert list((home / "here").iterdir()) == []


def test_importing_creates_the_store(home):
    chat()
    lines = run("export", "last").stdout
    run("import", "-", "--store", "sqlite:///new/mine.db", says=lines)
    assert (home / "here" / "new" / "mine.db").exists()
    assert (
        len(json.loads(run("sessions", "--json", "--store", "sqlite:///new/mine.db").stdout)) == 1
    )
