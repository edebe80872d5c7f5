"""Long lines: each change with enough context to locate it."""

from itertools import takewhile
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.hypothesis_profile import steady
from tests.unit.patching import apply_diff

from lamella.core.text.diff import (
    build_short_diff,
    count_common_chars,
    describe_cut_markers,
    diff_excerpt,
    shorten_line,
)


@pytest.mark.parametrize(
    "old", ["abc " * 150_000, "x" * 600_000, " ".join(map(str, range(900))) * 200, "你好。" * 200_000]
)
def test_unchanged_text_before_change_in_repetitive_line_is_counted(old: str) -> None:
    middle = len(old) // 2
    for new in (f"{old[:middle]}!{old[middle:]}", f"{old[:middle]}!{old[middle + 1 :]}"):
        diff = build_short_diff(old, new)
        assert diff is not None
        assert len(diff) < 600
        head, gone, come = diff.split("\n")
        assert head == "@@ -1 +1 @@ […] stands for the rest of that line, […n characters] for so many of it"
        assert (
            gone == f"-[…{middle - 100:,} characters]{old[middle - 100 : len(gone) + middle]}"[: len(gone) - 3] + "[…]"
        )
        assert come.startswith(f"+[…{middle - 100:,} characters]{old[middle - 100 : middle]}!")
        assert apply_diff(old, diff) == new


@pytest.mark.parametrize(
    "old",
    [
        " ".join(f"word{number}" for number in range(60_000)),
        "abc " * 150_000,
        "".join(f"{n:x}Zz" for n in range(90_000)),
    ],
)
def test_two_changes_far_from_each_other_in_one_line_are_shown_by_themselves(old: str) -> None:
    one, other = len(old) // 3, 2 * len(old) // 3
    for first, second in (("!", "?"), ("", "?!"), ("inserted words ", "")):
        new = f"{old[:one]}{first}{old[one + 1 : other]}{second}{old[other + 2 :]}"
        diff = build_short_diff(old, new)
        assert diff is not None
        assert len(diff) < 1_500
        assert apply_diff(old, diff) == new


def test_diff_time_grows_linearly_with_line_length() -> None:
    def steps(size: int) -> float:
        old = " ".join(f"word{number}" for number in range(size))
        new = old.replace("word77 ", "verb77 ").replace(f"word{size - 9} ", "")
        started = process_time()
        assert build_short_diff(old, new) is not None
        return process_time() - started

    steps(1_000)
    assert steps(100_000) < 60 * max(steps(10_000), 0.001)


def test_changes_that_are_near_each_other_are_shown_together() -> None:
    old = " ".join(f"word{number}" for number in range(5_000))
    new = old.replace("word2000 ", "verb2000 ").replace("word2010 ", "verb2010 ").replace("word4000 ", "verb4000 ")
    gone, come = diff_excerpt(old, new)
    assert gone.count("[…]") == come.count("[…]") == 3
    assert "verb2000 word2001" in come
    assert describe_cut_markers([gone, come]) == " […] stands for the rest of that line"


def test_rewritten_text_is_shown_old_and_new() -> None:
    old, new = "a " * 2_000, "b " * 2_000
    assert diff_excerpt(old, new) == (old.rstrip() + " ", new)
    assert describe_cut_markers([old, new]) == ""
    assert shorten_line(old) == old[:100] + "[…]"


@steady
@given(st.text("ab", max_size=12), st.text("ab", max_size=12))
def test_common_characters_end_at_first_difference(old: str, new: str) -> None:
    most = min(len(old), len(new))
    for one, other, backwards in ((old, new, False), (old[::-1], new[::-1], True)):
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
        assert count_common_chars(old, new, most, backwards=backwards) == len(list(alike))
    assert count_common_chars(old, old, len(old) // 2) == len(old) // 2
