"""Settings: what a person may decide, and where it is written. Everything has a default.

A flag beats a variable (`THOUGHTLINE_…`), a variable beats `./thoughtline.toml`, that beats the
file in the user's config folder, and that beats the default. A file named by `--config` or
`$THOUGHTLINE_CONFIG` stands in place of both files. A value `"env:NAME"` is read from a variable.
`load` depends on its arguments alone and creates nothing.
"""

from thoughtline.gateway.settings.checks import exposed, is_loopback, refuse_exposure
from thoughtline.gateway.settings.loading import Loaded, describe, load, read
from thoughtline.gateway.settings.sections import (
    AccessSettings,
    ClientSettings,
    LogSettings,
    ModelSettings,
    PriceSettings,
    ReplaySettings,
    Secret,
    ServerSettings,
    Settings,
    StoreSettings,
    TelemetrySettings,
    UpstreamSettings,
    mask,
)

__all__ = [
    "AccessSettings",
    "ClientSettings",
    "Loaded",
    "LogSettings",
    "ModelSettings",
    "PriceSettings",
    "ReplaySettings",
    "Secret",
    "ServerSettings",
    "Settings",
    "StoreSettings",
    "TelemetrySettings",
    "UpstreamSettings",
    "describe",
    "exposed",
    "is_loopback",
    "load",
    "mask",
    "read",
    "refuse_exposure",
]
