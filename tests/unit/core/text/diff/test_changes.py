"""Changes: a diff is sent where it is much smaller than the new text, else the new text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.text.steps import count_steps
from tests.unit.patching import apply_diff

from lamella.core.text.diff import build_short_diff, diff_lines

LINES = [f"line {number}" for number in range(200)]


def test_small_change_gives_diff_with_old_and_new() -> None:
    new = LINES.copy()
    new[100] = "changed"
    diff = build_short_diff("\n".join(LINES), "\n".join(new))
    assert diff is not None
    assert "-line 100\n+changed" in diff
    assert len(diff) * 3 <= len("\n".join(new))


def test_change_has_two_lines_of_context() -> None:
    diff = build_short_diff("\n".join(LINES), "\n".join([*LINES[:100], "changed", *LINES[101:]]))
    assert diff == "@@ -99,5 +99,5 @@\n line 98\n line 99\n-line 100\n+changed\n line 101\n line 102"


def test_lines_that_are_far_from_all_changes_are_not_compared() -> None:
    def count(around: int) -> int:
        old = "\n".join(["same"] * around + ["old"] + ["same"] * around)
        return count_steps(diff_lines, lambda: build_short_diff(old, old.replace("old", "new")))

    assert 0 < count(20) == count(2_000)


def test_rewritten_text_is_sent_whole() -> None:
    assert build_short_diff("\n".join(LINES), "\n".join(line[::-1] for line in LINES)) is None


def test_diff_of_half_the_length_is_not_used() -> None:
    new = [f"{line} changed" if number % 25 == 0 else line for number, line in enumerate(LINES)]
    text = "\n".join(new)
    spare = "\n" + "unchanged words " * 10
    diff = build_short_diff("\n".join(LINES) + spare * 50, text + spare * 50)
    assert diff is not None
    assert len(text) / 3 < len(diff) < len(text)
    assert build_short_diff("\n".join(LINES), text) is None


def test_diff_is_used_up_to_a_third_of_text() -> None:
    diff = build_short_diff("\n".join(LINES), "\n".join(["changed", *LINES[1:]]))
    assert diff is not None
    pad = "x" * (3 * len(diff) - len("changed\nline 1\nline 2\n"))
    old, new = (f"{first}\nline 1\nline 2\n{pad}" for first in ("line 0", "changed"))
    assert len(new) == 3 * len(diff)
    assert build_short_diff(old, new) == diff
    assert build_short_diff(old[:-1], new[:-1]) is None


def test_short_text_is_sent_whole() -> None:
    assert build_short_diff("one\ntwo", "one\nthree") is None


@pytest.mark.parametrize("size", [5_000, 50_000])
def test_one_character_is_a_small_change_of_a_text_of_any_size(size: int) -> None:
    lines = [f"line {number} of many, with words enough to be one" for number in range(size)]
    old = "\n".join(lines)
    for at in (0, len(old) // 2, len(old) - 1):
        for new in (f"{old[:at]}~{old[at + 1 :]}", old[:at] + old[at + 1 :], f"{old[:at]}\n{old[at:]}"):
            diff = build_short_diff(old, new)
            assert diff is not None
            assert len(diff) < 500
            assert apply_diff(old, diff) == new


@pytest.mark.parametrize("around", ["", "one line\n" * 3, "long line " * 500 + "\n"])
def test_one_character_is_a_small_change_of_a_line_of_any_length(around: str) -> None:
    text = " ".join(f"word{number}" for number in range(50_000))
    old = f"{around}{text}\n{around}"
    for at in (len(around), len(around) + 200_000, len(around) + len(text) - 1):
        for new in (f"{old[:at]}~{old[at + 1 :]}", old[:at] + old[at + 1 :], f"{old[:at]}\n{old[at:]}"):
            diff = build_short_diff(old, new)
            assert diff is not None
            assert len(diff) < 1_500
            assert "[…] stands for the rest of that line" in diff
            assert apply_diff(old, diff) == new


def test_change_in_repetitive_line_is_located() -> None:
    old = "abc " * 300 + "x" + " abc" * 40_000
    new = "abc " * 300 + "y" + " abc" * 40_000
    diff = build_short_diff(f"{old}\n" * 2, f"{old}\n{new}\n")
    assert diff is not None
    assert diff.split("\n")[1:] == [
        f" {old[:100]}[…]",
        f"-[…]{'abc ' * 25}x{' abc' * 25}[…]",
        f"+[…]{'abc ' * 25}y{' abc' * 25}[…]",
        " ",
    ]


def test_removed_long_line_is_named_by_its_beginning() -> None:
    long = "gone " * 1_000
    diff = build_short_diff("\n".join([*LINES[:50], long, *LINES[50:]]), "\n".join(LINES))
    assert diff is not None
    assert f"-{long[:100]}[…]\n" in diff


@settings(max_examples=300)
@given(st.lists(st.sampled_from("aaabcd\n\n") | st.text(max_size=3), max_size=60), st.data())
def test_any_diff_applied_to_the_old_text_gives_the_new_text(words: list[str], data: st.DataObject) -> None:
    # Beside it stands enough for any change to be worth a diff.
    rest = "".join(f"\nrest {number}" for number in range(400))
    changed = list(words)
    for _ in range(data.draw(st.integers(0, 6))):
        at = data.draw(st.integers(0, len(changed)))
        changed[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.lists(st.sampled_from(["a", "e", "\n"]), max_size=3)
        )
    old, new = "".join(words) + rest, "".join(changed) + rest
    diff = build_short_diff(old, new)
    if old == new:
        assert diff is None
    elif diff is not None:
        assert apply_diff(old, diff) == new


def test_diff_applied_to_the_old_text_gives_the_new_text() -> None:
    new = [*LINES[:10], "inserted", *LINES[11:150], *LINES[152:]]
    diff = build_short_diff("\n".join(LINES), "\n".join(new))
    assert diff is not None
    assert apply_diff("\n".join(LINES), diff) == "\n".join(new)
