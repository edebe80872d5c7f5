"""The contents that events name: all of them, those of one artifact, and those that retell earlier talk."""

from collections.abc import Iterator

from lamella.core.log.events.artifact import StoredArtifact
from lamella.core.log.events.compaction import CompactionEvent
from lamella.core.log.events.kinds import Event
from lamella.core.log.events.message import MessageEvent
from lamella.core.log.events.rounds import CallsEvent, ResultsEvent


def named_hashes(event: Event) -> tuple[str, ...]:
    """Every content hash that an event names."""
    match event:
        case MessageEvent():
            plain = not event.attached and not event.results and event.system is None and event.strip is None
            return () if plain else tuple(dict.fromkeys(_named(event)))
        case CompactionEvent() | CallsEvent() | ResultsEvent():
            return tuple(dict.fromkeys(event.hashes()))
        case _:
            # An erasure lists what is gone, and names it no more.
            return ()


def referenced_artifacts(event: Event, artifact: str) -> tuple[str, ...]:
    """The hashes of everything an event holds of one artifact: its text, its pictures, instructions that draw it in.

    A picture is also found inside the notes that embed it. What tools gave back inside a turn is named by its place
    there, so the log finds it: ``Log.find_results``.
    """
    if not isinstance(event, MessageEvent):
        return ()
    hashes: dict[str, None] = {}
    for ref in _refs(event):
        images = [image.hash for image in ref.images]
        if ref.id == artifact:
            condensed = [] if ref.condensed is None else [ref.condensed]
            hashes.update(dict.fromkeys((ref.hash, *condensed, *images)))
        elif artifact in images:
            hashes.setdefault(artifact)
    system = event.system
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
        case CompactionEvent(steps=steps):
            return tuple(step.text for step in steps if step.text is not None)
        case _:
            return ()


def _named(event: MessageEvent) -> Iterator[str]:
    for ref in _refs(event):
        yield from ref.hashes()
    if event.system is not None and event.system.drawn is not None:
        yield event.system.drawn
    if event.strip is not None:
        yield event.strip


def _refs(event: MessageEvent) -> tuple[StoredArtifact, ...]:
    """What an event says of artifacts, in the order in which records list their contents."""
    inlined = () if event.system is None else event.system.inlined
    return (*event.attached, *event.results, *inlined)
