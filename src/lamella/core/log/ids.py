"""Message ids: from content and ancestry, so that the same conversation has the same ids everywhere."""

from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha256

from lamella.core.artifacts.make import canonical_json
from lamella.core.log.turn import TurnInput
from lamella.core.text.content import encode_text

_ID_DIGITS = 16


class Voice(StrEnum):
    """The kinds of segment that are no artifact: parts of L1, typed text, replies."""

    SYSTEM = "system"
    USER = "user"
    REPLY = "reply"


def turn_id(conversation: str, parent: str, turn: TurnInput) -> str:
    """The id of the message that a turn sends: from its text and from what is attached, as given.

    A turn that was sent before keeps its id, also when something attached to it was erased since.
    """
    if turn.id is not None:
        return turn.id
    attached = [(artifact.id, artifact.hash) for artifact in (*turn.results, *turn.attached)]
    return message_id(conversation, parent=parent, role=Voice.USER, text=turn.text, attached=attached)


def message_id(
    conversation: str, *, parent: str, role: Voice, text: str, attached: Sequence[tuple[str, str]] = ()
) -> str:
    """The id of a message; it stands in no rendered byte and no envelope hash.

    ``attached`` are the ids and hashes of what is attached to it.
    """
    attachments = [list(pair) for pair in attached]
    key = canonical_json([conversation, parent, role.value, text, attachments])
    return sha256(encode_text(key)).hexdigest()[:_ID_DIGITS]
