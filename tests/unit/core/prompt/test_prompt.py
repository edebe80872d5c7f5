"""The prompt: rendered as far as it is asked for, in wire order, and by layers that agree with the messages."""

import pytest
from tests.unit.core.compaction.stories import FOLDING, IN_PLACE, LIBRARY, NOW, QUARTERS, Story, attaching, note, result

from lamella.core.log.turn import ArtifactForm, HistoryMode, SystemParts, TurnSettings
from lamella.core.messages import LIBRARY_HEADING, QUERY_LABEL, Message, Role
from lamella.core.prompt.advance import get_pending_prompt
from lamella.core.prompt.layers.library import place_in_library
from lamella.core.prompt.layers.model import LayerId, make_layer
from lamella.core.prompt.prompt import (
    Prompt,
    has_system_message,
    prepend_blocks,
    render_system_message,
    render_user_message,
)
from lamella.core.values import replace

BOTH = pytest.mark.parametrize("terms", [LIBRARY, IN_PLACE], ids=["library", "in_place"])
EMPTY = make_layer(LayerId.L1, segments=(), pieces=(), tokens=0)


def story_of(terms: TurnSettings, turns: int = 3) -> Story:
    story = Story(terms=terms)
    first = replace(attaching(note("a.md", "A"), result("x", "found")), system=SystemParts(base="Be brief."))
    story.say("one?", "one.", first)
    for number in range(1, turns):
        story.say(f"{number}?", f"{number}.")
    return story


def prompt_of(story: Story) -> Prompt:
    return get_pending_prompt(story.open(attaching(note("a.md", "A"), note("b.md", "B"))))


@BOTH
def test_messages_are_the_system_message_earlier_talk_and_the_question(terms: TurnSettings) -> None:
    prompt = prompt_of(story_of(terms))
    roles = [message.role.value for message in prompt.messages]
    assert roles == ["system", *["user", "assistant"] * 3, "user"]
    assert prompt.messages[prompt.question_index] is prompt.messages[-1]
    assert prompt.messages[-1].text.endswith(f"{QUERY_LABEL}And now?")
    assert (prompt.first_message, prompt.question_index) == (1, 7)


@BOTH
def test_prompt_renders_once(terms: TurnSettings) -> None:
    prompt = prompt_of(story_of(terms))
    assert prompt.messages is prompt.messages
    assert prompt.total == prompt.total == sum(message.tokens for message in prompt.messages)


@BOTH
def test_every_segment_is_in_the_message_it_names(terms: TurnSettings) -> None:
    prompt = prompt_of(story_of(terms))
    segments = [segment for layer in LayerId for segment in prompt.segments(layer)]
    assert {segment.id for segment in segments} >= {"base", "a.md", "b.md"}
    for segment in segments:
        assert segment.place is not None
        _, _, index = segment.place.partition(":")
        assert segment.text in prompt.messages[int(index or 0)].text


@BOTH
def test_library_lists_earlier_attachments_wherever_placed(terms: TurnSettings) -> None:
    prompt = prompt_of(story_of(terms))
    (entry,) = prompt.placed_library
    assert (entry.artifact.id, entry.segment) == ("a.md", prompt.segments(LayerId.L2)[0])
    assert entry.place == ("system" if terms is LIBRARY else "message:1")
    assert [segment.form for segment in prompt.segments(LayerId.L3)] == [ArtifactForm.REFERENCE, ArtifactForm.FULL]
    assert prompt.unlayered_artifacts == ()


def test_typed_text_is_not_rendered_again() -> None:
    prompt = get_pending_prompt(story_of(IN_PLACE).open(NOW))
    assert prompt.question_message is prompt.question.message
    assert prompt.message_id == prompt.question.id


def test_without_a_system_message_the_talk_begins_at_once() -> None:
    prompt = get_pending_prompt(Story().say("one?", "one.").open(NOW))
    assert (prompt.first_message, prompt.question_index) == (0, 2)
    assert [message.role.value for message in prompt.messages] == ["user", "assistant", "user"]


@pytest.mark.parametrize("history", [HistoryMode.WINDOW, HistoryMode.STRIP])
def test_preamble_counts_hidden_messages(history: HistoryMode) -> None:
    story = story_of(TurnSettings(history=history, history_turns=1), turns=4)
    prompt = get_pending_prompt(story.open(NOW))
    assert prompt.history.hidden_turns == 3
    assert prompt.preamble.removed_messages == 6
    assert len(prompt.preamble.blocks) == (1 if history is HistoryMode.STRIP else 0)
    first = prompt.messages[1].text
    assert first.startswith(prompt.preamble.placeholders[0].text)
    assert first.endswith(f"{QUERY_LABEL}3?")
    assert prompt.question_index == 3


def test_preamble_of_compaction_and_mode_is_one() -> None:
    story = story_of(TurnSettings(history=HistoryMode.WINDOW, history_turns=2), turns=8)
    receipt = story.compact(goal=0)
    assert receipt.steps
    prompt = get_pending_prompt(story.open(NOW))
    assert (
        prompt.preamble.removed_messages == prompt.history.preamble.removed_messages + 2 * prompt.history.hidden_turns
    )
    # In the system message stands the list of notes that left.
    assert sum("<left_out>" in message.text for message in prompt.messages[1:]) == 1


def test_system_message_is_l1_then_library_with_piece_counts() -> None:
    shelf = [place_in_library(note("a.md", "A"), form=ArtifactForm.FULL, count=QUARTERS.count)]
    system = make_layer(LayerId.L1, segments=(), pieces=("Be brief.",), tokens=3)
    message = render_system_message(system, shelf, count=QUARTERS.count)
    assert message is not None
    assert message.text == f"Be brief.\n\n{LIBRARY_HEADING}{shelf[0].pieces[0]}"
    assert len(message.piece_token_counts) == len(message.pieces)
    assert sum(message.piece_token_counts) == message.tokens
    bare = render_system_message(system, [], count=QUARTERS.count)
    assert bare is not None
    assert bare.text == "Be brief."


def test_empty_l1_sends_library_only_or_nothing() -> None:
    shelf = [place_in_library(note("a.md", "A"), form=ArtifactForm.FULL, count=QUARTERS.count)]
    message = render_system_message(EMPTY, shelf, count=QUARTERS.count)
    assert message is not None
    assert message.text.startswith(LIBRARY_HEADING)
    assert render_system_message(EMPTY, [], count=QUARTERS.count) is None
    assert has_system_message(SystemParts(), {"a.md": shelf[0]})
    assert has_system_message(SystemParts(memory="M."), {})
    assert not has_system_message(SystemParts(typed_instructions="Use {[[a]]}."), {})


def test_question_is_labelled_only_after_blocks() -> None:
    assert render_user_message([], ["why?"], (), count=QUARTERS.count).pieces == ("why?",)
    message = render_user_message(["block\n"], ["why?"], (), count=QUARTERS.count)
    assert message.text == f"block\n{QUERY_LABEL}why?"
    assert message.tokens == QUARTERS.count("block\n") + QUARTERS.count(f"{QUERY_LABEL}why?")


def test_blocks_and_message_are_separated_by_one_label() -> None:
    alone = Message(role=Role.USER, pieces=("why?",), tokens=1, piece_token_counts=(1,))
    headed = prepend_blocks(alone, ["block\n"], count=QUARTERS.count)
    assert headed.text == f"block\n{QUERY_LABEL}why?"
    assert headed.piece_token_counts == ()
    labelled = prepend_blocks(headed, ["first\n"], count=QUARTERS.count)
    assert labelled.text == f"first\nblock\n{QUERY_LABEL}why?"
    assert labelled.role is Role.USER


def test_repr_of_prompt_omits_texts_and_state() -> None:
    story = story_of(IN_PLACE).say("two?", "two.", FOLDING)
    shown = repr(get_pending_prompt(story.open(NOW)))
    assert "library=" not in shown
    assert "talk=" not in shown
    assert "conversation_id='story'" in shown
