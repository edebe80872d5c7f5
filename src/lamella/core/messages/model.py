"""A message: a role, text and pictures, belonging to no provider."""

from base64 import b64encode
from enum import StrEnum

from msgspec import Struct

from lamella.core.artifacts.model import Image
from lamella.core.values import describe


class Speaker(StrEnum):
    """Who speaks in a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class Message(Struct, frozen=True, kw_only=True, gc=False):
    """One message as sent. Its text is kept in the pieces it was made of, so that equal pieces are one object.

    ``weights`` are the tokens of each piece, given where the pieces tokenise apart and so add up.
    """

    role: Speaker
    pieces: tuple[str, ...]
    images: tuple[Image, ...] = ()
    tokens: int = 0
    weights: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return describe(self, without=("pieces", "weights"))

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def to_dict(self) -> dict[str, object]:
        """Role and content as plain data; content is a string, or a list of parts where there are pictures."""
        if not self.images:
            return {"role": self.role.value, "content": self.text}
        parts: list[dict[str, str]] = [{"type": "text", "text": self.text}]
        parts += [
            {"type": "image", "media_type": image.media_type, "data": b64encode(image.data).decode()}
            for image in self.images
        ]
        return {"role": self.role.value, "content": parts}

    def extends_to(self, other: "Message") -> bool:
        """Whether the other message is this one, byte for byte."""
        return self is other or (
            self.role == other.role and self.images == other.images and _same_text(self.pieces, other.pieces)
        )


def _same_text(ours: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    # Pieces are shared objects, so equal messages are mostly told by identity; joining megabytes is the last resort.
    if ours == theirs:
        return True
    return sum(map(len, ours)) == sum(map(len, theirs)) and "".join(ours) == "".join(theirs)
