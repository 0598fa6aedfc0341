"""What a provider said that is no text, thought or call: kept whole, in its own JSON text."""

from msgspec.structs import replace

from thoughtline import keys, splice
from thoughtline.dialects.content import blob
from thoughtline.errors import Unreadable
from thoughtline.parts import Blob


def kept(kind: str, raw: str) -> Blob:
    """A blob from its JSON text; nothing is too deep or too odd for it."""
    try:
        made = blob(kind, splice.loads(raw.encode()))
    except (Unreadable, RecursionError):
        made = Blob(kind=kind, digest=keys.seal(raw))
    return replace(made, raw=raw)
