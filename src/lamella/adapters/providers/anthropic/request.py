"""The arguments of ``messages.create``: a pure function of the request and what is known of the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from lamella.adapters.providers.registry import bare_model
from lamella.adapters.providers.wire.body import (
    Body,
    cut,
    encode,
    extras,
    find_chosen,
    find_effort,
    native_reply,
    read_arguments,
    schema,
    spoken,
    system_text,
    tail_messages,
)
from lamella.adapters.providers.wire.fields import as_json
from lamella.adapters.providers.wire.marks import Block, Ends, MarkRules, plan_marks
from lamella.core.messages.delta import ToolCall
from lamella.core.messages.model import Message, Role
from lamella.core.messages.request import Request
from lamella.profiles import ModelProfile, choose_lifetime

FORMAT = "anthropic"
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_UNMARKABLE = ("thinking", "redacted_thinking")


class CacheMode(StrEnum):
    """Who places breakpoints: Lamella, the provider (one, after the last block), or nobody."""

    EXPLICIT = "explicit"
    AUTOMATIC = "automatic"
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class _BlockLayout:
    """Every block of a request in the order the cache reads them, and where the stretches of it end."""

    tools: list[Body]
    system: list[Body]
    turns: list[Body]
    ends: dict[int, int]
    fixed: int | None

    @property
    def blocks(self) -> list[Body]:
        return [*self.tools, *self.system, *(block for turn in self.turns for block in turn["content"])]


def build_request(request: Request, profile: ModelProfile, *, caching: CacheMode = CacheMode.EXPLICIT) -> Body:
    """The keyword arguments that send this request with Anthropic's SDK, without ``stream``."""
    laid, caching = _lay_out(request), CacheMode(request.caching or caching)
    body: Body = {"model": bare_model(request.model), "max_tokens": request.answer, "messages": laid.turns}
    body |= {"system": laid.system} if laid.system else {}
    body |= {"tools": laid.tools} if laid.tools else {}
    body |= {} if request.call or not laid.tools else {"tool_choice": {"type": "none"}}
    # A model of OpenAI's behind a gateway has breakpoints and diagnostics too, and they are not of this API.
    own = profile.provider != "openai"
    if caching is not CacheMode.OFF and profile.breakpoints and own:
        body |= _mark(request, profile, laid, caching=caching)
    if profile.diagnostics and own:
        body["diagnostics"] = {"previous_message_id": request.compare}
    effort = find_effort(request, *_EFFORTS)
    body |= {"output_config": {"effort": effort}} if effort else {}
    # The SDK knows no temperature any more; gateways and older models take one.
    given: Body = {} if request.temperature is None else {"temperature": request.temperature}
    further: Body = extras(request, body | given).get("extra_body", {}) | given
    return body | ({"extra_body": further} if further else {})


def _mark(request: Request, profile: ModelProfile, laid: _BlockLayout, *, caching: CacheMode) -> Body:
    lifetime = choose_lifetime(request.pause, profile.lifetimes)
    mark = {"type": "ephemeral"} | ({"ttl": lifetime.name} if lifetime and lifetime.name != "5m" else {})
    automatic = caching is CacheMode.AUTOMATIC
    blocks = laid.blocks
    marks = plan_marks(
        [_weigh(block) for block in blocks],
        Ends() if automatic else _find_ends(request, laid),
        rules=MarkRules(
            limit=profile.breakpoints - automatic, lookback=profile.lookback, minimum=profile.cache.minimum
        ),
        chosen=find_chosen(request, laid.ends),
    )
    longest = profile.lifetimes[-1].name if profile.lifetimes else None
    lasting = laid.ends.get(request.lasting) if request.lasting is not None and longest else None
    for position in marks:
        # The API wants what is kept for longer before what is not.
        lasts = lasting is not None and position <= lasting
        blocks[position]["cache_control"] = mark | {"ttl": longest} if lasts else mark
    return {"cache_control": mark} if automatic else {}


def _weigh(block: Body) -> Block:
    return Block(weight=len(as_json(block).encode()), markable=block.get("type") not in _UNMARKABLE)


def _find_ends(request: Request, laid: _BlockLayout) -> Ends:
    tail, previous = (laid.ends.get(place) if place is not None else None for place in tail_messages(request))
    return Ends(
        tools=len(laid.tools) - 1 if laid.tools else None,
        fixed=laid.fixed,
        library=len(laid.tools) + len(laid.system) - 1 if laid.system else None,
        tail=tail,
        previous=previous,
    )


def _lay_out(request: Request) -> _BlockLayout:
    settled = request.settled
    parts = list(cut(system_text(request.messages), (*settled.system, *((settled.fixed,) if settled.fixed else ()))))
    tools = [_tool(tool.name, tool.description, schema(tool)) for tool in request.tools]
    stable = [at for at, (end, _) in enumerate(parts) if settled.fixed is not None and end <= settled.fixed]
    position = len(tools) + len(parts) - 1
    turns, ends = _talk(request, position)
    if parts:
        ends |= {place: position for place, message in enumerate(request.messages) if message.role is Role.SYSTEM}
    return _BlockLayout(
        tools=tools,
        system=[{"type": "text", "text": part} for _, part in parts],
        turns=turns,
        ends={place: end for place, end in ends.items() if end >= 0},
        fixed=len(tools) + stable[-1] if stable else None,
    )


def _talk(request: Request, position: int) -> tuple[list[Body], dict[int, int]]:
    """The messages of the API, and the last block of each message of ours, counted on from a position."""
    turns: list[Body] = []
    ends: dict[int, int] = {}
    before: Role | None = None
    for place, message in spoken(request.messages):
        content = _content(message)
        if message.role is Role.TOOL and before is Role.TOOL:
            # All that was called for in one message has to be answered in one.
            turns[-1]["content"] += content
        elif content:
            # The API refuses a message without content, and joins the two that then meet.
            role = Role.ASSISTANT if message.role is Role.ASSISTANT else Role.USER
            turns.append({"role": role.value, "content": content})
        position += len(content)
        ends[place] = position
        before = message.role
    return turns, ends


def _tool(name: str, description: str, parameters: object) -> Body:
    return {"name": name, "description": description, "input_schema": parameters}


def _content(message: Message) -> list[Body]:
    if message.role is Role.TOOL:
        return [_result(message)]
    native: list[Body] | None = native_reply(message, FORMAT)
    if native is not None:
        return native
    pictures = [
        {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": encode(image)}}
        for image in message.images
    ]
    texts = [{"type": "text", "text": message.text}] if message.text.strip() else []
    return [*texts, *pictures, *_calls(message.calls)]


def _calls(calls: Sequence[ToolCall]) -> list[Body]:
    return [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": read_arguments(call.arguments)}
        for call in calls
    ]


def _result(message: Message) -> Body:
    block: Body = {"type": "tool_result", "tool_use_id": message.call}
    if message.text.strip():
        block["content"] = [{"type": "text", "text": message.text}]
    if message.failed:
        block["is_error"] = True
    return block
