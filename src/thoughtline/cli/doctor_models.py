"""What `thoughtline doctor` says about names under `[models]`: what they change, and at what key.

A name is exactly the one that is written, and a client's own key goes to no other provider than the
one whose model it asks for: both are said here, so that nobody has to find out by an error.
"""

from collections.abc import Iterator

from thoughtline.cli.doctor_checks import Diagnostic
from thoughtline.gateway.build import make_directory
from thoughtline.gateway.errors import no_key
from thoughtline.gateway.settings import Settings
from thoughtline.providers.catalogue import is_pattern


def model_names(settings: Settings) -> Iterator[Diagnostic]:
    """Look at each name that stands for a model of some upstream."""
    directory = make_directory(settings)
    for name, row in settings.models.items():
        family = is_pattern(name)
        which = "all names like it" if family else "this name alone; a family is written with a `*`"
        text = f"{name} is asked for as {row.to}: {which}"
        upstream = directory.pick("", name.replace("*", "x"))
        if upstream is not None and upstream.lacks_key:
            error = no_key(upstream)
            yield Diagnostic(about="models", level="note", text=text, advice=error.message)
        else:
            yield Diagnostic(about="models", text=text)
