"""Replies of the Gemini API: the SDK's object, or a stream's chunks, as neutral values."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lamella.adapters.providers.gemini.request import FORMAT, MADE_UP
from lamella.adapters.providers.wire.body import keep_native
from lamella.adapters.providers.wire.fields import Fields, as_fields, as_json, count_at, fields_at, items_at, text_at
from lamella.adapters.providers.wire.usage import normalise
from lamella.core.messages.delta import (
    Delta,
    ReasoningDelta,
    Reply,
    Stop,
    StopReason,
    TextDelta,
    ToolCall,
    fold_deltas,
)
from lamella.core.messages.usage import Usage

_CAPITAL = re.compile(r"([A-Z])")
_STOPS = {
    "STOP": StopReason.END,
    "MAX_TOKENS": StopReason.LENGTH,
    "SAFETY": StopReason.REFUSED,
    "RECITATION": StopReason.REFUSED,
    "BLOCKLIST": StopReason.REFUSED,
    "PROHIBITED_CONTENT": StopReason.REFUSED,
    "SPII": StopReason.REFUSED,
}


# What tools are called with and give back is spelt by people, not by the API.
_THEIR_WORDS = ("args", "response")


def is_answer(fields: Fields) -> bool:
    """Whether this is a response of the API, or a chunk of one: both have the same form."""
    return any(name in fields for name in ("candidates", "prompt_feedback", "promptFeedback"))


def read_reply(answer: object) -> Reply | None:
    """The reply in a finished response, an SDK's object or plain data; none where it is no response."""
    return read_events([as_fields(answer)])


def read_events(chunks: Iterable[Fields]) -> Reply | None:
    """The reply that a stream's chunks add up to; none where its end is missing."""
    fold = ContentFold()
    deltas = [delta for chunk in chunks for delta in fold.take(_spell(chunk))]
    return fold_deltas([*deltas, *fold.end()])


def _spell(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """The same with names as the SDK spells them; over the wire they have capitals."""
    if isinstance(value, list):
        return [_spell(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    spelt = ((_CAPITAL.sub(r"_\1", name).lower(), inner) for name, inner in value.items())
    return {name: inner if name in _THEIR_WORDS else _spell(inner) for name, inner in spelt}


def read_usage(response: Fields) -> Usage:
    """Usage; the prompt's count includes what was cached, the answer's leaves thoughts out."""
    usage = fields_at(response, "usage_metadata")
    prompt = count_at(usage, "prompt_token_count")
    said, thought = count_at(usage, "candidates_token_count"), count_at(usage, "thoughts_token_count")
    reported = prompt is not None
    return normalise(
        total=prompt + (count_at(usage, "tool_use_prompt_token_count") or 0) if prompt is not None else None,
        # This API leaves out counts that are zero. It never bills a write: what is stored is paid by the hour.
        read=count_at(usage, "cached_content_token_count") or (0 if reported else None),
        write=0 if reported else None,
        output=None if said is None and thought is None else (said or 0) + (thought or 0),
        reasoning=thought,
    )


class ContentFold:
    """A stream's chunks, taken one by one; ``end`` gives what is known only then. ``finished`` if it was whole."""

    def __init__(self) -> None:
        self.begun = False
        self._last: Fields = {}
        self._reason = ""
        self._id: str | None = None
        self._parts: list[dict[str, Any]] = []
        self._calls = 0

    @property
    def finished(self) -> bool:
        return bool(self._reason)

    def take(self, chunk: Fields) -> Iterator[Delta]:
        """The deltas that a chunk brings."""
        self.begun = True
        self._id = text_at(chunk, "response_id") or self._id
        if fields_at(chunk, "usage_metadata"):
            self._last = chunk
        if text_at(fields_at(chunk, "prompt_feedback"), "block_reason"):
            self._reason = "PROHIBITED_CONTENT"
        for candidate in items_at(chunk, "candidates")[:1]:
            for part in items_at(fields_at(candidate, "content"), "parts"):
                yield from self._part({name: value for name, value in part.items() if value is not None})
            self._reason = text_at(candidate, "finish_reason") or self._reason

    def end(self) -> Iterator[Delta]:
        """Usage and the stop, once no more chunks come; nothing if the answer broke off."""
        if not self.finished:
            return
        if self._last:
            yield read_usage(self._last)
        reason = _STOPS.get(self._reason, StopReason.OTHER)
        yield Stop(
            reason=StopReason.TOOLS if self._calls and reason is StopReason.END else reason,
            id=self._id,
            carried=keep_native(_sendable(self._parts), FORMAT) if self._calls else None,
        )

    def _part(self, part: dict[str, Any]) -> Iterator[Delta]:
        self._parts.append(part)
        text = text_at(part, "text")
        if text:
            yield ReasoningDelta(text=text) if part.get("thought") else TextDelta(text=text)
        call = fields_at(part, "function_call")
        if call:
            self._calls += 1
            yield ToolCall(
                id=text_at(call, "id") or self._make_up(),
                name=text_at(call, "name"),
                arguments=as_json(call.get("args") or {}),
            )

    def _make_up(self) -> str:
        # With the reply's own id in it, no other reply of the conversation has a call of this name.
        return f"{MADE_UP}{self._id}-{self._calls}" if self._id else f"{MADE_UP}{self._calls}"


def _sendable(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    # Streams end with a part that says nothing. It may be answered, and may not be sent.
    return [part for part in parts if part != {"text": ""}]
