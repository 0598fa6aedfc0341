"""The commented file that `thoughtline init` writes: every key, its default, one line about it.

Made from the structs, so it cannot drift. A line that begins with `#` and a key is a setting
switched off; the value shown is the default, or an example where a person has to choose.
"""

from collections.abc import Iterator, Mapping

from thoughtline.settings.schema import ANY, TITLES, TREE, Key, Tree, dotted
from thoughtline.settings.values import spell

_HEAD = """\
# Settings of Thoughtline. Nothing here is needed: every setting has a default.
#
# A line such as `#port = 7337` shows a default; take the `#` away to change it.
# A variable (THOUGHTLINE_PORT, THOUGHTLINE_STORE__URL) beats this file, and a flag beats both.
# "env:NAME" as a value is read from the variable NAME, so that no secret has to stand here.
# `thoughtline doctor` says what is in effect, where it comes from, and what is wrong.
"""
_NAMES = {"clients": "alice", "upstreams": "deepseek"}
_EXAMPLES: Mapping[str, str] = {
    "clients.key": '"env:ALICE_KEY"',
    "upstreams.base_url": '"https://api.deepseek.com"',
    "upstreams.env_key": '"DEEPSEEK_API_KEY"',
    "upstreams.policy": '"deepseek"',
    "upstreams.models": '["deepseek-*"]',
    "headers": '{ x-team = "blue" }',
    "endpoints": '{ messages = "https://api.deepseek.com/anthropic/v1" }',
}


def template() -> str:
    """The file."""
    lines = [_HEAD]
    for table, branch in TREE.items():
        lines.append("")
        lines.append(f"# {TITLES[table]}")
        lines += _table(branch, (table,))
    return "\n".join(lines) + "\n"


def default(key: Key) -> str:
    """A key's default as it is written."""
    return f'"{key.shown}"' if key.shown else spell(key.default, key.unit)


def _table(tree: Tree, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(tree, Key):
        return
    if ANY in tree:
        yield from _named(tree[ANY], path)
        return
    yield f"[{dotted(path)}]"
    later: list[str] = []
    for name, branch in tree.items():
        if isinstance(branch, Key):
            yield f"# {branch.about}"
            yield f"#{name} = {default(branch)}"
        else:
            later += ["", *_table(branch, (*path, name))]
    yield from later


def _named(tree: Tree, path: tuple[str, ...]) -> Iterator[str]:
    """An example of a table whose name a person chooses, switched off."""
    if isinstance(tree, Key):
        return
    yield f"#[{dotted(path)}.{_NAMES[path[-1]]}]"
    for name, branch in tree.items():
        key = branch if isinstance(branch, Key) else branch[ANY]
        if not isinstance(key, Key):
            continue
        example = _EXAMPLES.get(f"{path[-1]}.{name}") or _EXAMPLES.get(name)
        yield f"# {key.about}"
        yield f"#{name} = {example or default(key)}"
