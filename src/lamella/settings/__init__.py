"""Settings: names, types and defaults, where each value was found, and what the values mean.

``model`` defines the settings, ``loading`` reads files and environment variables, ``rules`` turns settings into the
values that other packages need, and ``trust`` and ``tokens`` are private files of the user.

The package imports no adapters except plain file access. Packages below wiring get the small values they need and
never a ``Settings`` object.
"""

from lamella.settings.model import (
    SETTINGS_PROFILES,
    CompactionChainSettings,
    CompactionSettings,
    HttpServerSettings,
    KindSettings,
    McpServerSettings,
    Settings,
    SummarySettings,
)

__all__ = [
    "SETTINGS_PROFILES",
    "CompactionChainSettings",
    "CompactionSettings",
    "HttpServerSettings",
    "KindSettings",
    "McpServerSettings",
    "Settings",
    "SummarySettings",
]
