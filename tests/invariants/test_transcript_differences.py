"""A transcript names each turn whose requests it cannot reproduce."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.invariants.compacting import EAGER, tight_stored_conversations
from tests.invariants.moves import Kept
from tests.invariants.test_sent_turns import SentRecorder

from lamella import LamellaError
from lamella.stores.memory import InMemoryStore
from lamella.wiring import parse_transcript, replay_transcript

TRIED = settings.get_profile("invariants")


def _replayed_messages(data: bytes) -> Sequence[object]:
    """Return the messages of each turn of a transcript, up to the first that cannot be replayed."""
    messages: list[object] = []
    try:
        for turn in replay_transcript(parse_transcript(data, name="kept"), overrides={}, base_folder=Path("nowhere")):
            messages.append([message.to_dict() for message in turn.messages])
    except LamellaError:
        pass
    return messages


@TRIED
@given(tight_stored_conversations(), st.lists(st.sampled_from((0, 0, 1, 2)), min_size=12, max_size=12))
def test_transcript_names_each_turn_that_differs_from_what_was_sent(kept: Kept, rounds: list[int]) -> None:
    store = InMemoryStore()
    kept = replace(kept, settings=(*kept.settings, ("compaction", EAGER)))
    with TemporaryDirectory() as folder:
        played = SentRecorder(kept, Path(folder), store, rounds)
        played.walk(kept.reopened)
        played.reopen()
        conversation = played.stored
        transcript = conversation.transcript()
        sent = [[message.to_dict() for message in turn.messages] for turn in conversation.replay()]
        played.close()
    named = transcript.get("differing_turns", [])
    assert isinstance(named, list)
    replayed = _replayed_messages(json.dumps(transcript, ensure_ascii=False).encode())
    differing = [at for at, one in enumerate(sent, start=1) if at > len(replayed) or replayed[at - 1] != one]
    assert set(differing) <= set(named)
