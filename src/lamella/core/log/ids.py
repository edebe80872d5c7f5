"""Message ids: from content and ancestry, so that the same conversation has the same ids everywhere."""

from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha256

from msgspec.json import encode

from lamella.core.log.turn import Turn
from lamella.core.messages.delta import ToolCall
from lamella.core.messages.rounds import ToolOutput
from lamella.core.text.content import canonical_json, encode_text, hash_text, short_hash

_ID_DIGITS = 16


class Voice(StrEnum):
    """Who speaks in the log: the user, or whoever answers. On the wire each message has a role instead."""

    USER = "user"
    REPLY = "reply"


def turn_id(conversation: str, parent: str, turn: Turn) -> str:
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
    said = [conversation, parent, role.value, text, [list(pair) for pair in attached]]
    try:
        # Of texts alone it is byte for byte the canonical JSON, in a tenth of the time.
        key = encode(said)
    except UnicodeEncodeError:
        key = encode_text(canonical_json(said))
    return sha256(key).hexdigest()[:_ID_DIGITS]


def round_result_id(turn: str, *, place: tuple[int, int], call: ToolCall, output: ToolOutput) -> str:
    """The id of what came back for a call: two calls never share one, also where they ask and give the same.

    ``place`` is the number of the round and of the result in it.
    """
    if output.id is not None:
        return output.id
    return name_result(turn, place=place, call=(call.name, call.arguments), output=hash_text(output.output))


def name_result(turn: str, *, place: tuple[int, int], call: tuple[str, str], output: str) -> str:
    """The same id from what the log knows: the call's name and arguments, and the hash of the output."""
    name, arguments = call
    return f"tool:{name}:{short_hash(canonical_json([turn, list(place), arguments, output]))}"
