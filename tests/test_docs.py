"""The reference says what the code does; `make docs` brings it up to date."""

import importlib
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import thoughtline
from thoughtline.cli import COMMANDS
from thoughtline.gateway.settings.keys import ANY, KEYS, dotted

DOCS = Path(__file__).parents[1] / "docs"
PARTS, rewrite = map(runpy.run_path(str(DOCS / "generate.py")).get, ("PARTS", "rewrite"))
PAGES = [page for page in DOCS.rglob("*.md") if "<!-- made: " in page.read_text("utf-8")]


def test_pages_are_up_to_date(tmp_path):
    for page in PAGES:
        shutil.copy(page, tmp_path)
    # In a process of its own: click remembers how a command was last asked for its help.
    code = [sys.executable, DOCS / "generate.py", tmp_path]
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
    commands = PARTS["commands"]()
    assert [name for name in COMMANDS if commands.count(f"\n### {name}\n") != 1] == []


def test_every_public_name_is_documented():
    page = PARTS["library"]()
    errors = page.partition("## Errors")[2]
    for name in thoughtline.__all__:
        if not name.startswith("_"):
            assert f"\n### {name}\n" in page or f"- `{name}`" in errors, name
    for module in ("thoughtline.agents.ui", "thoughtline.transports", "thoughtline.testing"):
        for name in importlib.import_module(module).__all__:
            assert f"| `{name}` |" in page.partition(f"## {module}\n")[2]


def test_fields_methods_and_arguments_are_documented():
    page = PARTS["library"]()
    for text in (
        "keep_last: int | None = None  # optional thoughts of the last ",
        "run(*message: str | Text | Blob) -> Run",
        "raise_for_outcome() -> Answer",
        "    max_exchanges: int=50,  # exchanges that one run may take",
        "  - `SessionNotFound`",
    ):
        assert text in page, text


def test_tests_that_pages_name_are_there():
    there = {path.stem for path in (DOCS.parent / "tests").rglob("test_*.py")}
    for page in DOCS.rglob("*.md"):
        named = set(re.findall(r"`(test_\w+)`", page.read_text("utf-8")))
        assert named - there == set(), page.name


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
