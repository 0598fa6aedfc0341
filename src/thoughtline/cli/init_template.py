"""The file of `thoughtline init`: every key, its default and one line about it.

It is made from the settings' structs, so it cannot drift. A line that begins with `#` and a key is
a setting switched off; the value shown is the default, or an example where a person has to choose.
One may be switched on: the keys of a store that is new.
"""

from collections.abc import Mapping
from itertools import groupby

from thoughtline.gateway.settings.keys import ANY, KEYS, TITLES, Key, dotted
from thoughtline.gateway.settings.values import default, spell

_HEAD = """\
# Settings of Thoughtline. Nothing here is needed: every setting has a default.
#
# A line such as `#port = 7337` shows a default; take the `#` away to change it.
# A variable (THOUGHTLINE_PORT, THOUGHTLINE_STORE__URL) beats this file, and a flag beats both.
# "env:NAME" as a value is read from the variable NAME, so that no secret has to stand here.
# `thoughtline doctor` says what is in effect, where it comes from, and what is wrong.
"""
_NAMES = {
    "clients": "alice",
    "upstreams": "deepseek",
    "models": '"claude-sonnet-*"',
    "prices": '"deepseek-v4-*"',
}
"""Examples of names that a person chooses, by the table that holds them."""
_EXAMPLES: Mapping[str, str] = {
    "access.clients.*.key": '"env:ALICE_KEY"',
    "upstreams.*.base_url": '"https://api.deepseek.com"',
    "upstreams.*.env_key": '"DEEPSEEK_API_KEY"',
    "upstreams.*.policy": '"deepseek"',
    "upstreams.*.models": '["deepseek-*"]',
    "upstreams.*.dialects": '["chat"]',
    "models.*.to": '"deepseek/deepseek-v4-pro"',
    "upstreams.*.headers.*": '{ x-team = "blue" }',
    "upstreams.*.endpoints.*": '{ messages = "https://api.deepseek.com/anthropic/v1" }',
}


def template(*, store_keys: str = "") -> str:
    """The file; `store_keys` is what `store.keys` is set to."""
    on = {"store.keys": store_keys} if store_keys else {}
    lines = [_HEAD, ""]
    for table, title in TITLES.items():
        lines.append(f"# {title}")
        for heading, keys in groupby((key for key in KEYS if key.path[0] == table), _heading):
            lines += [heading, *(line for key in keys for line in _setting(key, on)), ""]
    return "\n".join(lines)


def _heading(key: Key) -> str:
    """The table that a key stands in; one whose name a person chooses is switched off."""
    *path, _ = _place(key)
    names = [_NAMES[path[at - 1]] if name == ANY else name for at, name in enumerate(path)]
    return f"{'#' if ANY in path else ''}[{dotted(names)}]"


def _setting(key: Key, on: Mapping[str, str]) -> tuple[str, str]:
    if chosen := on.get(dotted(key.path)):
        return f"# {key.about}", f"{_place(key)[-1]} = {spell(chosen)}"
    value = _EXAMPLES.get(dotted(key.path)) or default(key)
    return f"# {key.about}", f"#{_place(key)[-1]} = {value}"


def _place(key: Key) -> tuple[str, ...]:
    """A key's path; that of a dictionary is the path of its entries without their names."""
    return key.path[:-1] if key.path[-1] == ANY else key.path
