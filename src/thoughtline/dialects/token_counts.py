"""How many tokens a request has: asked of a provider that counts, else estimated.

`TokenCount` is what a dialect knows of counting: where a provider is asked, which members of a
request it takes there, and where the number stands in the answer.
"""

import re
from typing import Any

from msgspec import Struct

from thoughtline.dialects import splice
from thoughtline.dialects.values import mapping, whole_number
from thoughtline.errors import Unreadable

_MEDIA_TOKENS = 1000
_MEDIA = re.compile(
    rb'"(?:data|url|image_url|file_data)"\s*:\s*"(?:data:[^"]*)?[A-Za-z0-9+/=]{800,}"'
)


class TokenCount(Struct, frozen=True, kw_only=True):
    """How one API counts the tokens of a request."""

    path: str  # `{model}` stands for the model
    member: str  # of the answer, which holds the number
    takes: frozenset[str] = frozenset()  # members of a request; empty: all but those it leaves
    leaves: frozenset[str] = frozenset()
    wrapper: str = ""  # the member that holds the request together with its model

    def request(self, model: str, members: dict[str, Any]) -> dict[str, Any]:
        """Return what is asked, from the members of a request that would be answered."""
        if self.wrapper:
            return {self.wrapper: {**members, "model": f"models/{model}"}}
        if self.takes:
            return {name: value for name, value in members.items() if name in self.takes}
        return {name: value for name, value in members.items() if name not in self.leaves}


def read_count(body: bytes, member: str) -> int | None:
    """Return the number in a provider's answer; None where there is none."""
    try:
        return whole_number(mapping(splice.loads(body)).get(member))
    except Unreadable:
        return None


def estimated_tokens(body: bytes) -> int:
    """Return about how many tokens a body has: a third of a token for a letter of English.

    Other scripts take more, and images have a size that does not depend on their bytes.
    """
    media = _MEDIA.findall(body)
    text = _MEDIA.sub(b"", body).decode("utf-8", "replace")
    ascii_letters = sum(character.isascii() for character in text)
    others = len(text) - ascii_letters
    return max(round(ascii_letters * 0.3 + others * 1.1) + len(media) * _MEDIA_TOKENS, 1)
