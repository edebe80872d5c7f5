"""Which lines stay, for any two texts, in steps that grow with their length."""

import sys
from collections.abc import Callable
from random import Random
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamella.core.text.alignment import find_changes

Pair = tuple[list[str], list[str]]


@settings(max_examples=400)
@given(st.lists(st.sampled_from("aabcdef"), max_size=40), st.lists(st.sampled_from("aabcdef"), max_size=40))
def test_between_changes_the_lines_are_the_same_and_at_a_change_both_ends_differ(
    old: list[str], new: list[str]
) -> None:
    at, to = 0, 0
    for i, i_end, j, j_end in find_changes(old, new):
        assert old[at:i] == new[to:j]
        assert i < i_end or j < j_end
        at, to = i_end, j_end
    assert old[at:] == new[to:]


def test_lines_that_are_unique_hold_the_others_in_place() -> None:
    old = ["{", "one", "}", "", "{", "two", "}"]
    new = ["{", "one", "}", "", "{", "new", "}", "", "{", "two", "}"]
    assert list(find_changes(old, new)) == [(5, 5, 5, 9)]


def test_few_changes_among_lines_that_are_all_alike_are_found() -> None:
    old = ["x"] * 3_000
    new = ["first", *old[:1_500], "middle", *old[1_500:2_900], "last"]
    changes = list(find_changes(old, new))
    assert sum(j_end - j for _, _, j, j_end in changes) < 5
    assert sum(i_end - i for i, i_end, _, _ in changes) == 3_000 - 2_900


def count_steps(pair: Pair) -> int:
    """How many lines of the module are run."""
    steps = 0

    def trace(frame: FrameType, event: str, _: object) -> object:
        nonlocal steps
        if not frame.f_code.co_filename.endswith("alignment.py"):
            return None
        steps += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        list(find_changes(*pair))
    finally:
        sys.settrace(before)
    return steps


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


def nested(size: int) -> Pair:
    """What is unique only between what was unique, again and again."""
    old = [str(number // 2) for number in range(size)]
    return old, [str(number // 2) for number in range(1, size + 1)]


@pytest.mark.parametrize(
    "make", [one_character, every_tenth_line, all_alike, moved, turned_round, of_few_words, nested]
)
def test_sixteen_times_the_lines_are_about_sixteen_times_the_steps(make: Callable[[int], Pair]) -> None:
    small, large = (count_steps(make(size)) for size in (500, 8_000))
    assert large <= 16 * 2 * small
    # A pass over a line is a few steps; the budget for what has no unique lines bounds the rest.
    assert large <= 150 * 2 * 8_000
