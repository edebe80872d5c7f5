"""The pieces of a prompt: they add up to the request, are in the order of its bytes, and split at the common prefix."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden.cases import CONVERSATIONS, EVERY_LAYOUT, HERE
from tests.invariants.test_rounds import talks, terms
from tests.unit.core.compaction.stories import Story

from lamella.archive.transcript import load_transcript
from lamella.core.log.turn import Turn, TurnSettings
from lamella.core.prompt.advance import (
    add_reply_to_waiting_turn,
    get_pending_prompt,
    replace_tool_rounds_of_waiting_turn,
)
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.pieces import OVERHEAD_KIND, PromptPiece, PromptPieceLister
from lamella.core.prompt.prompt import Prompt
from lamella.core.values import replace
from lamella.wiring.transcripts import replay_transcript

TRIED = settings.get_profile("invariants")


def check_pieces(prompt: Prompt, same_tokens: int, lister: PromptPieceLister, *, folds_talk: bool) -> list[PromptPiece]:
    pieces = lister.list_pieces(prompt, same_tokens=same_tokens)
    assert sum(piece.tokens for piece in pieces) == prompt.total
    assert all(piece.start == 0 for piece in pieces[:1])
    assert all(one.start + one.tokens == other.start for one, other in pairwise(pieces))
    assert all(piece.tokens > 0 for piece in pieces)
    # Exactly the tokens of the common prefix are the same, and they come first.
    assert sum(piece.tokens for piece in pieces if piece.is_same) == min(same_tokens, prompt.total)
    assert [piece.is_same for piece in pieces] == sorted((piece.is_same for piece in pieces), reverse=True)
    places = [-1 if piece.place in ("tools", "system") else int(piece.place.partition(":")[2]) for piece in pieces]
    assert places == sorted(places)
    assert folds_talk or all(piece.message_count == 0 for piece in pieces)
    return pieces


@TRIED
@given(asked_under=terms, talk=talks, goal=st.integers(0, 400), same=st.integers(0, 400), folds=st.booleans())
def test_pieces_add_up_and_split_at_common_prefix(
    *, asked_under: TurnSettings, talk: list[Turn], goal: int, same: int, folds: bool
) -> None:
    story, lister = Story(terms=asked_under), PromptPieceLister(folds_talk=folds)
    for number, turn in enumerate(talk):
        opened = story.open(replace(turn, rounds=(), reply=None))
        check_pieces(get_pending_prompt(opened), same, lister, folds_talk=folds)
        opened = replace_tool_rounds_of_waiting_turn(opened, turn.rounds) if turn.rounds else opened
        check_pieces(get_pending_prompt(opened), same, lister, folds_talk=folds)
        story.state = add_reply_to_waiting_turn(opened, turn.reply or "")
        if number % 2:
            receipt = story.plan(goal=goal).receipt
            if receipt is not None:
                story.apply(receipt)
    check_pieces(get_pending_prompt(story.open()), same, lister, folds_talk=folds)


@pytest.mark.parametrize("folds", [True, False])
@pytest.mark.parametrize("layout", EVERY_LAYOUT)
@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_pieces_of_golden_conversations_name_each_segment_at_its_place(
    *, conversation: str, layout: str, folds: bool
) -> None:
    transcript = load_transcript(HERE / f"{conversation}.json")
    lister = PromptPieceLister(folds_talk=folds)
    for turn in replay_transcript(transcript, overrides={"layout": layout}, base_folder=HERE):
        prompt = turn.envelope.prompt
        pieces = check_pieces(prompt, turn.prefix_change.common_tokens or 0, lister, folds_talk=folds)
        found = {(piece.layer, piece.id, piece.place) for piece in pieces}
        for layer in turn.envelope.layers:
            for segment in layer.segments:
                is_talk = folds and layer.id is LayerId.L4 and segment.kind in ("user", "reply", "call", "tool")
                if segment.place is not None and segment.tokens and not is_talk:
                    assert (layer.id, segment.id, segment.place) in found, (turn.number, segment)
        # Nothing but labels, headings and the frames of messages belongs to no layer.
        overhead = sum(piece.tokens for piece in pieces if piece.kind == OVERHEAD_KIND and not piece.layer)
        assert overhead <= turn.tokens.by_layer["overhead"] + 2 * len(prompt.messages)
