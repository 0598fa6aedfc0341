"""What can go wrong, as one small tree.

- ThoughtlineError
  - Unreadable         a body or stream that a dialect cannot understand
  - Ephemeral          an attempt to write what is only shown live
  - SettingsError      a setting that does not exist or does not fit: says which and where
  - WireError          an upstream that cannot be reached, stalls or breaks off
  - ProviderError      a provider that cannot be asked as it is given
    - UnknownProvider  a name that no provider has, and no base_url beside it
    - MissingKey       no key, neither given nor in the environment
  - InvalidArgument    an argument that cannot be used; also a `ValueError`
    - ToolError        a function that cannot be a tool
  - NotFound           also a `LookupError`
    - SessionNotFound  a session that is not in this store
    - TurnNotFound     a turn that is not in this session
  - SessionExists      a session of that id is there already
  - ChatBusy           another run of the same chat is under way
  - RunFailed          raised by `raise_for_outcome()`: the run has no answer
  - StoreError
    - Unavailable      locked, full, read-only or gone: try again, nothing acknowledged is lost
      - SecretMismatch  the shared store belongs to another secret than this node's
    - Corrupt          the file is damaged: says which file and the way out
    - Damaged          one stored value is damaged: it is left out, and everything else is read
    - SealError        what is sealed cannot be opened: says which key is missing
      - KeyGone        its key was deleted with its tenant: it reads as if it was not there
    - Conflict         somebody else wrote to the session first

Few classes, each because a caller acts differently; the tree's root is never raised itself. A
class's docstring is its default message.
Nothing here imports another module of the package: all may raise these.
"""

import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any


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

    def __init__(self, message: str | None = None, *, code: str = "") -> None:
        """`code`: stands for the message in log lines, where it quotes what was said."""
        super().__init__(message)
        self.log_reason = code or str(self)


class ProviderError(ThoughtlineError):
    """The provider cannot be asked as it is given."""


class UnknownProvider(ProviderError):
    """No provider of this name is known; one that is not known needs a base_url."""


class MissingKey(ProviderError):
    """There is no key for this provider, neither given nor in the environment."""


class InvalidArgument(ThoughtlineError, ValueError):
    """An argument cannot be used as it is."""


class ToolError(InvalidArgument):
    """This function cannot be a tool as it is."""


class NotFound(ThoughtlineError, LookupError):
    """What was asked for is not there."""


class SessionNotFound(NotFound):
    """This session is not in the store."""


class TurnNotFound(NotFound):
    """This turn is not in the session."""


class SessionExists(ThoughtlineError):
    """A session of this id is there already; resume it, or choose another id."""


class ChatBusy(ThoughtlineError):
    """This chat is busy with another run: await it, cancel it, or fork the chat."""


class RunFailed(ThoughtlineError):
    """The run ended without an answer; its outcome and reason say why."""

    def __init__(self, message: str | None = None, *, answer: Any = None) -> None:
        super().__init__(message)
        self.answer = answer  # the run's `Answer`, with its outcome, its reason and its turns


class StoreError(ThoughtlineError):
    """The store could not do what was asked."""


class Unavailable(StoreError):
    """The store cannot be reached; what it was given is not known to be written: say it again."""


class SecretMismatch(Unavailable):
    """The shared store belongs to another secret: under this one, nothing in it would be found."""


class Corrupt(StoreError):
    """The store's file is damaged."""


class Damaged(StoreError):
    """One stored value is damaged: it does not open, or makes no sense."""


class SealError(StoreError):
    """What is sealed cannot be opened with the keys that were given."""


class KeyGone(SealError):
    """The key of a value was deleted, and with it what it says."""


class Conflict(StoreError):
    """Another writer appended to this session first; read it again and retry."""


def fault(error: BaseException) -> str:
    """Type and location of a bug, without its data."""
    *_, last = traceback.extract_tb(error.__traceback__)
    place = f"{Path(last.filename).name}:{last.lineno}"
    return f"an error in Thoughtline, {type(error).__name__} at {place}"


_ALIKE = 0.75
"""How similar a name has to be to be meant: one slip in four letters, two in eight."""


def nearest_name(name: str, known: Iterable[str]) -> str:
    """The known name that a misspelt one is likely to mean; empty if none is near enough."""
    from difflib import get_close_matches  # not for every start of the command line

    spelled, wanted = {one.lower(): one for one in known}, name.strip().lower()
    found = get_close_matches(wanted, spelled, n=1, cutoff=_ALIKE)
    longer = [one for one in spelled if len(wanted) > 2 and one.startswith(wanted)]
    if not found and len(longer) == 1:  # `warn` for `warning`
        found = longer
    return spelled[found[0]] if found else ""


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """`did you mean 'deepseek'?`, or what to say where nothing is near."""
    near = nearest_name(name, known)
    return f"did you mean {near!r}?" if near else otherwise
