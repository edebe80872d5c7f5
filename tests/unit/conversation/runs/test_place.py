"""Places: a word that another process understands, and no other words."""

import pytest

from lamella.conversation.runs import StreamPosition, parse_event_id
from lamella.errors import InvalidOperationError


def test_stream_position_round_trips() -> None:
    place = StreamPosition("ee4c46654e0f29c3", "0a1b2c3d", 7, 2, 140)
    assert parse_event_id(place.to_event_id()) == place
    assert parse_event_id(f" {place.to_event_id()} ") == place


@pytest.mark.parametrize("text", ["", "x", "a.b.1.2", "a.b.1.2.3.4", "a.b.-1.2.3", "a.b.1.2.٣", "a.b.1.2.99999999999"])
def test_invalid_event_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidOperationError, match="no id of an event"):
        parse_event_id(text)
