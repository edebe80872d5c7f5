"""Expendability: the documented formula with its errors put right, for messages and for whole turns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.hypothesis_profile import steady

from lamella.core.compaction.steps import (
    RemovableTurn,
    has_code,
    message_expendability,
    rank_by_expendability,
    turn_expendability,
)


def turn(
    position: int, *, asked_tokens: int = 100, answered_tokens: int = 100, has_code: bool = False
) -> RemovableTurn:
    return RemovableTurn(
        id=f"t{position}",
        position=position,
        question_tokens=asked_tokens,
        reply_tokens=answered_tokens,
        has_code=has_code,
    )


def test_documented_conversation_loses_the_documented_messages() -> None:
    """A system message and twenty messages of 400 characters, the first four of which are pinned as setup.

    The order is that of the documented formula, read the one way that agrees with its numbers; normalised age does not
    change it, because the weight of a role is the documented one of a conversation of about this length.
    """
    roles = {index: "user" if index % 2 else "assistant" for index in range(5, 21)}
    value = {
        index: message_expendability(role, position=index, total=21, tokens=100, code=False)
        for index, role in roles.items()
    }
    assert sorted(value, key=lambda index: (-value[index], index))[:12] == [6, 8, 10, 12, 5, 14, 7, 16, 9, 18, 11, 20]


@pytest.mark.parametrize(("limit", "left"), [(2_000, 1_976), (1_500, 1_456), (1_000, 936)])
def test_removal_ends_below_limit_where_documented_order_does_not(limit: int, left: int) -> None:
    """The system message and its twenty messages have 104 tokens each by the documented estimate, 2,184 in all."""
    roles = {index: "user" if index % 2 else "assistant" for index in range(5, 21)}
    value = {
        index: message_expendability(role, position=index, total=21, tokens=100, code=False)
        for index, role in roles.items()
    }
    total = 21 * 104
    for _ in sorted(value, key=lambda index: (-value[index], index)):
        if total <= limit:
            break
        total -= 104
    assert total == left


def test_system_message_is_not_expendable_and_all_others_are() -> None:
    assert message_expendability("system", position=0, total=10, tokens=9_000, code=False) == 0
    assert message_expendability("user", position=9, total=10, tokens=1, code=True) > 0
    assert message_expendability("user", position=12, total=10, tokens=1, code=True) > 0


def test_old_is_more_expendable_than_new_and_reply_than_question() -> None:
    def value(role: str, position: int) -> float:
        return message_expendability(role, position=position, total=20, tokens=100, code=False)

    assert value("user", 3) > value("user", 4)
    assert value("assistant", 3) > value("user", 3)
    assert value("tool", 3) == value("assistant", 3)


@pytest.mark.parametrize("count", [20, 200, 2_000])
def test_role_weight_scales_with_conversation_length(count: int) -> None:
    """With the documented recency, age outweighs every role in two hundred messages."""

    def value(role: str, position: int) -> float:
        return message_expendability(role, position=position, total=count, tokens=100, code=False)

    middle = count // 2
    assert value("assistant", middle) > value("user", middle - int(0.35 * count))
    assert value("assistant", middle) < value("user", middle - int(0.45 * count))


def test_length_counts_in_tokens_up_to_cap() -> None:
    def value(tokens: int) -> float:
        return message_expendability("assistant", position=5, total=10, tokens=tokens, code=False)

    assert value(0) == value(499) < value(500) < value(1_000) < value(2_000) == value(2_000_000)


def test_long_code_is_less_expendable() -> None:
    plain = message_expendability("user", position=5, total=10, tokens=100, code=False)
    for role in ("user", "assistant", "tool"):
        assert message_expendability(role, position=5, total=10, tokens=20_000, code=True) < plain


def test_oldest_of_equal_turns_is_first() -> None:
    turns = [turn(position) for position in range(6)]
    assert rank_by_expendability(turns, total_turns=8) == ("t0", "t1", "t2", "t3", "t4", "t5")


def test_mostly_reply_turn_is_removed_before_mostly_typed_one() -> None:
    turns = [turn(0, asked_tokens=190, answered_tokens=10), turn(1, asked_tokens=10, answered_tokens=190)]
    assert rank_by_expendability(turns, total_turns=20) == ("t1", "t0")


def test_long_code_is_removed_after_text_of_same_age() -> None:
    """By the documented formula the 80,000 characters of a codebase make it the first to go."""
    turns = [turn(position) for position in range(20)]
    turns[7] = turn(7, asked_tokens=20_000, has_code=True)
    ranked = rank_by_expendability(turns, total_turns=20)
    assert ranked.index("t7") > ranked.index("t8")


def test_turn_with_code_is_removed_after_neighbours() -> None:
    turns = [turn(3), turn(4, has_code=True, answered_tokens=4_000), turn(5)]
    assert rank_by_expendability(turns, total_turns=40) == ("t3", "t5", "t4")


def test_turn_score_is_weighted_by_message_tokens() -> None:
    assert turn_expendability(turn(0, asked_tokens=100, answered_tokens=300), total_turns=1) == 1.4
    assert turn_expendability(turn(3, asked_tokens=250, answered_tokens=750), total_turns=4) == 0.95
    assert turn_expendability(turn(3, asked_tokens=250, answered_tokens=750, has_code=True), total_turns=4) == 0.25


def test_turn_without_tokens_is_ranked_by_age() -> None:
    empty = turn(0, asked_tokens=0, answered_tokens=0)
    assert turn_expendability(empty, total_turns=1) == turn_expendability(turn(0), total_turns=1)


def test_no_candidates_give_no_removals() -> None:
    assert rank_by_expendability([], total_turns=0) == ()


candidates = st.lists(
    st.builds(
        turn,
        st.integers(0, 60),
        asked_tokens=st.integers(0, 5_000),
        answered_tokens=st.integers(0, 50_000),
        has_code=st.booleans(),
    ),
    unique_by=lambda candidate: candidate.position,
    max_size=12,
)


@steady
@given(candidates)
def test_order_is_total_and_independent_of_input_order(turns: list[RemovableTurn]) -> None:
    ranked = rank_by_expendability(turns, total_turns=61)
    assert sorted(ranked) == sorted(candidate.id for candidate in turns)
    assert rank_by_expendability(turns[::-1], total_turns=61) == ranked


@steady
@given(st.integers(0, 59), st.integers(0, 5_000), st.integers(0, 50_000))
def test_older_turn_is_more_expendable(position: int, asked: int, answered: int) -> None:
    for code in (False, True):
        older, newer = (
            turn_expendability(turn(at, asked_tokens=asked, answered_tokens=answered, has_code=code), total_turns=61)
            for at in (position, position + 1)
        )
        assert older > newer > 0


@pytest.mark.parametrize(
    "text",
    [
        "```python\nx = 1\n```",
        "Look:\n\n~~~\nx\n~~~",
        "```\nnever closed",
        "Look:\n\n    x = 1\n",
        "\tx = 1",
        "- a list\n\nand then\n\n    x = 1",
    ],
)
def test_fenced_and_indented_blocks_are_code(text: str) -> None:
    assert has_code(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "My profile: see app.ts, main.js, run.py and data.json.",
        "Call `run()` with file: x.",
        "a paragraph\n    that goes on",
        "- an item\n\n    its second paragraph",
        "1. an item\n\n    its second paragraph\n\n    its third",
        "  two spaces",
        "    \n\t\n",
        "use ``` for a fence",
        "```x``` is inline",
    ],
)
def test_words_that_look_like_code_are_not_code(text: str) -> None:
    assert not has_code(text)
