"""What all wire formats share: text cut at seams, pictures as base64, a tool's schema, further fields."""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from json import JSONDecodeError, dumps, loads
from typing import Any

from lamella.adapters.providers.wire.fields import as_json
from lamella.core.artifacts.model import Image, ToolDefinition
from lamella.core.messages.delta import NativeReply, join_text
from lamella.core.messages.model import Message, Role
from lamella.core.messages.request import Request
from lamella.errors import CallError

Body = dict[str, Any]


def system_text(messages: Sequence[Message]) -> str:
    """The system message's text; empty where there is none."""
    return "".join(message.text for message in messages if message.role is Role.SYSTEM)


def spoken(messages: Sequence[Message]) -> list[tuple[int, Message]]:
    """The messages of the conversation itself, each with its place in the request."""
    return [(place, message) for place, message in enumerate(messages) if message.role is not Role.SYSTEM]


def cut(text: str, seams: Sequence[int]) -> Iterator[tuple[int, str]]:
    """A text in parts that end at the seams, each with where it ends. No part is only white space: none may be sent."""
    start = 0
    pending: tuple[int, str] | None = None
    for end in sorted({*(seam for seam in seams if 0 < seam < len(text)), len(text)}):
        part = text[start:end]
        start = end
        if pending and part.strip() and pending[1].strip():
            yield pending
            pending = (end, part)
        else:
            pending = (end, (pending[1] if pending else "") + part)
    if pending and pending[1].strip():
        yield pending


def encode(image: Image) -> str:
    """A picture's bytes in base64."""
    return b64encode(image.data).decode()


def schema(tool: ToolDefinition) -> Any:  # noqa: ANN401 - a JSON schema is any JSON
    """A tool's parameters as data."""
    return loads(tool.parameters)


def extras(request: Request, own: Body) -> Body:
    """Further fields the caller wants in the body; what Lamella builds itself cannot be replaced by them."""
    try:
        found = loads(request.extras)
    except JSONDecodeError as error:
        raise CallError(f"The extras are not JSON: {error}.", hint="Give a JSON object of further fields.") from error
    if not isinstance(found, dict):
        raise CallError("The extras are not a JSON object.", hint="Give a JSON object of further fields.")
    clash = sorted(set(found) & set(own))
    if clash:
        raise CallError(f"The extras set {', '.join(clash)}, which Lamella builds.", hint="Leave these fields out.")
    return {"extra_body": found} if found else {}


def find_effort(request: Request, *takes: str) -> str | None:
    """How much the model is to think, in the words that an API takes; none where that is the model's own choice."""
    if request.effort is not None and request.effort not in takes:
        raise CallError(
            f"{request.model} takes no reasoning_effort {request.effort}.", hint=f"Choose one of: {', '.join(takes)}."
        )
    return request.effort


def join_extras(arguments: Body) -> Body:
    """Arguments of an SDK as the body it sends: further fields stand among the others."""
    further: Body = arguments.get("extra_body", {})
    return {name: value for name, value in arguments.items() if name != "extra_body"} | further


def tail_messages(request: Request) -> tuple[int | None, int | None]:
    """The place of the last message that stays, and of the one that was last in the request before."""
    settled = request.settled
    count = len(request.messages) if settled.messages is None else settled.messages
    talk = [(place, message) for place, message in spoken(request.messages) if place < count]
    if not talk:
        return None, None
    tail, last = talk.pop()
    # What several tools gave back came with one request: the one before ended where the model called them.
    while last.role is Role.TOOL and talk and talk[-1][1].role is Role.TOOL:
        talk.pop()
    return tail, next((place for place, message in reversed(talk) if _ends_alike(message, last)), None)


def _ends_alike(message: Message, last: Message) -> bool:
    """Whether requests can end with one message as with the other: both the model's last word, or both not its own."""
    if last.role is not Role.ASSISTANT:
        return message.role is not Role.ASSISTANT
    return message.role is Role.ASSISTANT and not message.calls


def keep_native(said: object, wire_format: str) -> NativeReply:
    """What a model said in its provider's own form, to be handed back; characters whose halves came apart are whole."""
    return NativeReply(format=wire_format, json=join_text((as_json(said),)))


def native_reply(message: Message, wire_format: str) -> Any | None:  # noqa: ANN401 - any JSON
    """What the model said just as its provider wrote it, if it was of this wire format."""
    carried = message.carried
    return loads(carried.json) if carried is not None and carried.format == wire_format else None


def read_arguments(text: str) -> Body:
    """A call's arguments as an object; what a model wrote badly is handed back as it wrote it, under one name."""
    try:
        found = loads(text) if text.strip() else {}
        # Half of a character, or lists in lists without end, can be read and not be written again.
        dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return {"unreadable": text}
    return found if isinstance(found, dict) else {"value": found}


def find_chosen(request: Request, ends: Mapping[int, int]) -> list[int]:
    """The last block of each message that the caller wants marked."""
    missing = [place for place in request.marks if place not in ends]
    if missing:
        raise CallError(
            f"A breakpoint is wanted after message {missing[0]}, and the request has no such message with content.",
            hint=f"Messages are counted from 0; this request has {len(request.messages)}.",
        )
    return [ends[place] for place in request.marks]
