"""Assistant messages that a client writes itself: no model said them, so none is missed. Pure."""

from thoughtline.log.parts import Text
from thoughtline.log.turns import Turn

MADE_UP = "made up by the client"
"""Why such an output has no thought."""

_WORDS = frozenset(
    {
        "Got it. Thanks for the context!",  # Gemini CLI and Qwen Code, behind what they say first
        "Ok.",  # aider, behind the files that it shows
        "Ok, I will use these files as references.",
    }
)


def is_clients_own(turn: Turn) -> bool:
    """Whether an output is what a client says in the place of a model."""
    if len(turn.output) != 1:
        return False
    (said,) = turn.output
    return type(said) is Text and said.text.strip() in _WORDS
