"""The Messages API: the dialect, one package."""

from thoughtline.dialects.messages.dialect import Messages

__all__ = ["Messages"]
