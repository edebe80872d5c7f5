"""Replies of the Messages API: the SDK's object, or a stream's events, as neutral values."""

from collections.abc import Iterable, Iterator
from typing import Any

from lamella.adapters.providers.anthropic.request import FORMAT
from lamella.adapters.providers.wire.body import keep_native, read_arguments
from lamella.adapters.providers.wire.fields import Fields, as_fields, as_json, count_at, fields_at, parts_at, text_at
from lamella.adapters.providers.wire.usage import normalise, split_write
from lamella.core.messages.delta import (
    Delta,
    Diagnosis,
    ReasoningDelta,
    Reply,
    Stop,
    StopReason,
    TextDelta,
    ToolCall,
    fold_deltas,
    join_text,
)
from lamella.core.messages.usage import Usage

_STOPS = {
    "end_turn": StopReason.END,
    "max_tokens": StopReason.LENGTH,
    "stop_sequence": StopReason.SEQUENCE,
    "tool_use": StopReason.TOOLS,
    "pause_turn": StopReason.PAUSED,
    "refusal": StopReason.REFUSED,
    "model_context_window_exceeded": StopReason.WINDOW,
}


def is_answer(fields: Fields) -> bool:
    """Whether this is a message of the API."""
    return fields.get("type") == "message" and "stop_reason" in fields


def is_event(fields: Fields) -> bool:
    """Whether a stream of the API begins like this."""
    return fields.get("type") == "message_start"


def read_reply(answer: object) -> Reply | None:
    """The reply in a finished message, an SDK's object or plain data; none where it is no message or unfinished."""
    message = as_fields(answer)
    if not is_answer(message) or message.get("stop_reason") is None:
        return None
    blocks = [_trim(block) for block in parts_at(message, "content", kind="text")]
    usage = fields_at(message, "usage")
    return fold_deltas([*_deltas(blocks), read_usage(usage, usage), _stop(message, blocks)])


def read_events(events: Iterable[Fields]) -> Reply | None:
    """The reply that a stream's events add up to; none where its end is missing."""
    fold = MessageFold()
    return fold_deltas([delta for event in events for delta in fold.take(event)])


def read_usage(usage: Fields, start: Fields) -> Usage:
    """Usage with totals from its last report and the split by lifetime from its first: later ones do not repeat it."""
    split = fields_at(start, "cache_creation")
    write, write_long = split_write(
        _latest(usage, start, "cache_creation_input_tokens"),
        short=count_at(split, "ephemeral_5m_input_tokens"),
        long=count_at(split, "ephemeral_1h_input_tokens"),
    )
    return normalise(
        plain=_latest(usage, start, "input_tokens"),
        read=_latest(usage, start, "cache_read_input_tokens"),
        write=write,
        write_long=write_long,
        output=_latest(usage, start, "output_tokens"),
        reasoning=count_at(fields_at(usage, "output_tokens_details"), "thinking_tokens"),
    )


class MessageFold:
    """A stream's events, taken one by one. ``finished`` once the last has come."""

    def __init__(self) -> None:
        self.finished = False
        self._message: Fields = {}
        self._usage: Fields = {}
        self._stop: Fields = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        # What blocks grow by, in parts, which are joined once: growing texts would be copied with every part.
        self._grown: dict[int, dict[str, list[str]]] = {}

    def take(self, event: Fields) -> Iterator[Delta]:
        """The deltas that an event brings."""
        match event.get("type"):
            case "message_start":
                self._message = fields_at(event, "message")
            case "content_block_start":
                self._blocks[count_at(event, "index") or 0] = _trim(fields_at(event, "content_block"))
            case "content_block_delta":
                yield from self._grow(count_at(event, "index") or 0, fields_at(event, "delta"))
            case "content_block_stop":
                yield from self._close(count_at(event, "index") or 0)
            case "message_delta":
                self._stop = fields_at(event, "delta")
                self._usage = fields_at(event, "usage")
            case "message_stop":
                yield from self._finish()

    def _grow(self, index: int, delta: Fields) -> Iterator[Delta]:
        self._blocks.setdefault(index, {"type": "text", "text": ""})
        match delta.get("type"):
            case "text_delta":
                yield from _some(TextDelta(text=self._append(index, "text", text_at(delta, "text"))))
            case "thinking_delta":
                yield from _some(ReasoningDelta(text=self._append(index, "thinking", text_at(delta, "thinking"))))
            case "signature_delta":
                self._append(index, "signature", text_at(delta, "signature"))
            case "input_json_delta":
                self._append(index, "json", text_at(delta, "partial_json"))

    def _append(self, index: int, name: str, grown: str) -> str:
        self._grown.setdefault(index, {}).setdefault(name, []).append(grown)
        return grown

    def _join(self, index: int) -> dict[str, Any]:
        """A block with all it has grown by."""
        block = self._blocks.get(index, {})
        for name, parts in self._grown.pop(index, {}).items():
            block[name] = "".join((text_at(block, name), *parts))
        return block

    def _close(self, index: int) -> Iterator[Delta]:
        block = self._join(index)
        if block.get("type") == "tool_use":
            written = join_text((block.pop("json", ""),))
            yield ToolCall(
                id=text_at(block, "id"),
                name=text_at(block, "name"),
                arguments=written or as_json(block.get("input", {})),
            )
            block["input"] = read_arguments(written) if written else block.get("input", {})

    def _finish(self) -> Iterator[Delta]:
        start = fields_at(self._message, "usage")
        yield read_usage(self._usage, start)
        yield _stop({**self._message, **self._stop}, [self._join(index) for index in sorted(self._blocks)])
        self.finished = True


def _deltas(blocks: list[dict[str, Any]]) -> Iterator[Delta]:
    for block in blocks:
        match block.get("type"):
            case "text":
                yield TextDelta(text=text_at(block, "text"))
            case "thinking":
                yield ReasoningDelta(text=text_at(block, "thinking"))
            case "tool_use":
                arguments = as_json(block.get("input", {}))
                yield ToolCall(id=text_at(block, "id"), name=text_at(block, "name"), arguments=arguments)


def _stop(message: Fields, blocks: list[dict[str, Any]]) -> Stop:
    calls = any(block.get("type") == "tool_use" for block in blocks)
    return Stop(
        reason=_STOPS.get(text_at(message, "stop_reason"), StopReason.OTHER),
        id=text_at(message, "id") or None,
        diagnosis=read_diagnosis(message),
        carried=keep_native(_sendable(blocks), FORMAT) if calls else None,
    )


def read_diagnosis(message: Fields) -> Diagnosis | None:
    """Why the cache was missed, if the provider says; no finding is no diagnosis."""
    found = message.get("diagnostics")
    if found is None:
        return None
    reason = fields_at(fields_at(message, "diagnostics"), "cache_miss_reason")
    kind = text_at(reason, "type")
    if not kind:
        return Diagnosis(verdict="pending")
    if kind in ("unavailable", "previous_message_not_found"):
        return Diagnosis(verdict=kind)
    return Diagnosis(verdict="miss", reason=kind, missed=count_at(reason, "cache_missed_input_tokens"))


def _sendable(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    # A text block without text may be answered, and may not be sent.
    return [block for block in blocks if block.get("type") != "text" or text_at(block, "text").strip()]


def _trim(block: Fields) -> dict[str, Any]:
    return {name: value for name, value in block.items() if value is not None}


def _some(delta: TextDelta | ReasoningDelta) -> Iterator[Delta]:
    if delta.text:
        yield delta


def _latest(usage: Fields, start: Fields, name: str) -> int | None:
    found = count_at(usage, name)
    return found if found is not None else count_at(start, name)
