"""Which of the tools that a request declares a sensible model would call, and with what.

Only what reads is called: a file, a folder, a search, or a command that changes nothing. Any other
tool is called where the user speaks of it, with values from the user's words.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from thoughtline.testing.sims.values import Tool, Use

FILE = re.compile(r"(?<![\w/.-])(?:[\w.~-]*/)*[\w.-]+\.[A-Za-z][A-Za-z0-9]{0,5}\b(?!/)")
"""A path with a name that has an ending: `notes.md`, `src/app.py`."""
_QUOTED = re.compile(r"[\"'`“]([^\"'`”]{1,80})[\"'`”]")
_NAMED = re.compile(r"\b(?:in|for|of|about|at|to)\s+((?:[A-Z][\w-]*\s?)+)")
_FILES = re.compile(
    r"(?i)\b(files?|folders?|director(?:y|ies)|projects?|repo(?:sitory)?|list|ls|here)\b"
)
_SEARCH = re.compile(r"(?i)\b(?:search|grep|find|look)\b(?: for)?\s+(.+)")
_STATE = re.compile(r"(?i)\b(git|changed|changes|diff|commit)\b")
_TIME = re.compile(r"(?i)\b(time|date|today)\b")
_SMALL = {"get", "set", "the", "a", "an", "of", "to", "for", "and", "is", "in", "my", "do", "what"}

_READERS = re.compile(r"(?i)^(read|view|cat|open|show)(_?(many_?|text_?)?files?)?$")
_LISTERS = re.compile(r"(?i)^(ls|list|list_?(dir|directory|files?|folder)|glob)$")
_SEARCHERS = re.compile(r"(?i)^(grep|search|search_?(text|files?|file_content)|rg|ripgrep)\w*$")
_SHELLS = re.compile(
    r"(?i)^(bash|shell|sh|run|terminal|exec(_command)?|run_?(shell_?)?command"
    r"|execute(_?(bash|command))?|local_shell|shell_command)$"
)


class Wish(NamedTuple):
    """A call, and what it is good for: the thought says so."""

    use: Use
    purpose: str


def wishes(asked: str, tools: Sequence[Tool], folder: str = "") -> list[Wish]:
    """What to call first for these words, in this folder; nothing if no tool is of use."""
    files = list(dict.fromkeys(FILE.findall(asked)))[:2]
    if files and (found := [w for file in files if (w := _read(file, tools, folder))]):
        return found
    if (match := _SEARCH.search(asked)) and (wish := _search(match[1], tools)):
        return [wish]
    for words, command, purpose in (
        (_STATE, "git status --short", "see what has changed"),
        (_TIME, "date", "look at the clock"),
    ):
        if words.search(asked) and (wish := _shell(command, purpose, tools)):
            return [wish]
    if wish := _spoken_of(asked, tools):
        return [wish]
    if _FILES.search(asked) and (wish := _list(tools, folder)):
        return [wish]
    return []


def follow_up(text: str, tools: Sequence[Tool], folder: str = "") -> Wish | None:
    """What to read when a listing has come back: the README, if there is one."""
    found = re.search(r"(?:[\w./~-]*/)?README(?:\.\w+)?\b", text)
    return _read(found[0], tools, folder) if found else None


def _read(file: str, tools: Sequence[Tool], folder: str) -> Wish | None:
    if tool := _first(_READERS, tools):
        return Wish(_call(tool, path=_place(file, tool, folder)), f"read {file}")
    return _shell(f"cat {shlex.quote(file)}", f"read {file}", tools)


def _list(tools: Sequence[Tool], folder: str) -> Wish | None:
    if tool := _first(_LISTERS, tools):
        known = {"pattern": "*"} if "pattern" in _properties(tool) else {}
        use = _call(tool, **(known or {"path": _place(".", tool, folder)}))
        return Wish(use, "see which files there are")
    return _shell("ls", "see which files there are", tools)


def _search(words: str, tools: Sequence[Tool]) -> Wish | None:
    quoted = _QUOTED.search(words)
    wanted = quoted[1] if quoted else re.split(r"\s+in\b|[.?!]", words)[0].strip()
    if wanted and (tool := _first(_SEARCHERS, tools)):
        return Wish(_call(tool, pattern=wanted), f"search for “{wanted}”")
    return None


def _shell(command: str, purpose: str, tools: Sequence[Tool]) -> Wish | None:
    tool = _first(_SHELLS, tools)
    return Wish(_call(tool, command=command, purpose=purpose), purpose) if tool else None


def _spoken_of(asked: str, tools: Sequence[Tool]) -> Wish | None:
    """A call of a tool whose name has a word that the user says: `get_weather` for weather."""
    words = {word.lower() for word in re.findall(r"[A-Za-z]{3,}", asked)} - _SMALL
    for tool in tools:
        named = re.sub(r"([a-z])([A-Z])", r"\1 \2", tool.name).lower()
        if words & set(re.findall(r"[a-z]{3,}", named)) - {"file", "read", "list", "run", "tool"}:
            return Wish(_call(tool, asked=asked), f"ask `{tool.name}`")
    return None


def _first(names: re.Pattern[str], tools: Sequence[Tool]) -> Tool | None:
    """The first tool with such a name; a server's prefix (`fs__read_file`) does not count."""
    for tool in tools:
        if names.match(re.split(r"__|[.:]", tool.name)[-1]) and isinstance(tool.schema, dict):
            return tool
    return None


# -- arguments -----------------------------------------------------------------------------------

_MEANING: Mapping[str, str] = {
    "path": r"(?:file)?paths?|files?|filename|dir|directory|folder|uri|target",
    "pattern": r"pattern|query|regex|glob|search|q|keyword",
    "command": r"command|cmd|script",
    "purpose": r"description|explanation|justification|reason|purpose|title",
}


def _properties(tool: Tool) -> dict[str, Any]:
    properties = tool.schema.get("properties") if isinstance(tool.schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def _place(file: str, tool: Tool, folder: str) -> str:
    """A path as the tool wants it: some take only absolute ones."""
    if folder and not file.startswith("/") and "absolute" in str(tool.schema).lower():
        return folder if file == "." else f"{folder.rstrip('/')}/{file}"
    return file


def _call(tool: Tool, **known: str) -> Use:
    """A call with everything that the tool requires, and no more than that and what is known."""
    properties = _properties(tool)
    listed = tool.schema.get("required") if isinstance(tool.schema, dict) else None
    required = [name for name in listed if name in properties] if isinstance(listed, list) else []
    values: dict[str, Any] = {}
    for name, wanted in properties.items():
        meant = _meaning(name)
        told = meant in known and meant != "purpose" and meant not in _given(values)
        if told or (meant in known and name in required):
            values[name] = _fit(known[meant], wanted)
        elif name in required:
            values[name] = _fit(None, wanted, asked=known.get("asked", ""))
    return Use(tool.name, json.dumps(values, ensure_ascii=False))


def _given(values: Mapping[str, Any]) -> set[str]:
    return {_meaning(name) for name in values}


def _meaning(name: str) -> str:
    """What a parameter with this name is for; itself if nothing is known of it."""
    words = re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().split("_")
    for meaning, names in _MEANING.items():
        if any(re.fullmatch(names, word) for word in words):
            return meaning
    return name


def _fit(text: str | None, schema: Any, *, asked: str = "") -> Any:
    """A value of the schema's type, from a text or from what the user has said."""
    schema = schema if isinstance(schema, dict) else {}
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return next((one for one in choices if str(one).lower() in asked.lower()), choices[0])
    kind = schema.get("type")
    kind = next((k for k in kind if k != "null"), None) if isinstance(kind, list) else kind
    if str(kind).lower() == "array":
        return _listed(text, schema, asked)
    number = re.search(r"\d+(?:\.\d+)?", asked)
    made: Mapping[str, Callable[[], Any]] = {
        "boolean": lambda: False,
        "integer": lambda: int(float(number[0])) if number else 1,
        "number": lambda: float(number[0]) if number else 1.0,
        "object": dict,
        "null": lambda: None,
    }
    if maker := made.get(str(kind).lower()):
        return maker()
    return text if text is not None else _words(asked)


def _listed(text: str | None, schema: Mapping[str, Any], asked: str) -> list[Any]:
    """A list: a command in words for a shell that takes it so, else one value."""
    items = schema.get("items")
    if text is not None and isinstance(items, dict) and isinstance(items.get("properties"), dict):
        return [
            {name: _fit(text, one) for name, one in items["properties"].items() if _names(name)}
        ]
    if text is None:
        return [_fit(None, items, asked=asked)] if schema.get("minItems") else []
    return ["bash", "-lc", text] if " " in text or text in ("ls", "date") else [text]


def _names(name: str) -> bool:
    return _meaning(name) in ("path", "command", "pattern")


def _words(asked: str) -> str:
    """What a question is about: something quoted, a name, or the question itself."""
    for pattern in (_QUOTED, _NAMED):
        if match := pattern.search(asked):
            return match[1].strip()
    return asked.strip().rstrip("?.!")[:80]
