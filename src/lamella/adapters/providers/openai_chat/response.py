"""Replies of Chat Completions: the SDK's object, or a stream's chunks, as neutral values."""

from collections.abc import Iterable, Iterator

from lamella.adapters.providers.openai_chat.request import FORMAT, THOUGHTS
from lamella.adapters.providers.openai_chat.thoughts import ThoughtSplitter
from lamella.adapters.providers.wire.body import keep_native
from lamella.adapters.providers.wire.fields import (
    Fields,
    as_fields,
    count_at,
    fields_at,
    items_at,
    text_at,
    unreadable,
)
from lamella.adapters.providers.wire.usage import normalise
from lamella.core.messages.delta import (
    Delta,
    NativeReply,
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
    "stop": StopReason.END,
    "length": StopReason.LENGTH,
    "tool_calls": StopReason.TOOLS,
    "function_call": StopReason.TOOLS,
    "content_filter": StopReason.REFUSED,
}
# Ollama reports no cached tokens and says zero; its own name in this field gives it away.
_SAYS_ZERO = "fp_ollama"


def is_answer(fields: Fields) -> bool:
    """Whether this is a completion; servers that speak the API do not all name its kind."""
    return fields.get("object") == "chat.completion" or _has(fields, "message")


def is_event(fields: Fields) -> bool:
    """Whether this is a chunk of a completion."""
    return fields.get("object") == "chat.completion.chunk" or _has(fields, "delta")


def _has(fields: Fields, part: str) -> bool:
    return any(part in choice for choice in items_at(fields, "choices"))


def read_reply(answer: object) -> Reply | None:
    """The reply in a finished completion, an SDK's object or plain data; none where it is no completion."""
    completion = as_fields(answer)
    choices = items_at(completion, "choices")
    if not choices:
        return None
    fold = CompletionFold()
    message = fields_at(choices[0], "message")
    if not message:
        raise unreadable("message", choices[0].get("message"))
    calls = [{"index": index, **call} for index, call in enumerate(items_at(message, "tool_calls"))]
    choice = {"delta": {**message, "tool_calls": calls}, "finish_reason": choices[0].get("finish_reason")}
    return fold_deltas([*fold.take({**completion, "choices": [choice]}), *fold.end()])


def read_events(chunks: Iterable[Fields]) -> Reply | None:
    """The reply that a stream's chunks add up to; none where its end is missing."""
    fold = CompletionFold()
    deltas = [delta for chunk in chunks for delta in fold.take(chunk)]
    return fold_deltas([*deltas, *fold.end()])


def read_usage(completion: Fields) -> Usage:
    """Usage; a server that reports no cached tokens has an unknown number of them."""
    usage = fields_at(completion, "usage")
    details = fields_at(usage, "prompt_tokens_details")
    read = _first(count_at(details, "cached_tokens"), count_at(usage, "prompt_cache_hit_tokens"))
    return normalise(
        total=count_at(usage, "prompt_tokens"),
        read=None if text_at(completion, "system_fingerprint") == _SAYS_ZERO else read,
        write=_first(count_at(details, "cache_write_tokens"), count_at(details, "created_cache_tokens")),
        output=count_at(usage, "completion_tokens"),
        reasoning=count_at(fields_at(usage, "completion_tokens_details"), "reasoning_tokens"),
    )


class CompletionFold:
    """A stream's chunks, taken one by one; ``end`` gives what is known only then. ``finished`` if it was whole."""

    def __init__(self) -> None:
        self._last: Fields = {}
        self._reason = ""
        self._id: str | None = None
        # In parts, which are joined once: texts that grow by a character a million times would be copied as often.
        self._text: list[str] = []
        self._splitter = ThoughtSplitter()
        self._thoughts: dict[str, list[str]] = {}
        self._calls: dict[int, dict[str, list[str]]] = {}

    @property
    def finished(self) -> bool:
        return bool(self._reason)

    def take(self, chunk: Fields) -> Iterator[Delta]:
        """The deltas that a chunk brings."""
        self._id = text_at(chunk, "id") or self._id
        # Usage comes in a chunk of its own after the last choice, and with some servers in every chunk.
        if fields_at(chunk, "usage"):
            self._last = chunk
        for choice in items_at(chunk, "choices")[:1]:
            delta = fields_at(choice, "delta")
            yield from self._think(delta)
            yield from self._speak(self._splitter.take(_read_content(delta) or text_at(delta, "refusal")))
            self._call(delta)
            self._reason = text_at(choice, "finish_reason") or self._reason

    def end(self) -> Iterator[Delta]:
        """Calls, usage and the stop, once no more chunks come; nothing if the answer broke off."""
        if not self.finished:
            return
        yield from self._speak(self._splitter.end())
        calls = [{name: "".join(parts) for name, parts in self._calls[index].items()} for index in sorted(self._calls)]
        for call in calls:
            yield ToolCall(id=call["id"], name=call["name"], arguments=join_text((call["arguments"] or "{}",)))
        if self._last:
            yield read_usage(self._last)
        reason = _STOPS.get(self._reason, StopReason.OTHER)
        yield Stop(
            # Some servers say "stop" although they call tools.
            reason=StopReason.TOOLS if calls and reason is StopReason.END else reason,
            id=self._id,
            carried=self._carry(calls) if calls else None,
        )

    def _think(self, delta: Fields) -> Iterator[Delta]:
        name = next((name for name in THOUGHTS if text_at(delta, name)), None)
        if name is not None:
            self._thoughts.setdefault(name, []).append(text_at(delta, name))
            yield ReasoningDelta(text=text_at(delta, name))

    def _speak(self, parts: Iterable[TextDelta | ReasoningDelta]) -> Iterator[Delta]:
        for part in parts:
            if isinstance(part, TextDelta):
                self._text.append(part.text)
            yield part

    def _call(self, delta: Fields) -> None:
        for part in items_at(delta, "tool_calls"):
            call = self._calls.setdefault(count_at(part, "index") or 0, {"id": [], "name": [], "arguments": []})
            function = fields_at(part, "function")
            call["id"] = [text_at(part, "id")] if text_at(part, "id") else call["id"]
            call["name"].append(text_at(function, "name"))
            call["arguments"].append(text_at(function, "arguments"))

    def _carry(self, calls: list[dict[str, str]]) -> NativeReply:
        said = {
            "role": "assistant",
            "content": "".join(self._text) or None,
            "tool_calls": [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": call["arguments"] or "{}"},
                }
                for call in calls
            ],
            **{name: "".join(parts) for name, parts in self._thoughts.items()},
        }
        return keep_native(said, FORMAT)


def _read_content(delta: Fields) -> str:
    """The text of an answer; some servers send it in parts, as requests have it."""
    content = delta.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise unreadable("content", content)
    return "".join(_read_part(part) for part in content)


def _read_part(part: object) -> str:
    if isinstance(part, str):
        return part
    fields = as_fields(part)
    text = fields.get("text", fields.get("refusal"))
    if isinstance(text, str):
        return text
    # A part of another kind, such as a thought or a picture, is no text; one that says it is has to have one.
    if not fields or fields.get("type") in (None, "text", "output_text", "refusal"):
        raise unreadable("content", part)
    return ""


def _first(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)
