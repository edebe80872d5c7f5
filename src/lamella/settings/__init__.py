"""Settings: what can be set, where each value was found, and what values mean.

Enters: files, the environment, what a caller gives. Leaves: frozen settings with the origin of each, and the rules of a
conversation that they mean. May not enter: adapters, but for plain files; whoever is below wiring gets small values and
never settings.
"""

from lamella.settings.model import (
    PROFILES,
    ChainSettings,
    CompactionSettings,
    KindSettings,
    ServerSettings,
    ServeSettings,
    Settings,
    SummarySettings,
)

__all__ = [
    "PROFILES",
    "ChainSettings",
    "CompactionSettings",
    "KindSettings",
    "ServeSettings",
    "ServerSettings",
    "Settings",
    "SummarySettings",
]
