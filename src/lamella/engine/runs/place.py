"""Places: how far somebody has heard an answer, in a word that another process understands, too."""

import re
from typing import NamedTuple

from lamella.engine.sending.events import Event
from lamella.errors import CallError

_FORM = re.compile(r"([0-9a-f]{1,64})\.([0-9a-f]{1,32})\.([0-9]{1,9})\.([0-9]{1,6})\.([0-9]{1,9})")


class EventPlace(NamedTuple):
    """Where an event stands: in the answer to a question, in a run of it, and after how much of the text.

    ``number`` counts the events of the run. Whoever does not know the run goes by ``round``, the rounds of tools that
    were over, and ``said``, the characters that were said since.
    """

    message: str
    run: str
    number: int
    round: int
    said: int

    def write(self) -> str:
        return ".".join(map(str, self))


# An event, and the place after it.
TellingEvent = tuple[EventPlace, Event]


def read_place(text: str) -> EventPlace:
    """The place that a word stands for."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise CallError(f"{text[:80]!r} is no id of an event.", hint="Give the id of the last event as it came.")
    message, run, *numbers = found.groups()
    return EventPlace(message, run, *map(int, numbers))
