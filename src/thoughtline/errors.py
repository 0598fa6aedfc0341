"""What can go wrong, as one small tree.

- ThoughtlineError
  - Unreadable         a body or stream that a dialect cannot understand
  - Ephemeral          an attempt to write what is only shown live
  - SettingsError      a setting that does not exist or does not fit: says which and where
  - WireError          an upstream that cannot be reached, stalls or breaks off
  - StoreError
    - Unavailable      locked, full, read-only or gone: try again, nothing acknowledged is lost
    - Corrupt          the file is damaged: says which file and the way out
    - Conflict         somebody else wrote to the session first

Few classes, each because a caller acts differently. A class's docstring is its default message.
Nothing here imports anything of ours: every room may raise these.
"""


class ThoughtlineError(Exception):
    """Something went wrong in Thoughtline."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip())


class Unreadable(ThoughtlineError):
    """The body is not one that this dialect can read; pass it on untouched or answer 400."""


class Ephemeral(ThoughtlineError):
    """Deltas and keep-alives are only shown live; they cannot be written to a session."""


class SettingsError(ThoughtlineError):
    """The settings cannot be used as they are; `thoughtline doctor` says what is wrong."""


class WireError(ThoughtlineError):
    """The upstream cannot be reached, or its answer broke off."""


class StoreError(ThoughtlineError):
    """The store could not do what was asked."""


class Unavailable(StoreError):
    """The store cannot be reached or written right now; nothing acknowledged is lost, try again."""


class Corrupt(StoreError):
    """The store's file is damaged."""


class Conflict(StoreError):
    """Another writer appended to this session first; read it again and retry."""
