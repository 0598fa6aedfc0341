"""Pure, two-way codecs, one per API shape; see `base` for what each of them can do."""

from thoughtline.dialects.base import Dialect
from thoughtline.dialects.chat import Chat
from thoughtline.dialects.gemini import Gemini
from thoughtline.dialects.messages import Messages
from thoughtline.dialects.responses import Responses

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (Chat(), Responses(), Messages(), Gemini())
}
"""Every dialect by its name."""
