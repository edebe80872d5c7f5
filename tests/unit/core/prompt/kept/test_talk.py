"""Talk as it is kept: plain turns by their numbers, what is left of others, and odd ones as they are."""

from tests.unit.core.compaction.talking import IN_PLACE, QUARTERS
from tests.unit.core.prompt.kept.test_state import long_past, said, tell

from lamella.core.prompt.kept.known import Shelves
from lamella.core.prompt.kept.talk import pack_talk, unpack_talk


def test_only_turns_of_which_more_is_to_be_told_stand_there_as_they_are() -> None:
    turns = long_past(IN_PLACE)
    exchanges = tell(turns).talk.exchanges[:]
    shelves = Shelves()
    talk = pack_talk(exchanges, *said(turns), count=QUARTERS.count, shelves=shelves)
    numbers, places, attached, shorter, asked, odd = talk
    again = unpack_talk(talk, *said(turns), count=QUARTERS.count, pieces=shelves.pieces)
    assert tuple(again) == exchanges
    assert numbers == (1, 2, 3, 4, 5, 6)
    assert len(places) == 2 * len(numbers)
    assert [at for at, one in enumerate(exchanges) if one.attached] == list(attached)
    assert all(exchanges[at].tools or exchanges[at].rounds or exchanges[at].lines for at in odd)
    assert {*odd, *shorter, *asked} < set(range(len(exchanges)))


def test_what_was_counted_is_not_counted_again_for_less_than_was_said() -> None:
    turns = long_past(IN_PLACE)
    shelves = Shelves()
    talk = pack_talk(tell(turns).talk.exchanges[:], *said(turns), count=QUARTERS.count, shelves=shelves)
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return QUARTERS.count(text)

    unpack_talk(talk, *said(turns), count=count, pieces=shelves.pieces)
    assert set(counted) <= set(said(turns)[1])
