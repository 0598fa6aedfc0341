"""A user's folders, as the environment that is given has them."""

import sys
from pathlib import Path

import pytest

from thoughtline.engine.folders import make_store_folder, store_file, user_folder
from thoughtline.errors import SettingsError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems, other folders")


@pytest.mark.parametrize(
    ("kind", "env", "place"),
    [
        ("config", {"XDG_CONFIG_HOME": "/x", "HOME": "/home/me"}, "/x/thoughtline"),
        ("data", {"XDG_DATA_HOME": " /x ", "HOME": "/home/me"}, "/x/thoughtline"),
        ("config", {"HOME": "/home/me"}, "/home/me/.config/thoughtline"),
        ("data", {"HOME": "/home/me"}, "/home/me/.local/share/thoughtline"),
        ("data", {"XDG_DATA_HOME": "not/absolute", "HOME": "/h"}, "/h/.local/share/thoughtline"),
    ],
)
def test_where_they_are(kind, env, place):
    assert user_folder(kind, env) == Path(place)


@pytest.mark.parametrize("kind", ["config", "data"])
def test_without_a_home_the_system_is_asked(kind):
    assert user_folder(kind, {}).name == "thoughtline"
    assert user_folder(kind, {}).is_absolute()


@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("sqlite:///a.db", Path("a.db")),
        ("sqlite:////var/a.db?timeout=10", Path("/var/a.db")),
        ("sqlite:///", None),
        ("memory://", None),
        ("postgresql://db/x", None),
    ],
)
def test_the_file_of_a_store(url, file):
    assert store_file(url) == file


def test_the_folder_of_a_store_is_made_for_its_user_only(tmp_path):
    make_store_folder("memory://")
    make_store_folder(f"sqlite:///{tmp_path}/a/b/c.db?timeout=1")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match=r"`store\.url`, .*file, cannot be made"):
        make_store_folder(f"sqlite:///{tmp_path}/file/c.db")
