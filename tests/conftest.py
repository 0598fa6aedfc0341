"""What every test shares: the event loop, and how hard hypothesis looks."""

import os

import pytest
from hypothesis import HealthCheck, settings

# Before anything imports them: assertions in the shared suites explain themselves like those in tests.
pytest.register_assert_rewrite("stores.contract", "stores.samples")

# Everything that tests talk to is on this machine: a proxy would only stand in between.
for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
    os.environ.pop(name, None)
    os.environ.pop(name.upper(), None)

# No deadline: a slow machine is not a bug. Not derandomised: each run looks somewhere new, and a
# failure is printed with the example that reproduces it.
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=False,
    max_examples=100,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=15)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"
