"""What these tests share."""

import pytest

from thoughtline.testing import serving


@pytest.fixture(scope="module")
def sims():
    with serving("deepseek") as served:
        yield served
