"""Provider-neutral values for what is sent to a model and what comes back.

``ModelRequest`` is a request: a list of ``Message``, the tools, and the positions at which its stable parts end.
A reply arrives as deltas, which ``reply_from_deltas`` combines into a ``ModelReply``. ``ToolRound`` is one tool round:
the reply with its calls, and one output per call. ``Usage`` has the token counts that a provider reports; an unknown
count is None, not 0.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate
from math import isfinite
from typing import cast

from msgspec import Struct

from lamella.core.artifacts.model import ImageData, ToolDefinition
from lamella.core.values import replace, repr_without

# Between the instructions and the library in the system message. Everything before it changes less often.
LIBRARY_HEADING = "## Context Library\n\n"
# The first words of the project description in L1, before the project's own text and its file names.
PROJECT_INTRO = "The user works on the project "
# Between attached blocks and the typed text, so that the model does not mistake one for the other.
QUERY_LABEL = "[User query]:\n"


# Token usage in one form for all providers.


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Token counts by price class.

    ``plain`` is input that was neither read from a cache nor written to one. ``write`` went into the cache with the
    shorter lifetime, ``write_long`` into the one with the longer lifetime. ``reasoning`` is part of ``output``. If a
    provider's numbers contradict each other, all of them are None and ``fault`` describes the contradiction.
    """

    plain: int | None = None
    read: int | None = None
    write: int | None = None
    write_long: int | None = None
    output: int | None = None
    reasoning: int | None = None
    fault: str | None = None

    @property
    def prompt_tokens(self) -> int | None:
        """All input tokens, of every price class, or None if unknown."""
        if self.plain is None:
            return None
        return self.plain + (self.read or 0) + (self.write or 0) + (self.write_long or 0)

    @property
    def hit_rate(self) -> float | None:
        """The share of the input that came from the cache, or None if the provider does not report it."""
        if self.read is None or not self.prompt_tokens:
            return None
        return self.read / self.prompt_tokens


UNKNOWN_USAGE = Usage()


# The parts of a streamed reply, and the reply they add up to.

# One half of a surrogate pair. A stream may split a character between two deltas there.
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class StopReason(StrEnum):
    """The reason why a reply ended."""

    END = "end"
    LENGTH = "length"
    TOOL_CALLS = "tools"
    STOP_SEQUENCE = "sequence"
    REFUSED = "refused"
    CONTEXT_WINDOW = "window"
    PAUSED = "paused"
    LOOP_DETECTED = "circles"
    OTHER = "other"


class TextDelta(Struct, frozen=True, kw_only=True):
    """The next piece of the reply's text."""

    text: str


class ReasoningDelta(Struct, frozen=True, kw_only=True):
    """The next piece of the reasoning that the model shows."""

    text: str


class ToolCall(Struct, frozen=True, kw_only=True, gc=False):
    """A tool call that the model requests; ``arguments`` is JSON as the model wrote it."""

    id: str
    name: str
    arguments: str


class CacheDiagnosis(Struct, frozen=True, kw_only=True):
    """The provider's report about its cache, compared with an earlier request; ``missed`` is in tokens."""

    verdict: str
    reason: str | None = None
    missed: int | None = None


class ProviderReply(Struct, frozen=True, kw_only=True, gc=False):
    """A reply in the provider's wire format, as JSON.

    It is sent back unchanged together with the tool outputs. ``answers`` names the request that it answers, if it has
    signed reasoning: the hash of that request and the model.
    """

    format: str
    json: str
    answers: str = ""

    def __repr__(self) -> str:
        return repr_without(self, without=("json", "answers"))


class StopDelta(Struct, frozen=True, kw_only=True, gc=False):
    """The last delta of a reply; ``id`` is the provider's id of the reply."""

    reason: StopReason
    id: str | None = None
    diagnosis: CacheDiagnosis | None = None
    provider_reply: ProviderReply | None = None


Delta = TextDelta | ReasoningDelta | ToolCall | Usage | StopDelta


class ModelReply(Struct, frozen=True, kw_only=True, gc=False):
    """A complete reply of the model."""

    text: str
    stop: StopReason
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = UNKNOWN_USAGE
    id: str | None = None
    diagnosis: CacheDiagnosis | None = None
    provider_reply: ProviderReply | None = None


def join_text(parts: Iterable[str]) -> str:
    """Join parts of a text and repair characters that were split between two parts.

    A half that stays alone becomes the replacement character.
    """
    text = "".join(parts)
    if text.isascii() or not _LONE_SURROGATE.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def reply_from_deltas(deltas: Iterable[Delta]) -> ModelReply | None:
    """Return the reply that the deltas add up to, or None if the stop delta is missing.

    If there are several usage reports, the last one counts.
    """
    known = tuple(deltas)
    stop = next((delta for delta in known if isinstance(delta, StopDelta)), None)
    if stop is None:
        return None
    return ModelReply(
        text=join_text(delta.text for delta in known if isinstance(delta, TextDelta)),
        stop=stop.reason,
        reasoning="".join(delta.text for delta in known if isinstance(delta, ReasoningDelta)),
        calls=tuple(delta for delta in known if isinstance(delta, ToolCall)),
        usage=next((delta for delta in reversed(known) if isinstance(delta, Usage)), UNKNOWN_USAGE),
        id=stop.id,
        diagnosis=stop.diagnosis,
        provider_reply=stop.provider_reply,
    )


# Messages.


class Role(StrEnum):
    """The author of a message; ``tool`` messages contain the output of a tool call."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Message(Struct, frozen=True, kw_only=True, gc=False):
    """One message as sent.

    The text is stored as the pieces it was built from, so that equal pieces can be one shared object.

    - ``piece_token_counts``: the token count of each piece. Set only if the pieces tokenise separately, so that the
      counts add up.
    - ``calls``: the tool calls that an assistant message requests.
    - ``provider_reply``: the same message in the provider's own format.
    - ``call_id``: in a tool message, the id of the call that it answers.
    - ``failed``: in a tool message, whether the tool failed.
    """

    role: Role
    pieces: tuple[str, ...]
    images: tuple[ImageData, ...] = ()
    tokens: int = 0
    piece_token_counts: tuple[int, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    provider_reply: ProviderReply | None = None
    call_id: str | None = None
    failed: bool = False

    def __repr__(self) -> str:
        return repr_without(self, without=("pieces", "piece_token_counts"))

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def to_dict(self) -> dict[str, object]:
        """Return role and content as plain data; content is a list of parts if there are images."""
        if self.calls:
            calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in self.calls]
            return {"role": self.role.value, "content": self.text, "calls": calls}
        if self.call_id is not None:
            answered: dict[str, object] = {"role": self.role.value, "call": self.call_id, "content": self.text}
            return {**answered, "failed": True} if self.failed else answered
        if not self.images:
            return {"role": self.role.value, "content": self.text}
        parts: list[dict[str, str]] = [{"type": "text", "text": self.text}]
        parts += [
            {"type": "image", "media_type": image.media_type, "data": b64encode(image.data).decode()}
            for image in self.images
        ]
        return {"role": self.role.value, "content": parts}

    def has_same_content(self, other: "Message") -> bool:
        """Return whether the other message has the same content, byte for byte.

        Token counts are not compared, and neither is how the text is split into pieces.
        """
        return self is other or (
            self.role == other.role
            and self.images == other.images
            and (self.calls, self.call_id, self.failed) == (other.calls, other.call_id, other.failed)
            and self.provider_reply == other.provider_reply
            and _is_same_text(self.pieces, other.pieces)
        )


def count_common_prefix(before: Sequence[object], after: Sequence[object]) -> int:
    """Return how many leading items of the two sequences are equal.

    It bisects, because comparing slices of shared objects only compares pointers.
    """
    low, high = 0, min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        if before[low:middle] == after[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _is_same_text(ours: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    # Pieces are shared objects, so comparing the tuples mostly compares identities. Joining megabytes comes last.
    if ours == theirs:
        return True
    return sum(map(len, ours)) == sum(map(len, theirs)) and "".join(ours) == "".join(theirs)


# Requests, and which of their parts later requests will repeat.


class CacheBoundaries(Struct, frozen=True, kw_only=True):
    """Positions at which the stable parts of a request end.

    - ``stable_prefix_end``: where the most stable part of the system message's text ends, in characters.
    - ``system_positions``: every position in the system message's text from which a later request may differ, in
      characters.
    - ``stable_messages``: how many messages, including the system message, the next request will start with. None means
      all.
    """

    stable_prefix_end: int | None = None
    system_positions: tuple[int, ...] = ()
    stable_messages: int | None = None


class ModelRequest(Struct, frozen=True, kw_only=True, gc=False):
    """One request to a model.

    - ``max_output_tokens``: the maximum length of the reply in tokens.
    - ``conversation``: the conversation's name, for caches that are addressed by a key.
    - ``expected_pause``: the expected number of seconds until the next request.
    - ``previous_reply_id``: the id of the previous reply, for providers that explain cache misses.
    - ``breakpoints``: indexes of messages after which the caller wants a cache breakpoint.
    - ``long_lifetime_until``: breakpoints up to this message get the longer cache lifetime, if the provider has one.
    - ``temperature``, ``effort``, ``breakpoint_mode`` (who places breakpoints): None means the provider's default.
    - ``allows_tool_calls``: if False, the request lists the tools but the model has to answer in words.
    - ``extra_fields_json``: a JSON object with further fields of the wire format.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    max_output_tokens: int = 4_096
    conversation: str | None = None
    cache_boundaries: CacheBoundaries | None = None
    expected_pause: float | None = None
    previous_reply_id: str | None = None
    breakpoints: tuple[int, ...] = ()
    long_lifetime_until: int | None = None
    temperature: float | None = None
    effort: str | None = None
    breakpoint_mode: str | None = None
    allows_tool_calls: bool = True
    extra_fields_json: str = "{}"

    def __repr__(self) -> str:
        return repr_without(self, without=("messages", "tools"))

    @property
    def effective_cache_boundaries(self) -> CacheBoundaries:
        """The given cache boundaries, or those derived from the messages."""
        seams = self.cache_boundaries or derive_cache_boundaries(self.messages)
        # During a tool round the next request starts with all of this one, regardless of the next turn.
        return replace(seams, stable_messages=None) if self.is_tool_round else seams

    @property
    def is_tool_round(self) -> bool:
        """Whether the request returns tool outputs, after which the model may call more tools."""
        return bool(self.messages) and self.messages[-1].role is Role.TOOL


def derive_cache_boundaries(messages: Sequence[Message]) -> CacheBoundaries:
    """Return the cache boundaries that follow from the messages.

    L1 ends at the library heading, and a later request may differ after each piece of the system message.
    """
    system = messages[0] if messages and messages[0].role is Role.SYSTEM else None
    if system is None:
        return CacheBoundaries()
    ends = tuple(accumulate(len(piece) for piece in system.pieces))
    opened = (end for end, piece in zip(ends, system.pieces, strict=True) if piece.endswith(LIBRARY_HEADING))
    return CacheBoundaries(stable_prefix_end=next(opened, None), system_positions=ends)


def find_stable_end_positions(
    messages: Sequence[Message], stable_messages: int | None
) -> tuple[int | None, int | None]:
    """Return the positions of the last message that stays and of the last message of the previous request.

    ``stable_messages`` is how many messages the next request will start with; None means all. Either position is None
    if there is no such message.
    """
    count = len(messages) if stable_messages is None else stable_messages
    tail = _find_last_position(messages, count, lambda _: True)
    if tail is None:
        return None, None
    last, before = messages[tail], tail
    # All tool results of a round were sent in one request. The request before it ended with the model's tool calls.
    while last.role is Role.TOOL and before and messages[before - 1].role is Role.TOOL:
        before -= 1
    return tail, _find_last_position(messages, before, lambda message: _ends_with_same_role(message, last))


def _find_last_position(messages: Sequence[Message], end: int, matches: Callable[[Message], bool]) -> int | None:
    found = (at for at in range(min(end, len(messages)) - 1, -1, -1) if messages[at].role is not Role.SYSTEM)
    return next((at for at in found if matches(messages[at])), None)


def _ends_with_same_role(message: Message, last: Message) -> bool:
    """Return whether requests can end with both messages: both are final replies, or neither is from the model."""
    if last.role is not Role.ASSISTANT:
        return message.role is not Role.ASSISTANT
    return message.role is Role.ASSISTANT and not message.calls


# The tool calls of a turn, their outputs, and the messages that carry them.


class ToolOutput(Struct, frozen=True, kw_only=True, gc=False):
    """The output of a tool for the call with the id ``call``; ``failed`` means that the tool failed.

    ``id`` is set only if the id of the result does not follow from its position and text: the result was first
    recorded elsewhere, or its text was erased.
    """

    call: str
    output: str
    failed: bool = False
    id: str | None = None


class ToolRound(Struct, frozen=True, kw_only=True, gc=False):
    """One tool round: the model's text with its calls, and one output per call.

    ``provider_reply`` is the model's message in its provider's own format. ``tokens`` is the provider's token count of
    the model's output, if it reported one.
    """

    text: str
    calls: tuple[ToolCall, ...]
    outputs: tuple[ToolOutput, ...]
    provider_reply: ProviderReply | None = None
    tokens: int | None = None


def round_messages(tool_round: ToolRound) -> tuple[Message, ...]:
    """Return the assistant message with its calls, then one message per output; their tokens are not counted yet."""
    message = Message(
        role=Role.ASSISTANT, pieces=(tool_round.text,), calls=tool_round.calls, provider_reply=tool_round.provider_reply
    )
    got = (
        Message(role=Role.TOOL, pieces=(one.output,), call_id=one.call, failed=one.failed) for one in tool_round.outputs
    )
    return (message, *got)


def parse_arguments(arguments: str) -> dict[str, object]:
    """Parse the arguments of a call into an object that JSON can represent.

    Arguments that are no valid JSON object are returned whole under the key ``arguments``.
    """
    try:
        given: object = (
            json.loads(arguments, parse_constant=_reject_constant, parse_float=_parse_finite_float)
            if arguments.strip()
            else {}
        )
        # JSON can escape a lone surrogate, but UTF-8 cannot encode it. Encoding it here raises the error early.
        json.dumps(given, ensure_ascii=False).encode()
    except (RecursionError, ValueError):
        given = arguments
    return given if isinstance(given, dict) else {"arguments": given}


def _parse_finite_float(text: str) -> float:
    return number if isfinite(number := float(text)) else _reject_constant(text)


def _reject_constant(text: str) -> float:
    raise ValueError(f"{text} is no number")


# Full texts of messages that the history shows shortened; they are loaded only when needed.

# Full texts by message id. All messages of a snapshot share one such mapping, which loads them on first access.
TextsById = Mapping[str, str]


def resolve_lazy_texts(message_ids: Sequence[str], texts: Sequence[str | TextsById]) -> Sequence[str]:
    """Return the texts of messages, loading those that are given as a mapping."""
    if set(map(type, texts)) <= {str}:
        # Opening a conversation passes thousands of texts, and nearly always all of them are strings already.
        return cast(Sequence[str], texts)
    return [text if isinstance(text, str) else text[name] for name, text in zip(message_ids, texts, strict=True)]
