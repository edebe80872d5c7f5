"""Applies updates strictly: every line that a diff keeps or removes must exist, and a cut must give its position."""

import re
from collections.abc import Iterator
from itertools import groupby

CUT = "[…]"
_TOLD = r" \[…\] stands for the rest of that line(?:, \[…n characters\] for so many of it)?"
_HUNK = re.compile(rf"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(?:{_TOLD})?\Z")
# What a cut stands for may be counted.
_MARK = re.compile(r"\[…(?:([\d,]+) characters)?\]")


def apply_diff(old: str, diff: str) -> str:
    """The text that an old one becomes by a unified diff, in which long lines may be cut."""
    source = old.split("\n")
    result: list[str] = []
    at = 0
    for hunk, lines in _find_hunks(diff):
        begin = int(hunk[1]) - (hunk[2] != "0")
        assert at <= begin <= len(source), f"the hunk {hunk[0]} is out of place"
        result += source[at:begin]
        at = begin
        assert len(result) == int(hunk[3]) - (hunk[4] != "0"), f"{hunk[0]} counts wrongly"
        gone: list[str] = []
        kept: list[str] = []
        for mark, told in groupby(lines, key=lambda line: line[:1]):
            words = [line[1:] for line in told]
            if mark == "+":
                result += _fill(gone, kept, words) if gone else words
                continue
            assert mark in (" ", "-"), f"not a line of a diff: {mark}{words[0]}"
            here = source[at : at + len(words)]
            for line, said in zip(here, words, strict=True):
                assert _is_line(line, said), f"the diff expects {said!r} and finds {line!r}"
            gone, kept = (here, words) if mark == "-" else ([], [])
            result += here if mark == " " else []
            at += len(words)
    return "\n".join(result + source[at:])


def _find_hunks(diff: str) -> Iterator[tuple[re.Match[str], list[str]]]:
    lines = diff.split("\n")
    heads = [(number, hunk) for number, line in enumerate(lines) if (hunk := _HUNK.match(line))]
    assert heads, f"not a diff: {diff[:80]!r}"
    assert heads[0][0] == 0
    ends = [number for number, _ in heads[1:]] + [len(lines)]
    for (number, hunk), end in zip(heads, ends, strict=True):
        yield hunk, lines[number + 1 : end]


def _is_line(line: str, said: str) -> bool:
    if line == said:
        return True
    pieces = _MARK.split(said)[::2]
    return len(said) < len(line) and all(piece in line for piece in pieces)


def _fill(gone: list[str], kept: list[str], come: list[str]) -> list[str]:
    """Lines that come, with what a cut stands for put back from those that go."""
    if gone == kept:
        return come
    if len(gone) == len(come) > 1:
        each = zip(gone, kept, come, strict=True)
        return [line for one, left, new in each for line in _fill([one], [left], [new])]
    if len(kept) == len(come) == 1:
        return [_fill_line(gone[0], kept[0], come[0])]
    head, tail = kept[0].startswith(CUT), kept[-1].endswith(CUT)
    first = kept[0].removeprefix(CUT) if head else kept[0]
    last = kept[-1].removesuffix(CUT) if tail else kept[-1]
    if len(kept) == 1:
        piece = first.removesuffix(CUT) if tail else first
        assert gone[0].count(piece) == 1 or not (head and tail), "a cut says not where it is"
        start = gone[0].rfind(piece) if head else 0
        before, after = gone[0][:start], gone[0][start + len(piece) :]
    else:
        before, after = gone[0].removesuffix(first), gone[-1].removeprefix(last)
    filled = list(come)
    filled[-1] = filled[-1].removesuffix(CUT) + after if tail else filled[-1]
    filled[0] = before + filled[0].removeprefix(CUT) if head else filled[0]
    return filled


def _fill_line(gone: str, kept: str, come: str) -> str:
    """The same of one line, of which several pieces may be shown."""
    pieces, changed = _MARK.split(kept), _MARK.split(come)
    assert pieces[1::2] == changed[1::2], "the old and the new line are cut in different places"
    assert gone.startswith(pieces[0]), "a line does not begin as it is said to"
    at, filled = len(pieces[0]), changed[0]
    for counted, piece, new in zip(pieces[1::2], pieces[2::2], changed[2::2], strict=True):
        ends = piece is pieces[-1]
        if counted is not None:
            start = at + int(counted.replace(",", ""))
            assert gone.startswith(piece, start), "a count leads to something else"
        else:
            start = len(gone) - len(piece) if ends else gone.index(piece)
            assert ends or gone.count(piece) == 1, "a cut says not where it is"
        assert start >= at, "pieces are out of order"
        filled += gone[at:start] + new
        at = start + len(piece)
    return filled
