"""Thoughtline keeps a model's reasoning alive from turn to turn.

    async with thoughtline.open("sqlite:///agent.db") as log:
        provider = thoughtline.Provider("deepseek", model="deepseek-v4-pro")
        chat = await log.create(provider=provider, tools=[read_file])
        answer = await chat.run("What is in a.txt?")

What is below is what people need to write agents; everything is imported when it is first used, so
that `import thoughtline` costs next to nothing. Doubles for tests are in `thoughtline.testing`.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False  # as `typing` has it, without the price of importing it
if TYPE_CHECKING:
    from thoughtline.errors import (
        Conflict,
        StoreError,
        ThoughtlineError,
        Unavailable,
        Unreadable,
        WireError,
    )
    from thoughtline.events import (
        Event,
        Keepalive,
        Outcome,
        ReasoningDelta,
        ReasoningEnd,
        TextDelta,
        ToolCallDelta,
        Usage,
    )
    from thoughtline.library.chats import Chat
    from thoughtline.library.logs import Log
    from thoughtline.library.logs import open_log as open  # noqa: A004 (read as thoughtline.open)
    from thoughtline.library.providers import Provider
    from thoughtline.library.runs import Answer, Run
    from thoughtline.parts import Blob, Call, Decision, Result, Text, Thought
    from thoughtline.tools import Ask, Tool, Verdict, tool
    from thoughtline.turns import Turn

__all__ = [
    "Answer",
    "Ask",
    "Blob",
    "Call",
    "Chat",
    "Conflict",
    "Decision",
    "Event",
    "Keepalive",
    "Log",
    "Outcome",
    "Provider",
    "ReasoningDelta",
    "ReasoningEnd",
    "Result",
    "Run",
    "StoreError",
    "Text",
    "TextDelta",
    "Thought",
    "ThoughtlineError",
    "Tool",
    "ToolCallDelta",
    "Turn",
    "Unavailable",
    "Unreadable",
    "Usage",
    "Verdict",
    "WireError",
    "__version__",
    "open",
    "tool",
]

_ROOMS = {
    "errors": (
        "Conflict",
        "StoreError",
        "ThoughtlineError",
        "Unavailable",
        "Unreadable",
        "WireError",
    ),
    "events": (
        "Event",
        "Keepalive",
        "Outcome",
        "ReasoningDelta",
        "ReasoningEnd",
        "TextDelta",
        "ToolCallDelta",
        "Usage",
    ),
    "library.chats": ("Chat",),
    "library.logs": ("Log", "open_log"),
    "library.providers": ("Provider",),
    "library.runs": ("Answer", "Run"),
    "parts": ("Blob", "Call", "Decision", "Result", "Text", "Thought"),
    "tools": ("Ask", "Tool", "Verdict", "tool"),
    "turns": ("Turn",),
}
"""Room → what of it is found here."""
_NAMES = {name: room for room, names in _ROOMS.items() for name in names}
_ALIASES = {"open": "open_log"}


def __getattr__(name: str) -> object:
    from importlib import import_module

    real = _ALIASES.get(name, name)
    if name not in __all__ or real not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_NAMES[real]}"), real)


def __dir__() -> list[str]:
    return sorted(__all__)
