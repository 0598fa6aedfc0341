"""The Responses API: the dialect, one package."""

from thoughtline.dialects.responses.dialect import Responses

__all__ = ["Responses"]
