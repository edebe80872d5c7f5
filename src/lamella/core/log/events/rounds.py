"""Tool rounds: what the model asked of its tools inside a turn, and what came back, each written as it happens."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from msgspec import Struct

from lamella.core.log.events.artifact import Contents, read_kept
from lamella.core.log.events.call import StoredCall
from lamella.core.messages.delta import NativeReply, Reply, StopReason, ToolCall
from lamella.core.messages.rounds import ToolOutput, ToolRound
from lamella.core.messages.usage import UNKNOWN_USAGE, Usage
from lamella.core.text.content import encode_text, hash_text
from lamella.core.values import replace

ERASED_OUTPUT = "[This result was erased.]"


class StoredToolCall(Struct, frozen=True, kw_only=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A call that the model wants made; ``arguments`` is JSON as the model wrote it."""

    id: str
    name: str
    arguments: str


class StoredNative(Struct, frozen=True, kw_only=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """What the model said in its wire format's own form: which format, and the hash of its JSON."""

    format: str
    json: str


class StoredResult(Struct, frozen=True, kw_only=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """What came back for a call: its id, the hash of the output, and whether the tool failed."""

    call: str
    output: str
    failed: bool


class CallsEvent(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The model asked for tools while answering the question ``parent``. ``made`` are the model calls that did."""

    parent: str
    text: str
    calls: tuple[StoredToolCall, ...]
    carried: StoredNative | None = None
    made: tuple[StoredCall, ...] = ()

    def hashes(self) -> Iterator[str]:
        """The content that it names."""
        if self.carried is not None:
            yield self.carried.json


class ResultsEvent(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What the tools gave back for the calls before, in their order.

    ``names`` are the ids of results that were told elsewhere first: what was sent names them by those.
    """

    parent: str
    results: tuple[StoredResult, ...]
    names: tuple[str, ...] = ()

    def hashes(self) -> Iterator[str]:
        """The contents that it names."""
        return (result.output for result in self.results)


class StoredRound(Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """A round as the log keeps it; without results it waits for them."""

    text: str
    calls: tuple[StoredToolCall, ...]
    carried: StoredNative | None
    made: tuple[StoredCall, ...]
    results: tuple[StoredResult, ...] | None = None
    names: tuple[str, ...] = ()

    def hashes(self) -> Iterator[str]:
        """Every content that it names."""
        if self.carried is not None:
            yield self.carried.json
        yield from (result.output for result in self.results or ())


def list_hashes(rounds: Iterable[StoredRound]) -> Iterator[str]:
    """Every content that rounds name."""
    return (name for one in rounds for name in one.hashes())


def make_calls(
    reply: Reply | ToolRound, *, parent: str, made: Iterable[StoredCall] = ()
) -> tuple[CallsEvent, dict[str, bytes]]:
    """The event of an answer that calls tools, and the content that it names; of outputs it says nothing."""
    carried = reply.carried
    event = CallsEvent(
        parent=parent,
        text=reply.text,
        calls=tuple(StoredToolCall(id=call.id, name=call.name, arguments=call.arguments) for call in reply.calls),
        carried=None if carried is None else StoredNative(format=carried.format, json=hash_text(carried.json)),
        made=tuple(made),
    )
    return event, {} if carried is None else {hash_text(carried.json): encode_text(carried.json)}


def make_results(outputs: Iterable[ToolOutput], *, parent: str) -> tuple[ResultsEvent, dict[str, bytes]]:
    """The event of what came back, and the contents that it names."""
    given = tuple(outputs)
    results = tuple(StoredResult(call=one.call, output=hash_text(one.output), failed=one.failed) for one in given)
    contents = {hash_text(one.output): encode_text(one.output) for one in given}
    # Either all of them were told elsewhere first, or none was.
    names = tuple(one.id for one in given if one.id is not None)
    return ResultsEvent(parent=parent, results=results, names=names), contents


def make_rounds(rounds: Iterable[StoredRound], *, parent: str) -> Iterator[CallsEvent | ResultsEvent]:
    """The events that tell rounds of the log once more, for another question."""
    for one in rounds:
        yield CallsEvent(parent=parent, text=one.text, calls=one.calls, carried=one.carried, made=one.made)
        if one.results is not None:
            yield ResultsEvent(parent=parent, results=one.results, names=one.names)


def begin_round(event: CallsEvent) -> StoredRound:
    """A round that waits for its results."""
    return StoredRound(text=event.text, calls=event.calls, carried=event.carried, made=event.made)


def end_round(rounds: tuple[StoredRound, ...], event: ResultsEvent) -> tuple[StoredRound, ...]:
    """The rounds of a question, with results for the last of them, which waits for one for each of its calls."""
    if not rounds or rounds[-1].results is not None:
        raise ValueError(f"there are results for {event.parent}, which waits for none")
    if sorted(call.id for call in rounds[-1].calls) != sorted(result.call for result in event.results):
        raise ValueError(f"the results for {event.parent} are not one for each call")
    if event.names and len(event.names) != len(event.results):
        raise ValueError(f"{len(event.names)} names are given for the {len(event.results)} results")
    return (*rounds[:-1], replace(rounds[-1], results=event.results, names=event.names))


def read_round(stored: StoredRound, contents: Contents, *, names: Sequence[str] = ()) -> ToolRound:
    """A round with its contents. An output that was erased says so, for a call cannot stand without one.

    ``names`` are the ids of its results, where they do not follow from what is left.
    """
    results = stored.results or ()
    return ToolRound(
        text=stored.text,
        calls=_read_calls(stored),
        outputs=tuple(_read_output(one, name, contents) for one, name in zip_longest(results, names)),
        carried=_read_native(stored.carried, contents),
        tokens=_read_usage(stored).output,
    )


def read_waiting(stored: StoredRound, contents: Contents) -> Reply:
    """An answer whose calls wait for their outputs."""
    carried = _read_native(stored.carried, contents)
    return Reply(
        text=stored.text,
        stop=StopReason.TOOLS,
        calls=_read_calls(stored),
        usage=_read_usage(stored),
        carried=carried,
    )


def _read_calls(stored: StoredRound) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(id=call.id, name=call.name, arguments=call.arguments) for call in stored.calls)


def _read_usage(stored: StoredRound) -> Usage:
    """What the provider reported of the call that gave the answer."""
    return stored.made[-1].usage if stored.made else UNKNOWN_USAGE


def _read_output(result: StoredResult, name: str | None, contents: Contents) -> ToolOutput:
    kept = read_kept(result.output, contents)
    output = ERASED_OUTPUT if kept is None else kept
    return ToolOutput(call=result.call, output=output, failed=result.failed, id=name)


def _read_native(stored: StoredNative | None, contents: Contents) -> NativeReply | None:
    kept = None if stored is None else read_kept(stored.json, contents)
    return None if stored is None or kept is None else NativeReply(format=stored.format, json=kept)
