"""A stored conversation, written as a transcript and replayed, sends what the conversation sent."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.invariants.moves import Deed, Kept, Move, stored_conversation_plans
from tests.invariants.reopened_prompts import Lasting
from tests.invariants.strategies import Plan, plans
from tests.invariants.tool_rounds import call_tools

from lamella import Conversation, Turn
from lamella.stores.memory import InMemoryStore
from lamella.wiring import parse_transcript, replay_transcript

TRIED = settings.get_profile("invariants")


class Speaking(Lasting):
    """Plays every step of a plan into a store, with rounds of tools before its answer, and answers it."""

    def talk(self, rounds: Sequence[int]) -> None:
        for step, count in zip(self._plan.steps, rounds, strict=False):
            self.move(Move(step=step))
            for number in range(count):
                self.turns[-1] = call_tools(self.stored, number)
            if step.reply is not None:
                self.move(Move(deed=Deed.REPLY, text=step.reply))


def sent(turns: Sequence[Turn]) -> list[list[dict[str, object]]]:
    return [[message.to_dict() for message in turn.messages] for turn in turns]


def can_be_written(turns: Sequence[Turn]) -> bool:
    """Whether a transcript has a place for everything: it has none for the pictures and notes that a text draws in."""
    prompts = [turn.envelope.prompt for turn in turns]
    pictured = any(one.images and one.kind != "image" for prompt in prompts for one in prompt.attached)
    return not pictured and not any(prompt.system.inlined for prompt in prompts)


def talk(plan: Plan, rounds: Sequence[int], folder: str) -> tuple[Sequence[Turn], Conversation]:
    kept = Kept(plan=plan, settings=(), moves=(), reopened=())
    store = InMemoryStore()
    played = Speaking(kept, Path(folder), lambda: store)
    played.talk(rounds)
    return played.turns, played.stored


@TRIED
@given(plans(sticky=True), st.lists(st.integers(0, 2), min_size=7, max_size=7))
def test_stored_conversation_replays_as_sent(plan: Plan, rounds: list[int]) -> None:
    with TemporaryDirectory() as folder:
        turns, conversation = talk(plan, rounds, folder)
        replayed = list(conversation.replay())
    assert sent(replayed) == sent(turns)
    assert [turn.envelope.message_id for turn in replayed] == [turn.envelope.message_id for turn in turns]
    assert [turn.tokens for turn in replayed] == [turn.tokens for turn in turns]


@TRIED
@given(plans(sticky=True), st.lists(st.integers(0, 2), min_size=7, max_size=7))
def test_transcript_of_stored_conversation_replays_as_sent(plan: Plan, rounds: list[int]) -> None:
    with TemporaryDirectory() as folder:
        turns, conversation = talk(plan, rounds, folder)
        data = json.dumps(conversation.transcript(), ensure_ascii=False).encode()
    assume(can_be_written(turns))
    replayed = list(replay_transcript(parse_transcript(data, name="kept"), overrides={}, base_folder=Path("nowhere")))
    assert sent(replayed) == sent(turns)
    assert [turn.tokens for turn in replayed] == [turn.tokens for turn in turns]


PLANNED_ANEW = (Deed.SETTINGS, Deed.COMPACT, Deed.UNDO)


@TRIED
@given(stored_conversation_plans())
def test_edited_branch_replays_with_its_epochs(kept: Kept) -> None:
    moves = tuple(move for move in kept.moves if move.deed not in PLANNED_ANEW)
    store = InMemoryStore()
    with TemporaryDirectory() as folder:
        played = Lasting(replace(kept, moves=moves), Path(folder), lambda: store)
        played.walk([False] * len(moves))
        played.reopen()
        replayed = {turn.envelope.message_id: turn for turn in played.stored.replay()}
    asked = {turn.envelope.message_id: turn for turn in played.turns}
    for name, turn in replayed.items():
        if name in asked:
            assert sent([turn]) == sent([asked[name]])
