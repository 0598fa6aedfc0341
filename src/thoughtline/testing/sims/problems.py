"""What is wrong with a request, before it has the shape of any provider.

Checks raise a `Problem`; a simulator catches it and answers in its own shape. Over HTTP that is an
error body, over a WebSocket an error frame.
"""

from __future__ import annotations


class Problem(Exception):
    """The provider refuses this request."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str | None = None,
        code: str | int | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind
        self.code = code
        self.param = param
