"""Testing: what programs that use Lamella are tested with, in place of mocks.

A ``ScriptedProvider`` says its lines and remembers what it was asked; a ``MemoryStore`` forgets everything when it
goes; a ``SettableClock`` stands still until it is told.
"""

from lamella.adapters.clocks.settable import SettableClock
from lamella.adapters.providers.scripted.provider import Line, ScriptedProvider
from lamella.adapters.stores.memory import MemoryStore

__all__ = ["Line", "MemoryStore", "ScriptedProvider", "SettableClock"]
