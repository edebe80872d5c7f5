"""The recipe for an event, followed in a copy of the source."""

from pathlib import Path

from tests.contracts.recipes import SourceCopy

CLASS = '''class StarEvent(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A message has a star, with a reason if there is one."""

    message: str
    why: str | None = None


'''
STARRED = """
from lamella.core.log.events.codec import merge_batches, decode_event, build_event_batch, build_question_batch
from lamella.core.log.events.kinds import EventKind, StarEvent
from lamella.core.log.log import FoldedLog
from lamella.core.log.snapshots import make_snapshot, decode_snapshot, encode_snapshot
from lamella.core.log.turn import Turn
from lamella.errors import StoreCorruptedError

event = StarEvent(message="m", why="good")
asked = build_question_batch(Turn(text="x"), message_id="m", parent="", timestamp="2026-01-01T00:00:00Z")
batch = merge_batches(asked, build_event_batch(event, timestamp="2026-01-01T00:00:00Z"))
record = batch.records[-1]
assert (record.kind, record.body) == (EventKind.STAR, '{"message":"m","why":"good"}')
assert decode_event(record) == event
log = FoldedLog("chat")
log.extend(batch.records)
assert log.stars == ["m"]
assert decode_snapshot(encode_snapshot(make_snapshot(log, after=0))).log.stars == ["m"]
try:
    log.extend(build_event_batch(StarEvent(message="nobody"), timestamp="").records)
except StoreCorruptedError as error:
    print(error.message)
"""


def test_event_recipe_gives_an_event_that_is_written_read_and_folded(tmp_path: Path) -> None:
    copy = SourceCopy(tmp_path)
    kinds, log = "core/log/events/kinds.py", "core/log/log.py"
    copy.insert(kinds, CLASS, before="class IgnoredEvent(")
    copy.insert(kinds, '    STAR = "star"\n', before="    CALLS = ")
    copy.insert(kinds, "    | StarEvent\n", before="    | IgnoredEvent")
    copy.insert(kinds, "    EventKind.STAR: StarEvent,\n", before="    EventKind.STAGE: ")
    copy.insert(log, "    StarEvent,\n", before="    SwitchEvent,")
    copy.insert(log, "    stars: list[str] = []\n", before="    _leaves: ")
    case = "            case StarEvent():\n                self.stars.append(self.nodes[event.message].id)\n"
    copy.insert(log, case, before="            case CompactionEvent():")
    assert "'nobody'" in copy.run(STARRED)
    copy.check("Add an event")
