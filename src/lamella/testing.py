"""Test doubles for programs that use Lamella, instead of mocks.

A ``ScriptedProvider`` gives scripted answers and records the requests it got. An ``InMemoryStore`` keeps conversations
only as long as the object lives. A ``SettableClock`` shows the time that the test sets.
"""

from lamella.clocks import SettableClock
from lamella.providers.scripted import ScriptedProvider, ScriptedReply
from lamella.stores.memory import InMemoryStore

__all__ = ["InMemoryStore", "ScriptedProvider", "ScriptedReply", "SettableClock"]
