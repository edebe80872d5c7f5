"""Messages by their ids: what is told of one that is not where it was looked for."""

from lamella.core.log.ids import Voice
from lamella.core.log.log import Log
from lamella.core.log.nodes import name_messages
from lamella.core.text.content import canonical_json
from lamella.engine.commands import write_command
from lamella.errors import CallError


def miss_message(log: Log, message: str, *, name: str) -> CallError:
    """Why a message of a conversation of that name cannot be had: none, on another branch, or no question."""
    node = log.nodes.get(message)
    if node is None:
        return CallError(
            f"The conversation {name} has no such message: {canonical_json(message)}.",
            hint=f"See its messages with `{write_command('chats show', name)}`.",
        )
    if message in name_messages(log.path()) and node.role is Voice.REPLY:
        return CallError(
            f"The message {message} of {name} is an answer.",
            hint=f"Name its question: {node.parent}, or regenerate it.",
        )
    head = next((head for head in log.branches() if message in name_messages(log.path(head))), message)
    return CallError(
        f"The message {message} of {name} is on another branch.",
        hint=f"Go there first: `{write_command('chats fork', name, head)}`, or /switch {head} in a chat.",
    )
