"""`thoughtline import`: exported sessions are taken in, and never overwrite others."""

import json

import pytest

from support.command_line import chat, run

pytestmark = pytest.mark.usefixtures("home")
ELSEWHERE = ("--store", "sqlite:///other.db")


@pytest.fixture
def lines(home):
    """An exported session that goes on from another."""
    chat()
    run("fork", "last")
    run("export", "last", "-o", "it.jsonl")
    return (home / "here" / "it.jsonl").read_text()


def test_what_is_imported_is_exported_again(lines):
    ids = run("import", "it.jsonl", *ELSEWHERE).output.split()
    assert len(ids) == 2
    assert json.loads(run("import", "-", *ELSEWHERE, "--json", says=lines).output) == ids
    assert run("export", ids[1], *ELSEWHERE).stdout == lines
    assert len(run("export", ids[1], "--alone").stdout.splitlines()) == 2


def test_another_session_of_the_same_id_is_a_conflict_or_gets_another_name(lines):
    ids = run("import", "it.jsonl", *ELSEWHERE).output.split()
    changed = lines.replace("Hello", "Hallo")
    assert "differs from event 1" in run("import", "-", *ELSEWHERE, says=changed, fails=True).output
    renamed = run("import", "-", "--rename", *ELSEWHERE, says=changed).output.split()
    assert renamed[0] not in ids


def test_what_is_no_export():
    assert "line 1 is not an event" in run("import", "-", says="what\n", fails=True).output
    assert "there is no session in this file" in run("import", "-", says="", fails=True).output
