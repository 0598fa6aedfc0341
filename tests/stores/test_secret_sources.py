"""Where a secret is read from."""

import sys

import pytest

from thoughtline.errors import StoreError
from thoughtline.stores.secret_sources import is_source, read_source


def test_a_file_a_variable_and_a_command(tmp_path):
    file = tmp_path / "secret"
    file.write_bytes(b"of a file")
    file.chmod(0o644)
    assert read_source(f"file:{file}", {}) == b"of a file"
    assert file.stat().st_mode & 0o777 == 0o600
    assert read_source("env:NAME", {"NAME": "of a variable"}) == b"of a variable"
    assert read_source(f"exec:{sys.executable} -c 'print(42)'", {}).strip() == b"42"


@pytest.mark.parametrize("text", ["", "file:", "hush", "env: ", "vault:x"])
def test_what_names_no_place(text):
    assert not is_source(text)
    with pytest.raises(StoreError, match="expected file:PATH"):
        read_source(text, {})


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("file:/not/there", "cannot be read"),
        ("env:NOT_SET", "NOT_SET is not set"),
        ("exec:/not/there", "cannot be run"),
        ("exec:false", "ended with 1"),
        ("exec:'", "cannot be run"),
    ],
)
def test_a_place_with_nothing_in_it(source, why):
    with pytest.raises(StoreError, match=why):
        read_source(source, {})
