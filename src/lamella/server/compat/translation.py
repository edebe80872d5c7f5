"""Translation of a request for an upstream that speaks another API, and the proof that no text was lost or added."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any, NamedTuple, Protocol

from lamella.conversation.pasted_documents import expand_references
from lamella.providers import ModelRequest, Role
from lamella.server.compat import anthropic, openai_chat, openai_responses
from lamella.server.compat.model_calls import LATE_INSTRUCTIONS
from lamella.server.compat.neutral import (
    AnswerEvent,
    Json,
    NeutralRequest,
    ResultPart,
    TextPart,
    parse_object,
    to_json_text,
)
from lamella.server.compat.requests import ClientRequest, PlannedText, apply_document_references, expand_messages
from lamella.server.compat.streams import SseEvent
from lamella.server.compat.wires import MESSAGES_FIELD, ApiFormat


class AnswerReader(Protocol):
    """Reads the stream of an upstream."""

    has_ended: bool
    error: Json | None

    def feed(self, event: SseEvent) -> Iterable[AnswerEvent]: ...


class AnswerWriter(Protocol):
    """Writes an answer in the format of a client."""

    def write(self, event: AnswerEvent) -> Iterable[bytes]: ...

    def write_error(self, error: Mapping[str, object]) -> bytes: ...

    def body(self) -> Json: ...


class ApiCodec(NamedTuple):
    """The functions of an API."""

    parse: Callable[[Mapping[str, Any]], NeutralRequest]
    reader: Callable[[], AnswerReader]
    writer: Callable[..., AnswerWriter]
    collect_texts: Callable[[Mapping[str, Any]], list[str]]


FORMATS: Mapping[ApiFormat, ApiCodec] = {
    ApiFormat.MESSAGES: ApiCodec(
        anthropic.parse_messages_request,
        anthropic.MessagesEventReader,
        anthropic.MessagesEventWriter,
        anthropic.collect_texts,
    ),
    ApiFormat.CHAT: ApiCodec(
        openai_chat.parse_chat_request,
        openai_chat.ChatChunkReader,
        openai_chat.ChatChunkWriter,
        openai_chat.collect_texts,
    ),
    ApiFormat.RESPONSES: ApiCodec(
        openai_responses.parse_responses_request,
        openai_responses.ResponsesEventReader,
        openai_responses.ResponsesEventWriter,
        openai_responses.collect_texts,
    ),
}


def choose_wire(request: NeutralRequest, wires: Iterable[str]) -> ApiFormat:
    """Return the API of an upstream for a request; the Responses API carries reasoning but has no stop sequences."""
    available = [ApiFormat(one) for one in wires]
    if ApiFormat.RESPONSES in available and not (request.stop and ApiFormat.CHAT in available):
        return ApiFormat.RESPONSES
    return ApiFormat.CHAT if ApiFormat.CHAT in available else available[0]


def parse_neutral(request: ClientRequest, layout: list[PlannedText]) -> NeutralRequest:
    """Return a request in neutral form, with its repeated documents as references."""
    return FORMATS[request.wire].parse(apply_document_references(request, layout))


def has_same_texts(request: ClientRequest, wire: ApiFormat, body: Json) -> bool:
    """Return whether a translated body has all texts of the client, and no other."""
    name = MESSAGES_FIELD[wire]
    expanded = {**body, name: expand_messages(wire, deepcopy(body[name]), as_written=request.written_texts())}
    if expanded[name] is None:
        return False
    labels = _list_image_labels(request) if wire is ApiFormat.CHAT else []
    return _have_same_texts(_list_client_texts(request), FORMATS[wire].collect_texts(expanded), allowed=labels)


def model_request_has_same_texts(request: ClientRequest, built: ModelRequest) -> bool:
    """Return whether a request to a provider of Lamella has all texts of the client, and no other."""
    sent: list[str] = []
    typed: list[str] = []
    marks = sum(message.pieces.count(LATE_INSTRUCTIONS) for message in built.messages)
    for message in built.messages:
        (typed if message.role is Role.USER else sent).extend(message.pieces)
        sent += [call.arguments for call in message.calls]
    written = _list_client_texts(request)
    marks -= written.count(LATE_INSTRUCTIONS)
    expanded = expand_references(typed, as_written=request.written_texts())
    return expanded is not None and _have_same_texts(written, [*sent, *expanded], allowed=[LATE_INSTRUCTIONS] * marks)


def _list_client_texts(request: ClientRequest) -> list[str]:
    return FORMATS[request.wire].collect_texts(request.body)


def _list_image_labels(request: ClientRequest) -> list[str]:
    messages = FORMATS[request.wire].parse(request.body).messages
    results = [part for one in messages for part in one.parts if isinstance(part, ResultPart)]
    return [openai_chat.image_label(one.call_id) for one in results if _has_images(one)]


def _has_images(result: ResultPart) -> bool:
    return any(not isinstance(part, TextPart) for part in result.parts)


def _have_same_texts(client: Iterable[str], sent: Iterable[str], *, allowed: Iterable[str] = ()) -> bool:
    wanted, found = (Counter(filter(None, map(_normalize_for_comparison, texts))) for texts in (client, sent))
    found.subtract(Counter(allowed))
    return +found == wanted and not any(count < 0 for count in found.values())


def _normalize_for_comparison(text: str) -> str:
    """Return a text as it is compared: arguments of calls as JSON without its spelling, blank texts as nothing."""
    if not text.strip():
        return ""
    given = parse_object(text) if text.lstrip().startswith("{") else None
    if given is None:
        return text
    if set(given) == {"input"} and isinstance(given["input"], str):
        return given["input"] if given["input"].strip() else ""
    return to_json_text(dict(sorted(given.items()))) if given else ""
