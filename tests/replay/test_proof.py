"""What each kind of evidence counts, and that the document says the same."""

import re
from pathlib import Path

import pytest

from support.stored_conversations import call, say
from thoughtline.log.index import IndexEntry
from thoughtline.log.turns import Turn
from thoughtline.replay.proof import RULES, Echo, Evidence, looks_random, random_form

RECORD = Path(__file__).parents[2] / "docs/adr/0003-what-proves-which-turn-is-meant.md"
ROWS = [
    Evidence.HANDLE,
    Evidence.SEAL,
    Evidence.SEALED_ITEM,
    Evidence.SUMMARY,
    Evidence.THOUGHT,
    Evidence.ITEM_ID,
    Evidence.CALL_ID,
    Evidence.COUNTED_ID,
    Evidence.HINT,
    Evidence.SHARED_HINT,
    Evidence.BESIDE,
]


def test_the_document_has_the_table():
    rows = re.findall(r"^\| ([^|]+) \| *([^|]*?) *\| *([^|]*?) *\| *([^|]*?) *\| *([^|]*?) *\|$",
                      RECORD.read_text(), re.MULTILINE)[1:]  # fmt: skip
    told = [tuple(bool(cell) for cell in row[1:]) for row in rows]
    assert told == [(r.finds, r.names, True, r.vetoes) for r in RULES]
    assert [rule.evidence for rule in RULES] == ROWS


@pytest.mark.parametrize(
    ("id", "name"),
    [
        ("call_00_c6e8f9a7b1d2", ""),
        ("toolu_01A09q90qw90lq917835lq9", ""),
        ("chatcmpl-tool-5f3e2a1b0c9d8e7f", ""),
        ("base64encoder-c6e8f9a7b1d2", "base64encoder"),
        ("rs_0c6e8f9a-1111-2222-3333-444444444444", ""),
        ("call_-7598213445662345678", ""),  # GLM
        ("D681PevKs", ""),  # Mistral
        ("vV3DyPqm9", ""),
        ("2b7b1d9f4", ""),  # Cerebras
    ],
)
def test_ids_that_look_random(id, name):
    assert looks_random(id, name)


@pytest.mark.parametrize(
    ("id", "name"),
    [
        ("functions.list_dir:0", ""),
        ("list_dir:12", ""),
        ("Bash_0", ""),
        ("toolu_1", ""),
        ("call_1", ""),
        ("gemini-call-0", ""),
        ("", ""),
        ("call00c6e", ""),
        ("rs_918273", ""),  # drawn from a million
        ("call_1763510400000", ""),  # a time
        ("callabcde", ""),
        ("abcdef001", ""),
        ("toolCall1", ""),
        ("functions.base64encoder:0", "base64encoder"),
    ],
)
def test_ids_that_do_not(id, name):
    assert not looks_random(id, name)


def test_ids_of_another_form_were_rewritten_and_say_nothing():
    """A provider takes nine letters only, so a client made them of the id that was there."""
    echo = Echo(Turn(output=(call("ls", id="D681PevKs"), say("x"))))
    assert random_form("D681PevKs") != random_form("call_00_c6e8f9a7b1d2")
    rewritten = IndexEntry(session="s", turn="t", calls=("call_00_c6e8f9a7b1d2",))
    another = IndexEntry(session="s", turn="t", calls=("vV3DyPqm9",))
    assert not echo.has_other_call_ids(rewritten)
    assert echo.has_other_call_ids(another)
