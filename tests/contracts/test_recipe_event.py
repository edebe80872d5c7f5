"""The recipe for an event, followed in a copy of the source: it is written, read and folded, and touches few files."""

from pathlib import Path

import pytest
from tests.contracts.recipes import SourceCopy, named_files

CLASS = '''"""Stars: messages that people want to find again."""

from msgspec import Struct


class StarEvent(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A message has a star, with a word on why if there is one."""

    message: str
    why: str | None = None
'''
STARRED = """
from lamella.core.log.events.codec import read_event, write_event
from lamella.core.log.events.stars import StarEvent
from lamella.core.log.log import Log
from lamella.core.log.records import EventKind
from lamella.core.log.snapshots.snapshot import make_snapshot, read_snapshot, write_snapshot
from lamella.core.log.turn import Turn
from lamella.core.log.events.codec import join_written, write_message
from lamella.errors import StoreDamagedError

event = StarEvent(message="m", why="good")
asked = write_message(Turn(text="x"), message_id="m", parent="", at="2026-01-01T00:00:00Z")
written = join_written(asked, write_event(event, at="2026-01-01T00:00:00Z"))
record = written.records[-1]
assert (record.kind, record.body) == (EventKind.STAR, '{"message":"m","why":"good"}')
assert read_event(record) == event
log = Log("chat")
log.extend(written.records)
assert log.stars == ["m"]
assert read_snapshot(write_snapshot(make_snapshot(log, after=0))).log.stars == ["m"]
try:
    log.extend(write_event(StarEvent(message="nobody"), at="").records)
except StoreDamagedError as error:
    print(error.message)
"""
SETTING = """
from lamella.core.log.events.codec import make_record, read_event
from lamella.core.log.events.message import make_message, make_open_message, read_turn
from lamella.core.log.records import EventKind, Record
from lamella.core.log.terms import Mood, Terms
from lamella.core.log.turn import Turn

terms = Terms(mood=Mood.GLAD, loud=True, pace=3)
turn = Turn(text="x", typed="x", id="m", terms=terms)
record = make_record(make_message(turn, message_id="m", parent=""), at="")
assert '"loud":true,"mood":"glad","pace":3' in record.body, record.body
assert read_turn(read_event(record), {}, usual=Terms()) == turn
old = read_event(Record(kind=EventKind.MESSAGE, at="", body='{"id":"m","parent":"","text":"x"}'))
assert read_turn(old, {}, usual=terms).terms == Terms(), "it was asked before there was a choice"
opened = read_event(make_record(make_open_message(turn), at=""))
assert read_turn(opened, {}, usual=terms).terms == terms, "it is left to the settings"
try:
    read_event(Record(kind=EventKind.MESSAGE, at="", body='{"id":"m","loud":"very","parent":"","text":"x"}'))
except ValueError as error:
    print(error)
"""


@pytest.fixture
def copy(tmp_path: Path) -> SourceCopy:
    return SourceCopy(tmp_path)


def test_an_event_is_a_class_a_row_and_what_it_does(copy: SourceCopy) -> None:
    copy.add("core/log/events/stars.py", CLASS)
    kinds, log = "core/log/events/kinds.py", "core/log/log.py"
    taken = "from lamella.core.log.events.stars import StarEvent\n"
    copy.put(kinds, f"{taken}\n\n", before="class EventKind(")
    copy.put(kinds, '    STAR = "star"\n', before="    CALLS = ")
    copy.put(kinds, "    | StarEvent\n", before="    | SilentEvent")
    copy.put(kinds, "    EventKind.STAR: StarEvent,\n", before="    EventKind.STAGE: ")
    copy.put(log, taken, before="from lamella.core.log.ids ")
    copy.put(log, "    stars: list[str] = []\n", before="    _leaves: ")
    case = "            case StarEvent():\n                self._star(event.message)\n"
    copy.put(log, case, before="            case SilentEvent()")
    star = "    def _star(self, message: str) -> None:\n        self.stars.append(self.nodes[message].id)\n\n"
    copy.put(log, star, before="    def _erase(")
    assert "Event 3 of chat cannot be read: 'nobody' is missing" in copy.run(STARRED)
    assert copy.changed() == sorted([*named_files("An event"), "core/log/events/stars.py"])
    assert len(copy.changed()) <= 3


def test_a_setting_that_a_turn_depends_on_is_a_field_of_its_terms(copy: SourceCopy) -> None:
    terms = "core/log/terms.py"
    mood = 'class Mood(StrEnum):\n    CALM = "calm"\n    GLAD = "glad"\n\n\n'
    copy.put(terms, mood, before="class Terms(")
    fields = "    mood: Mood = Mood.CALM\n    loud: bool = False\n    pace: int | None = None\n"
    copy.put(terms, fields, before="    image_notes: ImageNotes")
    assert "Expected `bool" in copy.run(SETTING)
    assert copy.changed() == [terms]
