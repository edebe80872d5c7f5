"""Places: a word that another process understands, and no other words."""

import pytest

from lamella.engine.runs.place import EventPlace, read_place
from lamella.errors import CallError


def test_a_place_is_read_back_as_it_was_written() -> None:
    place = EventPlace("ee4c46654e0f29c3", "0a1b2c3d", 7, 2, 140)
    assert read_place(place.write()) == place
    assert read_place(f" {place.write()} ") == place


@pytest.mark.parametrize("text", ["", "x", "a.b.1.2", "a.b.1.2.3.4", "a.b.-1.2.3", "a.b.1.2.٣", "a.b.1.2.99999999999"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(CallError, match="no id of an event"):
        read_place(text)
