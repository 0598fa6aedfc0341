"""What these tests share."""

import pytest

from support.settings import Place


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)
