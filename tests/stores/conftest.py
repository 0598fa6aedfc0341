"""Assertions in the shared suites explain themselves like those in tests."""

import pytest

pytest.register_assert_rewrite("stores.contract", "stores.samples")
