"""Shared parts of the wire formats: reading received data, parts of request bodies, breakpoints and usage.

``WireFormat`` is a wire format as one value. The ``*_at`` functions read fields that may be missing or may have an
unexpected type. ``plan_breakpoints`` chooses the blocks after which a provider should keep a cache entry, and
``build_openai_cache_fields`` sets those of OpenAI's two APIs. ``normalise_usage`` converts token counts to one form:
providers count input with or without cached tokens, and some contradict themselves.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from json import JSONDecodeError, dumps, loads
from typing import Any

from lamella.core.artifacts.model import ImageData, ToolDefinition
from lamella.core.messages import (
    Message,
    ModelReply,
    ModelRequest,
    ProviderReply,
    Role,
    Usage,
    find_stable_end_positions,
    join_text,
)
from lamella.errors import InvalidOperationError, InvalidReplyError
from lamella.profiles import CacheLifetime, ModelProfile, choose_lifetime

Fields = Mapping[str, Any]
_EMPTY: Fields = {}
_MAX_SHOWN_LENGTH = 80
_ERROR_STATUS = re.compile(r"[45][0-9]{2}")


def as_fields(answer: object) -> Fields:
    """Return an SDK object or a mapping as a mapping. Any other value gives an empty mapping."""
    if isinstance(answer, Mapping):
        return answer
    dump = getattr(answer, "model_dump", None)
    # The SDK would warn about values of unexpected types. This module checks the types itself.
    found = dump(mode="json", warnings=False) if callable(dump) else None
    return found if isinstance(found, Mapping) else _EMPTY


def get_fields_at(source: Fields, *path: str) -> Fields:
    """Return the mapping at a path of keys, or an empty mapping if there is none."""
    for name in path:
        inner = source.get(name)
        source = inner if isinstance(inner, Mapping) else _EMPTY
    return source


def get_items_at(source: Fields, name: str) -> Sequence[Fields]:
    """Return the mappings in the list of a field. Other items are left out."""
    inner = source.get(name)
    return [item for item in inner if isinstance(item, Mapping)] if isinstance(inner, list) else []


def get_text_at(source: Fields, name: str) -> str:
    """Return the text of a field, or an empty string if there is none."""
    inner = source.get(name)
    return inner if isinstance(inner, str) else ""


def get_count_at(source: Fields, name: str) -> int | None:
    """Return a token count, or None if the field is missing or not an integer.

    The number may be negative; ``normalise_usage`` checks for that.
    """
    inner = source.get(name)
    return inner if isinstance(inner, int) and not isinstance(inner, bool) else None


def error_status_at(source: Fields, name: str) -> int | None:
    """Return the HTTP error status in a field, given as a number or as digits, or None.

    Proxies write the status there when they answer with HTTP 200.
    """
    inner = source.get(name)
    number = int(inner) if isinstance(inner, str) and _ERROR_STATUS.fullmatch(inner) else inner
    return number if isinstance(number, int) and 400 <= number < 600 else None


def to_canonical_json(value: object) -> str:
    """Return JSON with sorted keys and without spaces, so that equal values give equal bytes."""
    return dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def get_parts_at(source: Fields, name: str, *, kind: str) -> Sequence[Fields]:
    """Return the parts of a content field. A plain string becomes one part of type ``kind``.

    Raises ``InvalidReplyError`` for any other content.
    """
    inner = source.get(name)
    if isinstance(inner, str):
        return [{"type": kind, "text": inner}]
    if inner is not None and not isinstance(inner, list):
        raise unreadable_field_error(name, inner)
    parts = [_to_content_part(part, name, kind=kind) for part in inner or ()]
    for part in parts:
        if part["type"] == kind and not isinstance(part.get("text"), str):
            raise unreadable_field_error(name, part)
    return parts


def _to_content_part(part: object, name: str, *, kind: str) -> Fields:
    if not isinstance(part, Mapping):
        raise unreadable_field_error(name, part)
    return {**part, "type": part.get("type") or kind}


def unreadable_field_error(name: str, value: object) -> InvalidReplyError:
    """Return the error for a part of an answer that should be text and is not.

    It is an error because ignoring the part would turn it into an empty answer.
    """
    shown = repr(value)
    seen = shown if len(shown) <= _MAX_SHOWN_LENGTH else f"{shown[:_MAX_SHOWN_LENGTH]}…"
    return InvalidReplyError(
        f"The {name} of the answer is {seen}, of type {type(value).__name__}, and not a text.",
        hint="Ask again. If it persists, what answers does not speak this API as it should.",
    )


# Parts of request bodies: split text, base64 images, tool schemas, extra fields.

Body = dict[str, Any]


def get_system_text(messages: Sequence[Message]) -> str:
    """Return the text of the system message, or an empty string if there is none."""
    return "".join(message.text for message in messages if message.role is Role.SYSTEM)


def enumerate_non_system_messages(messages: Sequence[Message]) -> list[tuple[int, Message]]:
    """Return all messages except the system message, each with its position in the request."""
    return [(index, message) for index, message in enumerate(messages) if message.role is not Role.SYSTEM]


def split_at(text: str, positions: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Split a text at the given positions and yield each part with the position where it ends.

    A part that is only white space is joined to its neighbour, because a block of white space must not be sent.
    """
    start = 0
    pending: tuple[int, str] | None = None
    for end in sorted({*(seam for seam in positions if 0 < seam < len(text)), len(text)}):
        part = text[start:end]
        start = end
        if pending and part.strip() and pending[1].strip():
            yield pending
            pending = (end, part)
        else:
            pending = (end, (pending[1] if pending else "") + part)
    if pending and pending[1].strip():
        yield pending


def encode_image(image: ImageData) -> str:
    """Return an image's bytes in base64."""
    return b64encode(image.data).decode()


def tool_schema(tool: ToolDefinition) -> Any:  # noqa: ANN401 - a JSON schema is any JSON
    """Return the JSON schema of a tool's parameters as data."""
    return loads(tool.parameters)


def build_extra_body(request: ModelRequest, built_fields: Body) -> Body:
    """Return the caller's extra body fields as an ``extra_body`` argument, or nothing if there are none.

    Fields that Lamella builds itself (``built_fields``) cannot be replaced and raise an error.
    """
    try:
        found = loads(request.extra_fields_json)
    except JSONDecodeError as error:
        raise InvalidOperationError(
            f"The extras are not JSON: {error}.", hint="Give a JSON object of further fields."
        ) from error
    if not isinstance(found, dict):
        raise InvalidOperationError("The extras are not a JSON object.", hint="Give a JSON object of further fields.")
    clash = sorted(set(found) & set(built_fields))
    if clash:
        raise InvalidOperationError(
            f"The extras set {', '.join(clash)}, which Lamella builds.", hint="Leave these fields out."
        )
    return {"extra_body": found} if found else {}


def get_reasoning_effort(request: ModelRequest, *accepted: str) -> str | None:
    """Return the requested reasoning effort, or None to leave it to the model.

    Raises an error if it is not one of the values that the API accepts (``accepted``).
    """
    if request.effort is not None and request.effort not in accepted:
        raise InvalidOperationError(
            f"{request.model} takes no reasoning_effort {request.effort}.",
            hint=f"Choose one of: {', '.join(accepted)}.",
        )
    return request.effort


def merge_extra_body(arguments: Body) -> Body:
    """Return an SDK's arguments as the HTTP body: the fields of ``extra_body`` move to the top level."""
    further: Body = arguments.get("extra_body", {})
    return {name: value for name, value in arguments.items() if name != "extra_body"} | further


def to_provider_reply(message: object, wire_format: str) -> ProviderReply:
    """Return a model's message in its provider's own format, so that it can be sent back unchanged.

    Surrogate pairs that arrived in two halves are joined into whole characters.
    """
    return ProviderReply(format=wire_format, json=join_text((to_canonical_json(message),)))


def get_native_reply(message: Message, wire_format: str) -> Any | None:  # noqa: ANN401 - any JSON
    """Return a message exactly as its provider wrote it, or None if it is not of this wire format."""
    provider_reply = message.provider_reply
    return loads(provider_reply.json) if provider_reply is not None and provider_reply.format == wire_format else None


def parse_arguments(text: str) -> Body:
    """Return the arguments of a tool call as an object.

    Invalid arguments are returned unchanged under the key ``unreadable``, so that the model sees what it wrote.
    """
    try:
        found = loads(text) if text.strip() else {}
        # Half of a surrogate pair, or very deeply nested lists, can be parsed but not serialized again.
        dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return {"unreadable": text}
    return found if isinstance(found, dict) else {"value": found}


def list_caller_breakpoints(request: ModelRequest, ends: Mapping[int, int]) -> list[int]:
    """Return the last block of each message after which the caller wants a cache breakpoint."""
    missing = [index for index in request.breakpoints if index not in ends]
    if missing:
        raise InvalidOperationError(
            f"A breakpoint is wanted after message {missing[0]}, and the request has no such message with content.",
            hint=f"Messages are counted from 0; this request has {len(request.messages)}.",
        )
    return [ends[index] for index in request.breakpoints]


# Wire formats.


@dataclass(frozen=True, slots=True, kw_only=True)
class WireFormat:
    """A wire format: how requests are built, and how answers and stream events are recognised and read.

    ``provider`` is the company whose models use it. ``build_request`` returns the arguments for the SDK.
    ``to_http_body`` turns these arguments into the body that the SDK sends.
    """

    name: str
    provider: str
    build_request: Callable[[ModelRequest, ModelProfile], Body]
    to_http_body: Callable[[Body], Body]
    is_answer: Callable[[Fields], bool]
    is_event: Callable[[Fields], bool]
    read_reply: Callable[[object], ModelReply | None]
    read_events: Callable[[Iterable[Fields]], ModelReply | None]


# Cache breakpoints.


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBlock:
    """One block of a request, in the order in which the cache reads them. ``size`` is its size in UTF-8 bytes."""

    size: int
    can_have_breakpoint: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionEnds:
    """The position of the last block of each stable section, or None if the section is absent.

    ``tail`` is the last block that the next request repeats. ``previous_tail`` is the tail of the previous request.
    """

    tools: int | None = None
    fixed: int | None = None
    library: int | None = None
    tail: int | None = None
    previous_tail: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakpointLimits:
    """A provider's limits on breakpoints.

    ``max_breakpoints`` is the number of breakpoints per request, ``lookback`` how many blocks before a breakpoint are
    searched for a cache entry, and ``min_tokens`` the number of tokens below which a prefix is not cached.
    """

    max_breakpoints: int
    lookback: int | None
    min_tokens: int


def plan_breakpoints(
    blocks: Sequence[RequestBlock], ends: SectionEnds, *, limits: BreakpointLimits, requested: Sequence[int] = ()
) -> tuple[int, ...]:
    """Return the positions of the breakpoints in ascending order.

    The caller's own choices come first. The remaining ones are chosen by what losing their cache entry would cost.
    """
    if len(set(requested)) > limits.max_breakpoints:
        raise InvalidOperationError(
            f"{len(set(requested))} breakpoints were asked for; a request may carry {limits.max_breakpoints}.",
            hint="Leave some out: Lamella places its own where prefixes end.",
        )
    positions = [*requested, *_candidate_positions(ends, limits.lookback)]
    markable = (_find_breakpoint_position(blocks, position) for position in positions)
    worthwhile = (
        position for position in markable if position is not None and _is_long_enough(blocks, position, limits)
    )
    return tuple(sorted(list(dict.fromkeys(worthwhile))[: limits.max_breakpoints]))


def _candidate_positions(ends: SectionEnds, lookback: int | None) -> list[int]:
    # The tail has the most tokens. The previous tail needs a breakpoint of its own only if the search back from the new
    # tail would not reach it. The breakpoint itself is the first position of that search.
    """Return the candidate positions, the most valuable first."""
    previous = ends.previous_tail
    if lookback is None or ends.tail is None or previous is None or ends.tail - previous < lookback:
        previous = None
    order = (ends.tail, previous, ends.library, ends.fixed, ends.tools)
    return [position for position in order if position is not None]


def _find_breakpoint_position(blocks: Sequence[RequestBlock], position: int) -> int | None:
    """Return the last position up to this one that can carry a breakpoint, or None."""
    return next((at for at in range(position, -1, -1) if blocks[at].can_have_breakpoint), None)


def _is_long_enough(blocks: Sequence[RequestBlock], position: int, limits: BreakpointLimits) -> bool:
    # A token has at least one byte. A prefix with fewer bytes than the minimum has too few tokens to be cached.
    """Return whether the prefix up to this position may be long enough to be cached."""
    return sum(block.size for block in blocks[: position + 1]) >= limits.min_tokens


# OpenAI's prompt cache, the same in both APIs: a cache key, an implicit breakpoint, explicit ones.

_MAX_KEY_LENGTH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a request's content. Without ``can_have_breakpoint`` it only counts towards the prefix size."""

    body: Body
    can_have_breakpoint: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartLayout:
    """The parts of a request in order, and the positions of the last part of each section.

    ``message_ends`` maps the position of a message to its last part. ``library_end`` is the last part of the system
    message, ``fixed_end`` the last part of its most stable section.
    """

    parts: Sequence[Part]
    message_ends: dict[int, int]
    fixed_end: int | None
    library_end: int | None


def supports_openai_breakpoints(profile: ModelProfile) -> bool:
    """Return whether parts may carry explicit breakpoints.

    Claude behind a gateway has breakpoints too, but not the ones of this API.
    """
    return bool(profile.breakpoints) and profile.provider != "anthropic"


def build_openai_cache_fields(
    request: ModelRequest, profile: ModelProfile, layout: PartLayout, *, lifetimes: Sequence[CacheLifetime]
) -> Body:
    """Return the body fields that control the cache, and set explicit breakpoints on the parts of ``layout``."""
    key = {"prompt_cache_key": prompt_cache_key(request.conversation)} if profile.keyed and request.conversation else {}
    if not supports_openai_breakpoints(profile):
        return key
    # In implicit mode the provider places a breakpoint after the last message. If the next request will not repeat that
    # message, the cache write would be paid for nothing.
    implicit = request.effective_cache_boundaries.stable_messages in (None, len(request.messages))
    tail, previous = (
        layout.message_ends.get(position) if position is not None else None
        for position in find_stable_end_positions(request.messages, request.effective_cache_boundaries.stable_messages)
    )
    marks = plan_breakpoints(
        [
            RequestBlock(size=len(to_canonical_json(part.body).encode()), can_have_breakpoint=part.can_have_breakpoint)
            for part in layout.parts
        ],
        SectionEnds(
            fixed=layout.fixed_end,
            library=layout.library_end,
            tail=None if implicit else tail,
            previous_tail=None if implicit else previous,
        ),
        limits=BreakpointLimits(
            max_breakpoints=profile.breakpoints - implicit, lookback=profile.lookback, min_tokens=profile.cache.minimum
        ),
        requested=list_caller_breakpoints(request, layout.message_ends),
    )
    for position in marks:
        layout.parts[position].body["prompt_cache_breakpoint"] = {"mode": "explicit"}
    lifetime = choose_lifetime(request.expected_pause, tuple(lifetimes))
    options: Body = {"mode": "implicit" if implicit else "explicit"}
    return key | {"prompt_cache_options": options | ({"ttl": lifetime.name} if lifetime else {})}


def prompt_cache_key(conversation_key: str) -> str:
    """Return a cache key of at most 64 characters for a conversation. Longer keys are replaced by their hash."""
    if len(conversation_key) <= _MAX_KEY_LENGTH:
        return conversation_key
    return sha256(conversation_key.encode()).hexdigest()


# Token usage.

# No request has more tokens. Larger integers lose precision in many JSON readers, and not every store can keep them.
_MAX_TOKEN_COUNT = 2**53


def normalise_usage(
    *,
    total: int | None = None,
    plain: int | None = None,
    read: int | None = None,
    write: int | None = None,
    write_long: int | None = None,
    output: int | None = None,
    reasoning: int | None = None,
) -> Usage:
    """Return usage from a total that includes cached tokens, or from a ``plain`` count that does not.

    Values that the provider leaves out stay None. If a value is impossible, all of them become unknown and ``fault``
    has the reason.
    """
    numbers = {"read": read, "write": write, "write_long": write_long, "output": output, "reasoning": reasoning}
    cached = (read or 0) + (write or 0) + (write_long or 0)
    large = [
        f"{name} {number:,}"
        for name, number in _list_known_counts(input=total or plain, **numbers)
        if number > _MAX_TOKEN_COUNT
    ]
    if large:
        return Usage(fault=f"The provider reports more tokens than there can be: {', '.join(large)}.")
    if total is not None:
        plain = total - cached
    negative = [f"{name} {number:,}" for name, number in _list_known_counts(**numbers) if number < 0]
    if negative:
        return Usage(fault=f"The provider reports fewer than no tokens: {', '.join(negative)}.")
    if plain is not None and plain < 0:
        counts = f"{cached:,} cached tokens of {total:,}" if total is not None else f"{plain:,} input tokens"
        return Usage(fault=f"The provider reports {counts}.")
    if output is not None and (reasoning or 0) > output:
        return Usage(fault=f"The provider reports {reasoning:,} reasoning tokens of {output:,} output tokens.")
    return Usage(plain=plain, read=read, write=write, write_long=write_long, output=output, reasoning=reasoning)


def _list_known_counts(**numbers: int | None) -> list[tuple[str, int]]:
    return [(name, number) for name, number in numbers.items() if number is not None]


def split_cache_writes(total: int | None, *, short: int | None, long: int | None) -> tuple[int | None, int | None]:
    """Return cache writes as (short lifetime, long lifetime).

    Without a split by the provider all writes have the short lifetime.
    """
    if short is None and long is None:
        return total, None
    # The split may have been reported before the total, while later tool rounds wrote more. That difference has the
    # short lifetime.
    late = max((total or 0) - (short or 0) - (long or 0), 0)
    return (short or 0) + late, long or 0
