"""What `make test` leaves out of the matrix, and what it must not."""

from itertools import product
from pathlib import Path

from e2e.cover import Case, cover
from thoughtline.testing import PROVIDERS

TESTS = (("create", "whole"), ("create", "stream"), ("helper", ""))
NAMES = ("a", "b", "c", "d", "e")
CASES = [
    Case("sdk", test, options, provider, way)
    for (test, options), provider, way in product(TESTS, NAMES, ("gateway", "transport"))
]


def test_every_provider_is_reached_through_the_gateway():
    assert {case.provider for case in cover(CASES) if case.way == "gateway"} == set(NAMES)


def test_every_client_reaches_its_providers():
    both = [*CASES, *(case._replace(client="other") for case in CASES)]
    kept = {(case.client, case.provider) for case in cover(both) if case.way == "gateway"}
    assert kept == set(product(("sdk", "other"), NAMES))


def test_every_manner_is_used_also_with_a_single_provider():
    alone = [case for case in CASES if case.provider == "a"]
    kept = [case for case in cover(alone) if case.way == "gateway"]
    assert {(case.test, case.options) for case in kept} == set(TESTS)


def test_manners_take_turns():
    kept = [case for case in cover(CASES) if case.way == "gateway"]
    assert len(kept) == len(NAMES)
    assert {(case.test, case.options) for case in kept} == set(TESTS)


def test_every_test_takes_the_transport_once():
    kept = [case.test for case in cover(CASES) if case.way == "transport"]
    assert sorted(kept) == ["create", "helper"]


def test_the_page_names_every_client_and_every_provider():
    here = Path(__file__).parent
    page = (here.parents[1] / "docs" / "reference" / "tested-clients.md").read_text("utf-8")
    tests = {path.stem for path in here.glob("test_*.py")} - {Path(__file__).stem}
    assert {name for name in (*tests, *PROVIDERS) if f"`{name}`" not in page} == set()
