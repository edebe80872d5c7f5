"""Attachments between two turns: what somebody attaches, detaches, drops or pins before the next question is asked."""

from collections.abc import Collection, Iterator

from msgspec import Struct

from lamella.core.log.events.artifact import StoredArtifact
from lamella.core.values import replace


class AttachmentEvent(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What the next question takes along, beside what it says itself. Names are the ids of artifacts or of messages.

    ``back`` are those for which something waited that is taken back. ``rules`` are the texts of rules that hold from it
    on, and ``ended`` of those that hold no more. ``warnings`` are told with the question.
    """

    attached: tuple[StoredArtifact, ...] = ()
    detach: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    pin: tuple[str, ...] = ()
    unpin: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def hashes(self) -> Iterator[str]:
        """Every content that it names."""
        for ref in self.attached:
            yield from ref.hashes()

    def without(self, hashes: Collection[str]) -> "AttachmentEvent":
        """The same once these contents were erased: what has them is attached no more, nor such pictures of others."""
        left = tuple(
            replace(ref, images=tuple(image for image in ref.images if image.hash not in hashes))
            for ref in self.attached
            if ref.hash not in hashes
        )
        return replace(self, attached=left)
