"""What these tests share."""

import pytest

from support.gateway_process import Process
from thoughtline.testing import serving


@pytest.fixture
def gateway(tmp_path):
    with serving("deepseek") as sims:
        process = Process(tmp_path, sims.root("deepseek"))
        process.sims = sims
        yield process
        process.kill()


@pytest.fixture(scope="module")
def sims():
    with serving("deepseek", "claude", "openai", "gemini") as served:
        yield served
