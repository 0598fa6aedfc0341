"""The reference says what the code does; `make docs` brings it up to date."""

import shutil
import subprocess
import sys
from pathlib import Path

from thoughtline.cli import COMMANDS
from thoughtline.cli.pages import PARTS, rewrite
from thoughtline.settings.schema import ANY, KEYS, dotted

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [page for page in DOCS.rglob("*.md") if "<!-- made: " in page.read_text("utf-8")]


def test_pages_are_up_to_date(tmp_path):
    for page in PAGES:
        shutil.copy(page, tmp_path)
    # In a process of its own: click remembers how a command was last asked for its help.
    code = [sys.executable, "-m", "thoughtline.cli.pages", str(tmp_path)]
    drifted = subprocess.run(code, capture_output=True, text=True, check=True).stdout
    assert drifted == "", "these pages drifted from the code: run `make docs`"


def test_every_part_is_on_a_page():
    texts = "".join(page.read_text("utf-8") for page in PAGES)
    for part in PARTS:
        assert f"<!-- made: {part} -->" in texts


def test_every_key_and_command_is_documented():
    settings = PARTS["settings"]()
    for key in KEYS:
        if ANY not in key.path:
            assert f"`{dotted(key.path)}`" in settings
    for name in ("access.clients.NAME.key", "upstreams.NAME.headers.HEADER"):
        assert f"`{name}`" in settings
    assert all(f"\n## {name}\n" in PARTS["commands"]() for name in COMMANDS)


def test_only_parts_are_rewritten(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- made: names -->\nold\n<!-- end -->\nb\n")
    (tmp_path / "other.md").write_text("c\n")
    assert rewrite(tmp_path) == [page]
    text = page.read_text()
    assert text.startswith("a\n<!-- made: names -->\n")
    assert text.endswith("\n<!-- end -->\nb\n")
    assert "old" not in text
    assert rewrite(tmp_path) == []
