"""Names that can be searched for: no two public classes share one, and a module's tests bear its own.

`make lint` runs these two checks.
"""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "thoughtline"
TESTS = ROOT / "tests"

SHARED: dict[str, str] = {}
"""Public classes that share a name all the same → why they must."""

UNTESTED = {
    "dialects/base.py": "protocols and values; every dialect passes `dialects/contract.py`",
    "providers/families.py": "columns and rows of the table, which `test_contracts` looks at",
    "providers/policy.py": "a value: a row of the table, which `test_contracts` looks at",
    "engine/caller.py": "protocols; the gateway, the transports and the agents are callers",
    "stores/sealing/vault.py": "protocols and values; the stores' own vaults are tested",
    "stores/base.py": "protocols and values; every store passes `stores/contract.py`",
}
"""Modules without a test file of their own → why."""


def modules():
    """The modules of the product; the simulators are tests themselves."""
    return [
        path.relative_to(PACKAGE)
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] != "testing" and not path.stem.startswith("__")
    ]


def public_classes():
    """Name → the modules that have a public class of this name."""
    found = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        where = path.relative_to(PACKAGE)
        if where.parts[0] == "testing":
            continue
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(where.as_posix())
    return found


def has_tests(module):
    """Whether a test file in the mirrored folder bears the module's name.

    `dialects/chat/patch.py` has `dialects/chat/test_patch*.py` or `dialects/test_chat_patch*.py`.
    """
    stem, folder = module.stem.strip("_"), TESTS / module.parent
    own = [(folder, stem), (folder.parent, f"{module.parent.name}_{stem}")]
    return any(
        re.fullmatch(rf"test_{name}(_.+)?", path.stem)
        for place, name in own
        for path in place.glob("test_*.py")
    )


def test_public_classes_do_not_share_a_name():
    shared = {name: where for name, where in public_classes().items() if len(where) > 1}
    assert {name: where for name, where in shared.items() if name not in SHARED} == {}
    assert SHARED.keys() <= shared.keys(), "an exception that is not needed any more"


@pytest.mark.parametrize("module", modules(), ids=str)
def test_the_tests_of_a_module_are_found_by_its_name(module):
    excepted = module.as_posix() in UNTESTED
    assert has_tests(module) is not excepted, (
        f"tests/{module.parent}/ has no test_{module.stem.strip('_')}*.py"
        if not excepted
        else "an exception that is not needed any more"
    )


def test_exceptions_are_about_modules_that_exist():
    assert UNTESTED.keys() <= {module.as_posix() for module in modules()}
