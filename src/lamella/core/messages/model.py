"""A message: a role, text and pictures, belonging to no provider."""

from base64 import b64encode
from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from lamella.core.artifacts.model import Image
from lamella.core.messages.delta import NativeReply, ToolCall
from lamella.core.values import describe


class Role(StrEnum):
    """Who speaks in a message; ``tool`` is what came back for a call."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Message(Struct, frozen=True, kw_only=True, gc=False):
    """One message as sent. Its text is kept in the pieces it was made of, so that equal pieces are one object.

    ``weights`` are the tokens of each piece, given where the pieces tokenise apart and so add up. ``calls`` are what
    the assistant asks for in it, and ``carried`` the same message in its provider's own form. Of a tool's message
    ``call`` is the id of the call that it answers, and ``failed`` says that the tool did not do it.
    """

    role: Role
    pieces: tuple[str, ...]
    images: tuple[Image, ...] = ()
    tokens: int = 0
    weights: tuple[int, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    carried: NativeReply | None = None
    call: str | None = None
    failed: bool = False

    def __repr__(self) -> str:
        return describe(self, without=("pieces", "weights"))

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def to_dict(self) -> dict[str, object]:
        """Role and content as plain data; content is a string, or a list of parts where there are pictures."""
        if self.calls:
            calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in self.calls]
            return {"role": self.role.value, "content": self.text, "calls": calls}
        if self.call is not None:
            answered: dict[str, object] = {"role": self.role.value, "call": self.call, "content": self.text}
            return {**answered, "failed": True} if self.failed else answered
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
            self.role == other.role
            and self.images == other.images
            and (self.calls, self.call, self.failed) == (other.calls, other.call, other.failed)
            and self.carried == other.carried
            and _same_text(self.pieces, other.pieces)
        )


def count_shared(before: Sequence[object], now: Sequence[object]) -> int:
    """How many leading items are equal, by halving: slices of shared objects compare at the speed of pointers."""
    low, high = 0, min(len(before), len(now))
    while low < high:
        middle = (low + high + 1) // 2
        if before[low:middle] == now[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _same_text(ours: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    # Pieces are shared objects, so equal messages are mostly told by identity; joining megabytes is the last resort.
    if ours == theirs:
        return True
    return sum(map(len, ours)) == sum(map(len, theirs)) and "".join(ours) == "".join(theirs)
