"""Gemini's `generateContent`: the dialect, one package."""

from thoughtline.dialects.gemini.dialect import Gemini

__all__ = ["Gemini"]
