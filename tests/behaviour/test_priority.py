"""Large conversations, conversations full of code, and very long messages: what goes first, and what never goes."""

import pytest
from tests.unit.core.compaction.stories import NOW, Story, attaching, make_rules, note, removed

from lamella.core.artifacts.model import AttachmentPolicy
from lamella.core.budget import TokenBudget
from lamella.core.compaction.rules import CompactionConfig
from lamella.core.log.receipts import CompactionStepName
from lamella.core.log.turn import SystemParts, Turn
from lamella.core.values import replace
from lamella.errors import ContextBudgetExceededError

ONLY = CompactionConfig(steps=(CompactionStepName.EXPENDABLE,))
CODE = "```python\n" + "print('kept')\n" * 15 + "```"
PROSE = "It is like this, and then it goes on. " * 6


def talked(*turns: tuple[str, str]) -> Story:
    story = Story(make_rules(ONLY))
    for asked, answered in turns:
        story.say(asked, answered)
    return story


def gone(story: Story, freed: int) -> list[int]:
    """The numbers of the turns whose replies go when so many tokens must be freed, in their order."""
    taken = set(removed(story.plan(goal=story.tokens() - freed).receipt, "expendable"))
    return [index for index, turn in enumerate(story.state.history.turns) if turn.reply.id in taken]


def test_large_conversation_loses_oldest_messages() -> None:
    story = talked(*((f"Question {n}?", PROSE) for n in range(200)))
    first = gone(story, story.tokens() // 2)
    assert first == list(range(len(first)))
    assert 120 < len(first) < 140


@pytest.mark.parametrize("limit", [2_000, 1_500, 1_000])
def test_twenty_messages_are_reduced_to_any_limit(limit: int) -> None:
    # A system prompt and twenty messages of four hundred characters; the question asked now is one more.
    story = Story(make_rules(ONLY))
    for number in range(10):
        system = replace(NOW, system=SystemParts(base="s" * 400)) if not number else None
        story.say("u" * 400, "a" * 400, system)
    receipt = story.compact(goal=limit)
    assert receipt.tokens_after <= limit
    texts = [message.text for message in story.ask().messages]
    assert texts[0] == "s" * 400
    assert texts[-3:] == ["u" * 400, "a" * 400, "And now?"]
    assert story.plan(goal=limit).receipt is None


def test_current_question_survives_any_limit_it_fits() -> None:
    story = talked(*((f"Question {n}?", PROSE) for n in range(20)))
    for window in (4_000, 1_000, 500, 200, 120, 60, 30):
        story.rules = replace(story.rules, budget=TokenBudget(window=window, reserve=0))
        envelope = story.fit().envelope
        assert envelope.messages[-1].text.endswith("And now?")
        assert envelope.tokens.total <= 0.95 * window


def test_turns_with_code_outlast_text_of_same_age() -> None:
    story = talked(*((f"Question {n}?", CODE if n % 2 else PROSE) for n in range(12)), ("Last?", "Yes."))
    assert gone(story, 170) == [0, 2, 4, 6]


def test_code_only_conversation_loses_oldest_messages() -> None:
    story = talked(*((f"Question {n}?", CODE) for n in range(10)), ("Last?", "Yes."))
    assert gone(story, 150) == [0, 1, 2, 3]


def test_prose_that_resembles_code_is_not_code() -> None:
    prose = PROSE.replace("like this", "like profile: and the charts.json")
    story = talked(("Why?", CODE), ("Why?", prose), ("Why?", prose), ("Why?", prose), ("Last?", "Yes."))
    assert gone(story, 50) == [1]


def test_very_long_message_is_removed_before_short_ones_of_same_age() -> None:
    story = talked(*((f"Question {n}?", PROSE * (60 if n == 3 else 1)) for n in range(12)))
    assert gone(story, 1_000) == [3]


def test_very_long_code_message_outlasts_plain_text() -> None:
    story = talked(*((f"Question {n}?", CODE * (40 if n == 3 else 1) if n == 3 else PROSE) for n in range(12)))
    assert 3 not in gone(story, 300)


def test_length_is_not_the_only_criterion() -> None:
    # A long answer of now is worth more than short talk of long ago.
    story = talked(*((f"Question {n}?", PROSE * (4 if n == 18 else 1)) for n in range(20)))
    assert gone(story, 200)[0] == 0
    assert 18 not in gone(story, 200)


def test_last_exchange_is_kept_at_any_length() -> None:
    story = talked(*((f"Question {n}?", PROSE) for n in range(5)), ("Long?", PROSE * 100))
    assert gone(story, 10_000) == [0, 1, 2, 3, 4]


def test_oversized_question_is_named_and_not_cut() -> None:
    story = talked(*((f"Question {n}?", PROSE) for n in range(5)))
    story.rules = replace(story.rules, budget=TokenBudget(window=2_000, reserve=0))
    with pytest.raises(ContextBudgetExceededError) as error:
        story.fit(Turn(text="long " * 2_000))
    assert error.value.protected[0] == "what was typed now (2,500 tokens)"


def test_setup_is_kept_by_pin_not_by_position() -> None:
    setup = note("setup.md", "This is how we work. " * 30, policy=AttachmentPolicy.PIN)
    story = Story(make_rules(ONLY)).say("This is the set-up.", "I see.", attaching(setup))
    for number in range(12):
        story.say(f"Question {number}?", PROSE)
    story.compact()
    assert setup.text in story.sent()
    assert "This is the set-up." not in story.sent()


def test_answers_are_removed_before_questions_then_both() -> None:
    story = talked(*((f"Question {n}?", PROSE) for n in range(12)))
    taken = removed(story.plan(goal=story.tokens() - 400).receipt, "expendable")
    assert list(taken) == story.path[1 : 2 * len(taken) : 2]
    every = set(removed(story.plan(goal=120).receipt, "expendable"))
    asked, answered = story.path[:-2:2], story.path[1:-2:2]
    assert every >= set(answered)
    assert 0 < len(every & set(asked)) < len(asked)
    assert [name for name in asked if name in every] == asked[: len(every & set(asked))]


def test_removed_turns_remain_in_previous_state() -> None:
    story = talked(*((f"Question {n}?", PROSE) for n in range(12)))
    before = story.state
    story.plan(goal=0)
    assert story.state is before
    assert len(story.state.history.turns) == 12
