"""Thoughtline keeps a model's reasoning alive from turn to turn.

    async with thoughtline.open("sqlite:///agent.db") as log:
        provider = thoughtline.Provider("deepseek", model="deepseek-v4-pro")
        chat = await log.create(provider=provider, tools=[read_file])
        answer = await chat.run("What is in a.txt?")

These are the names that people need to write agents. Each is imported when it is first used, so
that `import thoughtline` costs next to nothing. Test doubles are in `thoughtline.testing`.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False  # like `typing.TYPE_CHECKING`, without importing `typing`
if TYPE_CHECKING:
    from thoughtline.agents.chat import Chat
    from thoughtline.agents.log import Log
    from thoughtline.agents.log import open_log as open  # noqa: A004 (read as thoughtline.open)
    from thoughtline.agents.provider import Provider
    from thoughtline.agents.run import Answer, Run
    from thoughtline.agents.tools import Ask, Tool, Verdict, tool
    from thoughtline.errors import (
        ChatBusy,
        Conflict,
        InvalidArgument,
        MissingKey,
        NotFound,
        ProviderError,
        RunFailed,
        SessionExists,
        SessionNotFound,
        StoreError,
        ThoughtlineError,
        ToolError,
        TurnNotFound,
        Unavailable,
        UnknownProvider,
        Unreadable,
        WireError,
    )
    from thoughtline.log.decisions import Action, MatchLevel, ReplayDecision
    from thoughtline.log.events import (
        Event,
        Keepalive,
        Outcome,
        ReasoningDelta,
        ReasoningEnd,
        ReasoningStart,
        TextDelta,
        ToolCallDelta,
    )
    from thoughtline.log.parts import Blob, Call, Decision, Origin, Result, Text, Thought, Timing
    from thoughtline.log.sessions import Session
    from thoughtline.log.turns import Turn
    from thoughtline.log.usage import Usage
    from thoughtline.stores.base import SessionSummary

__all__ = [
    "Action",
    "Answer",
    "Ask",
    "Blob",
    "Call",
    "Chat",
    "ChatBusy",
    "Conflict",
    "Decision",
    "Event",
    "InvalidArgument",
    "Keepalive",
    "Log",
    "MatchLevel",
    "MissingKey",
    "NotFound",
    "Origin",
    "Outcome",
    "Provider",
    "ProviderError",
    "ReasoningDelta",
    "ReasoningEnd",
    "ReasoningStart",
    "ReplayDecision",
    "Result",
    "Run",
    "RunFailed",
    "Session",
    "SessionExists",
    "SessionNotFound",
    "SessionSummary",
    "StoreError",
    "Text",
    "TextDelta",
    "Thought",
    "ThoughtlineError",
    "Timing",
    "Tool",
    "ToolCallDelta",
    "ToolError",
    "Turn",
    "TurnNotFound",
    "Unavailable",
    "UnknownProvider",
    "Unreadable",
    "Usage",
    "Verdict",
    "WireError",
    "__version__",
    "open",
    "tool",
]

_EXPORTS = {
    "errors": (
        "ChatBusy",
        "Conflict",
        "InvalidArgument",
        "MissingKey",
        "NotFound",
        "ProviderError",
        "RunFailed",
        "SessionExists",
        "SessionNotFound",
        "StoreError",
        "ThoughtlineError",
        "ToolError",
        "TurnNotFound",
        "Unavailable",
        "UnknownProvider",
        "Unreadable",
        "WireError",
    ),
    "log.decisions": ("Action", "MatchLevel", "ReplayDecision"),
    "log.events": (
        "Event",
        "Keepalive",
        "Outcome",
        "ReasoningDelta",
        "ReasoningEnd",
        "ReasoningStart",
        "TextDelta",
        "ToolCallDelta",
    ),
    "log.usage": ("Usage",),
    "agents.chat": ("Chat",),
    "agents.log": ("Log", "open_log"),
    "agents.provider": ("Provider",),
    "agents.run": ("Answer", "Run"),
    "log.parts": ("Blob", "Call", "Decision", "Origin", "Result", "Text", "Thought", "Timing"),
    "log.sessions": ("Session",),
    "agents.tools": ("Ask", "Tool", "Verdict", "tool"),
    "log.turns": ("Turn",),
    "stores.base": ("SessionSummary",),
}
"""Module → the names of it that are exported here."""
_MODULES = {name: module for module, names in _EXPORTS.items() for name in names}
_ALIASES = {"open": "open_log"}


def __getattr__(name: str) -> object:
    from importlib import import_module

    real = _ALIASES.get(name, name)
    if name not in __all__ or real not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[real]}"), real)


def __dir__() -> list[str]:
    return sorted(__all__)
