"""What a path asks for behind the upstream's name: other names of models, and how hard to think.

`/u/deepseek;claude-*=deepseek-v4-pro;effort=high/v1/messages`: a name like `claude-haiku-4-5` means
`deepseek-v4-pro` in these requests. So a program that has names built in can be given a base URL
that fits it, and nothing has to be set in the gateway, nor taken back afterwards.
"""

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote, unquote

from msgspec import Struct

from thoughtline.dialects.params import EFFORTS
from thoughtline.engine.model_names import ModelNames, ModelRow
from thoughtline.errors import SettingsError, did_you_mean

_EFFORT = "effort"
_REMEMBERED = 128  # paths: those of one client are always the same few


class PathOptions(Struct, frozen=True):
    """The options of one path."""

    names: ModelNames = ModelNames()
    effort: str = ""

    def served(self, model: str) -> str:
        """The model that a name stands for: another one, or itself."""
        row = self.names.find(model)
        return row.model if row is not None else model


def write_options(names: Mapping[str, str], effort: str = "") -> str:
    """Options as they stand in a path, behind the upstream's name. Raises `SettingsError`."""
    _check(effort)
    rows = [(pattern, model) for pattern, model in names.items()]
    rows += [(_EFFORT, effort)] if effort else []
    return "".join(f";{quote(name, safe='*')}={quote(value, safe='')}" for name, value in rows)


@lru_cache(_REMEMBERED)
def read_options(text: str) -> PathOptions:
    """What options say. Raises `SettingsError` for an effort that there is not."""
    effort, rows = "", []
    for option in text.split(";"):
        name, is_set, value = (unquote(part) for part in option.partition("="))
        if not is_set or not value:
            continue
        if name == _EFFORT:
            effort = value
        else:
            rows.append(ModelRow(pattern=name, upstream="", model=value))
    _check(effort)
    return PathOptions(ModelNames(rows), effort)


def _check(effort: str) -> None:
    if effort and effort not in EFFORTS:
        hint = did_you_mean(effort, EFFORTS, f"expected one of {', '.join(EFFORTS)}")
        raise SettingsError(f"there is no effort {effort!r}; {hint}")
