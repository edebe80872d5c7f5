"""Events as bare JSON, as other versions or damage would write them."""

import json
from collections.abc import Mapping

from lamella.core.log.events.kinds import EventBatch, EventKind, EventRecord
from lamella.core.text.content import canonical_json


def write_raw(kind: EventKind, at: str, **body: object) -> EventBatch:
    """An event with any body."""
    return EventBatch(records=(EventRecord(kind=kind, at=at, body=canonical_json(body)),))


def parse_body(record: EventRecord) -> Mapping[str, object]:
    """A body as plain data."""
    body = json.loads(record.body)
    assert isinstance(body, dict)
    return body
