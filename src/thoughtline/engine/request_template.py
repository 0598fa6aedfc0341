"""How a request is written from turns: all that stands in it beside its history.

The agents' loop and translation write their requests; a client's own is patched. What has to be
known before it is decided which thoughts go back (whether it switches thinking on) is in the
options, so the body is written once: when it is decided.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.dialects import splice
from thoughtline.dialects.base import Dialect, Request
from thoughtline.dialects.params import ToolSpec
from thoughtline.engine.decision import Fields
from thoughtline.errors import Unreadable
from thoughtline.log.turns import Turn
from thoughtline.replay.guard import Target


class RequestTemplate(Struct, frozen=True, kw_only=True):
    """How requests are written, beside their history."""

    dialect: Dialect
    target: Target
    model: str
    system: str = ""
    tools: Sequence[ToolSpec] = ()
    options: Mapping[str, Any] = {}  # members of the body
    stateful: bool = False  # the server is to remember
    stream: bool = True
    cache_breakpoints: bool = False

    def write(self, turns: Sequence[Turn], fields: Fields | None = None) -> bytes:
        """The body of a request with these turns, and these members set or removed."""
        fields = fields or {}
        added = {name: Raw(raw) for name, raw in fields.items() if raw is not None}
        body = self.dialect.write(
            turns,
            model=self.model,
            system=self.system,
            tools=self.tools,
            stream=self.stream,
            fields={**self.options, **added},
            cache_breakpoints=self.cache_breakpoints,
        )
        removed = {name: raw for name, raw in fields.items() if raw is None}
        return splice.with_members(body, removed) if removed else body

    @property
    def params(self) -> bytes:
        """The options as a JSON object."""
        return splice.dumps(self.options)

    def unwritten(self, turns: Sequence[Turn]) -> Request:
        """A request as it is before its body is written."""
        return Request(
            body=b"",
            model=self.model,
            stream=self.stream,
            tools=bool(self.tools),
            thinking=self.dialect.thinking_switch(self.options),
            turns=tuple(turns),
        )

    def read(self, body: bytes) -> Request:
        """A body that was written, as its dialect reads it."""
        try:
            made = self.dialect.read(body)
        except Unreadable:  # options that make no request: the provider will say so
            made = Request(body=body)
        return replace(made, model=self.model, stream=self.stream)

    def prefixes(self, turns: Sequence[Turn], count: int) -> Sequence[str]:
        """Digests of what stands before the first outputs, where signatures are bound to that."""
        if not self.target.policy.prefix:
            return ()
        try:
            made = self.dialect.prefixes(self.dialect.read(self.write(turns)))
        except Unreadable:
            return ()
        return made if len(made) == count else ()
