"""Requests of the three APIs, with the bytes that the client sent.

``parse_request`` decodes a request and keeps its bytes. ``build_passthrough_body`` returns the bytes for an upstream
that speaks the same API: only the model, cache breakpoints and repeated documents differ from those of the client.
``is_equivalent_body`` proves that, reading nothing but the two bodies.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from lamella.conversation.pasted_documents import (
    DocumentReference,
    apply_references,
    expand_references,
    plan_references_to_earlier_copies,
)
from lamella.server.compat.identity import has_breakpoints, without_breakpoints
from lamella.server.compat.json_spans import (
    Replacement,
    Span,
    decode_json,
    encode_json,
    find_members,
    find_root,
    find_text_spans,
    iter_items,
    iter_members,
    replace_spans,
)
from lamella.server.compat.refusals import RefusedFieldError
from lamella.server.compat.wires import MESSAGES_FIELD, ApiFormat

# The field in which clients give Lamella options that the API does not have. It is never sent to an upstream.
LAMELLA_FIELD = "lamella"
_LAMELLA_OPTIONS = ("conversation", "recall")
_BREAKPOINT_FIELD, _BREAKPOINT = "cache_control", b'{"type":"ephemeral"}'
_TEXT_PART_TYPES = ("text", "input_text")
_MARKABLE_TYPES = ("text", "image", "document", "tool_use", "tool_result")
# How many blocks before a breakpoint the API looks for an entry, with a margin.
_LOOKBACK_BLOCKS = 18


_HEAD_FIELDS = {
    ApiFormat.MESSAGES: ("system", "tools"),
    ApiFormat.CHAT: ("tools", "functions"),
    ApiFormat.RESPONSES: ("instructions", "tools", "previous_response_id"),
}


class UserText(NamedTuple):
    """A text of the user: the position of its message, and of its part if the content is a list."""

    message: int
    part: int | None
    text: str


@dataclass(slots=True, kw_only=True)
class ClientRequest:
    """A request as a client sent it: its bytes, and the same decoded."""

    wire: ApiFormat
    data: bytes
    body: dict[str, Any]
    messages: list[Any] = field(default_factory=list)

    @property
    def model(self) -> str:
        """Return the model that the client names."""
        return str(self.body.get("model") or "")

    @property
    def is_streamed(self) -> bool:
        """Return whether the client wants the answer as events."""
        return self.body.get("stream") is True

    @property
    def system_and_tools(self) -> dict[str, object]:
        """Return what comes before the messages: the system prompt and the tools."""
        return {name: self.body.get(name) for name in _HEAD_FIELDS[self.wire]}

    @property
    def has_breakpoints(self) -> bool:
        """Return whether the client placed a cache breakpoint itself."""
        parts = (self.body.get("tools"), self.body.get("system"), self.messages)
        return self.body.get("cache_control") is not None or any(has_breakpoints(one) for one in parts)

    def user_texts(self) -> list[UserText]:
        """Return the texts of the user, in order."""
        return [one for place, message in enumerate(self.messages) for one in _list_message_texts(place, message)]

    def written_texts(self) -> set[str]:
        """Return the texts of the user, whatever their places."""
        return {one.text for one in self.user_texts()}


def parse_request(wire: ApiFormat, data: bytes) -> ClientRequest:
    """Decode a request; raises ``RefusedFieldError`` if it is no JSON object with the fields that Lamella has to read."""
    body = parse_object_body(data)
    for name, kinds in (("model", (str, type(None))), ("stream", (bool, type(None)))):
        if not isinstance(body.get(name), kinds):
            raise RefusedFieldError(name, f"{name} has the wrong type.")
    messages = body.get(MESSAGES_FIELD[wire])
    if wire is ApiFormat.RESPONSES and isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
        raise RefusedFieldError(MESSAGES_FIELD[wire], f"{MESSAGES_FIELD[wire]} is no list of messages.")
    if not messages and wire is not ApiFormat.RESPONSES:
        raise RefusedFieldError(MESSAGES_FIELD[wire], f"{MESSAGES_FIELD[wire]} is empty.", hint="Send a message.")
    _check_lamella_field(body.get(LAMELLA_FIELD))
    return ClientRequest(wire=wire, data=data, body=body, messages=messages)


def parse_object_body(data: bytes) -> dict[str, Any]:
    """Decode a body; raises ``RefusedFieldError`` if it is no JSON object."""
    try:
        body = decode_json(data)
    except (ValueError, RecursionError) as error:
        raise RefusedFieldError(None, "The request body is not valid JSON.", hint="Send a JSON object.") from error
    if not isinstance(body, dict):
        raise RefusedFieldError(None, "The request body is no JSON object.", hint="Send a JSON object.")
    return body


def _check_lamella_field(options: object) -> None:
    if options is None:
        return
    if not isinstance(options, dict):
        raise RefusedFieldError(LAMELLA_FIELD, "lamella is no object.")
    for name in options:
        if name not in _LAMELLA_OPTIONS:
            raise RefusedFieldError(
                f"{LAMELLA_FIELD}.{name[:60]}",
                f"There is no option {name[:60]!r} here.",
                hint="POST /v1/conversations/{conversation}/messages takes attachments and runners.",
            )


def _list_message_texts(place: int, message: Mapping[str, Any]) -> list[UserText]:
    if message.get("role") != "user":
        return []
    content = message.get("content")
    if isinstance(content, str):
        return [UserText(place, None, content)]
    if not isinstance(content, list):
        return []
    return [
        UserText(place, at, part["text"])
        for at, part in enumerate(content)
        if isinstance(part, dict) and part.get("type") in _TEXT_PART_TYPES and isinstance(part.get("text"), str)
    ]


class PlannedText(NamedTuple):
    """A text of the user, and the references that its repeated documents become."""

    place: UserText
    references: list[DocumentReference]


def plan_document_references(request: ClientRequest, *, unchanged_until: int = 0) -> list[PlannedText]:
    """Return the texts with repeated documents; the first ``unchanged_until`` messages stay as they are."""
    places = request.user_texts()
    unchanged = sum(one.message < unchanged_until for one in places)
    plan = plan_references_to_earlier_copies([one.text for one in places], unchanged_count=unchanged)
    return [PlannedText(place, references) for place, references in zip(places, plan, strict=True) if references]


# The same API upstream: the client's bytes, with as few changes as possible.


def build_passthrough_body(
    request: ClientRequest,
    *,
    model: str,
    layout: Sequence[PlannedText] = (),
    breakpoints: "Breakpoints | None" = None,
) -> bytes:
    """Return the body for an upstream that speaks the client's API; ``model`` replaces the client's name of the model."""
    data = request.data
    if model == request.body.get("model") and not layout and not breakpoints and LAMELLA_FIELD not in request.body:
        return data
    root = find_root(data)
    members = find_members(data, root)
    messages = members[MESSAGES_FIELD[request.wire]]
    added: list[bytes] = []
    changes = _make_reference_changes(request, messages, layout) if layout else []
    if breakpoints:
        changes.append(_make_breakpoint_change(data, root))
    if model != request.body.get("model"):
        if "model" in members:
            # Of a repeated name, parsers disagree which value counts.
            named = [one.value for one in iter_members(data, root) if one.name == "model"]
            changes += [Replacement(one, encode_json(model)) for one in named]
        else:
            added.append(b'"model":' + encode_json(model))
    if breakpoints and breakpoints.after_message is not None:
        changes.append(_make_breakpoint_change(data, _find_last_block(data, messages, breakpoints.after_message)))
    if added:
        changes.append(Replacement(Span(root + 1, root + 1), b"".join(one + b"," for one in added)))
    body = replace_spans(data, changes)
    return _without_member(body, LAMELLA_FIELD) if LAMELLA_FIELD in request.body else body


class Breakpoints(NamedTuple):
    """Cache breakpoints for a request of Anthropic's API in which the client placed none.

    The API places one after the last block by itself. It finds earlier entries only a limited number of blocks back, so
    a second one follows the last message of the previous request if that is farther away.
    """

    after_message: int | None = None


def plan_breakpoints(request: ClientRequest, *, seen_messages: int | None) -> Breakpoints:
    """Return where to place breakpoints; ``seen_messages`` is how many messages an earlier request already had."""
    if not seen_messages:
        return Breakpoints()
    added = sum(_count_blocks(message) for message in request.messages[seen_messages:])
    content = request.messages[seen_messages - 1].get("content")
    last = content[-1] if isinstance(content, list) and content else None
    can_mark = isinstance(last, dict) and last.get("type") in _MARKABLE_TYPES
    return Breakpoints(seen_messages - 1 if added > _LOOKBACK_BLOCKS and can_mark else None)


def _count_blocks(message: Mapping[str, Any]) -> int:
    content = message.get("content")
    return len(content) if isinstance(content, list) else 1


def _find_last_block(data: bytes, messages: Span, message: int) -> int:
    span = list(iter_items(data, messages.start))[message]
    *_, block = iter_items(data, find_members(data, span.start)["content"].start)
    return block.start


def _make_breakpoint_change(data: bytes, start: int) -> Replacement:
    """Return the change that gives a breakpoint to the object that begins at ``start``."""
    empty = find_members(data, start).get(_BREAKPOINT_FIELD)
    if empty is not None:
        return Replacement(empty, _BREAKPOINT)
    return Replacement(Span(start + 1, start + 1), encode_json(_BREAKPOINT_FIELD) + b":" + _BREAKPOINT + b",")


def _make_reference_changes(request: ClientRequest, messages: Span, layout: Sequence[PlannedText]) -> list[Replacement]:
    data, changes = request.data, []
    if data[messages.start] == 0x22:
        # The Responses API takes a single text as the whole input.
        return _make_text_changes(data, messages, layout[0].references)
    spans = list(iter_items(data, messages.start))
    for message, planned in groupby(layout, key=lambda one: one.place.message):
        content = find_members(data, spans[message].start)["content"]
        parts = list(iter_items(data, content.start)) if data[content.start] == 0x5B else []
        for place, references in planned:
            text = content if place.part is None else find_members(data, parts[place.part].start)["text"]
            changes += _make_text_changes(data, text, references)
    return changes


def _make_text_changes(data: bytes, string: Span, references: Sequence[DocumentReference]) -> list[Replacement]:
    spans = find_text_spans(data, string, [(one.start, one.end) for one in references])
    lines = (encode_json(one.line)[1:-1] for one in references)
    return [Replacement(span, line) for span, line in zip(spans, lines, strict=True)]


def apply_document_references(request: ClientRequest, layout: Sequence[PlannedText]) -> dict[str, Any]:
    """Return the decoded body with its references, for an upstream that speaks another API."""
    if not layout:
        return request.body
    messages = [dict(message) for message in request.messages]
    for place, references in layout:
        message, text = messages[place.message], apply_references(place.text, references)
        if place.part is None:
            message["content"] = text
        else:
            parts = list(message["content"])
            parts[place.part] = {**parts[place.part], "text": text}
            message["content"] = parts
    return {**request.body, MESSAGES_FIELD[request.wire]: messages}


def _without_member(data: bytes, name: str) -> bytes:
    """Return an object without the members of a name."""
    root = find_root(data)
    names = [member.name for member in iter_members(data, root)]
    spans = [member.value for member in iter_members(data, root)]
    starts = [root + 1, *(span.end for span in spans[:-1])]
    kept = [data[start : span.end] for one, start, span in zip(names, starts, spans, strict=True) if one != name]
    # A member that comes first now has the comma that followed the removed one.
    joined = b"".join(kept).lstrip(b" \t\r\n").removeprefix(b",")
    return data[: root + 1] + joined + data[spans[-1].end :]


def is_equivalent_body(request: ClientRequest, sent: bytes, *, model: str, has_added_breakpoints: bool) -> bool:
    """Return whether a body says exactly what the client's request says.

    Each reference in it is replaced by the document that it names, found in the body itself. After that the body must
    be equal to that of the client, but for the model, the field for Lamella and added cache breakpoints.
    """
    body, name = decode_json(sent), MESSAGES_FIELD[request.wire]
    wanted = {one: value for one, value in request.body.items() if one != LAMELLA_FIELD} | {"model": model}
    messages = expand_messages(request.wire, body.pop(name, None), as_written=request.written_texts())
    written = wanted.pop(name, None)
    if has_added_breakpoints:
        # The client's own breakpoints say nothing here: a field may be there with null.
        body, messages, wanted, written = map(without_breakpoints, (body, messages, wanted, written))
    return bool(messages == written and body == wanted)


def expand_messages(wire: ApiFormat, messages: Any, *, as_written: Container[str]) -> Any:  # noqa: ANN401 - any JSON
    """Return messages with each reference replaced by its document; None if a reference names none.

    ``as_written`` are the texts of the client, which are not references even if they look like one.
    """
    if wire is ApiFormat.RESPONSES and isinstance(messages, str):
        whole = expand_references([messages], as_written=as_written)
        return None if whole is None else whole[0]
    if not isinstance(messages, list):
        return messages
    places = [one for place, message in enumerate(messages) for one in _list_message_texts(place, message)]
    expanded = expand_references([one.text for one in places], as_written=as_written)
    if expanded is None:
        return None
    for place, text in zip(places, expanded, strict=True):
        if place.part is None:
            messages[place.message]["content"] = text
        else:
            messages[place.message]["content"][place.part]["text"] = text
    return messages
