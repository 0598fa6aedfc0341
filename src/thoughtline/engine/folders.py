"""Where the operating system wants a user's settings and data, and where a store has its file."""

import sys
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from urllib.parse import urlsplit

import platformdirs

from thoughtline.errors import SettingsError
from thoughtline.stores import is_shared

APP = "thoughtline"
_USUAL = {"config": ".config", "data": ".local/share", "state": ".local/state"}


def user_folder(kind: str, env: Mapping[str, str]) -> Path:
    """The user's `config`, `data` or `state` folder for us, as this environment has it.

    platformdirs knows every system, but asks the process for its environment. So what an
    environment can say is read from the one that was given, and the rest is left to it.
    """
    chosen = env.get(f"XDG_{kind.upper()}_HOME", "").strip()
    home = env.get("HOME", "").strip()
    if sys.platform != "win32":
        if Path(chosen).is_absolute():
            return Path(chosen) / APP
        if Path(home).is_absolute():
            mac = sys.platform == "darwin"
            return Path(home) / ("Library/Application Support" if mac else _USUAL[kind]) / APP
    folders = platformdirs.PlatformDirs(APP, appauthor=False)
    return Path(getattr(folders, f"user_{kind}_dir"))


def store_file(url: str) -> Path | None:
    """The file of a `sqlite:///` URL; None for a store that is no file."""
    path = url.partition("?")[0].removeprefix("sqlite:///")
    return Path(path) if path and url.startswith("sqlite:///") else None


def spill_file(url: str, env: Mapping[str, str]) -> Path | None:
    """What the files begin with that hold turns which a store could not take; None: it has none.

    Beside a store's file; for a store that machines share, in the user's data folder of each.
    """
    file = store_file(url)
    if file is not None or not is_shared(url):
        return file
    place = urlsplit(url)
    name = f"{place.hostname}{place.path}"  # without the password
    digest = blake2b(name.encode(), digest_size=6).hexdigest()
    return user_folder("data", env) / f"shared-{digest}"


def make_store_folder(url: str) -> None:
    """Make the folder of a store's file, for this user only. Raises `SettingsError`."""
    file = store_file(url)
    if file is None:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise SettingsError(
            f"the folder of `store.url`, {file.parent}, cannot be made "
            f"({error.strerror or error}); choose another place"
        ) from error
