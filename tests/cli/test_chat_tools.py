"""The tools that a chat on a terminal offers."""

import pytest

from thoughtline.cli.chat import MAX_BYTES, reading_tools

pytestmark = pytest.mark.usefixtures("home")


def test_the_tools_look_at_one_folder_only(home):
    here = home / "here"
    (here / "a.txt").write_text("hello")
    (here / "big.txt").write_text("x" * (MAX_BYTES + 1))
    (here / "data.bin").write_bytes(b"a\0b")
    (here / "sub").mkdir()
    (here / "way-out").symlink_to(home)
    (home / "secret.txt").write_text("no")
    read, names = (tool.function for tool in reading_tools(here))
    assert read("a.txt") == "hello"
    assert read("big.txt").endswith("bytes are shown]")
    assert read("data.bin") == "[a binary file, not shown]"
    assert names() == "a.txt\nbig.txt\ndata.bin\nsub/\nway-out/"
    assert names("sub") == "(empty)"
    for path in ("../secret.txt", "/etc/passwd", "way-out/secret.txt", str(home / "secret.txt")):
        with pytest.raises(PermissionError, match="outside the folder"):
            read(path)
    with pytest.raises(PermissionError):
        names("..")
