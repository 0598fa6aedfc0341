"""What people read is plain English: a few phrasings that are not are kept out of messages."""

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "thoughtline"

ODD = {
    r"(?<!there )\bis no (?!longer|more|other|such|one\b|need)\w+": "is not a …",
    r"\bmend it\b": "correct it",
    r"\bsay whom\b": "name the provider",
    r"\bgo(?:es)? by it\b": "follow it",
    r"\bof ours\b": "of Thoughtline",
    r"\bdid you mean\b(?!.*\?)": "a question has a question mark",
    r"\banew\b": "again",
}
"""Phrasing → what to write instead."""

ODD_IN_DOCSTRINGS = {
    r"(?i)\blets? go of\b": "drop, delete, close, release",
    r"\bso many (?!as|that)\w+|\bso many[.;:,]": "the parameter's name, or `this number of`",
    r"\bfor ever\b": "never, always, without end",
    r"\bis settled of\b": "the settled prefix",
    r"(?i)\bwhoever\b": "the caller, the client, an observer",
    r"(?i)\banew\b": "again",
    r"\bof ours\b": "of Thoughtline, of this process",
    r"^(?:Ask no more|Who answers|Wake it|Traces)\.$": "which object, and what happens to it",
}
"""The same for docstrings, where a reader looks for the noun first."""


def docstrings(tree):
    """The constants that stand alone: docstrings, of attributes as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def messages(source):
    """Texts of three words or more outside of docstrings, each f-string as one text."""
    tree = ast.parse(source)
    notes = {id(note) for note in docstrings(tree)}
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    skipped = notes | inside
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pieces = [part.value if isinstance(part, ast.Constant) else "X" for part in node.values]
            yield node.lineno, "".join(map(str, pieces))
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in skipped
        ):
            yield node.lineno, node.value


@lru_cache
def all_messages():
    return [
        (f"{file.relative_to(PACKAGE)}:{line}", text)
        for file in sorted(PACKAGE.rglob("*.py"))
        if "testing" not in file.parts  # providers' own words
        for line, text in messages(file.read_text("utf-8"))
        if len(text.split()) > 2
    ]


@pytest.mark.parametrize("odd", ODD, ids=ODD.values())
def test_messages_are_plain_english(odd):
    found = [f"{place}: {text[:80]}" for place, text in all_messages() if re.search(odd, text)]
    assert found == [], f"better: {ODD[odd]}"


@lru_cache
def all_docstrings():
    return [
        (f"{file.relative_to(PACKAGE)}:{note.lineno}", " ".join(note.value.split()))
        for file in sorted(PACKAGE.rglob("*.py"))
        for note in docstrings(ast.parse(file.read_text("utf-8")))
        if isinstance(note.value, str)
    ]


@pytest.mark.parametrize("odd", ODD_IN_DOCSTRINGS, ids=ODD_IN_DOCSTRINGS.values())
def test_docstrings_name_what_they_are_about(odd):
    found = [f"{place}: {text[:80]}" for place, text in all_docstrings() if re.search(odd, text)]
    assert found == [], f"better: {ODD_IN_DOCSTRINGS[odd]}"
