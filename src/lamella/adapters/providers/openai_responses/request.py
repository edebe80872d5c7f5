"""The arguments of ``responses.create``: a pure function of the request and what is known of the model."""

from lamella.adapters.providers.registry import bare_model
from lamella.adapters.providers.wire.body import Body, cut, encode, extras, native_reply, schema, spoken, system_text
from lamella.adapters.providers.wire.openai_cache import Part, PartLayout, plan_cache
from lamella.core.messages.model import Message, Role
from lamella.core.messages.request import Request
from lamella.profiles import ModelProfile

FORMAT = "openai_responses"
# Fewer are refused, whoever asks.
_LEAST_ANSWER = 16


def build_request(request: Request, profile: ModelProfile) -> Body:
    """The keyword arguments that send this request with OpenAI's SDK, without ``stream``."""
    items, laid = _lay_out(request)
    # The conversation is kept here, not there; what is not stored cannot outlive an erasure.
    body: Body = {
        "model": bare_model(request.model),
        "input": items,
        "max_output_tokens": max(request.answer, _LEAST_ANSWER),
        "store": False,
    }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": schema(tool),
                "strict": False,
            }
            for tool in request.tools
        ]
        body |= {} if request.call else {"tool_choice": "none"}
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.effort is not None:
        body["reasoning"] = {"effort": request.effort}
    body |= plan_cache(request, profile, laid, lifetimes=profile.lifetimes)
    if profile.diagnostics and request.compare and "prompt_cache_options" in body:
        body["prompt_cache_options"]["comparison_response_id"] = request.compare
    return body | extras(request, body)


def _lay_out(request: Request) -> tuple[list[Body], PartLayout]:
    """The input items, and their parts in order. Instructions go as a developer's message: only that can be marked."""
    items: list[Body] = []
    parts: list[Part] = []
    ends: dict[int, int] = {}
    fixed = request.settled.fixed
    texts = [_text(text) for _, text in cut(system_text(request.messages), (fixed,) if fixed else ())]
    if texts:
        items.append({"role": "developer", "content": texts})
        parts += [Part(body=text, markable=True) for text in texts]
    library = len(parts) - 1 if parts else None
    if library is not None:
        ends |= {place: library for place, message in enumerate(request.messages) if message.role is Role.SYSTEM}
    for place, message in spoken(request.messages):
        user = message.role is Role.USER
        content = _content(message)
        told = _round(message)
        items += told or [{"role": message.role.value, "content": content if user else message.text}]
        parts += [Part(body=part, markable=user) for part in told or content]
        ends[place] = len(parts) - 1
    return items, PartLayout(parts=parts, ends=ends, fixed=0 if len(texts) > 1 else None, library=library)


def _text(text: str) -> Body:
    return {"type": "input_text", "text": text}


def _content(message: Message) -> list[Body]:
    pictures = [
        {"type": "input_image", "detail": "auto", "image_url": f"data:{image.media_type};base64,{encode(image)}"}
        for image in message.images
    ]
    return [_text(message.text), *pictures]


def _round(message: Message) -> list[Body]:
    """The items of a round of tools: the model's calls, or what came back for one; none for a message of the talk."""
    if message.role is Role.TOOL:
        told = f"Error: {message.text}" if message.failed else message.text
        return [{"type": "function_call_output", "call_id": message.call, "output": told}]
    native: list[Body] | None = native_reply(message, FORMAT)
    if native is not None or not message.calls:
        return native or []
    calls = [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments or "{}"}
        for call in message.calls
    ]
    texts = [{"role": "assistant", "content": message.text}] if message.text else []
    return [*texts, *calls]
