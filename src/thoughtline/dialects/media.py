"""Images and files, as every dialect can say them: data, a URL, a type and a name."""

import re
from typing import Any

from thoughtline.dialects.content import blob
from thoughtline.log.parts import Blob

_DATA_URL = re.compile(r"data:([^;,]*)[^,]*;base64,", re.IGNORECASE)
_KINDS = {"image": "image", "audio": "audio"}


def media(
    *,
    mime: str = "",
    data: str = "",
    url: str = "",
    name: str = "",
    detail: str = "",
    kind: str = "",
) -> Blob:
    """An image or a file; a data URL is taken apart."""
    if found := _DATA_URL.match(url):
        mime, data, url = found[1] or mime, url[found.end() :], ""
    kind = kind or _KINDS.get(mime.partition("/")[0], "file")
    digest = blob(kind, data or url).digest
    return Blob(kind=kind, digest=digest, mime=mime, data=data, url=url, name=name, detail=detail)


def as_url(part: Blob) -> str:
    """The URL of an image or a file; data as a data URL."""
    return f"data:{part.mime};base64,{part.data}" if part.data else part.url


def is_media(part: Any) -> bool:
    """Whether a part is an image or a file that can be said in another dialect."""
    return isinstance(part, Blob) and bool(part.data or part.url)
