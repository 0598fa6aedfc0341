"""The project keeps its own promises: sizes, docstrings, and documents that do not rot."""

import ast
import importlib
import re
import runpy
import sys
import tomllib
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "thoughtline"

MODULES = sorted(PACKAGE.rglob("*.py"))
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

MOST_MODULE_LINES = 600  # the limit; a module past 400 is ready to be split
MOST_FUNCTION_LINES = 80

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def short(path):
    return path.relative_to(ROOT).as_posix()


each_module = pytest.mark.parametrize("module", MODULES, ids=short)
each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=short)


# --- The code ----------------------------------------------------------------------------------


@each_module
def test_module_is_small(module):
    lines = len(module.read_text("utf-8").splitlines())
    assert lines <= MOST_MODULE_LINES, f"{short(module)} has {lines} lines: split it"


@each_module
def test_functions_are_small(module):
    long = {
        node.name: length
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > MOST_FUNCTION_LINES
    }
    assert not long, f"functions over {MOST_FUNCTION_LINES} lines in {short(module)}: {long}"


@each_module
def test_module_says_what_it_is(module):
    assert ast.get_docstring(ast.parse(module.read_text("utf-8"))), "no module docstring"


def test_every_folder_is_a_package():
    folders = {path.parent for path in MODULES}
    assert [short(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_nothing_is_left_for_later():
    # Spelled in halves, so that this line is not an offender.
    later = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")
    files = [
        *MODULES,
        *DOCUMENTS,
        *(ROOT / "tests").rglob("*.py"),
        *(ROOT / "benchmarks").rglob("*.py"),
    ]
    assert [short(file) for file in files if later.search(file.read_text("utf-8"))] == []


# --- The documents -----------------------------------------------------------------------------


def prose(document):
    """The text of a document without its fenced blocks."""
    return FENCE.sub("", document.read_text("utf-8"))


def commands(document):
    """What a document tells its reader to type: shell lines and inline code."""
    text = document.read_text("utf-8")
    lines = [
        line.removeprefix("$ ").strip()
        for language, block in FENCE.findall(text)
        if language in {"", "console", "sh", "shell"}
        for line in block.splitlines()
    ]
    return lines + SPAN.findall(prose(document))


def said_after(word, document):
    """The first argument of every `word ...` command in a document."""
    pattern = re.compile(rf"(?:\S*/)?{word} ([a-z][a-z-]*)(?= |$)")
    return {match[1] for command in commands(document) if (match := pattern.match(command))}


def slug(heading):
    """The anchor that Markdown hosts give to a heading."""
    plain = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return plain.strip().replace(" ", "-")


PUBLIC = ("thoughtline", "thoughtline.agents.ui", "thoughtline.testing", "thoughtline.transports")
"""Modules that people may import from, as docs/reference/library.md says."""


def imported_names(source):
    """(module, name) of everything that is imported from our package."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if ours(alias.name))
        elif isinstance(node, ast.ImportFrom) and ours(node.module or ""):
            yield from ((node.module, alias.name) for alias in node.names)


def ours(module):
    return module.partition(".")[0] == "thoughtline"


@pytest.mark.parametrize("example", sorted((ROOT / "examples").rglob("*.py")), ids=short)
def test_examples_import_only_public_names(example):
    if "node_modules" in example.parts:
        return
    for module, name in imported_names(example.read_text("utf-8")):
        assert module in PUBLIC, f"{module} is internal"
        assert not name or name in importlib.import_module(module).__all__


@pytest.mark.parametrize("page", ["README.md", "docs/howto/library.md", "docs/quickstart.md"])
def test_guides_import_only_public_names(page):
    for language, block in FENCE.findall((ROOT / page).read_text("utf-8")):
        if language == "python":
            for module, name in imported_names(block):
                assert module in PUBLIC, f"{module} is internal"
                assert not name or name in importlib.import_module(module).__all__


@each_document
def test_make_targets_exist(document):
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    assert said_after("make", document) <= targets


@each_document
def test_commands_exist(document):
    said = said_after("thoughtline", document)
    if not said:
        return
    from thoughtline.cli import main

    assert isinstance(main, click.Group)
    assert said <= set(main.list_commands(click.Context(main)))


def leads_somewhere(link, document):
    """Whether a link goes out of the project, or to a file (and a heading in it) that exists."""
    if re.match(r"[a-z]+:", link):
        return True
    name, _, anchor = link.partition("#")
    target = document.parent / name if name else document
    if not target.exists():
        return False
    return not anchor or anchor in map(slug, HEADING.findall(prose(target)))


@each_document
def test_links_lead_somewhere(document):
    links = LINK.findall(prose(document))
    assert [link for link in links if not leads_somewhere(link, document)] == []


@each_document
def test_python_examples_run(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "example"}
    for language, block in FENCE.findall(document.read_text("utf-8")):
        if language == "python":
            exec(compile(block, short(document), "exec"), namespace)


def test_readme_starts_with_what_works():
    assert {"run", "test"} <= said_after("make", ROOT / "README.md")


def package_readme():
    return runpy.run_path(str(ROOT / "hatch_build.py"))["package_readme"]


def relative_links(text):
    return [link for link in LINK.findall(text) if not re.match(r"[a-z]+:|#", link)]


def test_a_package_index_gets_a_readme_without_links_to_nowhere():
    text = (ROOT / "README.md").read_text("utf-8")
    assert relative_links(text)
    plain = package_readme()(text)
    assert relative_links(plain) == []
    assert "[" not in re.sub(r"```.*?```", "", plain, flags=re.DOTALL).partition("Three")[2]


def test_a_package_index_gets_links_into_the_repository_once_it_has_an_address():
    make = package_readme()
    host = "https://code.example/thoughtline"
    assert make("[a](docs/a.md#b)", host) == f"[a]({host}/blob/main/docs/a.md#b)"
    assert make("![a](docs/a.svg)", f"{host}/") == f"![a]({host}/raw/main/docs/a.svg)"
    for link in ("[a](https://x.example/y)", "[a](#below)"):
        assert make(link, host) == make(link) == link


def test_what_the_readme_needs_is_in_the_source_distribution():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    shipped = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {"/examples", "/docs", "/Makefile", "/Dockerfile"} <= set(shipped)
    copied = re.search(r"COPY (.*) ./\n", (ROOT / "Dockerfile").read_text("utf-8"))[1].split()
    assert {"pyproject.toml", "hatch_build.py", "README.md"} <= set(copied)
    let_in = re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text("utf-8"), re.MULTILINE)
    assert {*copied, "src"} <= set(let_in)


def test_a_package_index_lists_where_the_project_lives():
    make = runpy.run_path(str(ROOT / "hatch_build.py"))["project_urls"]
    assert make("https://code.example/thoughtline/")["Source"] == "https://code.example/thoughtline"
    assert make("") == {}


def test_no_example_asks_for_a_model_that_is_about_to_end():
    ended = re.compile(r"claude-sonnet-4-5|claude-3")
    files = [*DOCUMENTS, *(ROOT / "examples").rglob("*.py"), *PACKAGE.glob("[ac]*/**/*.py")]
    assert [short(file) for file in files if ended.search(file.read_text("utf-8"))] == []


def test_nothing_asks_for_a_package_that_no_index_has():
    asked = re.compile(r"\binstall[ \w'\"`]* ['\"`]*thoughtline(?:\[[\w,]*\])?['\"`](?! @)")
    files = [*DOCUMENTS, *MODULES]
    assert [short(file) for file in files if asked.search(file.read_text("utf-8"))] == []


def test_every_page_is_in_the_index():
    index = ROOT / "docs" / "index.md"
    decisions = set((ROOT / "docs" / "adr").glob("*.md"))
    pages = set((ROOT / "docs").rglob("*.md")) - decisions - {index}
    assert [short(page) for page in sorted(pages - linked_from(index))] == []
    assert linked_from(index) & decisions == set()
    assert [short(page) for page in sorted(decisions - linked_from(ROOT / "ARCHITECTURE.md"))] == []


def linked_from(page):
    return {(page.parent / link).resolve() for link in LINK.findall(page.read_text("utf-8"))}


def test_decisions_are_numbered_and_complete():
    records = sorted((ROOT / "docs" / "adr").glob("*.md"))
    numbers = [int(record.name[:4]) for record in records]
    assert numbers == sorted(set(numbers))  # a number may be taken before its record is there
    for record in records:
        sections = re.findall(r"^## (\w+)", record.read_text("utf-8"), re.MULTILINE)
        assert sections == ["Status", "Context", "Decision", "Consequences"], short(record)


# --- The architecture --------------------------------------------------------------------------


def test_every_package_is_in_the_architecture():
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    documented = set(re.findall(r"\b[a-z_]+(?:/|\.py\b)", text))
    gateway = {
        f"{path.stem}.py" if path.suffix else f"{path.name}/"
        for path in PACKAGE.iterdir()
        if not path.name.startswith("_") and (path.suffix == ".py" or path.is_dir())
    }
    assert gateway - documented == set()


def test_the_simulators_contract_names_every_package():
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    [layers] = [c["layers"] for c in linter["contracts"] if c["type"] == "layers"]
    gateway = {package for layer in layers for package in re.split(r" [|:] ", layer)}
    *_, simulators = linter["contracts"]
    assert simulators["source_modules"] == ["thoughtline.testing"]
    forbidden = {name.removeprefix("thoughtline.") for name in simulators["forbidden_modules"]}
    assert gateway - forbidden == {"errors", "clock"}


def names(requirements):
    return {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}


def declared():
    """Names of what an installation brings, of the extras, and of what developers need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    return (
        names(project["project"]["dependencies"]),
        names(name for extra in extras for name in extra),
        names(project["dependency-groups"]["dev"]),
    )


def imported(module):
    """Top-level packages that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_every_dependency_has_a_reason():
    reasons = set(SPAN.findall((ROOT / "ARCHITECTURE.md").read_text("utf-8")))
    assert set().union(*declared()) - reasons == set()


@each_module
def test_what_is_imported_is_declared(module):
    needed, extras, _ = declared()
    known = {name.replace("-", "_") for name in needed | extras}
    assert set(imported(module)) - known - sys.stdlib_module_names - {"thoughtline"} == set()
