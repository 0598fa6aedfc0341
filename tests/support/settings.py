"""A place to load settings in: a folder, a home and an environment."""

import json
from datetime import date, datetime, time

import pytest

from thoughtline.errors import SettingsError, ThoughtlineError
from thoughtline.gateway.settings import (
    Settings,
    load,
    read,
)

SECRET = "sk-hush-0123456789"


class Place:
    """A working directory, a home and an environment."""

    def __init__(self, root):
        self.cwd = root / "work"
        self.home = root / "home"
        self.cwd.mkdir(exist_ok=True)
        self.env = {"HOME": str(self.home)}

    def project(self, text):
        (self.cwd / "thoughtline.toml").write_text(text, "utf-8")

    def user(self, text):
        folder = self.home / "config"
        folder.mkdir(parents=True, exist_ok=True)
        self.env["XDG_CONFIG_HOME"] = str(folder)
        (folder / "thoughtline").mkdir(exist_ok=True)
        (folder / "thoughtline" / "thoughtline.toml").write_text(text, "utf-8")

    def load(self, flags=None, **env):
        return load(flags or {}, {**self.env, **env}, self.cwd)

    def read(self, flags=None, **env):
        return read(flags or {}, {**self.env, **env}, self.cwd)

    def refused(self, flags=None, **env):
        with pytest.raises(SettingsError) as caught:
            self.load(flags, **env)
        assert isinstance(caught.value, ThoughtlineError)
        assert caught.value.__cause__ is None
        return str(caught.value)

    def outcome(self, **env):
        """What is wrong, or nothing; and never any other exception."""
        try:
            assert isinstance(self.load(**env), Settings)
        except SettingsError as error:
            return str(error)
        return ""


def written(value):
    """A value in TOML."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case datetime() | date() | time():
            return value.isoformat()
        case list():
            return f"[{', '.join(map(written, value))}]"
        case dict():
            return "{" + ", ".join(f"{written(k)} = {written(v)}" for k, v in value.items()) + "}"
        case _:
            return str(value)
