"""Directives of removed messages stay word for word, and a certificate accounts for every exact string."""

from tests.unit.core.compaction.stories import Story, attaching, chat, make_rules, names, note

from lamella.core.compaction.chain import CompactionPlan, plan_compaction
from lamella.core.compaction.rules import CompactionConfig
from lamella.core.compaction.summary_checks import build_certificate
from lamella.core.log.receipts import CompactionCertificate, CompactionStepName
from lamella.core.prompt.layers.digest import iter_digest_messages
from lamella.core.values import replace

EXPENDABLE = CompactionConfig(steps=(CompactionStepName.EXPENDABLE,))
WISH = "Always cite the page, the chapter and the edition of whatever book you quote from."
NEWER = "From now on answer in Indonesian."


def kept(story: Story) -> list[str]:
    """The directives that are left in the digest, without the messages around them."""
    return [message.text for message in iter_digest_messages(story.state.history.digest) if message.is_excerpt]


def wished() -> Story:
    story = Story(make_rules(EXPENDABLE)).say(f"Thanks. {WISH}", "Yes, about K-37. " * 20).say(NEWER, "Ya. " * 40)
    for number in range(6):
        story.say(f"Question {number} on desk B-{number}2?", f"It is in plan-{number}.md, I think. " * 12)
    return story


def plan(story: Story, *, goal: int = 0, path: list[str] | None = None) -> CompactionPlan:
    return plan_compaction(
        story.state,
        story.bind(replace(attaching(), text="And now?")),
        story.rules.compaction_config,
        tokenizer=story.rules.tokenizer,
        plan_layout=story.rules.plan_layout,
        window=10_000,
        current_prompt=story.prompt(),
        goal_tokens=goal,
        message_ids=story.path if path is None else path,
    )


def test_directives_stay_in_the_digest_when_their_messages_leave() -> None:
    story = wished()
    receipt = plan(story).receipt
    assert names(receipt) == ["expendable"]
    assert receipt is not None
    story.apply(receipt)
    assert kept(story) == [WISH, NEWER]
    sent = story.sent()
    assert f"[1] {WISH}\n[3] {NEWER}\n" in sent
    assert "Thanks." not in sent
    story.say("Never guess.", "Fine. " * 30).say("And this?", "That. " * 30).say("Well?", "Yes.")
    again = plan(story).receipt
    assert again is not None
    story.apply(again)
    assert kept(story) == [WISH, NEWER, "Never guess."]


def test_sent_message_needs_no_certificate() -> None:
    story = wished()
    goal = story.tokens() - 150
    receipt = plan(story, goal=goal).receipt
    assert names(receipt) == ["expendable"]
    assert receipt is not None
    assert receipt.certificate is not None
    assert receipt.certificate.rules == (0, 0, 0)


def test_exact_terms_are_in_prompt_or_one_recall_away() -> None:
    story = wished()
    receipt = plan(story, goal=story.tokens() - 250).receipt
    assert receipt is not None
    assert receipt.certificate is not None
    stand, recallable, gone = receipt.certificate.exact_strings
    assert (stand + recallable > 0, gone) == (True, 0)
    outlined = wished()
    outlined.rules = make_rules(CompactionConfig(steps=(CompactionStepName.REPLIES,)))
    receipt = plan(outlined).receipt
    assert receipt is not None
    assert receipt.certificate == CompactionCertificate(exact_strings=(6, 0, 0))


def test_unrecallable_message_is_not_removed() -> None:
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


def test_empty_draft_has_empty_certificate() -> None:
    draft = wished().draft()
    assert build_certificate(draft.state, draft, (), branch_ids=()) == CompactionCertificate()
