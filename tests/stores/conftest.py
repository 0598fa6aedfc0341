"""What these tests share."""

import pytest

from support.fragile_store import Fragile


@pytest.fixture
async def fragile():
    return Fragile()
