"""Durations and sizes as people write them: `30d`, `90s`, `64MiB`.

A duration is seconds, a size is bytes; plain numbers are taken as they are. The way back gives the
shortest spelling that is exact, for `thoughtline init` and the reference.
"""

import math
import re

SECONDS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1, "": 1}
BYTES = {"gib": 1 << 30, "mib": 1 << 20, "kib": 1 << 10, "b": 1, "": 1}
_AMOUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([A-Za-z]*)")


def _amount(text: str, units: dict[str, int]) -> float | None:
    found = _AMOUNT.fullmatch(text.strip())
    if found is None or found[2].lower() not in units:
        return None
    return float(found[1]) * units[found[2].lower()]


def seconds(value: object) -> float | None:
    """A duration in seconds; None when it is none."""
    if isinstance(value, str):
        return _amount(value, SECONDS)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15:
        return float(value) if math.isfinite(value) else None
    return None


def size(value: object) -> int | None:
    """A size in bytes; None when it is none."""
    if isinstance(value, str):
        amount = _amount(value, BYTES)
        return int(amount) if amount is not None and amount.is_integer() else None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 60:
        return value
    return None


def _spell(amount: float, units: dict[str, int], least: int) -> str | None:
    for unit, factor in units.items():
        if factor >= least and amount >= factor and amount % factor == 0:
            return f"{int(amount // factor)}{unit}"
    return None


def spell_seconds(amount: float) -> str | float | int:
    """A duration as it is best written: `"30d"`, or a plain number of seconds."""
    whole = int(amount) if float(amount).is_integer() else amount
    return _spell(amount, SECONDS, 60) or whole


def spell_size(amount: int) -> str | int:
    """A size as it is best written."""
    text = _spell(amount, {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10}, 1 << 10)
    return text or amount
