"""The outline of a conversation: a line per turn, the newest kept longest, the others counted, within its limit."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.hypothesis_profile import steady

from lamella.core.text.rule_detection import build_conversation_outline


def quarters(text: str) -> int:
    return -(-len(text) // 4)


def words(text: str) -> int:
    return len(text.split())


def outline(*turns: tuple[str, str], cap: int = 300) -> str:
    return build_conversation_outline(turns, max_tokens=cap, count=quarters)


def test_outline_has_line_per_turn_with_question_and_first_sentence() -> None:
    assert outline(
        ("What is a prefix?", "The bytes that two requests share. Caches live on it."),
        ("Make it\nshorter,\n\nplease.", "Shared bytes! Done."),
    ) == (
        "- Asked: What is a prefix? Answered: The bytes that two requests share.\n"
        "- Asked: Make it shorter, please. Answered: Shared bytes!"
    )


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        ("Use 1.5 of it, e.g. here. Then stop.", "Use 1.5 of it, e.g. here."),
        ("# Plan\n\nWe begin\nwith tests. Then code.", "We begin with tests."),
        ("```python\nx = 1.\n```\nThat sets x. Fine.", "That sets x."),
        ("- first item\n- second item", "first item second item"),
        ("> It was said. Twice.", "It was said."),
        ("1. **One.** Two.", "**One.**"),
        ("你好。再见。", "你好。"),
        ("no end in sight", "no end in sight"),
        ("# Only a heading", "Only a heading"),
        ("```\ncode\n```", "(code)"),
        ("", "(nothing)"),
    ],
)
def test_first_sentence_of_prose_is_found(reply: str, sentence: str) -> None:
    assert outline(("Go", reply)) == f"- Asked: Go Answered: {sentence}"


def test_long_text_is_cut_at_space_with_ellipsis() -> None:
    line = outline(("word " * 300, "x" * 300))
    assert line == f"- Asked: {'word ' * 32}… Answered: {'x' * 160} …"


def test_newest_turns_are_kept_and_earlier_counted() -> None:
    turns = [(f"Question {number}", f"Answer {number}.") for number in range(1_400)]
    assert build_conversation_outline(turns, max_tokens=30, count=words).split("\n") == [
        "[1,397 earlier turns are left out.]",
        *[f"- Asked: Question {number} Answered: Answer {number}." for number in (1_397, 1_398, 1_399)],
    ]


def test_one_omitted_turn_is_singular() -> None:
    turns = [("First question here", "First answer."), ("Second", "Answer.")]
    assert build_conversation_outline(turns, max_tokens=11, count=words) == (
        "[1 earlier turn is left out.]\n- Asked: Second Answered: Answer."
    )


def test_long_turn_is_shortened_before_omission() -> None:
    turns = [("字" * 500, "文" * 500)]
    shown = build_conversation_outline(turns, max_tokens=200, count=len)
    assert shown == f"- Asked: {'字' * 80} … Answered: {'文' * 80} …"


def test_no_turns_make_no_outline() -> None:
    assert outline() == ""


def test_limit_below_one_line_gives_no_outline() -> None:
    assert outline(("Go", "Gone."), cap=2) == ""


texts = st.text(max_size=80) | st.lists(
    st.sampled_from(["word", "A sentence.", "\n", "\n\n", "```", "# H", "- item", "字", " ", "x" * 90, "."]),
    max_size=12,
).map(" ".join)


@steady
@given(st.lists(st.tuples(texts, texts), max_size=12), st.integers(0, 120), st.sampled_from([quarters, words, len]))
def test_outline_stays_within_limit_and_counts_every_turn(
    turns: list[tuple[str, str]], cap: int, count: Callable[[str], int]
) -> None:
    shown = build_conversation_outline(turns, max_tokens=cap, count=count)
    assert count(shown) <= cap
    assert shown == build_conversation_outline(turns, max_tokens=cap, count=count)
    if shown:
        lines = shown.split("\n")
        kept = sum(line.startswith("- Asked: ") for line in lines)
        left_out = int(lines[0][1:].split()[0]) if lines[0].startswith("[") else 0
        assert kept + left_out == len(turns)
        assert len(lines) == kept + bool(left_out)


def test_long_turns_are_read_in_one_pass() -> None:
    shown = outline(("a" * 1_000_000, "b. " * 300_000), ("- " * 500_000, "#" * 1_000_000), ("\n" * 1_000_000, "```"))
    assert quarters(shown) <= 300
