"""Removing messages: single acknowledgements, and whole turns, the most expendable first."""

from tests.unit.core.compaction.stories import (
    FOLDING,
    NOW,
    Story,
    attaching,
    chat,
    make_rules,
    names,
    note,
    removed,
    result,
)

from lamella.core.compaction.rules import CompactionConfig
from lamella.core.compaction.steps import drop_chitchat, drop_expendable
from lamella.core.log.receipts import CompactionStepName
from lamella.core.log.turn import ArtifactForm
from lamella.core.messages import Role
from lamella.core.prompt.layers.history import render_notice
from lamella.core.prompt.layers.model import LayerId
from lamella.core.values import replace

YES = "so be it and on we go with the next of all these many points"
CHITCHAT = CompactionConfig(steps=(CompactionStepName.CHITCHAT,), extra_acknowledgements=frozenset({YES}))
EXPENDABLE = CompactionConfig(steps=(CompactionStepName.EXPENDABLE,))


def said(*turns: tuple[str, str], chain: CompactionConfig = CHITCHAT) -> Story:
    story = Story(make_rules(chain))
    for typed, reply in turns:
        story.say(typed, reply)
    return story


def taken(story: Story) -> list[str]:
    """What the chitchat step would take, as typed."""
    cut = drop_chitchat(story.draft())
    texts = {turn.question.id: turn.question.text for turn in story.state.history.turns}
    return [texts[name] for name in cut.removed] if cut else []


def test_all_acknowledgements_are_removed_and_replies_kept() -> None:
    turns = [("Question?", "Answer zero.")] + [(YES, f"Answer {number}.") for number in range(1, 9)]
    story = said(*turns, ("And?", "So."))
    receipt = story.compact()
    assert names(receipt) == ["chitchat"]
    assert len(removed(receipt, "chitchat")) == 8
    answer = story.state.history.turns[0].reply_message
    assert answer is not None
    assert answer.text == "Answer zero.\n\n" + "\n\n".join(f"Answer {number}." for number in range(1, 9))


def test_reply_with_code_is_kept_longer() -> None:
    code, plain = "```\nrun this\n```\n" + "so it goes " * 40, "so it goes " * 42
    for first, second, gone in ((code, plain, 1), (plain, code, 0)):
        story = said(("One?", first), ("Two?", second), ("And?", "So."), chain=EXPENDABLE)
        cut = drop_expendable(story.draft(goal=story.tokens() - 20))
        assert cut is not None
        assert cut.removed == (story.state.history.turns[gone].reply.id,)


def test_acknowledgements_are_detected_in_english_and_indonesian() -> None:
    story = said(
        ("Why?", "So."), ("ok", "Yes."), ("Terima kasih!", "Yes."), ("lanjut", "Yes."), ("sip", "Yes."), ("?", ".")
    )
    assert taken(story) == ["ok", "lanjut", "sip"]


def test_choices_numbers_and_answers_to_questions_stay() -> None:
    story = said(
        ("Why?", "So."),
        ("opsi B", "Yes."),
        ("2", "Yes."),
        ("kuantitatif", "Shall I go on?"),
        ("ya", "Done."),
        ("ok", "Yes."),
        ("The end.", "Yes."),
    )
    assert taken(story) == ["ok"]


def test_first_and_last_message_are_kept() -> None:
    assert taken(said(("ok", "Yes."), ("ok", "Yes."), ("ok", "Yes."))) == ["ok"]
    assert taken(said(("ok", "Yes."), ("ok", "Yes."))) == []


def test_acknowledgement_with_attachment_is_kept() -> None:
    story = said(("Why?", "So."))
    story.say("ok", "Yes.", attaching(note("a.md", "text"))).say("ok", "Yes.", attaching(result("x", "found")))
    story.say("ok", "Yes.").say("Well?", "Yes.")
    cut = drop_chitchat(story.draft())
    assert cut is not None
    assert cut.removed == (story.path[6],)


def test_extra_acknowledgements_are_removed() -> None:
    mine = CompactionConfig(extra_acknowledgements=frozenset({"affirmative"}))
    turns = (("Why?", "So."), ("Affirmative.", "Yes."), ("And?", "So."))
    assert taken(said(*turns, chain=mine)) == ["Affirmative."]
    assert taken(said(*turns)) == []


def test_expendable_turns_leave_whole_with_their_tool_results() -> None:
    story = Story(make_rules(EXPENDABLE))
    story.say("Find it.", "Found.", attaching(result("x", "found " * 200)))
    story.say("Why?", "Because. " * 20).say("And?", "So.")
    receipt = story.compact()
    assert sorted(removed(receipt, "expendable")) == sorted(story.path[:4])
    assert "found" not in story.sent()


def test_oldest_of_equals_is_removed_and_newest_kept() -> None:
    story = chat(10, rules=make_rules(EXPENDABLE))
    receipt = story.plan(goal=story.tokens() - 300).receipt
    gone = removed(receipt, "expendable")
    assert list(gone) == story.path[1 : 2 * len(gone) : 2]
    story.compact()
    assert [turn.question.text for turn in story.state.history.turns] == ["Question 9: why?"]


def test_removal_counts_messages_tool_stubs_and_overhead() -> None:
    story = Story(make_rules(EXPENDABLE))
    story.say("Find it.", "Found.", attaching(result("x", "found " * 20)))
    story.say("Why?", "Because.").say("Who?", "Me.").say("And?", "So.")
    first, second, third = story.state.history.turns[:3]
    assert [one.message_tokens for one in (first, second, third)] == [4, 3, 2]
    (placed_result,) = first.tool_results
    # Nothing was left out before: the line that says so has to be freed as well.
    notice = story.rules.tokenizer.count(render_notice(3, brief=True, names_recall=True))

    def count_taken(excess: int, per_message: int = 0) -> int:
        draft = story.draft()
        draft = replace(
            draft,
            goal_tokens=draft.tokens - excess + notice,
            tokenizer=replace(draft.tokenizer, tokens_per_message=per_message),
        )
        step = drop_expendable(draft)
        return 0 if step is None else len(step.removed) // 2

    assert [count_taken(excess) for excess in (placed_result.tokens + 4, placed_result.tokens + 5)] == [1, 2]
    assert [count_taken(excess, 6) for excess in (placed_result.tokens + 16, placed_result.tokens + 17)] == [1, 2]


def test_tool_results_count_only_where_sent() -> None:
    story = Story(make_rules(EXPENDABLE))
    story.say("Find it.", "Found.", attaching(result("x", "found " * 2_000)))
    story.say("Fold.", "Done.", FOLDING)
    for number in range(6):
        story.say(f"Question {number}?", "because " * 40)
    # The result left the request with the fold: its turn frees next to nothing, and others must go with it.
    goal = story.tokens() - 150
    receipt = story.plan(goal=goal).receipt
    assert receipt is not None
    assert receipt.tokens_after <= goal
    assert len(removed(receipt, "expendable")) > 2


def test_only_last_exchange_left_gives_no_step() -> None:
    assert drop_expendable(chat(1, rules=make_rules(EXPENDABLE)).draft()) is None
    assert drop_expendable(Story(make_rules(EXPENDABLE)).draft()) is None
    assert drop_chitchat(Story(make_rules()).draft()) is None


def test_replies_are_outlined_oldest_first_and_questions_kept() -> None:
    story = chat(6, words=90, rules=make_rules(CompactionConfig(steps=(CompactionStepName.REPLIES,))))
    receipt = story.compact(goal=story.tokens() - 300)
    gone = removed(receipt, "replies")
    assert list(gone) == story.path[1 : 2 * len(gone) : 2]
    assert 0 < len(gone) < 5
    sent = story.sent()
    assert all(f"Question {number}: why?" in sent for number in range(6))
    assert "[Outline; recall turn 1.]\nAnswer 0." in sent
    outlined = [segment for segment in story.ask().segments(LayerId.L4) if segment.form is ArtifactForm.PREVIEW]
    assert [segment.id for segment in outlined] == list(gone)
    assert names(story.plan(goal=story.tokens() - 100).receipt) == ["replies"]


def test_removed_reply_leaves_one_line_and_roles_alternate() -> None:
    story = chat(5, rules=make_rules(EXPENDABLE))
    receipt = story.compact(goal=story.tokens() - 250)
    gone = removed(receipt, "expendable")
    assert list(gone) == story.path[1 : 2 * len(gone) : 2]
    messages = story.ask().messages
    assert messages[1].text == "[Left out; recall turn 1.]"
    assert [message.role for message in messages] == [Role.USER, Role.ASSISTANT] * 5 + [Role.USER]
    assert "<left_out>" not in story.sent()


def test_turn_with_pinned_message_is_kept() -> None:
    story = chat(
        4,
        words=90,
        rules=make_rules(CompactionConfig(steps=(CompactionStepName.REPLIES, CompactionStepName.EXPENDABLE))),
    )
    story.say("Keep this.", "Yes.", replace(NOW, pinned=(story.path[0],)))
    receipt = story.compact()
    gone = {name for step in receipt.steps for name in step.removed}
    assert gone.isdisjoint(story.path[:2])
    assert "Answer 0. because" in story.sent()


def test_receipt_of_first_chain_keeps_lone_replies() -> None:
    story = chat(5, rules=make_rules(EXPENDABLE))
    receipt = story.plan(goal=story.tokens() - 250).receipt
    assert receipt is not None
    before = story.sent()
    story.apply(replace(receipt, chain_version=1))
    assert story.sent() == before
