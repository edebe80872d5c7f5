"""Streams of server-sent events: splitting, watching and ending them.

``SseReader`` splits bytes into events. ``StreamMonitor`` watches a stream that is passed on as it is: whether its last
event came, which usage it reports, and which signatures it contains.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lamella.server.compat.identity import iter_signatures
from lamella.server.compat.json_spans import decode_json, encode_json
from lamella.server.compat.usage import TokenUsage, parse_usage
from lamella.server.compat.wires import ApiFormat

_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE_END = re.compile(rb"\r\n|\n|\r")
DONE = b"[DONE]"
_RESPONSE_ENDS = ("response.completed", "response.incomplete", "response.failed")


class SseEvent(NamedTuple):
    """One event: its name, which may be empty, and its data."""

    name: str
    data: bytes


class SseReader:
    """Splits a stream into events."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, part: bytes) -> tuple[bytes, list[SseEvent]]:
        """Add bytes; return the bytes and the events that are complete now."""
        found = self.feed_with_raw_bytes(part)
        return b"".join(raw for raw, _ in found), [event for _, event in found if event is not None]

    def feed_with_raw_bytes(self, part: bytes) -> list[tuple[bytes, SseEvent | None]]:
        """Add bytes; return the bytes of each event that is complete now; comments have no event."""
        start = max(len(self._pending) - 3, 0)
        self._pending += part
        begin = 0
        found: list[tuple[bytes, SseEvent | None]] = []
        while ending := _EVENT_END.search(self._pending, max(begin, start)):
            event = next(_parse_event(bytes(self._pending[begin : ending.start()])), None)
            found.append((bytes(self._pending[begin : ending.end()]), event))
            begin = ending.end()
        del self._pending[:begin]
        return found

    def finish(self) -> tuple[bytes, list[SseEvent]]:
        """Return what is left when the stream ends, which counts as an event without its blank line."""
        rest = bytes(self._pending)
        self._pending.clear()
        return rest, list(_parse_event(rest))


def _parse_event(lines: bytes) -> Iterator[SseEvent]:
    name, data = "", []
    for line in _LINE_END.split(lines):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode(errors="replace")
    if data:
        yield SseEvent(name, b"\n".join(data))


def decode_event(event: SseEvent) -> dict[str, Any]:
    """Return the fields of an event, or nothing if its data is no JSON object."""
    try:
        found = decode_json(event.data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def format_event(fields: Mapping[str, object], *, name: str = "") -> bytes:
    """Return an event with JSON as its data."""
    head = f"event: {name}\n" if name else ""
    return b"".join((head.encode(), b"data: ", encode_json(fields), b"\n\n"))


class StreamMonitor:
    """Watches an answer in the format of an API while its bytes are passed on."""

    def __init__(self, wire: ApiFormat) -> None:
        self._wire = wire
        self._reader = SseReader()
        self.usage = TokenUsage()
        self.response_id: str | None = None
        self.stop: str | None = None
        self.has_ended = False
        self.has_failed = False
        self.error: dict[str, Any] = {}
        self.signatures: list[str] = []
        self._signature = ""

    def feed(self, part: bytes) -> bytes:
        """Read the next bytes of a stream and return those that belong to complete events."""
        whole, events = self._reader.feed(part)
        for event in events:
            self._read_event(event)
        return whole

    def finish(self) -> bytes:
        """Read what is left at the end of a stream; return it if the stream has ended as it should."""
        rest, events = self._reader.finish()
        for event in events:
            self._read_event(event)
        return rest if self.has_ended or self.has_failed else b""

    def read_body(self, data: bytes) -> None:
        """Read an answer that is not a stream."""
        self.has_ended = True
        try:
            body = decode_json(data)
        except (ValueError, RecursionError):
            return
        if isinstance(body, dict):
            self._read_whole_answer(body)

    def _read_whole_answer(self, body: Mapping[str, Any]) -> None:
        self.response_id = body.get("id") if isinstance(body.get("id"), str) else self.response_id
        self.usage = parse_usage(self._wire, body.get("usage"), self.usage)
        self.signatures += iter_signatures(
            body.get("content") if self._wire is ApiFormat.MESSAGES else body.get("output")
        )
        choices = body.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            self.signatures += iter_signatures(choices[0].get("message"))

    def _read_event(self, event: SseEvent) -> None:
        if self._wire is ApiFormat.CHAT:
            self._read_chunk(event)
        elif self._wire is ApiFormat.MESSAGES:
            self._read_message_event(event)
        else:
            self._read_response_event(event)

    def _read_chunk(self, event: SseEvent) -> None:
        if event.data == DONE:
            self.has_ended = True
            return
        # Most chunks have a few words of text. They are not decoded.
        if b'"usage"' not in event.data and b'"finish_reason"' not in event.data and b'"error"' not in event.data:
            return
        chunk = decode_event(event)
        self._record_error(chunk.get("error"))
        self.usage = parse_usage(self._wire, chunk.get("usage"), self.usage)
        choices = chunk.get("choices")
        if isinstance(choices, list):
            self.has_ended = self.has_ended or any(
                isinstance(one, dict) and one.get("finish_reason") for one in choices
            )

    def _read_message_event(self, event: SseEvent) -> None:
        kind = event.name or str(decode_event(event).get("type"))
        if kind in ("content_block_delta", "content_block_start") and not _may_have_signature(event.data):
            return
        if kind == "ping":
            return
        fields = decode_event(event)
        match kind:
            case "message_start":
                message = fields.get("message")
                self._read_whole_answer(message if isinstance(message, dict) else {})
            case "message_delta":
                self.usage = parse_usage(self._wire, fields.get("usage"), self.usage)
            case "content_block_start":
                self.signatures += iter_signatures(fields.get("content_block"))
            case "content_block_delta":
                delta = fields.get("delta")
                part = delta.get("signature") if isinstance(delta, dict) else None
                self._signature += part if isinstance(part, str) else ""
            case "content_block_stop" if self._signature:
                self.signatures.append(self._signature)
                self._signature = ""
            case "message_stop":
                self.has_ended = True
            case "error":
                self._record_error(fields.get("error") or True)

    def _read_response_event(self, event: SseEvent) -> None:
        kind = event.name or str(decode_event(event).get("type"))
        if kind == "response.created" or kind in _RESPONSE_ENDS:
            response = decode_event(event).get("response")
            self._read_whole_answer(response if isinstance(response, dict) else {})
        self.has_ended = self.has_ended or kind in _RESPONSE_ENDS
        if kind == "error":
            self._record_error(decode_event(event))

    def _record_error(self, error: object) -> None:
        if error and not self.has_failed:
            self.has_failed = True
            self.error = error if isinstance(error, dict) else {"message": str(error)}


def _may_have_signature(data: bytes) -> bool:
    return b'"signature' in data or b'"redacted_thinking"' in data or b'"compaction"' in data
