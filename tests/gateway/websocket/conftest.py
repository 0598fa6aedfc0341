"""What these tests share."""

import pytest

from thoughtline.testing import serving


@pytest.fixture(scope="module")
def sims():
    with serving("openai", "openai-ws", "codex", "xai", "azure", "deepseek-responses") as served:
        yield served
