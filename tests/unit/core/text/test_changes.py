"""Changes: a diff is sent where it is much smaller than the new text, else the new text."""

from itertools import pairwise

from lamella.core.text.changes import build_diff

LINES = [f"line {number}" for number in range(200)]


def test_a_small_change_of_a_long_text_is_a_diff_that_shows_old_and_new() -> None:
    new = LINES.copy()
    new[100] = "changed"
    diff = build_diff("\n".join(LINES), "\n".join(new))
    assert diff is not None
    assert "-line 100\n+changed" in diff
    assert len(diff) * 3 <= len("\n".join(new))


def test_a_rewritten_text_is_sent_whole() -> None:
    assert build_diff("\n".join(LINES), "\n".join(line[::-1] for line in LINES)) is None


def test_a_diff_of_half_the_length_is_not_much_smaller() -> None:
    new = [f"{line} changed" if number % 25 == 0 else line for number, line in enumerate(LINES)]
    text = "\n".join(new)
    spare = "\n" + "unchanged words " * 10
    diff = build_diff("\n".join(LINES) + spare * 50, text + spare * 50)
    assert diff is not None
    assert len(text) / 3 < len(diff) < len(text)
    assert build_diff("\n".join(LINES), text) is None


def test_a_diff_of_exactly_a_third_is_much_smaller_and_one_character_more_is_not() -> None:
    diff = build_diff("\n".join(LINES), "\n".join(["changed", *LINES[1:]]))
    assert diff is not None
    pad = "x" * (3 * len(diff) - len("changed\nline 1\nline 2\n"))
    old, new = (f"{first}\nline 1\nline 2\n{pad}" for first in ("line 0", "changed"))
    assert len(new) == 3 * len(diff)
    assert build_diff(old, new) == diff
    assert build_diff(old[:-1], new[:-1]) is None


def test_a_short_text_is_sent_whole() -> None:
    assert build_diff("one\ntwo", "one\nthree") is None


def test_a_text_too_long_to_compare_is_sent_whole() -> None:
    many = [f"line {number}" for number in range(5_000)]
    assert build_diff("\n".join(many), "\n".join([*many, "more"])) is None
    assert build_diff("\n".join(many[:3_999]), "\n".join(many[:4_000])) is not None
    assert build_diff("\n".join(many[:4_000]), "\n".join(many[:4_001])) is None
    assert build_diff("x" * 500_000, "x" * 500_000 + "\ny") is None


def test_a_diff_applied_to_the_old_text_gives_the_new_text() -> None:
    new = [*LINES[:10], "inserted", *LINES[11:150], *LINES[152:]]
    diff = build_diff("\n".join(LINES), "\n".join(new))
    assert diff is not None
    assert patch(LINES, diff.split("\n")) == new


def patch(old: list[str], diff: list[str]) -> list[str]:
    """Apply a unified diff."""
    starts = [index for index, line in enumerate(diff) if line.startswith("@@ ")] + [len(diff)]
    new: list[str] = []
    position = 0
    for start, end in pairwise(starts):
        first = int(diff[start].split(" ")[1].lstrip("-").split(",")[0]) - 1
        new += old[position:first]
        position = first
        for line in diff[start + 1 : end]:
            if line[0] != "+":
                assert old[position] == line[1:]
                position += 1
            if line[0] != "-":
                new.append(line[1:])
    return new + old[position:]
