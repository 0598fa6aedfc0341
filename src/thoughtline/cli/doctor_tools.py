"""The check of `thoughtline doctor` whether a tool goes past the gateway, unnoticed."""

from collections.abc import Iterator, Mapping

from thoughtline.cli.doctor_checks import Diagnostic
from thoughtline.cli.launch_tools import TOOLS

_OFF = ("", "0", "false", "no", "off")


def bypasses(env: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Variables that lead a tool to another cloud, whatever its base URL is."""
    for tool in TOOLS:
        names = [name for name in tool.elsewhere if env.get(name, "").strip().lower() not in _OFF]
        if names:
            yield Diagnostic(
                about=tool.name,
                level="note",
                text=f"{' and '.join(names)} is set: {tool.title} goes past the gateway",
                advice=f"unset it, or run `thoughtline launch {tool.name}`, which leaves it out",
            )
