"""Messages by their ids: what was erased of them, and what is told of one that is not where it was looked for."""

from collections.abc import Iterable

from lamella.core.log.ids import Voice
from lamella.core.log.log import Log
from lamella.core.log.nodes import Told, name_messages
from lamella.core.text.content import canonical_json
from lamella.errors import CallError


def find_erased(told: Iterable[Told]) -> frozenset[str]:
    """The ids of artifacts of a branch that were erased since they were attached."""
    nodes = [turn.message for turn in told if turn.message.erased]
    return frozenset(
        ref.id
        for node in nodes
        if node.question is not None
        for ref in node.question.artifacts()
        if ref.hash in node.erased
    )


def name_question(log: Log, message: str, *, name: str) -> str:
    """The question that a message of a conversation of that name is, or answers."""
    node = log.nodes.get(message)
    if node is None:
        raise miss_message(log, message, name=name)
    return node.id if node.role is Voice.USER else node.parent


def miss_message(log: Log, message: str, *, name: str) -> CallError:
    """Why a message of a conversation of that name cannot be had: none, on another branch, or no question."""
    node = log.nodes.get(message)
    if node is None:
        return CallError(
            f"The conversation {name} has no such message: {canonical_json(message)}.",
            hint=lambda door: f"See its messages with {door.show_chat(name)}.",
        )
    if message in name_messages(log.path()) and node.role is Voice.REPLY:
        return CallError(
            f"The message {message} of {name} is an answer.",
            hint=f"Name its question: {node.parent}, or regenerate it.",
        )
    head = next((head for head in log.branches() if message in name_messages(log.path(head))), message)
    return CallError(
        f"The message {message} of {name} is on another branch.",
        hint=lambda door: f"Go there first: {door.go_to(name, head)}.",
    )
