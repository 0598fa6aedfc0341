"""How long a model takes: the pause before each chunk of an answer.

A thought takes a few seconds, also where nothing of it is shown; words come quickly after it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_THOUGHT = re.compile(
    rb"reasoning_(content|summary|text|details)|\"reasoning\": ?\"|\"type\": ?\"reasoning\""
    rb"|thinking_delta|signature_delta|\"type\": ?\"(redacted_)?thinking\"|\"thought"
)
"""What a chunk of a thought says in any of the dialects."""
_SAID = 0.02
"""Seconds between two chunks of what is said."""
_THOUGHT_LEAST, _THOUGHT_MOST = 2.0, 6.0
_PER_CHUNK = 0.1


def pauses(chunks: Sequence[bytes]) -> list[float]:
    """Seconds to wait before each of these chunks."""
    if len(chunks) == 1:  # an answer in one piece: all of the time comes first
        long = len(_THOUGHT.findall(chunks[0])) > 0 or len(chunks[0]) > 1000
        return [_THOUGHT_LEAST + len(chunks[0]) / 2000 if long else _SAID]
    thoughts = [at for at, chunk in enumerate(chunks[:-2]) if _THOUGHT.search(chunk)]
    inside = thoughts[1:] or thoughts  # the first one begins the thought
    total = min(max(len(inside) * _PER_CHUNK, _THOUGHT_LEAST), _THOUGHT_MOST)
    each = {at: total / len(inside) for at in inside}
    return [each.get(at, _SAID) for at in range(len(chunks))]
