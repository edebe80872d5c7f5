"""A request body as a list of blocks, in the order in which prefix caches see them: tools, system, messages."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from lamella.doctor.calls import Json, LoggedCall, WireFormat, get_list, get_object, get_text

_ENCODER = msgspec.json.Encoder()
_SYSTEM_ROLES = frozenset({"system", "developer"})
_TEXT_PARTS = frozenset({"text", "input_text", "output_text", "refusal"})
_IMAGE_PARTS = frozenset({"image", "image_url", "input_image"})
_LONG_LIFETIME = "1h"
# Fields of a block that do not become part of the prompt, or differ from call to call without effect.
_NOT_IN_PROMPT = frozenset({"cache_control", "prompt_cache_breakpoint", "internal_chat_message_metadata_passthrough"})


class Block(Struct, kw_only=True):
    """A piece of a prompt: a tool definition, a part of the system prompt, or a part of a message.

    ``section`` is 0 for tools, 1 for the system prompt, 2 for messages; ``message`` numbers the messages from 0.
    ``breakpoint`` is the lifetime of the cache breakpoint after the block, or empty. ``tokens`` is -1 until counted.
    """

    section: int
    kind: str
    text: str
    path: str
    message: int = -1
    breakpoint: str = ""
    tokens: int = -1
    call: str = ""

    def matches(self, other: "Block") -> bool:
        """Return whether both have the same bytes in the same role."""
        return self.text == other.text and self.kind == other.kind and self.section == other.section


SECTION_NAMES = ("tools", "system", "messages")
TOOLS, SYSTEM, MESSAGES = 0, 1, 2


class Prompt(Struct, frozen=True, kw_only=True):
    """The blocks of a request, where each message ends among them, and the parameters that a cache depends on."""

    blocks: list[Block]
    message_ends: list[int]
    parameters: dict[str, str]
    has_automatic_breakpoint: bool = False

    @property
    def breakpoints(self) -> list[int]:
        """The numbers of the blocks that have a cache breakpoint, in order."""
        marked = [number for number, block in enumerate(self.blocks) if block.breakpoint]
        last = len(self.blocks) - 1
        return [*marked, last] if self.has_automatic_breakpoint and last not in marked and last >= 0 else marked


def split_prompt(call: LoggedCall) -> Prompt:
    """Split the request body of a call into blocks."""
    body = call.body
    blocks = [
        Block(section=TOOLS, kind="tool", text=_to_json(tool), path=f"tools[{number}]", breakpoint=_breakpoint(tool))
        for number, tool in enumerate(get_list(body.get("tools")) or get_list(body.get("functions")))
    ]
    if call.wire is WireFormat.RESPONSES:
        blocks += _split_system(body.get("instructions"), "instructions")
        field = "input"
    else:
        blocks += _split_system(body.get("system"), "system")
        field = "messages"
    written = body.get(field)
    messages: Sequence[Any] = [{"role": "user", "content": written}] if isinstance(written, str) else get_list(written)
    ends = _add_messages(blocks, messages, field)
    return Prompt(
        blocks=blocks,
        message_ends=ends,
        parameters=_read_parameters(body, blocks),
        has_automatic_breakpoint=bool(get_object(body.get("cache_control"))),
    )


def _split_system(system: object, path: str) -> Iterator[Block]:
    if isinstance(system, str):
        if system:
            yield Block(section=SYSTEM, kind="system", text=system, path=path)
        return
    for number, part in enumerate(get_list(system)):
        text = part if isinstance(part, str) else get_text(get_object(part).get("text")) or _to_json(part)
        yield Block(section=SYSTEM, kind="system", text=text, path=f"{path}[{number}]", breakpoint=_breakpoint(part))


def _add_messages(blocks: list[Block], messages: Sequence[Any], field: str) -> list[int]:
    """Append the blocks of the messages, and return where each message ends. Leading system messages are system."""
    ends: list[int] = []
    is_leading = True
    for number, value in enumerate(messages):
        message = get_object(value)
        role = get_text(message.get("role"))
        is_leading = is_leading and role in _SYSTEM_ROLES
        if is_leading:
            for block in _split_message(message, role, f"{field}[{number}]"):
                block.section, block.kind, block.message = SYSTEM, "system", -1
                blocks.append(block)
            continue
        for block in _split_message(message, role, f"{field}[{number}]"):
            block.message = len(ends)
            blocks.append(block)
        ends.append(len(blocks))
    return ends


def _split_message(message: Json, role: str, path: str) -> Iterator[Block]:
    """Yield the blocks of one message of any API."""
    kind = get_text(message.get("type"))
    if kind and kind != "message" and not role:
        yield _split_item(message, kind, path)
        return
    content = message.get("content")
    reasoning = message.get("reasoning_content")
    if isinstance(reasoning, str) and reasoning:
        yield Block(section=MESSAGES, kind="reasoning", text=reasoning, path=f"{path}.reasoning_content")
    if role in ("tool", "function"):
        call = get_text(message.get("tool_call_id")) or get_text(message.get("name"))
        text = content if isinstance(content, str) else _join_parts(content)
        yield Block(
            section=MESSAGES, kind="tool_result", text=text, path=path, call=call, breakpoint=_breakpoint(message)
        )
        return
    if isinstance(content, str):
        if content or not message.get("tool_calls"):
            yield _text_block(role, content, path, _breakpoint(message))
    else:
        for number, part in enumerate(get_list(content)):
            yield _split_part(part, role, f"{path}.content[{number}]")
    for number, call in enumerate(get_list(message.get("tool_calls"))):
        yield Block(section=MESSAGES, kind="tool_call", text=_to_json(call), path=f"{path}.tool_calls[{number}]")


def _split_item(item: Json, kind: str, path: str) -> Block:
    """Return the block of an item of the Responses API that is no message."""
    if kind.endswith("_output"):
        output = item.get("output")
        text = output if isinstance(output, str) else _join_parts(output)
        return Block(section=MESSAGES, kind="tool_result", text=text, path=path, call=get_text(item.get("call_id")))
    if kind == "reasoning":
        return Block(section=MESSAGES, kind="reasoning", text=_to_json(item), path=path)
    if kind.endswith("_call"):
        return Block(section=MESSAGES, kind="tool_call", text=_to_json(item), path=path)
    return Block(section=MESSAGES, kind=kind if kind == "compaction" else "other", text=_to_json(item), path=path)


def _split_part(value: object, role: str, path: str) -> Block:
    """Return the block of one part of a message's content."""
    if isinstance(value, str):
        return _text_block(role, value, path, "")
    part = get_object(value)
    kind, mark = get_text(part.get("type")), _breakpoint(part)
    if kind in _TEXT_PARTS:
        return _text_block(role, get_text(part.get("text")) or get_text(part.get("refusal")), path, mark)
    if kind == "tool_use":
        return Block(section=MESSAGES, kind="tool_call", text=_to_json(part), path=path, breakpoint=mark)
    if kind.endswith("tool_result"):
        content = part.get("content")
        text = content if isinstance(content, str) else _join_parts(content)
        call = get_text(part.get("tool_use_id"))
        return Block(section=MESSAGES, kind="tool_result", text=text, path=path, breakpoint=mark, call=call)
    if kind in _IMAGE_PARTS:
        return Block(section=MESSAGES, kind="image", text=_to_json(part), path=path, breakpoint=mark)
    if kind in ("thinking", "redacted_thinking"):
        return Block(section=MESSAGES, kind="reasoning", text=_to_json(part), path=path)
    if kind in ("document", "file", "input_file"):
        return Block(section=MESSAGES, kind="document", text=_to_json(part), path=path, breakpoint=mark)
    return Block(section=MESSAGES, kind="other", text=_to_json(part), path=path, breakpoint=mark)


def _text_block(role: str, text: str, path: str, mark: str) -> Block:
    kind = "assistant" if role == "assistant" else "system" if role in _SYSTEM_ROLES else "user"
    return Block(section=MESSAGES, kind=kind, text=text, path=path, breakpoint=mark)


def _join_parts(content: object) -> str:
    """Return the text of a tool result that is a list of parts."""
    return "\n".join(
        get_text(get_object(part).get("text")) or (part if isinstance(part, str) else _to_json(part))
        for part in get_list(content)
    )


def _breakpoint(value: object) -> str:
    """Return the lifetime of a block's cache breakpoint; empty if it has none."""
    part = get_object(value)
    mark = part.get("cache_control") or part.get("prompt_cache_breakpoint")
    if not mark:
        return ""
    return get_text(get_object(mark).get("ttl")) or "5m"


def _to_json(value: object) -> str:
    """Return a value as JSON in the order in which it was logged, without the fields that are not in the prompt."""
    if isinstance(value, dict):
        value = {name: field for name, field in value.items() if name not in _NOT_IN_PROMPT and field is not None}
    try:
        return _ENCODER.encode(value).decode()
    except (TypeError, ValueError, UnicodeError, RecursionError):
        return repr(value)[:1_000]


def _read_parameters(body: Json, blocks: Sequence[Block]) -> dict[str, str]:
    """Return the parameters that a prefix cache may depend on, by the names that cache profiles use."""
    text, reasoning = get_object(body.get("text")), get_object(body.get("reasoning"))
    output = get_object(body.get("output_config"))
    values = {
        "effort": body.get("reasoning_effort") or reasoning.get("effort") or output.get("effort"),
        "thinking": body.get("thinking"),
        "tool_choice": body.get("tool_choice"),
        "parallel_tool_calls": body.get("parallel_tool_calls"),
        "text.format": body.get("response_format") or text.get("format") or output.get("format"),
        "text.verbosity": body.get("verbosity") or text.get("verbosity"),
        "service_tier": body.get("service_tier"),
        "prompt_cache_key": body.get("prompt_cache_key"),
        "speed": body.get("speed"),
    }
    found = {name: _to_json(value) for name, value in values.items() if value is not None}
    if any(block.kind == "image" for block in blocks):
        found["images"] = "yes"
    return found


def lifetime_seconds(breakpoint_lifetime: str) -> int:
    """Return the seconds of a breakpoint's lifetime."""
    return 3_600 if breakpoint_lifetime == _LONG_LIFETIME else 300
