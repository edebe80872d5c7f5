"""The codec: an event as a record, and back. Bodies are canonical JSON and hold the fields of the event's class."""

from collections.abc import Mapping

from msgspec import to_builtins
from msgspec.json import Decoder

from lamella.core.artifacts.make import canonical_json
from lamella.core.log.events.changes import ErasureEvent, SettingsEvent, SilentEvent
from lamella.core.log.events.kinds import CLASSES, Event, EventKind
from lamella.core.log.records import Record, Written
from lamella.core.values import replace

# In records the kind stands beside the body; the tag is for snapshots, where nothing else tells classes apart.
_TAG = "type"
_KINDS: Mapping[type[Event], EventKind] = {made: kind for kind, made in CLASSES.items() if made is not SilentEvent}
_DECODERS = {kind: Decoder(made) for kind, made in CLASSES.items()}
_SETTINGS = Decoder(dict[str, object])


def read_event(record: Record) -> Event:
    """The event that a record holds; a ``ValueError`` says what in it is not as it was written."""
    if record.kind is EventKind.SETTINGS:
        return SettingsEvent(values=_SETTINGS.decode(record.body))
    event = _DECODERS[record.kind].decode(record.body)
    return replace(event, contents=record.contents) if isinstance(event, ErasureEvent) else event


def write_event(event: Event, *, at: str, contents: Mapping[str, bytes] | None = None) -> Written:
    """An event as a record, with the contents that it brings."""
    given = {} if contents is None else contents
    return Written(records=(make_record(event, at=at, contents=tuple(given)),), contents=given)


def make_record(event: Event, *, at: str, contents: tuple[str, ...] = ()) -> Record:
    """An event as a record that lists these contents; an erasure lists its own."""
    listed = event.contents if isinstance(event, ErasureEvent) else contents
    return Record(kind=_KINDS[type(event)], at=at, body=canonical_json(_write_body(event)), contents=listed)


def _write_body(event: Event) -> Mapping[str, object]:
    if isinstance(event, SettingsEvent):
        return event.values
    body: dict[str, object] = to_builtins(event)
    body.pop(_TAG, None)
    if isinstance(event, ErasureEvent):
        del body["contents"]
    return body
