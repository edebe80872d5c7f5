"""Test doubles for programs that use Lamella, instead of mocks, and suites for plugins.

A ``ScriptedProvider`` gives scripted answers and records the requests it got. An ``InMemoryStore`` keeps conversations
only as long as the object lives. A ``SettableClock`` shows the time that the test sets. ``check_store`` and the other
functions ``check_…`` check a plugin; see docs/how-to/write-a-plugin.md.

Names are imported on first use, so importing this module costs nothing.
"""

from typing import TYPE_CHECKING

from lamella.lazy_imports import make_lazy_exports

if TYPE_CHECKING:
    from lamella.clocks import SettableClock
    from lamella.plugin_checks import (
        PluginCheckError,
        check_compaction_step,
        check_kind,
        check_price_book,
        check_provider,
        check_runner,
        check_secret_scanner,
        check_store,
        check_token_counter,
        check_tool,
    )
    from lamella.providers.scripted import ScriptedProvider, ScriptedReply
    from lamella.stores.memory import InMemoryStore

__all__ = [
    "InMemoryStore",
    "PluginCheckError",
    "ScriptedProvider",
    "ScriptedReply",
    "SettableClock",
    "check_compaction_step",
    "check_kind",
    "check_price_book",
    "check_provider",
    "check_runner",
    "check_secret_scanner",
    "check_store",
    "check_token_counter",
    "check_tool",
]

if not TYPE_CHECKING:
    _HOMES = {
        "lamella.clocks": ("SettableClock",),
        "lamella.plugin_checks": tuple(name for name in __all__ if name.startswith(("Plugin", "check_"))),
        "lamella.providers.scripted": ("ScriptedProvider", "ScriptedReply"),
        "lamella.stores.memory": ("InMemoryStore",),
    }
    __getattr__, __dir__ = make_lazy_exports(__name__, _HOMES)
