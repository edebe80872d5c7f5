"""References: what an event says of the artifacts attached to it, without their contents."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from lamella.core.artifacts.model import Kind, Policy
from lamella.core.log.events.artifact import StoredArtifact
from lamella.core.log.events.attachment import AttachmentEvent
from lamella.core.log.events.message import MessageEvent
from lamella.core.values import replace

Change = Callable[["Ref"], StoredArtifact | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """One reference: what is stored of an artifact, and whether instructions drew it in."""

    stored: StoredArtifact
    inlined: bool = False

    @property
    def id(self) -> str:
        return self.stored.id

    @property
    def kind(self) -> Kind:
        return self.stored.kind

    @property
    def hash(self) -> str:
        return self.stored.hash

    @property
    def path(self) -> str | None:
        return self.stored.source.path

    @property
    def policy(self) -> Policy | None:
        return self.stored.policy


def list_refs(event: MessageEvent | AttachmentEvent) -> Iterator[Ref]:
    """Every reference of a message: tool results, attachments, and the notes its instructions draw in.

    Of a command that waits for a message, what that attaches.
    """
    if isinstance(event, AttachmentEvent):
        yield from (Ref(stored=stored) for stored in event.attached)
        return
    for stored in (*event.results, *event.attached):
        yield Ref(stored=stored)
    if event.system is not None:
        for stored in event.system.inlined:
            yield Ref(stored=stored, inlined=True)


def change_refs(event: MessageEvent, change: Change) -> MessageEvent:
    """The event with each reference as ``change`` gives it back; one that it gives none for is left out."""
    changed = replace(event, results=_change_all(event.results, change), attached=_change_all(event.attached, change))
    if event.system is None or not event.system.inlined:
        return changed
    inlined = _change_all(event.system.inlined, change, inlined=True)
    return replace(changed, system=replace(event.system, inlined=inlined))


def change_attached(event: AttachmentEvent, change: Change) -> AttachmentEvent:
    """The same for what waits for a message."""
    return replace(event, attached=_change_all(event.attached, change))


def _change_all(
    stored: Iterable[StoredArtifact], change: Change, *, inlined: bool = False
) -> tuple[StoredArtifact, ...]:
    given = (change(Ref(stored=one, inlined=inlined)) for one in stored)
    return tuple(one for one in given if one is not None)
