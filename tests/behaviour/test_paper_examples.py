"""The worked examples of staged paper writing, under their profile, give the documented results."""

import pytest
from tests.behaviour.paper_workflow import PAPER, RULES, WINDOW, acknowledgement, said, send, share, write
from tests.unit.core.compaction.stories import names, removed

from lamella.core.values import replace

# Of which stages are done where the examples are.
AT_STAGE_8, AT_STAGE_10 = 7, 9


def test_profile_has_the_thresholds_of_the_examples() -> None:
    assert (PAPER.window, PAPER.reserve) == (WINDOW, 0)
    assert (PAPER.warn, PAPER.target, PAPER.trigger, PAPER.hard) == (0.60, 0.849, 0.85, 0.95)
    assert list(RULES.compaction_config.steps) == [
        "chitchat",
        "oldest_stages",
        "summary",
        "recent_stages",
        "expendable",
    ]
    assert RULES.compaction_config.protects_current_stage


def test_under_85_percent_nothing_is_compacted() -> None:
    story = write(150, 26_500, done=AT_STAGE_8)
    fitted = send(story)
    assert story.tokens() == 26_500
    assert share(26_500) == 21
    assert fitted.receipt is None
    assert said(fitted) == story.path
    assert fitted.envelope.warnings == ()
    # The digest is in the prompt although nothing was compacted.
    system = fitted.envelope.messages[0].text
    assert system.count("## Keputusan") == 1
    assert system.count("- Gagasan Paper (Ideation): what was decided for gagasan") == 1


def test_at_87_percent_twelve_acknowledgements_are_enough() -> None:
    # Twelve times "ok" are twelve tokens, not the 2,500 that the example frees with them: these say yes at length.
    short = [21 + 12 * n for n in range(12)]
    story = write(220, 111_000, short=short, yes=acknowledgement(212), done=AT_STAGE_10)
    fitted = send(story)
    assert names(fitted.receipt) == ["chitchat"]
    assert removed(fitted.receipt, "chitchat") == [story.path[n - 1] for n in short]
    assert fitted.receipt is not None
    assert fitted.receipt.tokens_before == 111_000
    assert fitted.receipt.tokens_after == pytest.approx(108_500, abs=100)
    assert share(fitted.receipt.tokens_after) == 85
    assert len(said(fitted)) == 220 - 12


def test_at_92_percent_acknowledgements_and_the_two_oldest_stages_go() -> None:
    short = [51 + 10 * n for n in range(12)]
    yes = acknowledgement(236)
    ranges = {(1, 18): 3_050, (19, 34): 4_050}
    story = write(220, 117_800, short=short, yes=yes, ranges=ranges, done=AT_STAGE_10)
    fitted = send(story)
    receipt = fitted.receipt
    assert names(receipt) == ["chitchat", "oldest_stages"]
    assert receipt is not None
    reached = [step.tokens_after for step in receipt.steps]
    assert reached == pytest.approx([115_000, 108_000], abs=150)
    assert [share(tokens) for tokens in reached] == [90, 84]
    # Message 35 is a question: the second stage ends with the answer before it, as a turn leaves whole or not at all.
    assert removed(receipt, "oldest_stages") == story.path[:34]
    sent = "\n".join(message.text for message in fitted.envelope.messages)
    assert "<stage_digest>" not in sent
    assert sent.count("- Gagasan Paper (Ideation): what was decided for gagasan") == 1
    assert sent.count("- Penentuan Topik (Topic Definition): what was decided for topik") == 1


def test_first_stage_alone_is_not_enough_at_92_percent() -> None:
    short = [51 + 10 * n for n in range(12)]
    ranges = {(1, 18): 3_050, (19, 34): 4_050}
    story = write(220, 117_800, short=short, yes=acknowledgement(236), ranges=ranges, done=AT_STAGE_10)
    one = story.plan(goal=112_100).receipt
    assert removed(one, "oldest_stages") == story.path[:18]
    assert one is not None
    assert one.tokens_after == pytest.approx(112_000, abs=150)
    assert one.tokens_after > PAPER.target * PAPER.limit


def test_general_chat_at_86_percent_ends_at_84_without_six_messages() -> None:
    short = [11 + 10 * n for n in range(6)]
    story = write(80, 110_080, short=short, yes=acknowledgement(432))
    fitted = send(story)
    assert names(fitted.receipt) == ["chitchat"]
    assert fitted.receipt is not None
    assert (share(fitted.receipt.tokens_before), share(fitted.receipt.tokens_after)) == (86, 84)
    assert len(said(fitted)) == 74


def test_general_chat_at_91_percent_is_summarized_to_82() -> None:
    # As many turns as are needed would be seven; the example takes twenty messages, which is a setting here.
    short = [31 + 10 * n for n in range(6)]
    story = write(120, 116_480, short=short, yes=acknowledgement(644), ranges={(1, 20): 7_850})
    ten = replace(story.rules.compaction_config, summary=replace(story.rules.compaction_config.summary, turns=10))
    story.rules = replace(story.rules, compaction_config=ten)
    fitted = send(story, "- [1] The user asked something, and the assistant answered.")
    receipt = fitted.receipt
    assert names(receipt) == ["chitchat", "summary"]
    assert receipt is not None
    assert [share(step.tokens_after) for step in receipt.steps] == [88, 82]
    assert removed(receipt, "summary") == story.path[:20]
    assert len(said(fitted)) == 94
    assert "\n".join(m.text for m in fitted.envelope.messages).count("<conversation_summary>") == 1


def test_after_each_example_the_next_turn_needs_no_compaction() -> None:
    short = [21 + 12 * n for n in range(12)]
    story = write(220, 111_000, short=short, yes=acknowledgement(212), done=AT_STAGE_10)
    story.state = send(story).state
    assert send(story).receipt is None
