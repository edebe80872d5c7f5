"""Rounds of recall with an upstream of the client's API: the model calls the tool, and Lamella answers the call.

``add_recall_tool`` and ``append_round`` change the bytes of a request. ``RecallResponse`` is the response to the first
request; while it is read, it sends further requests, until the model no longer calls the tool. The client gets one answer
without these calls. Signed reasoning of later rounds is left out, because it is bound to calls that the client never sees.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from lamella.server.compat.json_spans import (
    Replacement,
    Span,
    decode_json,
    encode_json,
    find_members,
    find_root,
    replace_spans,
)
from lamella.server.compat.neutral import (
    PROVIDER_FORMAT,
    AnswerEnd,
    AnswerEvent,
    AnswerReasoningDelta,
    AnswerStart,
    AnswerTextDelta,
    CallDelta,
    CallEnd,
    CallPart,
    CallStart,
    Json,
    NeutralMessage,
    NeutralRequest,
    Part,
    ReasoningEnd,
    ReasoningPart,
    ResultPart,
    TextPart,
    to_json_text,
)
from lamella.server.compat.recall import MAX_ROUNDS, RECALL_SPEC, RECALL_TOOL, RecallableMessages
from lamella.server.compat.streams import DONE, SseEvent, SseReader, decode_event, format_event
from lamella.server.compat.upstream import UpstreamResponse
from lamella.server.compat.usage import TokenUsage
from lamella.server.compat.wires import MESSAGES_FIELD, ApiFormat

_THINKING = ("thinking", "redacted_thinking", "reasoning")
_LAST_ROUND = "This was the last search. Answer now."
Send = Callable[[bytes], Awaitable[UpstreamResponse]]


# Requests.


def add_recall_tool(wire: ApiFormat, data: bytes) -> bytes:
    """Return a request with the tool after those of the client."""
    name, described, schema = RECALL_SPEC.name, RECALL_SPEC.description, RECALL_SPEC.schema
    if wire is ApiFormat.MESSAGES:
        tool: Json = {"name": name, "description": described, "input_schema": schema}
    elif wire is ApiFormat.CHAT:
        tool = {"type": "function", "function": {"name": name, "description": described, "parameters": schema}}
    else:
        tool = {"type": "function", "name": name, "description": described, "parameters": schema, "strict": False}
    return _append_to_array_field(data, "tools", [tool])


def append_round(wire: ApiFormat, data: bytes, reply: list[Json], results: Mapping[str, str]) -> bytes:
    """Return a request with the reply of the model and the results of its calls."""
    if wire is ApiFormat.MESSAGES:
        told: list[Json] = [
            {"type": "tool_result", "tool_use_id": call, "content": text} for call, text in results.items()
        ]
        added: list[Json] = [{"role": "assistant", "content": reply}, {"role": "user", "content": told}]
    elif wire is ApiFormat.CHAT:
        added = [*reply, *({"role": "tool", "tool_call_id": call, "content": text} for call, text in results.items())]
    else:
        added = [
            *reply,
            *({"type": "function_call_output", "call_id": call, "output": text} for call, text in results.items()),
        ]
    return _append_to_array_field(data, MESSAGES_FIELD[wire], added)


def _append_to_array_field(data: bytes, field: str, items: list[Json]) -> bytes:
    """Return an object with more items at the end of the array in one of its fields."""
    root = find_root(data)
    span = find_members(data, root).get(field)
    written = b",".join(map(encode_json, items))
    if span is None:
        member = encode_json(field) + b":[" + written + b"],"
        return replace_spans(data, [Replacement(Span(root + 1, root + 1), member)])
    value = data[span.start : span.end]
    if value.startswith(b'"'):
        # The Responses API takes a single text as the whole input.
        return replace_spans(data, [Replacement(span, b'[{"role":"user","content":' + value + b"}," + written + b"]")])
    if not value.startswith(b"["):
        return replace_spans(data, [Replacement(span, b"[" + written + b"]")])
    is_empty = not value[1:-1].strip()
    return replace_spans(data, [Replacement(Span(span.end - 1, span.end - 1), (b"" if is_empty else b",") + written)])


# Answers.


class RecallRound:
    """One reply of the model: its items for the next request, and the calls of the tool."""

    def __init__(self) -> None:
        self.reply: list[Json] = []
        self.calls: dict[str, str] = {}
        self.has_other_calls = False


def read_round(wire: ApiFormat, body: Mapping[str, Any]) -> RecallRound:
    """Read an answer that is not a stream."""
    found = RecallRound()
    if wire is ApiFormat.CHAT:
        choices = body.get("choices")
        first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        message = _as_object(first.get("message"))
        found.reply = [{name: value for name, value in message.items() if value is not None}]
        items = [one for one in message.get("tool_calls") or [] if isinstance(one, dict)]
    else:
        listed = body.get("content" if wire is ApiFormat.MESSAGES else "output")
        found.reply = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        items = found.reply
    for one in items:
        _record_if_recall_call(wire, found, one)
    return found


def _record_if_recall_call(wire: ApiFormat, found: RecallRound, item: Json) -> None:
    if wire is ApiFormat.MESSAGES and item.get("type") != "tool_use":
        return
    if wire is ApiFormat.RESPONSES and not str(item.get("type")).endswith("_call"):
        return
    named = item.get("function") if wire is ApiFormat.CHAT else item
    if not _is_recall(wire, item):
        found.has_other_calls = True
    elif wire is ApiFormat.MESSAGES:
        found.calls[str(item.get("id"))] = to_json_text(item.get("input"))
    else:
        assert isinstance(named, dict), "it has the name of the tool"
        found.calls[str(item.get("id" if wire is ApiFormat.CHAT else "call_id"))] = str(named.get("arguments"))


def _is_recall(wire: ApiFormat, item: Json) -> bool:
    if wire is ApiFormat.CHAT:
        function = item.get("function")
        return isinstance(function, dict) and function.get("name") == RECALL_TOOL
    kind = "tool_use" if wire is ApiFormat.MESSAGES else "function_call"
    return item.get("type") == kind and item.get("name") == RECALL_TOOL


class RecallResponse(UpstreamResponse):
    """The response to a request with the tool; reading it answers the calls of the tool."""

    def __init__(
        self, first: UpstreamResponse, *, wire: ApiFormat, data: bytes, send: Send, recallable: RecallableMessages
    ) -> None:
        super().__init__(first.status, first.headers, first.response)
        self._first, self._wire, self._data, self._send = first, wire, data, send
        self._recallable = recallable

    async def iter_bytes(self) -> AsyncGenerator[bytes, None]:
        """Yield the events of all rounds as those of one answer."""
        response, merger = self._first, _MERGERS[self._wire]()
        for number in range(1, MAX_ROUNDS + 1):
            async with aclosing(response.iter_bytes()) as chunks:
                async for chunk in chunks:
                    made = merger.feed(chunk)
                    if made:
                        yield made
            rest = merger.read_rest_of_round()
            if rest:
                yield rest
            found = merger.round
            if not found.calls or found.has_other_calls or number == MAX_ROUNDS or not merger.has_ended:
                yield merger.finish()
                return
            response = await self._send_next_round(found, number)
            merger.begin_round()

    async def read(self, *, limit: int = 268_435_456) -> bytes:
        """Return the answer of the last round, with the texts of those before it."""
        data = await self._first.read(limit=limit)
        shown: list[Json] = []
        used: Json = {}
        for number in range(1, MAX_ROUNDS + 1):
            try:
                body = decode_json(data)
            except (ValueError, RecursionError):
                return data
            found = read_round(self._wire, body) if isinstance(body, dict) else RecallRound()
            goes_on = bool(found.calls) and not found.has_other_calls and number < MAX_ROUNDS
            if number == 1 and not found.calls:
                return data
            used = _add_usage(used, body.get("usage"))
            if not goes_on:
                return encode_json(_merge_body_with_earlier_rounds(self._wire, body, shown, number) | {"usage": used})
            shown += _list_items_for_client(self._wire, found.reply, number)
            response = await self._send_next_round(found, number)
            data = await response.read(limit=limit)
        raise AssertionError("the last round returns")

    async def _send_next_round(self, found: RecallRound, number: int) -> UpstreamResponse:
        results = {call: self._recallable.run_recall_tool(given) for call, given in found.calls.items()}
        if number == MAX_ROUNDS - 1:
            results = {call: f"{text}\n\n{_LAST_ROUND}" for call, text in results.items()}
        self._data = append_round(self._wire, self._data, found.reply, results)
        return await self._send(self._data)

    async def close(self) -> None:
        await self._first.close()


def _list_items_for_client(wire: ApiFormat, reply: list[Json], number: int) -> list[Json]:
    """Return what the client gets of a reply."""
    if wire is ApiFormat.CHAT:
        return reply
    kept = [one for one in reply if not _is_recall(wire, one)]
    return kept if number == 1 else [one for one in kept if one.get("type") not in _THINKING]


def _merge_body_with_earlier_rounds(wire: ApiFormat, body: Json, shown: list[Json], number: int) -> Json:
    """Return the body of the last round with what the client gets of the rounds before it."""
    if wire is not ApiFormat.CHAT:
        name = "content" if wire is ApiFormat.MESSAGES else "output"
        items = [one for one in body[name] if isinstance(one, dict)]
        left = [*shown, *_list_items_for_client(wire, items, number)]
        called = any(one.get("type") == "tool_use" for one in left)
        ended = {"stop_reason": "end_turn"} if body.get("stop_reason") == "tool_use" and not called else {}
        return body | {name: left} | ended
    choice = body["choices"][0]
    message = dict(choice["message"])
    calls = [one for one in message.pop("tool_calls", None) or [] if not _is_recall(wire, one)]
    texts = [*(one.get("content") for one in shown), message.get("content")]
    message["content"] = "".join(text for text in texts if isinstance(text, str)) or None
    message |= {"tool_calls": calls} if calls else {}
    finish = choice.get("finish_reason")
    finish = "stop" if finish == "tool_calls" and not calls else finish
    return body | {"choices": [{**choice, "message": message, "finish_reason": finish}]}


def _add_usage(before: Json, usage: object) -> Json:
    """Return the sum of two counts, field by field; other values are those of the last."""
    if not isinstance(usage, dict):
        return before
    added: Json = dict(before)
    for name, value in usage.items():
        old = before.get(name)
        if isinstance(value, dict):
            added[name] = _add_usage(old if isinstance(old, dict) else {}, value)
        elif isinstance(value, int) and isinstance(old, int) and not isinstance(value, bool):
            added[name] = old + value
        else:
            added[name] = value
    return added


# Rounds of a translated request.


async def answer_recalls(
    events: AsyncGenerator[AnswerEvent, None],
    request: NeutralRequest,
    *,
    recallable: RecallableMessages,
    send: Callable[[], AsyncGenerator[AnswerEvent, None]],
) -> AsyncGenerator[AnswerEvent, None]:
    """Yield the events of all rounds as those of one answer; each round is added to ``request`` and sent."""
    usage = TokenUsage()
    for number in range(1, MAX_ROUNDS + 1):
        said: list[Part] = []
        end: AnswerEnd | None = None
        # The reasoning of some providers contains their calls, so it waits until it is known which these are.
        waiting: list[AnswerEvent] = []
        is_hidden = False
        async with aclosing(events):
            async for event in events:
                if isinstance(event, AnswerEnd):
                    end = event
                    continue
                if isinstance(event, CallStart):
                    is_hidden = event.name == RECALL_TOOL
                _add_event_to_parts(said, event)
                if is_hidden:
                    is_hidden = not isinstance(event, CallEnd)
                elif waiting or _is_provider_only(event):
                    waiting.append(event)
                elif number == 1 or not isinstance(event, AnswerStart | AnswerReasoningDelta | ReasoningEnd):
                    yield event
        has_recall = any(isinstance(part, CallPart) and part.name == RECALL_TOOL for part in said)
        for event in waiting:
            if not (has_recall and isinstance(event, ReasoningEnd)):
                yield event
        if end is None:
            return
        usage = TokenUsage(*(_add_counts(one, other) for one, other in zip(usage, end.usage, strict=True)))
        calls = [part for part in said if isinstance(part, CallPart)]
        recalls = [part for part in calls if part.name == RECALL_TOOL]
        if not recalls or len(recalls) < len(calls) or number == MAX_ROUNDS:
            has_calls = len(recalls) < len(calls)
            yield end._replace(usage=usage, stop="end" if end.stop == "tools" and not has_calls else end.stop)
            return
        results = [ResultPart(part.id, (TextPart(recallable.run_recall_tool(part.arguments)),)) for part in recalls]
        request.messages.append(NeutralMessage("assistant", tuple(said)))
        request.messages.append(NeutralMessage("tool", tuple(results)))
        events = send()


def _is_provider_only(event: AnswerEvent) -> bool:
    return isinstance(event, ReasoningEnd) and event.wire.startswith(PROVIDER_FORMAT)


def _add_event_to_parts(said: list[Part], event: AnswerEvent) -> None:
    """Add what an event says to the parts of the reply."""
    last = said[-1] if said else None
    match event:
        case AnswerTextDelta(text) if isinstance(last, TextPart):
            said[-1] = TextPart(last.text + text)
        case AnswerTextDelta(text) if text:
            said.append(TextPart(text))
        case ReasoningEnd(wire, native):
            said.append(ReasoningPart(wire, native))
        case CallStart(call, name):
            said.append(CallPart(call, name, ""))
        case CallDelta(text) if isinstance(last, CallPart):
            said[-1] = last._replace(arguments=last.arguments + text)


def _add_counts(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other


# Streams.


class StreamMerger(ABC):
    """Merges the streams of several rounds into one.

    Bytes pass as they are until the model calls the tool. From then on events get new positions, which leave the
    calls out.
    """

    def __init__(self) -> None:
        self.round = RecallRound()
        self.has_ended = False
        self._reader = SseReader()
        self._number = 1
        self._is_changed = False
        # The events at the end of a round, which wait until it is known whether another round follows.
        self._held: list[tuple[bytes, SseEvent | None]] = []
        self._usage: Json = {}

    def feed(self, chunk: bytes) -> bytes:
        """Read the next bytes of a round; return what the client gets of them."""
        return b"".join(self._read_raw_event(raw, event) for raw, event in self._reader.feed_with_raw_bytes(chunk))

    def read_rest_of_round(self) -> bytes:
        """Read what is left at the end of a round."""
        rest, events = self._reader.finish()
        if not events:
            return b"" if self._is_changed else rest
        return b"".join(self._read_raw_event(rest if at == 0 else b"", event) for at, event in enumerate(events))

    def finish(self) -> bytes:
        """Return the end of the last round."""
        if not self._is_changed:
            return b"".join(raw for raw, _ in self._held)
        return b"".join(self._write_end(raw, event) for raw, event in self._held)

    def begin_round(self) -> None:
        """Get ready for the next round."""
        self._number += 1
        self._is_changed = True
        self._reader = SseReader()
        for _, event in self._held:
            if event is not None:
                self._usage = _add_usage(self._usage, self._usage_of(decode_event(event)))
        self._held = []
        self.round = RecallRound()
        self.has_ended = False
        self._begin()

    def _read_raw_event(self, raw: bytes, event: SseEvent | None) -> bytes:
        if event is None:
            return raw
        if self._held and not self._is_always_passed_on(event):
            self._held.append((raw, event))
            self._finish_round_if_ended(event)
            return b""
        if self._is_end(event):
            self._held.append((raw, event))
            self._finish_round_if_ended(event)
            return b""
        return b"".join(self._read_event(raw, event, decode_event(event)))

    def _pass(self, raw: bytes, event: SseEvent, fields: Json) -> bytes:
        return format_event(fields, name=event.name) if self._is_changed else raw

    def _is_always_passed_on(self, event: SseEvent) -> bool:
        return event.name in ("ping", "error")

    # What each API does in its own way.

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _is_end(self, event: SseEvent) -> bool: ...

    @abstractmethod
    def _finish_round_if_ended(self, event: SseEvent) -> None:
        """Read an event at the end of an answer; once the answer has ended, set ``has_ended`` and ``round``."""

    @abstractmethod
    def _read_event(self, raw: bytes, event: SseEvent, fields: Json) -> Iterator[bytes]: ...

    def _usage_of(self, fields: Json) -> object:
        return fields.get("usage")

    @abstractmethod
    def _write_end(self, raw: bytes, event: SseEvent | None) -> bytes: ...


class MessagesMerger(StreamMerger):
    """Merges streams of Anthropic's API."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, Json] = {}
        self._written: dict[int, str] = {}
        self._positions: dict[int, int | None] = {}
        self._shown = 0
        self._calls_shown = False
        self._start_usage: Json = {}

    def _begin(self) -> None:
        self._blocks, self._written, self._positions = {}, {}, {}
        self._start_usage = {}

    def _is_end(self, event: SseEvent) -> bool:
        return (event.name or decode_event(event).get("type")) in ("message_delta", "message_stop")

    def _finish_round_if_ended(self, event: SseEvent) -> None:
        if decode_event(event).get("type") != "message_stop":
            return
        self.has_ended = True
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        # The API returns empty text blocks but does not accept them in a request.
        kept = [one for one in blocks if one.get("type") != "text" or str(one.get("text") or "").strip()]
        self.round = read_round(ApiFormat.MESSAGES, {"content": kept})

    def _usage_of(self, fields: Json) -> object:
        usage = fields.get("usage")
        return {**self._start_usage, **usage} if isinstance(usage, dict) else None

    def _read_event(self, raw: bytes, event: SseEvent, fields: Json) -> Iterator[bytes]:
        index = fields.get("index")
        match fields.get("type"):
            case "message_start":
                message = fields.get("message")
                usage = message.get("usage") if isinstance(message, dict) else None
                self._start_usage = dict(usage) if isinstance(usage, dict) else {}
                if self._number == 1:
                    yield raw
                return
            case "content_block_start" if isinstance(index, int) and isinstance(fields.get("content_block"), dict):
                self._start_block(index, fields["content_block"])
            case "content_block_delta" if index in self._blocks and isinstance(fields.get("delta"), dict):
                self._add_delta(index, fields["delta"])
            case "content_block_stop" if index in self._written:
                written = self._written.pop(index)
                self._blocks[index]["input"] = _parse_input(written)
        if index not in self._positions:
            yield self._pass(raw, event, fields)
            return
        position = self._positions[index]
        if position is not None:
            yield self._pass(raw, event, fields | {"index": position})

    def _start_block(self, index: int, block: Json) -> None:
        self._blocks[index] = dict(block)
        is_recall = _is_recall(ApiFormat.MESSAGES, block)
        if block.get("type") == "tool_use":
            self._written[index] = ""
            self._calls_shown = self._calls_shown or not is_recall
        if is_recall or (self._number > 1 and block.get("type") in _THINKING):
            self._is_changed = True
            self._positions[index] = None
        else:
            self._positions[index] = self._shown
            self._shown += 1

    def _add_delta(self, index: int, delta: Json) -> None:
        block = self._blocks[index]
        for name in ("text", "thinking", "signature"):
            if isinstance(delta.get(name), str):
                block[name] = str(block.get(name) or "") + delta[name]
        if isinstance(delta.get("partial_json"), str):
            self._written[index] = self._written.get(index, "") + delta["partial_json"]

    def _write_end(self, raw: bytes, event: SseEvent | None) -> bytes:
        if event is None:
            return raw
        fields = decode_event(event)
        if fields.get("type") == "message_delta":
            delta = _as_object(fields.get("delta"))
            if delta.get("stop_reason") == "tool_use" and not self._calls_shown:
                delta = {**delta, "stop_reason": "end_turn"}
            fields |= {"delta": delta, "usage": _add_usage(self._usage, self._usage_of(fields))}
        return format_event(fields, name=event.name)


def _parse_input(written: str) -> object:
    try:
        return decode_json(written.encode("utf-8", "surrogatepass")) if written.strip() else {}
    except (ValueError, RecursionError):
        return {"unreadable": written}


class ChatMerger(StreamMerger):
    """Merges streams of OpenAI's Chat Completions API."""

    def __init__(self) -> None:
        super().__init__()
        self._message: Json = {"role": "assistant", "content": ""}
        self._calls: dict[int, Json] = {}
        self._positions: dict[int, int | None] = {}
        self._shown = 0
        self._head: Json = {}

    def _begin(self) -> None:
        self._message, self._calls, self._positions = {"role": "assistant", "content": ""}, {}, {}

    def _is_always_passed_on(self, event: SseEvent) -> bool:
        return b'"error"' in event.data and bool(decode_event(event).get("error"))

    def _is_end(self, event: SseEvent) -> bool:
        if event.data == DONE:
            return True
        return any(choice.get("finish_reason") for choice in _get_choices(decode_event(event)))

    def _finish_round_if_ended(self, event: SseEvent) -> None:
        fields = decode_event(event)
        for choice in _get_choices(fields):
            # Some servers send the last call together with the end.
            self._add_delta(choice.get("delta") or {})
        self.has_ended = self.has_ended or event.data == DONE or bool(_get_choices(fields))
        calls = [self._calls[index] for index in sorted(self._calls)]
        message = self._message | ({"tool_calls": calls} if calls else {})
        message["content"] = message["content"] or None
        self.round = read_round(ApiFormat.CHAT, {"choices": [{"message": message}]})

    def _read_event(self, raw: bytes, event: SseEvent, fields: Json) -> Iterator[bytes]:
        self._head = self._head or {name: fields[name] for name in ("id", "created") if name in fields}
        for choice in _get_choices(fields):
            self._add_delta(choice.get("delta") or {})
        if not self._is_changed:
            yield raw
            return
        shown = self._keep_parts_for_client(fields)
        if shown is not None:
            yield format_event(shown, name=event.name)

    def _add_delta(self, delta: Json) -> None:
        for name in ("content", "reasoning_content", "reasoning"):
            if isinstance(delta.get(name), str) and delta[name]:
                self._message[name] = str(self._message.get(name) or "") + delta[name]
        for call in _keep_objects(delta.get("tool_calls")):
            index = _get_call_index(call)
            if index not in self._calls:
                function = _as_object(call.get("function"))
                self._calls[index] = {
                    **call,
                    "function": {**function, "arguments": str(function.get("arguments") or "")},
                }
                self._calls[index].pop("index", None)
                is_recall = _is_recall(ApiFormat.CHAT, call)
                self._is_changed = self._is_changed or is_recall
                self._positions[index] = None if is_recall else self._shown
                self._shown += not is_recall
                continue
            function = _as_object(call.get("function"))
            self._calls[index]["function"]["arguments"] += str(function.get("arguments") or "")

    def _keep_parts_for_client(self, fields: Json) -> Json | None:
        """Return a chunk without what the client does not get; None if nothing is left."""
        choices = []
        for choice in _get_choices(fields):
            delta = dict(choice.get("delta") or {})
            calls = [
                {**call, "index": self._positions[index]}
                for call in _keep_objects(delta.pop("tool_calls", None))
                if self._positions.get(index := _get_call_index(call)) is not None
            ]
            if self._number > 1:
                delta.pop("role", None)
            delta |= {"tool_calls": calls} if calls else {}
            if any(value not in (None, "") for value in delta.values()) or choice.get("finish_reason"):
                choices.append({**choice, "delta": delta})
        if not choices and _get_choices(fields):
            return None
        return {**fields, **self._head, "choices": choices}

    def _write_end(self, raw: bytes, event: SseEvent | None) -> bytes:
        if event is None or event.data == DONE:
            return raw
        fields = self._keep_parts_for_client(decode_event(event))
        if fields is None:
            return b""
        for choice in fields["choices"]:
            if choice.get("finish_reason") == "tool_calls" and not self._shown:
                choice["finish_reason"] = "stop"
        if isinstance(fields.get("usage"), dict):
            fields["usage"] = _add_usage(self._usage, fields["usage"])
        return format_event(fields, name=event.name)


def _as_object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _get_call_index(call: Json) -> int:
    index = call.get("index")
    return index if isinstance(index, int) else 0


def _get_choices(fields: Json) -> list[Json]:
    return _keep_objects(fields.get("choices"))


def _keep_objects(value: object) -> list[Json]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


class ResponsesMerger(StreamMerger):
    """Merges streams of OpenAI's Responses API."""

    def __init__(self) -> None:
        super().__init__()
        self._positions: dict[int, int | None] = {}
        self._shown: list[Json] = []
        self._count = 0
        self._sequence = -1
        self._id: str | None = None
        self._items: list[Json] = []

    def _begin(self) -> None:
        self._positions, self._items = {}, []

    def _is_end(self, event: SseEvent) -> bool:
        kind = event.name or decode_event(event).get("type")
        return kind in ("response.completed", "response.incomplete", "response.failed")

    def _finish_round_if_ended(self, event: SseEvent) -> None:
        self.has_ended = True
        fields = decode_event(event)
        response = _as_object(fields.get("response"))
        output = _keep_objects(response.get("output")) or self._items
        self.round = read_round(ApiFormat.RESPONSES, {"output": output})

    def begin_round(self) -> None:
        self._shown += _list_items_for_client(ApiFormat.RESPONSES, self.round.reply, self._number)
        super().begin_round()

    def _usage_of(self, fields: Json) -> object:
        response = fields.get("response")
        return response.get("usage") if isinstance(response, dict) else None

    def _read_event(self, raw: bytes, event: SseEvent, fields: Json) -> Iterator[bytes]:
        kind, index = fields.get("type"), fields.get("output_index")
        item = _as_object(fields.get("item"))
        if self._number > 1 and kind in ("response.created", "response.in_progress", "response.queued"):
            return
        if kind == "response.created":
            self._id = _as_object(fields.get("response")).get("id")
        if kind == "response.output_item.added" and isinstance(index, int):
            is_recall = _is_recall(ApiFormat.RESPONSES, item)
            if is_recall or (self._number > 1 and item.get("type") in _THINKING):
                self._is_changed = True
                self._positions[index] = None
            else:
                self._positions[index] = self._count
                self._count += 1
        if kind == "response.output_item.done":
            self._items.append(item)
        if index in self._positions:
            position = self._positions[index]
            if position is None:
                return
            fields = fields | {"output_index": position}
        yield self._write(raw, event, fields)

    def _write(self, raw: bytes, event: SseEvent, fields: Json) -> bytes:
        if not self._is_changed:
            number = fields.get("sequence_number")
            self._sequence = number if isinstance(number, int) else self._sequence + 1
            return raw
        self._sequence += 1
        return format_event(fields | {"sequence_number": self._sequence}, name=event.name)

    def _write_end(self, raw: bytes, event: SseEvent | None) -> bytes:
        if event is None:
            return raw
        fields = decode_event(event)
        response = fields.get("response")
        if isinstance(response, dict):
            items = _list_items_for_client(ApiFormat.RESPONSES, self.round.reply, self._number)
            used = _add_usage(self._usage, response.get("usage"))
            named = {"id": self._id} if self._id is not None else {}
            fields["response"] = {**response, **named, "output": [*self._shown, *items], "usage": used or None}
        return self._write(raw, event, fields)


_MERGERS: Mapping[ApiFormat, Callable[[], StreamMerger]] = {
    ApiFormat.MESSAGES: MessagesMerger,
    ApiFormat.CHAT: ChatMerger,
    ApiFormat.RESPONSES: ResponsesMerger,
}
