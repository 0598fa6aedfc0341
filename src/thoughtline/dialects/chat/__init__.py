"""Chat Completions: the dialect, one package."""

from thoughtline.dialects.chat.dialect import ChatCompletions

__all__ = ["ChatCompletions"]
