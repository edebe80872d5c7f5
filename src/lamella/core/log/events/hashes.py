"""The contents that events name: all of them, those of one artifact, and those that retell earlier talk."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from lamella.core.log.events.attachment import AttachmentEvent
from lamella.core.log.events.compaction import CompactionEvent
from lamella.core.log.events.kinds import Event
from lamella.core.log.events.message import MessageEvent


@runtime_checkable
class ContentNamer(Protocol):
    """An event that names contents."""

    def hashes(self) -> Iterator[str]: ...


def named_hashes(event: Event) -> tuple[str, ...]:
    """Every content hash that an event names; an erasure lists what is gone, and names it no more."""
    if isinstance(event, MessageEvent):
        # Most events of a long conversation, and most of those name none.
        return () if event.is_plain else tuple(dict.fromkeys(event.hashes()))
    return tuple(dict.fromkeys(event.hashes())) if isinstance(event, ContentNamer) else ()


def referenced_artifacts(event: Event, artifact: str) -> tuple[str, ...]:
    """The hashes of everything an event holds of one artifact: its text, its pictures, instructions that draw it in.

    A picture is also found inside the notes that embed it. What tools gave back inside a turn is named by its place
    there, so it is found by its message: ``find_results``.
    """
    if not isinstance(event, MessageEvent | AttachmentEvent):
        return ()
    hashes: dict[str, None] = {}
    for ref in event.refs if isinstance(event, MessageEvent) else event.attached:
        images = [image.hash for image in ref.images]
        if ref.id == artifact:
            condensed = [] if ref.condensed is None else [ref.condensed]
            hashes.update(dict.fromkeys((ref.hash, *condensed, *images)))
        elif artifact in images:
            hashes.setdefault(artifact)
    system = event.system if isinstance(event, MessageEvent) else None
    if system is not None and system.drawn is not None and any(ref.id == artifact for ref in system.inlined):
        hashes.setdefault(system.drawn)
    return tuple(hashes)


def retold_hashes(event: Event) -> tuple[str, ...]:
    """The hashes of summaries of earlier talk that an event holds: they may tell of anything attached before.

    Of a turn that is the summary in its strip, of a compaction what stands in for the messages it took out.
    """
    match event:
        case MessageEvent(strip=str() as strip):
            return (strip,)
        case CompactionEvent():
            return tuple(dict.fromkeys(event.hashes()))
        case _:
            return ()
