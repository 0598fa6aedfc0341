"""Settings: what a person may decide, and where it is written. Everything has a default.

A flag beats a variable (`THOUGHTLINE_…`), a variable beats `./thoughtline.toml`, that beats the
file in the user's config folder, and that beats the default. A file named by `--config` or
`$THOUGHTLINE_CONFIG` stands in place of both files. A value `"env:NAME"` is read from a variable.
How a model's name finds its upstream is told in `upstreams`.

`load` depends on its arguments alone and creates nothing. The structs in `sections` are the single
source for loading, `thoughtline init` and the reference. The gateway is the next room.
"""

from thoughtline.settings.checks import exposed, refuse_exposure
from thoughtline.settings.hosts import is_loopback
from thoughtline.settings.loading import Loaded, describe, load, read
from thoughtline.settings.masks import Secret, mask
from thoughtline.settings.providers import PROVIDERS, Provider
from thoughtline.settings.sections import (
    Access,
    Client,
    Log,
    Replay,
    Server,
    Settings,
    Store,
    Telemetry,
    Timeouts,
    Upstream,
)

__all__ = [
    "PROVIDERS",
    "Access",
    "Client",
    "Loaded",
    "Log",
    "Provider",
    "Replay",
    "Secret",
    "Server",
    "Settings",
    "Store",
    "Telemetry",
    "Timeouts",
    "Upstream",
    "describe",
    "exposed",
    "is_loopback",
    "load",
    "mask",
    "read",
    "refuse_exposure",
]
