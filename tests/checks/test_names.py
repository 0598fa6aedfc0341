"""Names that can be searched for: no two public classes share one, and tests bear their package's.

`make lint` runs these two checks.
"""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "thoughtline"
TESTS = ROOT / "tests"

SHARED: dict[str, str] = {}
"""Public classes that share a name all the same → why they must."""


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


def test_public_classes_do_not_share_a_name():
    shared = {name: where for name, where in public_classes().items() if len(where) > 1}
    assert {name: where for name, where in shared.items() if name not in SHARED} == {}
    assert SHARED.keys() <= shared.keys(), "an exception that is not needed any more"


@pytest.mark.parametrize("package", sorted({module.parent for module in modules()}), ids=str)
def test_the_tests_of_a_package_are_found_by_its_name(package):
    """A module has tests of its own where it is pure, or is covered by its package's contract."""
    assert any((TESTS / package).glob("test_*.py")), f"tests/{package}/ has no test"
