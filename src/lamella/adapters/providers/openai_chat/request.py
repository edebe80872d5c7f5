"""The arguments of ``chat.completions.create``: a pure function of the request and what is known of the model."""

from lamella.adapters.providers.registry import bare_model
from lamella.adapters.providers.wire.body import Body, cut, encode, extras, native_reply, schema, spoken, system_text
from lamella.adapters.providers.wire.openai_cache import Part, PartLayout, plan_cache, takes_marks
from lamella.core.messages.model import Message, Role
from lamella.core.messages.request import Request
from lamella.profiles import ModelProfile

FORMAT = "openai_chat"
# Servers that show thoughts do it under one of these names.
THOUGHTS = ("reasoning_content", "reasoning")


def build_request(request: Request, profile: ModelProfile) -> Body:
    """The keyword arguments that send this request with OpenAI's SDK, without ``stream``."""
    body: Body = {"model": bare_model(request.model)}
    own = profile.provider == "openai"
    body["messages"], laid = _lay_out(request, in_parts=takes_marks(profile), own=own)
    body["max_completion_tokens" if own else "max_tokens"] = request.answer
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": schema(tool)},
            }
            for tool in request.tools
        ]
        body |= {} if request.call else {"tool_choice": "none"}
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.effort is not None:
        body["reasoning_effort"] = request.effort
    # This API offers the shortest lifetime only.
    body |= plan_cache(request, profile, laid, lifetimes=profile.lifetimes[:1])
    return body | extras(request, body)


def _lay_out(request: Request, *, in_parts: bool, own: bool) -> tuple[list[Body], PartLayout]:
    """The messages, and their parts in order. Without breakpoints to carry, texts are plain strings: all take those."""
    messages: list[Body] = []
    parts: list[Part] = []
    ends: dict[int, int] = {}
    fixed = request.settled.fixed
    instructions = list(cut(system_text(request.messages), (fixed,) if fixed else ()))
    if instructions:
        texts = [{"type": "text", "text": text} for _, text in instructions]
        joined = "".join(text for _, text in instructions)
        messages.append({"role": "system", "content": texts if in_parts else joined})
        parts += [Part(body=text, markable=in_parts) for text in texts]
    library = len(parts) - 1 if parts else None
    if library is not None:
        ends |= {place: library for place, message in enumerate(request.messages) if message.role is Role.SYSTEM}
    for place, message in spoken(request.messages):
        content = _content(message)
        can_mark = in_parts and message.role is Role.USER
        as_list = can_mark or bool(message.images)
        told = _round(message, own=own)
        messages.append(told or {"role": message.role.value, "content": content if as_list else message.text})
        parts += [Part(body=part, markable=can_mark) for part in ([told] if told else content)]
        ends[place] = len(parts) - 1
    return messages, PartLayout(parts=parts, ends=ends, fixed=0 if len(instructions) > 1 else None, library=library)


def _content(message: Message) -> list[Body]:
    pictures = [
        {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{encode(image)}"}}
        for image in message.images
    ]
    return [{"type": "text", "text": message.text}, *pictures]


def _round(message: Message, *, own: bool) -> Body | None:
    """A message of a round of tools: the model's calls, or what came back for one; none for a message of the talk.

    OpenAI's ``own`` models take no thoughts back in this API; they refuse those of a server that was asked before.
    """
    if message.role is Role.TOOL:
        told = f"Error: {message.text}" if message.failed else message.text
        return {"role": "tool", "tool_call_id": message.call, "content": told}
    native: Body | None = native_reply(message, FORMAT)
    if native is not None:
        return {name: value for name, value in native.items() if not (own and name in THOUGHTS)}
    if not message.calls:
        return None
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}
        for call in message.calls
    ]
    return {"role": "assistant", "content": message.text or None, "tool_calls": calls}
