"""Chat Completions (being written)."""

from __future__ import annotations

from thoughtline.testing.sims.base import Factory

PROVIDERS: dict[str, Factory] = {}
