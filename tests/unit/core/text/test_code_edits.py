"""``core.text.code_edits``: edits in answers are read in both forms, and applied exactly or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.core.text.code_edits import apply_code_edits, parse_code_edits
from lamella.errors import WriteDeniedError

FILE = "def water(bed):\n    return bed.wet\n\n\ndef weed(bed):\n    return bed.wild\n"


def block(old: str, new: str, path: str = "beds.py") -> str:
    return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"


def diff(body: str, path: str = "beds.py") -> str:
    return f"```diff\n--- a/{path}\n+++ b/{path}\n{body}```\n"


def apply(answer: str, before: str | None = FILE) -> str:
    return apply_code_edits(before, parse_code_edits(answer), path="beds.py")


@pytest.mark.parametrize(
    "answer",
    [
        block("    return bed.wet\n", "    return True\n"),
        "Change `beds.py`:\n```python\n" + block("    return bed.wet\n", "    return True\n", "").lstrip() + "```\n",
        diff("@@ -1,3 +1,3 @@\n def water(bed):\n-    return bed.wet\n+    return True\n \n"),
        # The line number is wrong, and the empty context line lost its space.
        diff("@@ -40,9 +40,9 @@\n def water(bed):\n-    return bed.wet\n+    return True\n\n"),
        diff("@@ -1,3 +1,3 @@\n def water(bed):\n-    return bed.wet\n+    return True\n").replace("```diff\n", ""),
        block("    return bed.wet\n", "    return True\n").replace("\n", "\r\n"),
    ],
)
def test_one_line_is_replaced_in_both_forms(answer: str) -> None:
    assert [edit.path.removeprefix("b/") for edit in parse_code_edits(answer)] == ["beds.py"]
    assert apply(answer) == FILE.replace("bed.wet", "True")


def test_several_blocks_of_one_file_apply_in_order() -> None:
    answer = (
        block("    return bed.wet\n", "    return 1\n")
        + "<<<<<<< SEARCH\n    return 1\n=======\n    return 2\n>>>>>>> REPLACE"
    )
    assert apply(answer) == FILE.replace("bed.wet", "2")


def test_several_hunks_count_from_lines_before_change() -> None:
    text = "x\n" * 5 + "a\n" + "x\n" * 5 + "b\n"
    hunks = "@@ -1,1 +1,3 @@\n+new\n+new\n x\n@@ -5,2 +7,2 @@\n x\n-a\n+A\n@@ -11,2 +13,2 @@\n x\n-b\n+B\n"
    assert apply(diff(hunks), text) == "new\nnew\n" + text.replace("a", "A").replace("b", "B")


def test_text_after_complete_diff_is_ignored() -> None:
    body = "--- a/beds.py\n+++ b/beds.py\n@@ -1,2 +1,2 @@\n def water(bed):\n-    return bed.wet\n+    return True\n\nDone.\n"
    assert apply(body) == FILE.replace("bed.wet", "True")


def test_removed_line_with_two_dashes_is_no_head_of_diff() -> None:
    assert apply(diff("@@ -1,2 +1,1 @@\n SELECT 1\n--- comment\n"), "SELECT 1\n-- comment\n") == "SELECT 1\n"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (block("    return bed.dry\n", "x\n"), "not in beds.py: return bed.dry"),
        (block("  return bed.wet\n", "x\n"), "Line 2 differs in its spaces"),
        (block("\n", "x\n"), "more than once"),
        (block("", "x\n"), "exists already"),
        (diff("@@ -3,0 +3,1 @@\n+x\n"), "names no line"),
        (diff("@@ -1 +1 @@\n-def gone():\n+x\n"), "not in beds.py"),
        (diff("@@ -1,3 +1,3 @@\n def water(bed):\n    return bed.wet\n+x\n"), "not in beds.py"),
        (diff("@@ -1,3 +1,3 @@\n def water(bed):\nreturn bed.wet\n+x\n"), "belongs to no diff"),
        (block("    return bed.wet\n", "    return bed.wet\n"), "changes nothing"),
        ("beds.py\n<<<<<<< SEARCH\nx\n=======\ny\n", "has no end"),
        ("beds.py\n<<<<<<< SEARCH\nx\n>>>>>>> REPLACE\n", "no line of equals signs"),
        (block("title\n=======\n", "x\n"), "2 lines of equals signs"),
        ("<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n", "names no file"),
        ("--- a/beds.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", "deletes a/beds.py"),
        ("--- a/beds.py\n+++ b/bed.py\n@@ -1 +1 @@\n-x\n+y\n", "renames a/beds.py"),
        (diff("@@ -1 +1 @@\n-def water(bed):\n\\ No newline at end of file\n+x\n"), "end of the file"),
    ],
)
def test_edit_that_does_not_apply_exactly_is_refused_with_reason(answer: str, reason: str) -> None:
    with pytest.raises(WriteDeniedError, match=reason):
        apply(answer)


def test_repeated_passage_is_found_by_line_number_of_diff() -> None:
    assert apply(diff("@@ -3,1 +3,1 @@\n-x\n+y\n"), "x\nx\nx\n") == "x\nx\ny\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\r\nb\r\nc\r\n", "a\r\nB\r\nnew\r\nc\r\n"),
        ("a\r\nb\nc\r\n", "a\r\nB\r\nnew\r\nc\r\n"),
        ("\ufeffa\nb\nc\n", "\ufeffa\nB\nnew\nc\n"),
        ("a\nb\nc", "a\nB\nnew\nc"),
        ("a\nb", "a\nB\nnew"),
        ("a\r\nb", "a\r\nB\r\nnew"),
        ("a\x0c\nb\nc\x85\n", "a\x0c\nB\nnew\nc\x85\n"),
    ],
)
def test_line_ends_byte_order_mark_and_missing_last_newline_are_kept(before: str, after: str) -> None:
    assert apply(block("b\n", "B\nnew\n"), before) == after


def test_diff_can_add_and_remove_last_newline() -> None:
    adds = diff("@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n")
    removes = diff("@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n")
    assert (apply(adds, "a\nb"), apply(removes, "a\nb\n")) == ("a\nb\n", "a\nb")


def test_new_file_gets_whole_text() -> None:
    answer = "--- /dev/null\n+++ b/beds.py\n@@ -0,0 +1,2 @@\n+a\n+b\n"
    assert (apply(answer, None), apply(block("", "a\nb\n"), None)) == ("a\nb\n", "a\nb\n")
    with pytest.raises(WriteDeniedError, match=r"no file beds\.py"):
        apply(block("x\n", "y\n"), None)


LINES = st.lists(st.sampled_from(["a", "b", "", " a", "=", "\r", "+", "-"]), max_size=8)


@given(LINES, LINES, LINES, LINES, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_lines_around_edit_keep_their_bytes(
    above: list[str],
    old: list[str],
    new: list[str],
    below: list[str],
    end: str,
    has_end: bool,  # noqa: FBT001
) -> None:
    whole = [*above, "first", *old, "last", *below]
    before = end.join(whole) + (end if has_end else "")
    answer = block(
        "".join(f"{line}\n" for line in ("first", *old, "last")),
        "".join(f"{line}\n" for line in ("first", *new, "last")),
    )
    expected = end.join([*above, "first", *new, "last", *below]) + (end if has_end else "")
    if any("\r" in line for line in (*old, *new)) or expected == before:
        return
    assert apply(answer, before) == expected


@given(st.text(alphabet="ab+-@ \n<>=SEARCH|/.`", max_size=200))
def test_any_answer_is_read_or_refused(text: str) -> None:
    try:
        parse_code_edits(text)
        parse_code_edits(f"x.py\n<<<<<<< SEARCH\n{text}")
        parse_code_edits(f"--- x\n+++ x\n@@ {text}")
    except WriteDeniedError:
        pass
