"""Replies of the Responses API: the SDK's object, or a stream's events, as neutral values."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lamella.adapters.providers.connection.failures import Refusal, Target, explain_refusal
from lamella.adapters.providers.connection.openai_sdk import ADDRESS, PATIENCE
from lamella.adapters.providers.openai_responses.request import FORMAT
from lamella.adapters.providers.wire.body import keep_native
from lamella.adapters.providers.wire.fields import (
    Fields,
    as_fields,
    count_at,
    fields_at,
    items_at,
    parts_at,
    text_at,
    unreadable,
)
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
)
from lamella.core.messages.usage import Usage

_CUT_SHORT = {"max_output_tokens": StopReason.LENGTH, "content_filter": StopReason.REFUSED}
_DELTAS: dict[str, type[TextDelta] | type[ReasoningDelta]] = {
    "response.output_text.delta": TextDelta,
    "response.refusal.delta": TextDelta,
    "response.reasoning_summary_text.delta": ReasoningDelta,
    "response.reasoning_text.delta": ReasoningDelta,
}


def is_answer(fields: Fields) -> bool:
    """Whether this is a response of the API."""
    return fields.get("object") == "response" or ("output" in fields and "status" in fields)


def is_event(fields: Fields) -> bool:
    """Whether this is an event of a response."""
    return text_at(fields, "type").startswith("response.")


def read_reply(answer: object) -> Reply | None:
    """The reply in a finished response, an SDK's object or plain data; none where it is not finished.

    Raises the error that a failed one carries.
    """
    response = as_fields(answer)
    if response.get("status") == "failed":
        raise explain_refusal(_refusal(fields_at(response, "error")), _target(response))
    if response.get("status") not in ("completed", "incomplete"):
        return None
    items = _items(response)
    deltas = [delta for item in items for delta in _item_deltas(item)]
    return fold_deltas([*deltas, *_end(response, items)])


def read_events(events: Iterable[Fields]) -> Reply | None:
    """The reply that a stream's events add up to; none where its end is missing. Raises the error it ended with."""
    fold = ResponseFold()
    deltas: list[Delta] = []
    response: Fields = {}
    for event in events:
        response = fields_at(event, "response") or response
        deltas += fold.take(event)
    if fold.failure is not None:
        raise explain_refusal(fold.failure, _target(response))
    return fold_deltas(deltas)


def _target(response: Fields) -> Target:
    return Target(provider="OpenAI", model=text_at(response, "model"), address=ADDRESS, patience=PATIENCE)


def read_usage(response: Fields) -> Usage:
    """Usage; its total includes what was read and written."""
    usage = fields_at(response, "usage")
    details = fields_at(usage, "input_tokens_details")
    split = fields_at(details, "cache_write_tokens_details")
    write, write_long = split_write(
        count_at(details, "cache_write_tokens"),
        short=count_at(split, "ttl_30m_tokens"),
        long=count_at(split, "ttl_12h_tokens"),
    )
    return normalise(
        total=count_at(usage, "input_tokens"),
        read=count_at(details, "cached_tokens"),
        write=write,
        write_long=write_long,
        output=count_at(usage, "output_tokens"),
        reasoning=count_at(fields_at(usage, "output_tokens_details"), "reasoning_tokens"),
    )


def read_diagnosis(response: Fields) -> Diagnosis | None:
    """What the provider says of its cache, compared with an earlier response; none where it was not asked."""
    found = fields_at(response, "prompt_cache_diagnostics")
    kind = text_at(found, "type")
    if not kind:
        return None
    return Diagnosis(
        verdict=kind.removeprefix("cache_"),
        reason=text_at(found, "reason") or None,
        missed=count_at(found, "cache_missed_tokens"),
    )


class ResponseFold:
    """A stream's events, taken one by one. ``finished`` once the last has come, ``failure`` if that was an error."""

    def __init__(self) -> None:
        self.finished = False
        self.failure: Refusal | None = None
        self._items: dict[int, Fields] = {}

    def take(self, event: Fields) -> Iterator[Delta]:
        """The deltas that an event brings."""
        kind = text_at(event, "type")
        made = _DELTAS.get(kind)
        if made is not None and text_at(event, "delta"):
            yield made(text=text_at(event, "delta"))
        match kind:
            case "response.output_item.done":
                item = fields_at(event, "item")
                self._items[count_at(event, "output_index") or 0] = item
                yield from _calls(item)
            case "response.completed" | "response.incomplete":
                yield from _end(fields_at(event, "response"), [self._items[at] for at in sorted(self._items)])
                self.finished = True
            case "response.failed":
                self._fail(fields_at(fields_at(event, "response"), "error"))
            case "error":
                self._fail(event)

    def _fail(self, error: Fields) -> None:
        self.failure = _refusal(error)


def _refusal(error: Fields) -> Refusal:
    return Refusal(status=200, kind=text_at(error, "code") or "server_error", words=text_at(error, "message"))


def _items(response: Fields) -> Sequence[Fields]:
    """What was put out. Items of kinds that are not known say nothing; text that stands outside of a message would."""
    output = response.get("output")
    if output is not None and not isinstance(output, list):
        raise unreadable("output", output)
    for item in output or ():
        if not isinstance(item, Mapping) or item.get("type") in (None, "text", "output_text"):
            raise unreadable("output", item)
    return output or ()


def _item_deltas(item: Fields) -> Iterator[Delta]:
    match item.get("type"):
        case "message":
            for part in parts_at(item, "content", kind="output_text"):
                if part["type"] == "refusal" and not isinstance(part.get("refusal"), str):
                    raise unreadable("content", part)
                yield TextDelta(text=text_at(part, "text") or text_at(part, "refusal"))
        case "reasoning":
            for part in (*items_at(item, "summary"), *items_at(item, "content")):
                yield ReasoningDelta(text=text_at(part, "text"))
    yield from _calls(item)


def _calls(item: Fields) -> Iterator[Delta]:
    if item.get("type") == "function_call":
        arguments = text_at(item, "arguments") or "{}"
        yield ToolCall(id=text_at(item, "call_id"), name=text_at(item, "name"), arguments=arguments)


def _end(response: Fields, items: Sequence[Fields]) -> Iterator[Delta]:
    yield read_usage(response)
    calls = any(item.get("type") == "function_call" for item in items)
    reason = StopReason.TOOLS if calls else StopReason.END
    if response.get("status") == "incomplete":
        reason = _CUT_SHORT.get(text_at(fields_at(response, "incomplete_details"), "reason"), StopReason.OTHER)
    yield Stop(
        reason=reason,
        id=text_at(response, "id") or None,
        diagnosis=read_diagnosis(response),
        carried=keep_native(_sendable(items), FORMAT) if calls else None,
    )


def _sendable(items: Sequence[Fields]) -> list[dict[str, Any]]:
    """The items as they can be handed back. Nothing is stored there, so thoughts without their content are left out."""
    trimmed = [_trim(item) for item in items]
    if all(item.get("encrypted_content") for item in trimmed if item.get("type") == "reasoning"):
        return trimmed
    # By its id a call would ask for the thought that led to it.
    spoken = (item for item in trimmed if item.get("type") != "reasoning")
    return [{name: value for name, value in item.items() if name != "id"} for item in spoken]


def _trim(item: Fields) -> dict[str, Any]:
    """An item without what the server left out: the SDK's objects have it as null, and not all of it may be null."""
    return {name: _trim_inside(value) for name, value in item.items() if value is not None}


def _trim_inside(value: Any) -> Any:  # noqa: ANN401 - any JSON
    match value:
        case Mapping():
            return _trim(value)
        case list():
            return [_trim_inside(one) for one in value]
    return value
