"""Rounds of tools as plain talk: the templates of small models know no tools, and refuse or drop what they know not."""

from collections.abc import Sequence

from lamella.core.messages.delta import ToolCall
from lamella.core.messages.model import Message, Role


def tell_rounds(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The same talk without calls: the assistant says what it calls for, and is told what came back in one message."""
    told: list[Message] = []
    names: dict[str | None, str] = {}
    before: Role | None = None
    for message in messages:
        names = {call.id: call.name for call in message.calls} or names
        if message.role is Role.TOOL:
            said = _tell_result(message, names.get(message.call, message.call or "tool"))
            if before is Role.TOOL:
                # Many templates refuse two messages of one speaker in a row.
                told[-1] = Message(role=Role.USER, pieces=(*told[-1].pieces, "\n\n", said))
            else:
                told.append(Message(role=Role.USER, pieces=(said,)))
        else:
            told.append(_tell_calls(message) if message.calls else message)
        before = message.role
    return tuple(told)


def _tell_calls(message: Message) -> Message:
    said = [message.text] if message.text.strip() else []
    return Message(role=Role.ASSISTANT, pieces=("\n\n".join((*said, *map(_tell_call, message.calls))),))


def _tell_call(call: ToolCall) -> str:
    return f"[Call of {call.name}]: {call.arguments}"


def _tell_result(message: Message, name: str) -> str:
    return f"[{'Failure' if message.failed else 'Result'} of {name}]:\n{message.text}"
