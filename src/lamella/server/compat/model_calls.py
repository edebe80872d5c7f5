"""Requests to models that no HTTP API of a client's format leads to: models in this process, Gemini, and scripts.

``build_model_request`` builds the request that every provider of Lamella takes. ``read_deltas`` yields what the
provider answers as events.
"""

from base64 import b64decode
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from hashlib import sha256
from typing import cast

from msgspec.structs import replace

from lamella.providers import (
    Delta,
    ImageData,
    Message,
    ModelRequest,
    ProviderReply,
    ReasoningDelta,
    Role,
    StopDelta,
    TextDelta,
    ToolCall,
    ToolDefinition,
    Usage,
)
from lamella.server.compat.json_spans import decode_json
from lamella.server.compat.neutral import (
    PROVIDER_FORMAT,
    AnswerEnd,
    AnswerEvent,
    AnswerReasoningDelta,
    AnswerStart,
    AnswerTextDelta,
    CallDelta,
    CallEnd,
    CallPart,
    CallStart,
    DocumentPart,
    ImagePart,
    Json,
    NeutralMessage,
    NeutralRequest,
    ReasoningEnd,
    ReasoningPart,
    ResultPart,
    TextPart,
    parse_object,
    to_json_text,
)
from lamella.server.compat.refusals import RefusedFieldError
from lamella.server.compat.usage import TokenUsage

# The line in front of instructions that are sent as a part of the user's message.
LATE_INSTRUCTIONS = "[Instructions of the application, not of the user]"
# The fields of a part of an answer that may go back.
_GEMINI_FIELDS = {"text", "thought", "thought_signature", "function_call"}
_GEMINI_EFFORTS = {"none": "minimal", "xhigh": "high", "max": "high"}
_STOPS = {
    "length": "length",
    "circles": "length",
    "tools": "tools",
    "sequence": "sequence",
    "refused": "refused",
    "window": "window",
}


class ModelAbilities:
    """What a model can be asked for, by the kind of its provider."""

    def __init__(
        self,
        *,
        kind: str,
        max_tokens: int,
        takes_images: bool,
        takes_tools: bool,
        marks_late_instructions: bool = False,
    ) -> None:
        self.kind = kind
        self.max_tokens = max_tokens
        self.takes_images = takes_images
        self.takes_tools = takes_tools
        self.marks_late_instructions = marks_late_instructions


def build_model_request(request: NeutralRequest, model: str, abilities: ModelAbilities) -> ModelRequest:
    """Return the request for a provider of Lamella; ``kind`` is ``local``, ``gemini`` or ``other``."""
    if request.tools and not abilities.takes_tools:
        raise request.unsupported_field_error("tools", "this model")
    messages: list[Message] = []
    for one in request.messages:
        if one.role != "system" or abilities.kind == "other" or all(before.role is Role.SYSTEM for before in messages):
            messages += _build_messages(request, one, abilities)
        elif abilities.marks_late_instructions:
            _add_late_instructions(messages, one)
        else:
            raise RefusedFieldError(
                f"{one.param}.role",
                f"{one.param}.role cannot be translated for this model, which has instructions only at the beginning.",
                hint="Whoever runs the server can set serve.late_instructions.",
            )
    extra = _build_extra_fields(request, abilities.kind)
    effort = request.effort
    if abilities.kind == "gemini" and effort is not None:
        effort = _GEMINI_EFFORTS.get(effort, effort)
    return ModelRequest(
        model=model,
        messages=tuple(messages),
        tools=tuple(
            ToolDefinition(name=one.name, description=one.description or "", parameters=to_json_text(one.schema))
            for one in request.tools
        ),
        max_output_tokens=request.max_tokens or abilities.max_tokens,
        temperature=request.temperature,
        effort=None if abilities.kind == "local" and effort == "none" else effort,
        allows_tool_calls=request.tool_choice != "none",
        extra_fields_json=to_json_text(extra),
    )


def _add_late_instructions(messages: list[Message], message: NeutralMessage) -> None:
    """Add instructions to the message of the user before them, or as one of their own, behind a line that names them."""
    texts = [part.text for part in message.parts if isinstance(part, TextPart)]
    pieces = _join_texts([LATE_INSTRUCTIONS, *texts])
    if messages[-1].role is Role.USER:
        # Many models reject two consecutive messages of the same role.
        messages[-1] = replace(messages[-1], pieces=(*messages[-1].pieces, "\n\n", *pieces))
    else:
        messages.append(Message(role=Role.USER, pieces=pieces))


def _build_messages(request: NeutralRequest, message: NeutralMessage, abilities: ModelAbilities) -> Sequence[Message]:
    if message.role == "tool":
        results = [one for one in message.parts if isinstance(one, ResultPart)]
        return [_build_result(request, message, one, abilities) for one in results]
    texts, images, calls, native = [], [], [], None
    for part in message.parts:
        match part:
            case TextPart(text):
                texts.append(text)
            case ImagePart() if abilities.takes_images and part.data:
                images.append(_decode_image(part, f"{message.param}.content"))
            case ImagePart() | DocumentPart():
                raise request.unsupported_field_error(f"{message.param}.content", "this model: a picture or a file")
            case CallPart(call, name, arguments):
                calls.append(ToolCall(id=call, name=name, arguments=arguments))
            case ReasoningPart(wire, item) if item is not None and str(wire).startswith(PROVIDER_FORMAT):
                native = ProviderReply(format=str(wire).removeprefix(PROVIDER_FORMAT), json=str(item.get("json")))
            case ReasoningPart():
                request.record_ignored_field("reasoning")
    if native is not None and not _has_same_texts_and_calls(native, texts, calls):
        # The client has changed its copy of the answer. The copy inside the signature would undo that.
        request.record_ignored_field("reasoning")
        native = None
    built = Message(
        role=Role(message.role),
        pieces=_join_texts(texts),
        images=tuple(images),
        calls=tuple(calls),
        provider_reply=native if calls else None,
    )
    return [built]


def _build_result(
    request: NeutralRequest, message: NeutralMessage, result: ResultPart, abilities: ModelAbilities
) -> Message:
    texts, images = [], []
    for part in result.parts:
        match part:
            case TextPart(text):
                texts.append(text)
            case ImagePart() if abilities.kind == "gemini" and abilities.takes_images and part.data:
                images.append(_decode_image(part, f"{message.param}.content"))
            case _:
                raise request.unsupported_field_error(
                    f"{message.param}.content", "this model: a picture or a file in a result"
                )
    return Message(
        role=Role.TOOL,
        pieces=_join_texts(texts),
        images=tuple(images),
        call_id=result.call_id,
        failed=result.has_failed,
    )


def _join_texts(texts: Sequence[str]) -> tuple[str, ...]:
    """Return texts as the pieces of one message, which the check finds again."""
    return tuple(piece for text in texts for piece in ("\n\n", text))[1:]


def _decode_image(part: ImagePart, param: str) -> ImageData:
    try:
        data = b64decode(part.data)
    except ValueError as error:
        raise RefusedFieldError(param, f"The data of a picture in {param} is no base64.") from error
    return ImageData(media_type=part.media_type, data=data, width=0, height=0, hash=sha256(data).hexdigest())


def _has_same_texts_and_calls(native: ProviderReply, texts: Sequence[str], calls: Sequence[ToolCall]) -> bool:
    """Return whether an answer in the form of its provider has the texts and the calls of the client's copy."""
    if native.format != "gemini":
        return not any(text.strip() for text in texts)
    try:
        parts = decode_json(native.json.encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return False
    if not isinstance(parts, list) or not all(isinstance(part, dict) and set(part) <= _GEMINI_FIELDS for part in parts):
        return False
    said = "".join(str(part.get("text") or "") for part in parts if not part.get("thought"))
    called = [
        (one.get("name"), one.get("args") or {}) for part in parts if isinstance(one := part.get("function_call"), dict)
    ]
    return said == "".join(texts) and called == [(one.name, parse_object(one.arguments)) for one in calls]


def _build_extra_fields(request: NeutralRequest, kind: str) -> Json:
    """Return the fields that a provider's API has beyond those that Lamella itself uses."""
    choice = request.tool_choice if request.tools and request.tool_choice not in (None, "auto", "none") else None
    form = request.json_format
    if request.parallel_calls is False and request.tools and request.tool_choice != "none":
        raise request.unsupported_field_error("parallel_calls", "this model")
    if any(one.strict for one in request.tools):
        request.record_ignored_field("tools.strict")
    request.record_unused_format_names()
    if kind == "gemini":
        values: Json = {
            "stopSequences": request.stop,
            "topP": request.top_p,
            "topK": request.top_k,
            "seed": request.seed,
            "presencePenalty": request.presence_penalty,
            "frequencyPenalty": request.frequency_penalty,
            "responseMimeType": None if form is None else "application/json",
            "responseJsonSchema": None if form is None else form.schema,
        }
        config = {name: value for name, value in values.items() if value is not None}
        fields: Json = {"generationConfig": config} if config else {}
        if choice is not None:
            named = choice.removeprefix("tool:")
            allowed = {"allowedFunctionNames": [named]} if named != choice else {}
            fields["toolConfig"] = {"functionCallingConfig": {"mode": "ANY", **allowed}}
        return fields
    wanted = {
        "stop": request.stop,
        "top_p": request.top_p,
        "top_k": request.top_k,
        "seed": request.seed,
        "presence_penalty": request.presence_penalty,
        "frequency_penalty": request.frequency_penalty,
        "json_format": form,
        "tool_choice": choice,
    }
    set_fields: Json = {name: value for name, value in wanted.items() if value is not None}
    if kind != "local":
        # Nothing is known about this provider, so nothing beyond the common fields can be asked of it.
        for name in set_fields:
            if name != "seed":
                raise request.unsupported_field_error(name, "this model")
            request.record_ignored_field(request.params.get(name, name))
        return {}
    if form is not None:
        schema = {"name": form.name or "answer", "schema": form.schema}
        set_fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    set_fields.pop("json_format", None)
    if choice is not None and choice != "required":
        raise request.unsupported_field_error("tool_choice", "this model")
    return set_fields


async def read_deltas(deltas: AsyncIterator[Delta]) -> AsyncGenerator[AnswerEvent, None]:
    """Yield a provider's answer as events. Calls wait for the end, where the provider gives their signatures."""
    calls: list[ToolCall] = []
    usage = TokenUsage()
    has_started = False
    async with aclosing(cast("AsyncGenerator[Delta, None]", deltas)):
        async for delta in deltas:
            if not has_started:
                has_started = True
                yield AnswerStart("")
            match delta:
                case TextDelta(text=text):
                    yield AnswerTextDelta(text)
                case ReasoningDelta(text=text):
                    yield AnswerReasoningDelta(text)
                case ToolCall():
                    calls.append(delta)
                case Usage():
                    write = None if delta.write is None and delta.write_long is None else 0
                    write = write if write is None else (delta.write or 0) + (delta.write_long or 0)
                    usage = TokenUsage(delta.plain, delta.read, write, delta.output, delta.reasoning)
                case StopDelta():
                    for event in _make_end_events(delta, calls, usage):
                        yield event
                    return


def _make_end_events(stop: StopDelta, calls: Sequence[ToolCall], usage: TokenUsage) -> list[AnswerEvent]:
    events: list[AnswerEvent] = []
    if calls and stop.provider_reply is not None:
        native = {"json": stop.provider_reply.json}
        events.append(ReasoningEnd(f"{PROVIDER_FORMAT}{stop.provider_reply.format}", native))
    for call in calls:
        events += (CallStart(call.id, call.name), CallDelta(call.arguments), CallEnd())
    return [*events, AnswerEnd(_STOPS.get(stop.reason.value, "end"), usage)]
