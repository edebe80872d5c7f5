"""History in checkpoints: plain turns by their numbers, others with their parts."""

from tests.unit.core.compaction.stories import IN_PLACE
from tests.unit.core.prompt.checkpoint.test_state import long_past, replayed_state, said

from lamella.core.prompt.checkpoint import CheckpointTables, decode_history, encode_history


def test_only_turns_with_more_than_text_are_stored_whole() -> None:
    turns = long_past(IN_PLACE)
    exchanges = replayed_state(turns).history.turns[:]
    shelves = CheckpointTables()
    talk = encode_history(exchanges, *said(turns), tables=shelves)
    numbers, places, tokens, attached, shorter, asked, odd = talk
    again = decode_history(talk, *said(turns), pieces=shelves.pieces)
    assert tuple(again) == exchanges
    assert numbers == (1, 2, 3, 4, 5, 6)
    assert len(places) == len(tokens) == 2 * len(numbers)
    assert [at for at, one in enumerate(exchanges) if one.has_attachments] == list(attached)
    assert all(exchanges[at].tool_results or exchanges[at].rounds or exchanges[at].call_lines for at in odd)
    assert {*odd, *shorter, *asked} < set(range(len(exchanges)))
