"""The arguments of ``models.generate_content``: a pure function of the request and what is known of the model."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping

from lamella.adapters.providers.registry import bare_model
from lamella.adapters.providers.wire.body import (
    Body,
    extras,
    find_effort,
    native_reply,
    read_arguments,
    schema,
    spoken,
    system_text,
)
from lamella.core.messages.delta import ToolCall
from lamella.core.messages.model import Message, Role
from lamella.core.messages.request import Request

FORMAT = "gemini"
# Older models give calls no id. Those that Lamella makes up begin like this, and are not sent.
MADE_UP = "lamella-"
# What says how an answer is made, in the order in which the SDK writes it.
_GENERATION = ("temperature", "max_output_tokens", "thinking_config")
_EFFORTS = ("minimal", "low", "medium", "high")


def build_request(request: Request, *, cached: str | None = None) -> Body:
    """The keyword arguments that send this request with Google's SDK.

    ``cached`` names a cache that holds the instructions and tools; the API refuses them beside it.
    """
    config: Body = {
        "max_output_tokens": request.answer,
        # The SDK would call tools by itself; that is the caller's business.
        "automatic_function_calling": {"disable": True},
    }
    if request.temperature is not None:
        config["temperature"] = request.temperature
    effort = find_effort(request, *_EFFORTS)
    if effort is not None:
        config["thinking_config"] = {"thinking_level": effort.upper()}
    config |= {"cached_content": cached} if cached else build_stored(request)
    if "tools" in config and not request.call:
        # What is beside a cache of its own may say nothing of tools.
        config["tool_config"] = {"function_calling_config": {"mode": "NONE"}}
    further = extras(request, {"contents": ..., "systemInstruction": ..., "tools": ..., "cachedContent": ...})
    if further:
        config["http_options"] = further
    return {"model": bare_model(request.model), "contents": _contents(request), "config": config}


def build_stored(request: Request) -> Body:
    """The part of a request that a cache of its own can hold: instructions, library and tools."""
    stored: Body = {}
    text = system_text(request.messages)
    if text.strip():
        stored["system_instruction"] = text
    if request.tools:
        declarations = [
            {"name": tool.name, "description": tool.description, "parameters_json_schema": schema(tool)}
            for tool in request.tools
        ]
        stored["tools"] = [{"function_declarations": declarations}]
    return stored


def write_body(arguments: Body) -> Body:
    """Arguments of the SDK as the body it sends, with names as it spells them on the wire."""
    config = arguments["config"]
    body: Body = {"contents": [{**content, "parts": _write_parts(content)} for content in arguments["contents"]]}
    if "system_instruction" in config:
        body["systemInstruction"] = {"parts": [{"text": config["system_instruction"]}], "role": "user"}
    if "tools" in config:
        body["tools"] = [{"functionDeclarations": tool["function_declarations"]} for tool in config["tools"]]
    if "tool_config" in config:
        body["toolConfig"] = {"functionCallingConfig": config["tool_config"]["function_calling_config"]}
    if "cached_content" in config:
        body["cachedContent"] = config["cached_content"]
    body["generationConfig"] = {_capital(name): config[name] for name in _GENERATION if name in config}
    further: Body = config.get("http_options", {}).get("extra_body", {})
    return body | further


def _write_parts(content: Body) -> list[Body]:
    return [{_capital(name): _write(value) for name, value in part.items()} for part in content["parts"]]


def _capital(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _write(value: object) -> object:
    if isinstance(value, bytes):
        return urlsafe_b64encode(value).decode()
    return {name: _write(inner) for name, inner in value.items()} if isinstance(value, dict) else value


def _contents(request: Request) -> list[Body]:
    contents: list[Body] = []
    names: dict[str | None, str] = {}
    before: Role | None = None
    for _, message in spoken(request.messages):
        parts = [_result(message, names)] if message.role is Role.TOOL else _parts(message)
        # Ids are told apart within one message only: those of older models are made up, and begin anew in each.
        names = {call.id: call.name for call in message.calls} or names
        if message.role is Role.TOOL and before is Role.TOOL:
            contents[-1]["parts"] += parts
        else:
            contents.append({"role": _role(message.role), "parts": parts})
        before = message.role
    # A content without parts is refused; two of one role may follow each other.
    return [content for content in contents if content["parts"]]


def _role(speaker: Role) -> str:
    return "model" if speaker is Role.ASSISTANT else "user"


def _parts(message: Message) -> list[Body]:
    native: list[Body] | None = native_reply(message, FORMAT)
    if native is not None:
        return [_restore(part) for part in native]
    pictures = [{"inline_data": {"mime_type": image.media_type, "data": image.data}} for image in message.images]
    texts = [{"text": message.text}] if message.text.strip() else []
    return [*texts, *pictures, *({"function_call": _call(call)} for call in message.calls)]


def _restore(part: Body) -> Body:
    # The SDK writes a signature as text and takes it as bytes.
    signature = part.get("thought_signature")
    return {**part, "thought_signature": urlsafe_b64decode(signature)} if isinstance(signature, str) else part


def _call(call: ToolCall) -> Body:
    return {"name": call.name, "args": read_arguments(call.arguments), **_id(call.id)}


def _result(message: Message, names: Mapping[str | None, str]) -> Body:
    told = {"error" if message.failed else "output": message.text}
    call = message.call or ""
    return {"function_response": {"name": names.get(call, call), "response": told, **_id(call)}}


def _id(call: str) -> Body:
    return {} if call.startswith(MADE_UP) else {"id": call}
