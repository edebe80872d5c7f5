"""What happens to a conversation beside talk: settings, titles, branches, and what is taken out of it."""

from collections.abc import Mapping

from msgspec import Struct

from lamella.core.log.events.message import TurnSetup


class SettingsEvent(Struct, frozen=True, kw_only=True, gc=False):
    """Settings by name, in force from then on. They are all that its body holds."""

    values: Mapping[str, object]


class RenameEvent(Struct, frozen=True, kw_only=True, gc=False):
    """The conversation has a title."""

    title: str


class DeleteEvent(Struct, frozen=True, kw_only=True, gc=False):
    """The branch goes on without a message; a question goes with its answer."""

    target: str


class ForkEvent(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The conversation goes on from an earlier message.

    A copy of another conversation, and one whose system prompt was set since, goes on from where it is, under what
    holds there although no turn of it says so.
    """

    head: str
    left: TurnSetup | None = None


class SwitchEvent(Struct, frozen=True, kw_only=True, gc=False):
    """Another branch is the active one, by its last message."""

    head: str


class ErasureEvent(Struct, frozen=True, kw_only=True, gc=False):
    """An artifact was erased, and with it the contents that its record lists. What went counts, not its name."""

    artifact: str = ""
    contents: tuple[str, ...] = ()


class SilentEvent(Struct, frozen=True, kw_only=True, gc=False):
    """An event of a kind that nothing writes. Files of the first version may hold some; they do nothing."""
