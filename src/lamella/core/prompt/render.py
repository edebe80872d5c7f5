"""Layers in wire order: system = L1 and the library; then earlier messages; then one user message = L3 and L5."""

from collections.abc import Callable, Sequence

from lamella.core.artifacts.model import Image
from lamella.core.budget.counting import count_pieces
from lamella.core.messages.model import Message, Role
from lamella.core.messages.request import LIBRARY_HEADING
from lamella.core.prompt.layers.library import Standing
from lamella.core.prompt.layers.model import Layer

QUERY_LABEL = "[User query]:\n"


def render_system(system: Layer, shelf: Sequence[Standing], *, count: Callable[[str], int]) -> Message | None:
    """The system message, or none where there is nothing to say; an empty L1 still sends the library."""
    shelved = [piece for standing in shelf for piece in standing.pieces]
    head = ["\n\n".join((*system.pieces, LIBRARY_HEADING))] if shelved else list(system.pieces)
    if not head:
        return None
    weights = (count_pieces(head, count), *(standing.tokens for standing in shelf))
    return Message(role=Role.SYSTEM, pieces=(*head, *shelved), tokens=sum(weights), weights=weights)


def render_user(
    turn: Sequence[str], typed: Sequence[str], images: Sequence[Image], *, count: Callable[[str], int]
) -> Message:
    """The last message: tool results, references, new artifacts, the label, the question. Alone, just the question."""
    pieces = (*turn, QUERY_LABEL, *typed) if turn else tuple(typed)
    return Message(role=Role.USER, pieces=pieces, images=tuple(images), tokens=count_pieces(pieces, count))


def head_message(message: Message, pieces: Sequence[str], *, count: Callable[[str], int]) -> Message:
    """The same message with blocks before it; text that stood alone gets the label that tells it from them."""
    labelled = len(message.pieces) > 1
    joined = (*pieces, *(() if labelled else (QUERY_LABEL,)), *message.pieces)
    return Message(role=message.role, pieces=joined, images=message.images, tokens=count_pieces(joined, count))
