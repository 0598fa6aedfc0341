"""What is odd about real answers, by the dialect they come in."""

from thoughtline.testing import simulator
from thoughtline.testing.sims import (
    chat_oddities,
    gemini_oddities,
    messages_oddities,
    responses_oddities,
)

FIELDS = {
    "claude": {"thinking": {"type": "enabled", "budget_tokens": 2048}},
    "claude-bound": {"thinking": {"type": "adaptive"}},
}
"""What a client sets to make a model think."""
SHAPES = {
    "chat": (chat_oddities.ODDITIES,),
    "responses": (responses_oddities.ITEMS, responses_oddities.EVENTS),
    "messages": (messages_oddities.BLOCKS, messages_oddities.EVENTS),
    "gemini": (gemini_oddities.PARTS, gemini_oddities.CHUNKS),
}
"""The tables of each dialect."""
SHOWN = {
    "chat": tuple(chat_oddities.TURNS),
    "responses": ("error_midstream",),
    "messages": ("error_midstream", "pause_turn", "no_thought"),
    "gemini": ("unexpected_call", "blocked", "snake_case"),
}
"""Those that change what a client sees."""
_IDS = ("random_ids", "short_ids")
_TOOLS = ("web_search", "code_interpreter", "mcp", "file_search", "image")
_SERVED = ("annotations", "empty_content", *_TOOLS)


def oddities(name):
    """The oddities that leave texts, calls and thoughts of this provider's answers as they are."""
    sim = simulator(name)
    left_out = {*SHOWN[sim.dialect], *_NOT.get(name, ())}
    if sim.dialect == "responses":  # a seal names its item; an open thought has its text there
        left_out |= {*_IDS, "null_blob"} if sim.row.pairing else set()
        left_out |= {*_SERVED} if sim.row.style is None else {"null_blob"}
    return [one for table in SHAPES[sim.dialect] for one in table if one not in left_out]


KINDS = (
    *("deepseek", "openrouter", "vllm", "mistral", "minimax", "gemini-compat"),
    *("openai", "xai", "deepseek-responses", "claude", "claude-bound", "gemini"),
)
"""A provider for each way in which thoughts travel."""
_NOT = {
    "mistral": ("null_members", "zero_members", "executed_tools", "twin_names"),
}
"""What a provider would not take back."""
EVERY = [(name, oddity) for name in KINDS for oddity in oddities(name)]
