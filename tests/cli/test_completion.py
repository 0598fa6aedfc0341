"""The shell's completion: commands, and the names of tools."""

import pytest
from click.testing import CliRunner

from thoughtline.cli import main


@pytest.mark.parametrize(
    ("words", "offers"),
    [
        ("thoughtline se", {"serve", "sessions"}),
        ("thoughtline launch c", {"claude", "codex"}),
        ("thoughtline env o", {"opencode"}),
    ],
)
def test_bash_completes(words, offers):
    given = {
        "_THOUGHTLINE_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    shown = CliRunner().invoke(main, prog_name="thoughtline", env=given).output
    assert {line.partition(",")[2] for line in shown.split()} == offers
