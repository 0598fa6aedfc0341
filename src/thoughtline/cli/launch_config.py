"""Our entry in a tool's own JSON file: put in with a backup, and taken back.

The file is replaced in one step, so an interruption leaves the old one or the new one. What the
user changes in between stays when the entry is taken back.
"""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from thoughtline.cli.launch_tools import PROVIDER
from thoughtline.errors import SettingsError

SUFFIX = ".before-thoughtline"
_MISSING: Any = object()


def backup_of(file: Path) -> Path:
    """Where the file's content is kept as it was; empty: there was no file."""
    return file.with_name(file.name + SUFFIX)


def with_entry(file: Path, path: Sequence[str], value: Any) -> str:
    """The file's text with the entry in it. Raises `SettingsError` if it cannot be read."""
    return _text(_with(_read(file), path, value, file)).decode()


def write_entry(file: Path, path: Sequence[str], value: Any) -> bool:
    """Put the entry in; whether anything had to change. The first time, a backup is made."""
    content = _read(file)
    if _value(content, path) == value:
        return False
    text = _text(_with(content, path, value, file))
    backup = backup_of(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    if not backup.exists():
        _replace(backup, file.read_bytes() if file.exists() else b"")
    _replace(file, text)
    return True


def restore_entry(file: Path, path: Sequence[str], value: Any) -> bool:
    """Take the entry back; whether there was one. A file that nobody else changed is as before.

    An entry under our own name is ours, any other one if it has the value that was written.
    """
    backup = backup_of(file)
    content, named = _read(file), path[-1] == PROVIDER
    before = backup.read_bytes() if backup.exists() else None
    found = _value(content, path)
    if found is _MISSING or not (named or (before is not None and found == value)):
        backup.unlink(missing_ok=True)  # the user took it back, or chose otherwise since
        return False
    earlier = _parsed(before or b"", backup)
    previous = _MISSING if named else _value(earlier, path)
    if previous is _MISSING:
        _remove(content, path, earlier)
    else:
        content = _with(content, path, previous, file)
    if before is None or content != earlier:
        _replace(file, _text(content))
    elif before:
        _replace(file, before)
    else:
        file.unlink()
    backup.unlink(missing_ok=True)
    return True


def _read(file: Path) -> dict[str, Any]:
    try:
        return _parsed(file.read_bytes(), file)
    except FileNotFoundError:
        return {}


def _parsed(data: bytes, file: Path) -> dict[str, Any]:
    try:
        content = json.loads(data.decode("utf-8-sig")) if data.strip() else {}
    except ValueError as error:
        raise SettingsError(
            f"{file} is not plain JSON ({error}), so nothing was changed; "
            "correct it, or add by hand what `--print` shows"
        ) from error
    if not isinstance(content, dict):
        raise SettingsError(f"{file} is not a JSON object, so nothing was changed; correct it")
    return content


def _text(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def _value(content: Any, path: Sequence[str]) -> Any:
    for name in path:
        if not isinstance(content, dict) or name not in content:
            return _MISSING
        content = content[name]
    return content


def _with(
    content: Mapping[str, Any], path: Sequence[str], value: Any, file: Path
) -> dict[str, Any]:
    """A copy of the content with the entry in it."""
    if len(path) == 1:
        return {**content, path[0]: value}
    inner = content.get(path[0], {})
    if not isinstance(inner, dict):
        raise SettingsError(
            f"{file}: {path[0]!r} is not a table, so nothing was changed; correct it"
        )
    return {**content, path[0]: _with(inner, path[1:], value, file)}


def _remove(content: dict[str, Any], path: Sequence[str], earlier: Any) -> None:
    """Take the entry out, and the tables above it that are empty then and were not there."""
    if len(path) == 1:
        del content[path[0]]
        return
    was = earlier.get(path[0], _MISSING) if isinstance(earlier, dict) else _MISSING
    _remove(content[path[0]], path[1:], was)
    if not content[path[0]] and was is _MISSING:
        del content[path[0]]


def _replace(file: Path, data: bytes) -> None:
    """Write a file in one step, with the permissions that it has, through a symbolic link."""
    target = Path(os.path.realpath(file))
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(mode)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
