"""Which lines stay, for any two texts, in steps that grow with their length."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.text.steps import count_steps

from lamella.core.text.diff import diff_lines

Pair = tuple[list[str], list[str]]


@settings(max_examples=400)
@given(st.lists(st.sampled_from("aabcdef"), max_size=40), st.lists(st.sampled_from("aabcdef"), max_size=40))
def test_diff_aligns_equal_lines_between_changes(old: list[str], new: list[str]) -> None:
    at, to = 0, 0
    for i, i_end, j, j_end in diff_lines(old, new):
        assert old[at:i] == new[to:j]
        assert i < i_end or j < j_end
        at, to = i_end, j_end
    assert old[at:] == new[to:]


def test_unique_lines_anchor_alignment() -> None:
    old = ["{", "one", "}", "", "{", "two", "}"]
    new = ["{", "one", "}", "", "{", "new", "}", "", "{", "two", "}"]
    assert list(diff_lines(old, new)) == [(5, 5, 5, 9)]


def test_line_that_both_have_once_is_found_among_any_number_that_differ() -> None:
    old, new = ([f"{word} {number}" for number in range(1_000)] for word in ("old", "new"))
    changes = diff_lines([*old, "both", *old], [*new, "both", *new])
    assert list(changes) == [(0, 1_000, 0, 1_000), (1_001, 2_001, 1_001, 2_001)]


def test_few_changes_among_lines_that_are_all_alike_are_found() -> None:
    old = ["x"] * 3_000
    new = ["first", *old[:1_500], "middle", *old[1_500:2_900], "last"]
    changes = list(diff_lines(old, new))
    assert sum(j_end - j for _, _, j, j_end in changes) < 5
    assert sum(i_end - i for i, i_end, _, _ in changes) == 3_000 - 2_900


def count_steps_of(pair: Pair) -> int:
    return count_steps(diff_lines, lambda: list(diff_lines(*pair)))


def scatter(lines: list[str], share: int) -> Pair:
    return lines, [f"{line}!" if number % share == 0 else line for number, line in enumerate(lines)]


def one_character(size: int) -> Pair:
    return scatter([f"line {number}" for number in range(size)], size)


def every_tenth_line(size: int) -> Pair:
    return scatter([f"line {number}" for number in range(size)], 10)


def all_alike(size: int) -> Pair:
    return scatter(["x"] * size, 7)


def moved(size: int) -> Pair:
    lines = [f"line {number}" for number in range(size)]
    return lines, [*lines[size // 2 :], *lines[: size // 2]]


def turned_round(size: int) -> Pair:
    lines = [f"line {number}" for number in range(size)]
    return lines, lines[::-1]


def of_few_words(size: int) -> Pair:
    random = Random(7)
    return [str(random.randrange(9)) for _ in range(size)], [str(random.randrange(9)) for _ in range(size)]


def in_pairs(size: int) -> Pair:
    """No line is unique in both, and all of them move by one."""
    old = [str(number // 2) for number in range(size)]
    return old, [str(number // 2) for number in range(1, size + 1)]


def nested_behind(size: int) -> Pair:
    """1 0 2 1 3 2 and so on: 0 is unique, 1 only in what is behind it, 2 only in what is behind that."""
    most = size // 4
    numbers = [str(number) for at in range(most) for number in (at + 1, at)] + [str(most)]
    old, new = ([word, *(line for number in numbers for line in (number, word))] for word in ("old", "new"))
    return old, new


def nested_before(size: int) -> Pair:
    old, new = nested_behind(size)
    return old[::-1], new[::-1]


@pytest.mark.parametrize(
    "make",
    [
        one_character,
        every_tenth_line,
        all_alike,
        moved,
        turned_round,
        of_few_words,
        in_pairs,
        nested_behind,
        nested_before,
    ],
)
def test_sixteen_times_the_lines_are_about_sixteen_times_the_steps(make: Callable[[int], Pair]) -> None:
    small, large = (count_steps_of(make(size)) for size in (500, 8_000))
    assert large <= 16 * 2 * small
    # A pass over a line is a few steps; the budget for what has no unique lines bounds the rest.
    assert large <= 150 * 2 * 8_000
