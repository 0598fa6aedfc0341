"""What sessions are called: a person's words, and not a client's notes."""

import time

import pytest

from thoughtline.log.parts import Text
from thoughtline.log.titles import MAX_TITLE, raw_title, title_of

NOTE = "<system-reminder>\nToday is Monday.\n</system-reminder>"


@pytest.mark.parametrize(
    ("texts", "title"),
    [
        (["Why  does\nit fail?"], "Why does it fail?"),
        ([NOTE, "Why?"], "Why?"),
        ([f"{NOTE}\n{NOTE}\nWhy?"], "Why?"),
        ([f"Why? {NOTE}"], f"Why? {' '.join(NOTE.split())}"),
        ([NOTE], ""),
        (["<environment_context>\n<cwd>/x</cwd>\n</environment_context>"], ""),
        (["# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nBe kind.\n</INSTRUCTIONS>"], ""),
        (["<task>Mend it</task><environment_details>x</environment_details>"], "Mend it"),
        (["<session>Mend it</session>"], "Mend it"),
        (["<b>bold</b> or not?"], "<b>bold</b> or not?"),
        (["<system-reminder>no end"], ""),
        (["# Heading"], "# Heading"),
        (["x" * 500], "x" * (MAX_TITLE - 1) + "…"),
    ],
)
def test_the_words_that_a_person_said(texts, title):
    assert title_of([Text(text=text) for text in texts]) == title


def test_a_message_of_notes_alone_has_a_raw_title():
    assert raw_title([Text(text=NOTE)]).startswith("<system-reminder> Today")


def test_hostile_tags_take_no_time():
    began = time.process_time()
    title_of([Text(text="<a-b>" * 1_000_000), Text(text="<task>" * 100_000)])
    assert time.process_time() - began < 5  # it would be minutes
