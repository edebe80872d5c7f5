"""Edits of files in an answer: search-and-replace blocks and unified diffs, and how they are applied.

``parse_code_edits`` reads both forms. ``apply_code_edits`` applies the edits of one file to its text. An edit that does
not apply exactly is refused with the reason. Lines that no edit touches keep their line ends.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lamella.core.text.content import opening_fence
from lamella.core.text.diff import diff_lines
from lamella.errors import WriteDeniedError

_SEARCH_LINE = re.compile(r"<{5,9} ?SEARCH\s*")
_DIVIDER_LINE = re.compile(r"={5,9}\s*")
_REPLACE_LINE = re.compile(r">{5,9} ?REPLACE\s*")
_HUNK_HEAD = re.compile(r"@@(?: -(?P<first>\d{1,9})(?:,(?P<old>\d{1,9}))? \+\d{1,9}(?:,(?P<new>\d{1,9}))? @@| )?.*")
_CODE_SPAN = re.compile(r"`([^`]+)`")
_PATH_MARKUP = re.compile(r"^[\s#>*`]+|[\s:*`]+$")
_NO_NEWLINE_MARK = "\\"
_NO_FILE = "/dev/null"
_BYTE_ORDER_MARK = "\ufeff"
_REFUSAL_HINT = "Nothing was written. Ask again, or make the change by hand."


class CodeEdit(NamedTuple):
    """One edit: lines of a file, and the lines that replace them.

    ``line`` is the number of the first line as a diff gives it; None for a search-and-replace block. ``is_diff_path``
    means that the path may begin with the ``a/`` or ``b/`` of a diff. ``ends_without_newline`` says, for the old and
    the new lines, whether they end the file without a newline; None if the edit does not say.
    """

    path: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    line: int | None = None
    creates_file: bool = False
    is_diff_path: bool = False
    ends_without_newline: tuple[bool, bool] | None = None


def parse_code_edits(text: str) -> tuple[CodeEdit, ...]:
    """Return the edits in an answer, in order.

    Raises ``WriteDeniedError`` for an edit that is incomplete, or that deletes or renames a file.
    """
    if not any(mark in text for mark in ("SEARCH", "+++ ")):
        return ()
    return tuple(_iter_edits(text.replace("\r\n", "\n").split("\n")))


def _iter_edits(lines: Sequence[str]) -> Iterator[CodeEdit]:
    at, path = 0, ""
    while at < len(lines):
        if _SEARCH_LINE.fullmatch(lines[at]):
            path = _find_path_above(lines, at) or path
            edit, at = _parse_search_block(lines, at, path)
            yield edit
        elif _is_diff_head(lines, at):
            edits, at = _parse_file_diff(lines, at)
            yield from edits
        else:
            at += 1


# Search-and-replace blocks.


def _find_path_above(lines: Sequence[str], at: int) -> str:
    """Return the path on the line above a block, or above the fence around it; empty if the line ends another block."""
    above = [line for line in lines[max(0, at - 4) : at] if line.strip()][::-1]
    if above and (fence := opening_fence(above[0])) is not None:
        # The path may also be in the fence's own line, after the language.
        words = above[0].strip().removeprefix(fence).split()
        named = next((word for word in words if "/" in word or "." in word), "")
        if named:
            return named
        above = above[1:]
    if not above or _REPLACE_LINE.fullmatch(above[0]) or opening_fence(above[0]) is not None:
        return ""
    code = _CODE_SPAN.findall(above[0])
    return code[0].strip() if len(code) == 1 else _PATH_MARKUP.sub("", above[0])


def _parse_search_block(lines: Sequence[str], at: int, path: str) -> tuple[CodeEdit, int]:
    """Return the edit of the block that begins on a line, and the number of the line after it."""
    if not path:
        raise _edit_refused_error("A block of the answer names no file.")
    end = next((index for index in range(at + 1, len(lines)) if _REPLACE_LINE.fullmatch(lines[index])), None)
    if end is None or any(_SEARCH_LINE.fullmatch(line) for line in lines[at + 1 : end]):
        raise _edit_refused_error(f"A block for {path} has no end.")
    dividers = [index for index in range(at + 1, end) if _DIVIDER_LINE.fullmatch(lines[index])]
    if len(dividers) != 1:
        found = "no line" if not dividers else f"{len(dividers):,} lines"
        raise _edit_refused_error(
            f"A block for {path} has {found} of equals signs between search and replacement, not 1."
        )
    old, new = tuple(lines[at + 1 : dividers[0]]), tuple(lines[dividers[0] + 1 : end])
    return CodeEdit(path=path, old=old, new=new, creates_file=not old), end + 1


# Unified diffs.


def _is_diff_head(lines: Sequence[str], at: int) -> bool:
    """Return whether a file's part of a diff begins here.

    Three lines decide, because a removed line may begin with two dashes.
    """
    return (
        at + 2 < len(lines)
        and lines[at].startswith("--- ")
        and lines[at + 1].startswith("+++ ")
        and lines[at + 2].startswith("@@")
    )


def _parse_file_diff(lines: Sequence[str], at: int) -> tuple[list[CodeEdit], int]:
    old_path, new_path = (_parse_diff_path(lines[at + index]) for index in (0, 1))
    if new_path == _NO_FILE:
        raise _edit_refused_error(f"The answer deletes {old_path}.", hint="Delete it yourself if you agree.")
    if old_path != _NO_FILE and _strip_git_prefix(old_path) != _strip_git_prefix(new_path):
        raise _edit_refused_error(
            f"The answer renames {old_path} to {new_path}.", hint="Rename it yourself, then ask again."
        )
    edits: list[CodeEdit] = []
    at += 2
    while at < len(lines) and lines[at].startswith("@@"):
        edit, at = _parse_hunk(lines, at, new_path)
        edits.append(edit._replace(creates_file=old_path == _NO_FILE))
    return edits, at


def _parse_diff_path(line: str) -> str:
    """Return the path in a head line of a diff; a tab separates it from the time."""
    return line[4:].partition("\t")[0].strip()


def _strip_git_prefix(path: str) -> str:
    """Return a path without the ``a/`` or ``b/`` that git writes in front."""
    return path[2:] if path.startswith(("a/", "b/")) else path


def _parse_hunk(lines: Sequence[str], at: int, path: str) -> tuple[CodeEdit, int]:
    """Return the edit of the hunk that begins on a line, and the number of the line after it.

    Models count lines badly, so the counts in the head do not end the hunk. They matter only if a line follows that
    belongs to no diff: it may be text after the diff, or a context line whose leading space is missing.
    """
    head = _HUNK_HEAD.fullmatch(lines[at])
    old: list[str] = []
    new: list[str] = []
    unterminated = [False, False]
    at += 1
    blank_lines = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith(("@@", "diff --git ", "```", "~~~")) or _is_diff_head(lines, at):
            break
        sign, content = line[:1], line[1:]
        if sign not in ("", " ", "+", "-", _NO_NEWLINE_MARK):
            _check_hunk_is_complete(head, (len(old) - blank_lines, len(new) - blank_lines), path, line)
            break
        at += 1
        if sign == _NO_NEWLINE_MARK:
            before = lines[at - 2][:1]
            unterminated = [unterminated[0] or before in "- ", unterminated[1] or before in "+ "]
            continue
        blank_lines = blank_lines + 1 if not sign else 0
        if sign != "+":
            old.append(content)
        if sign != "-":
            new.append(content)
    # Empty lines without a leading space, at the end, separate the diff from the text after it.
    if blank_lines:
        del old[-blank_lines:], new[-blank_lines:]
    ends = (unterminated[0], unterminated[1]) if any(unterminated) else None
    first = None if head is None or head["first"] is None else int(head["first"])
    edit = CodeEdit(path=path, old=tuple(old), new=tuple(new), line=first, is_diff_path=True, ends_without_newline=ends)
    return edit, at


def _check_hunk_is_complete(head: re.Match[str] | None, found: tuple[int, int], path: str, line: str) -> None:
    counts = None if head is None or head["first"] is None else (int(head["old"] or 1), int(head["new"] or 1))
    if counts != found:
        raise _edit_refused_error(f"The diff of {path} has a line that belongs to no diff: {line[:60]}")


# Applying.

_Line = tuple[str, str]


def apply_code_edits(before: str | None, edits: Sequence[CodeEdit], *, path: str) -> str:
    """Return the text of a file after its edits; ``before`` is None if there is no such file.

    Raises ``WriteDeniedError`` with the reason if an edit does not apply exactly.
    """
    if before is None:
        return _make_new_text(edits, path=path)
    if any(edit.creates_file for edit in edits) and before:
        raise _edit_refused_error(f"The answer creates {path}, which exists already.")
    mark = _BYTE_ORDER_MARK if before.startswith(_BYTE_ORDER_MARK) else ""
    lines = _split_lines(before.removeprefix(mark))
    newline = "\r\n" if 2 * before.count("\r\n") > before.count("\n") else "\n"
    is_terminated = not lines or bool(lines[-1][1])
    shift = 0
    for edit in edits:
        at = _find_lines(lines, edit, shift=shift, path=path)
        has_end = at + len(edit.old) == len(lines)
        if edit.ends_without_newline is not None:
            if not has_end or (edit.ends_without_newline[0] and is_terminated):
                raise _edit_refused_error(f"The diff of {path} does not match the end of the file.")
            is_terminated = not edit.ends_without_newline[1]
        _replace_lines(lines, at, edit, newline=newline)
        shift += len(edit.new) - len(edit.old)
    after = mark + _join_lines(lines, newline=newline, is_terminated=is_terminated)
    if after == before:
        raise _edit_refused_error(f"The change to {path} changes nothing.")
    return after


def _make_new_text(edits: Sequence[CodeEdit], *, path: str) -> str:
    if len(edits) != 1 or not edits[0].creates_file or edits[0].old:
        raise _edit_refused_error(f"There is no file {path} to change.")
    ends = edits[0].ends_without_newline
    return "\n".join(edits[0].new) + ("" if ends is not None and ends[1] else "\n")


def _split_lines(text: str) -> list[_Line]:
    """Split a text into lines, each with its line end; the last line may have none."""
    found: list[_Line] = []
    for line in text.split("\n"):
        found.append((line[:-1], "\r\n") if line.endswith("\r") else (line, "\n"))
    if text.endswith("\n") or not text:
        return found[:-1]
    # The last line has no line end: a carriage return there is part of it.
    return [*found[:-1], (text.rpartition("\n")[2], "")]


def _join_lines(lines: list[_Line], *, newline: str, is_terminated: bool) -> str:
    whole = [(content, end or newline) for content, end in lines]
    if whole and not is_terminated:
        whole[-1] = (whole[-1][0], "")
    return "".join(content + end for content, end in whole)


def _find_lines(lines: Sequence[_Line], edit: CodeEdit, *, shift: int, path: str) -> int:
    """Return the index of the first line that an edit replaces."""
    contents = [content for content, _ in lines]
    if not edit.old:
        if contents:
            raise _edit_refused_error(f"A change to {path} names no line of the file, so its place is unknown.")
        return 0
    expected = None if edit.line is None else edit.line - 1 + shift
    if expected is not None and expected >= 0 and tuple(contents[expected : expected + len(edit.old)]) == edit.old:
        return expected
    found = _find_starts_of_run(contents, edit.old, maximum=2)
    if len(found) == 1:
        return found[0]
    shown = next((line.strip() for line in edit.old if line.strip()), "")[:60]
    if found:
        raise _edit_refused_error(f"The lines to change occur more than once in {path}: {shown}")
    loose = _find_starts_of_run([line.strip() for line in contents], [line.strip() for line in edit.old], maximum=1)
    reason = f" Line {loose[0] + 1:,} differs in its spaces." if loose else ""
    raise _edit_refused_error(f"The lines to change are not in {path}: {shown}{reason}")


def _find_starts_of_run(lines: Sequence[str], wanted: Sequence[str], *, maximum: int) -> list[int]:
    """Return the indexes at which a run of lines begins, at most ``maximum`` of them; takes linear time."""
    text, run = "\n".join(("", *lines, "")), "\n".join(("", *wanted, ""))
    found: list[int] = []
    at = text.find(run)
    while at >= 0 and len(found) < maximum:
        found.append(text.count("\n", 0, at))
        at = text.find(run, at + 1)
    return found


def _replace_lines(lines: list[_Line], at: int, edit: CodeEdit, *, newline: str) -> None:
    """Replace only the lines that differ, so that the others keep their line ends."""
    for first, last, new_first, new_last in reversed(list(diff_lines(edit.old, edit.new))):
        lines[at + first : at + last] = [(content, newline) for content in edit.new[new_first:new_last]]


def _edit_refused_error(message: str, *, hint: str = _REFUSAL_HINT) -> WriteDeniedError:
    return WriteDeniedError(message, hint=hint)
