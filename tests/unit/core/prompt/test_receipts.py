"""Applying receipts: an epoch begins, and what they name is removed.

Whole turns leave; a reply without its question joins the reply before it.
"""

import pytest
from tests.unit.core.compaction.stories import FOLDING, IN_PLACE, LIBRARY, NOW, QUARTERS, Story, attaching, note, result

from lamella.core.log.receipts import CompactionReceipt, CompactionStep, CompactionStepName, make_receipt
from lamella.core.log.turn import ArtifactForm, SystemParts, TurnSettings
from lamella.core.prompt.layers.history import HistoryTurn, SharedSequence
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.receipts import (
    apply_receipt,
    apply_step,
    fold_for_receipt,
    recompute_tool_result_positions,
    remove_messages,
)
from lamella.core.values import replace

Left = tuple[tuple[HistoryTurn, ...], int, int]


def story() -> Story:
    told = Story()
    for word in ("one", "two", "three", "four"):
        told.say(f"{word}?", f"{word}.")
    return told


def remove(told: Story, *gone: str, epoch_start: int = 0) -> Left:
    return remove_messages(replace(told.state.history, epoch_start=epoch_start), set(gone), count=QUARTERS.count)


def message_ids(exchange: HistoryTurn) -> tuple[str, ...]:
    return tuple(message.id for message in exchange.messages)


def test_turn_with_pinned_message_is_kept() -> None:
    told = story()
    two, three = told.state.history.turns[1:3]
    step = CompactionStep(name=CompactionStepName.EXPENDABLE, removed=(*message_ids(two), *message_ids(three)))
    state = apply_step(replace(told.state, pinned=frozenset({two.reply.id})), step, TurnSettings(), QUARTERS)
    assert [turn.question.text for turn in state.history.turns] == ["one?", "two?", "four?"]
    assert state.history.preamble.removed_messages == 2


def test_turn_is_removed_whole() -> None:
    told = story()
    left, messages, _ = remove(told, *message_ids(told.state.history.turns[1]))
    assert [turn.question.text for turn in left] == ["one?", "three?", "four?"]
    assert messages == 2


def test_reply_of_removed_question_joins_previous_reply() -> None:
    told = story()
    left, messages, _ = remove(told, told.state.history.turns[1].question.id)
    assert [turn.question.text for turn in left] == ["one?", "three?", "four?"]
    first = left[0]
    assert first.reply_message is not None
    assert first.reply_message.text == "one.\n\ntwo."
    assert first.reply_message.tokens == QUARTERS.count("one.\n\ntwo.")
    assert message_ids(first) == (*message_ids(told.state.history.turns[0]), told.state.history.turns[1].reply.id)
    assert messages == 1


def test_several_replies_join_in_their_order() -> None:
    told = story()
    left, _, _ = remove(told, told.state.history.turns[1].question.id, told.state.history.turns[2].question.id)
    assert left[0].reply_message is not None
    assert left[0].reply_message.text == "one.\n\ntwo.\n\nthree."


def test_empty_reply_joins_without_a_gap() -> None:
    told = Story().say("one?", "one.").say("two?", "").say("three?", "three.")
    left, _, _ = remove(told, told.state.history.turns[1].question.id, told.state.history.turns[2].question.id)
    assert left[0].reply_message is not None
    assert left[0].reply_message.text == "one.\n\nthree."


def test_first_question_does_not_go_alone() -> None:
    told = story()
    assert remove(told, told.state.history.turns[0].question.id) == remove(told)


def test_reply_alone_is_not_removed() -> None:
    told = story()
    assert remove(told, told.state.history.turns[1].reply.id) == remove(told)


def test_joined_turn_is_removed_completely_or_not_at_all() -> None:
    told = story()
    joined, _, _ = remove(told, told.state.history.turns[1].question.id)
    history = replace(told.state.history, turns=SharedSequence(joined))
    own = message_ids(told.state.history.turns[0])
    partly, _, _ = remove_messages(history, set(own), count=QUARTERS.count)
    assert partly == joined
    wholly, messages, _ = remove_messages(history, set(message_ids(joined[0])), count=QUARTERS.count)
    assert [turn.question.text for turn in wholly] == ["three?", "four?"]
    assert messages == 3


def test_unknown_ids_are_ignored() -> None:
    told = story()
    assert remove(told, "nothing", "there") == (tuple(told.state.history.turns), 0, 0)


def test_epoch_still_starts_at_the_same_turn() -> None:
    told = story()
    gone = (*message_ids(told.state.history.turns[0]), *message_ids(told.state.history.turns[2]))
    for start, expected in ((0, 0), (1, 0), (2, 1), (3, 1), (4, 2)):
        assert remove(told, *gone, epoch_start=start)[2] == expected


LONG = "# Heading\n\n" + "long words " * 700
BOTH = pytest.mark.parametrize("terms", [LIBRARY, IN_PLACE], ids=["library", "in_place"])


def worked(terms: TurnSettings = IN_PLACE) -> Story:
    """A conversation with a long note and a tool result, and two turns after them."""
    told = Story(terms=terms).say("one?", "one.", attaching(note("a.md", LONG), result("x", "found " * 80)))
    return told.say("two?", "two.").say("three?", "three.")


def receipt_of(*steps: CompactionStep) -> CompactionReceipt:
    return make_receipt("story", parent="", steps=steps, skipped=(), tokens=(90, 40), target=40, automatic=True)


@BOTH
def test_receipt_starts_epoch_and_records_total(terms: TurnSettings) -> None:
    told = worked(terms)
    after = apply_receipt(told.state, receipt_of(), terms, tokenizer=QUARTERS)
    assert after.epoch == told.state.epoch + 1
    assert (after.last_compacted_total, after.compaction_step) == (40, "fold")
    assert list(after.system_library) == ["a.md"]
    assert after.history.epoch_start == told.state.history.epoch_start
    assert after.head == told.state.head


@pytest.mark.parametrize(
    ("names", "moved"),
    [
        (("expendable", "handle"), "handle"),
        (("tool_results", "chitchat"), "chitchat"),
        (("tool_results",), "tool_results"),
        (("summary", "chitchat"), "summary"),
        (("chitchat", "preview", "handle"), "preview"),
    ],
)
def test_cause_is_step_that_moved_earliest_bytes(names: tuple[str, ...], moved: str) -> None:
    steps = [CompactionStep(name=CompactionStepName(name), removed=()) for name in names]
    assert apply_receipt(worked().state, receipt_of(*steps), IN_PLACE, tokenizer=QUARTERS).compaction_step == moved


@pytest.mark.parametrize(
    ("name", "form"),
    [(CompactionStepName.PREVIEW, ArtifactForm.PREVIEW), (CompactionStepName.HANDLE, ArtifactForm.HANDLE)],
)
def test_shrunk_entry_is_placed_and_remembered(name: CompactionStepName, form: ArtifactForm) -> None:
    told = worked()
    folded = fold_for_receipt(told.state, IN_PLACE, QUARTERS)
    after = apply_step(folded, CompactionStep(name=name, removed=("a.md", "nowhere.md")), TurnSettings(), QUARTERS)
    assert [one["a.md"].form for one in (after.system_library, after.placed, after.library)] == [form] * 3
    assert list(after.library) == ["a.md"]
    told.apply(receipt_of(CompactionStep(name=name, removed=("a.md",))))
    assert [segment.form for segment in told.ask(FOLDING).segments(LayerId.L2)] == [form]
    assert [segment.form for segment in told.ask(attaching(note("a.md", LONG))).segments(LayerId.L3)] == [
        ArtifactForm.FULL
    ]


def test_formerly_inlined_note_enters_library_after_compaction() -> None:
    drawn, other = note("drawn.md", "Write plainly."), note("other.md", "# Head\n\n" + "A long text. " * 400)
    system = SystemParts(instructions="Write plainly.", inlined=(drawn,), typed_instructions="{[[drawn]]}")
    for turn_settings in (IN_PLACE, LIBRARY):
        told = Story(terms=turn_settings).say("one?", "one.", replace(attaching(drawn, other), system=system))
        told.say("two?", "two.", FOLDING)
        told.apply(receipt_of(CompactionStep(name=CompactionStepName.HANDLE, removed=("other.md",))))
        without = replace(NOW, system=SystemParts(base="Be brief."))
        assert [one.id for one in told.ask(without).segments(LayerId.L2)] == ["drawn.md", "other.md"]


def test_compaction_keeps_unnamed_tool_results() -> None:
    told = worked()
    found = result("x", "found " * 80)
    kept = apply_receipt(told.state, receipt_of(), IN_PLACE, tokenizer=QUARTERS)
    cut = apply_receipt(
        told.state,
        receipt_of(CompactionStep(name=CompactionStepName.TOOL_RESULTS, removed=(found.id,))),
        IN_PLACE,
        tokenizer=QUARTERS,
    )
    assert [one.placed[found.id].form for one in (kept, cut)] == [ArtifactForm.FULL, ArtifactForm.HANDLE]
    # The library came into the system message, so that everything else is one message later.
    assert [one.placed[found.id].place for one in (kept, cut)] == ["message:1", "message:1"]


def test_only_named_result_of_question_is_cut() -> None:
    one, other = result("x", "found " * 80), result("y", "found " * 90)
    told = Story().say("one?", "one.", attaching(one, other)).say("two?", "two.")
    cut = CompactionStep(name=CompactionStepName.TOOL_RESULTS, removed=(one.id,))
    after = apply_receipt(told.state, receipt_of(cut), IN_PLACE, tokenizer=QUARTERS)
    assert [after.placed[found.id].form for found in (one, other)] == [ArtifactForm.HANDLE, ArtifactForm.FULL]


def test_result_of_removed_turn_is_not_placed() -> None:
    told = worked()
    gone = CompactionStep(name=CompactionStepName.EXPENDABLE, removed=message_ids(told.state.history.turns[0]))
    after = apply_receipt(told.state, receipt_of(gone), IN_PLACE, tokenizer=QUARTERS)
    assert list(after.placed) == ["a.md"]
    assert [turn.question.text for turn in after.history.turns] == ["two?", "three?"]
    assert (after.history.message_count, after.history.preamble.removed_messages) == (4, 2)


def test_recompute_positions_is_idempotent() -> None:
    told = worked()
    after = apply_receipt(told.state, receipt_of(), IN_PLACE, tokenizer=QUARTERS)
    assert recompute_tool_result_positions(after, IN_PLACE, QUARTERS) == after


def test_empty_reply_leaves_no_line() -> None:
    told = Story().say("one?", "").say("two?", "two.")
    empty, said = (turn.reply.id for turn in told.state.history.turns)
    step = CompactionStep(name=CompactionStepName.EXPENDABLE, removed=(empty, said))
    first, second = apply_step(told.state, step, TurnSettings(), QUARTERS).history.turns
    assert first.reply.text == ""
    assert second.reply.text not in ("", "two.")


def test_placeholder_replaces_removed_turns_with_content() -> None:
    told = worked()
    gone = message_ids(told.state.history.turns[0])
    step = CompactionStep(name=CompactionStepName.SUMMARY, removed=gone, text="a block", content="what it tells")
    preamble = apply_step(told.state, step, TurnSettings(), QUARTERS).history.preamble
    (placeholder,) = preamble.blocks
    assert (placeholder.kind.value, placeholder.text, placeholder.content) == ("summary", "a block", "what it tells")
    erased = apply_step(told.state, replace(step, text=None), TurnSettings(), QUARTERS).history.preamble
    assert (erased.blocks, erased.removed_messages) == ((), 2)
