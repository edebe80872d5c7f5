"""Wishes of messages that went stand word for word, and a certificate accounts for every exact word in what went."""

from tests.unit.core.compaction.talking import Story, attaching, chat, make_rules, names, note

from lamella.core.compaction.chain import CompactionPlan, plan_compaction
from lamella.core.compaction.rules import CompactionConfig
from lamella.core.compaction.summary_checks import build_certificate, find_removed_rules, rules_block_step
from lamella.core.log.receipts import CompactionCertificate, CompactionStepName
from lamella.core.prompt.layers.history import get_rules, render_rules
from lamella.core.values import replace

EXPENDABLE = CompactionConfig(steps=(CompactionStepName.EXPENDABLE,))
WISH = "Always cite the page, the chapter and the edition of whatever book you quote from."
NEWER = "From now on answer in Indonesian."


def standing(story: Story) -> list[str]:
    return [text for _, text in get_rules(story.state.history.preamble)[0]]


def wished() -> Story:
    story = Story(make_rules(EXPENDABLE)).say(f"Thanks. {WISH}", "Yes, about K-37. " * 20).say(NEWER, "Ya. " * 40)
    for number in range(6):
        story.say(f"Question {number} on desk B-{number}2?", f"It is in plan-{number}.md, I think. " * 12)
    return story


def plan(story: Story, *, goal: int = 0, room: int = 200, path: list[str] | None = None) -> CompactionPlan:
    return plan_compaction(
        story.state,
        story.bind(replace(attaching(), text="And now?")),
        story.rules.config,
        tokenizer=story.rules.tokenizer,
        plan_layout=story.rules.plan_layout,
        window=10_000,
        current_prompt=story.prompt(),
        goal_tokens=goal,
        message_ids=story.path if path is None else path,
        max_rules_tokens=room,
    )


def test_wishes_stay_word_for_word_when_their_messages_go() -> None:
    story = wished()
    receipt = plan(story).receipt
    assert names(receipt) == ["expendable", "rules"]
    assert receipt is not None
    story.apply(receipt)
    assert standing(story) == [WISH, NEWER]
    sent = story.sent()
    assert f"<content>\n- {WISH}\n- (newest) {NEWER}\n</content>\n</standing_wishes>\n" in sent
    assert "Thanks." not in sent
    story.say("Never guess.", "Fine. " * 30).say("And this?", "That. " * 30).say("Well?", "Yes.")
    again = plan(story).receipt
    assert again is not None
    story.apply(again)
    assert standing(story) == [WISH, NEWER, "Never guess."]
    assert story.sent().count("<standing_wishes>") == 1


def test_while_the_message_stands_nothing_is_added() -> None:
    story = wished()
    goal = story.tokens() - 150
    receipt = plan(story, goal=goal).receipt
    assert names(receipt) == ["expendable"]
    assert receipt is not None
    assert receipt.certificate is not None
    assert receipt.certificate.rules == (0, 0, 0)


def test_wishes_have_a_bound_the_newest_stay_and_the_rest_is_counted() -> None:
    story = wished()
    room = story.rules.tokenizer.count(render_rules(((2, NEWER),), omitted=1))
    receipt = plan(story, room=room).receipt
    assert receipt is not None
    story.apply(receipt)
    assert standing(story) == [NEWER]
    assert "and 1 older; recall finds them\n" in story.sent()
    assert receipt.certificate is not None
    assert receipt.certificate.rules == (1, 1, 0)
    assert names(plan(wished(), room=5).receipt) == ["expendable"]


def test_wishes_of_a_larger_window_are_trimmed_before_anything_else_goes() -> None:
    story = wished()
    first = plan(story).receipt
    assert first is not None
    story.apply(first)
    assert standing(story) == [WISH, NEWER]
    room = story.rules.tokenizer.count(render_rules(((2, NEWER),), omitted=1))
    again = plan(story, goal=story.tokens() - 1, room=room).receipt
    assert names(again) == ["rules"]
    assert again is not None
    story.apply(again)
    assert standing(story) == [NEWER]


def test_exact_words_stand_or_are_one_recall_away() -> None:
    story = wished()
    receipt = plan(story, goal=story.tokens() - 250).receipt
    assert receipt is not None
    assert receipt.certificate is not None
    stand, recallable, gone = receipt.certificate.exact_strings
    assert (stand + recallable > 0, gone) == (True, 0)
    outlined = wished()
    outlined.rules = make_rules(CompactionConfig(steps=(CompactionStepName.REPLIES,)))
    kept = plan(outlined).receipt
    assert kept is not None
    assert kept.certificate == CompactionCertificate(exact_strings=(6, 0, 0))


def test_what_could_not_be_recalled_is_not_taken_out() -> None:
    story = wished()
    assert plan(story, path=["somebody-else"]).receipt is None
    plain = chat(10, rules=make_rules(EXPENDABLE))
    assert plan(plain, path=["somebody-else"]).receipt is not None


def test_attachments_count_as_well() -> None:
    story = Story(make_rules(CompactionConfig(steps=(CompactionStepName.HANDLE,))))
    story.say("Read.", "Yes.", attaching(note("a.md", "The code is K-99 and so on. " * 40)))
    for _ in range(4):
        story.say("And?", "So.")
    receipt = plan(story).receipt
    assert receipt is not None
    assert receipt.certificate == CompactionCertificate(exact_strings=(0, 1, 0))


def test_nothing_is_certified_of_nothing() -> None:
    draft = wished().draft()
    assert build_certificate(draft.state, draft, (), rules={}, branch_ids=()) == CompactionCertificate()
    assert rules_block_step(find_removed_rules(draft.state, draft, ()), draft, max_tokens=100) is None
