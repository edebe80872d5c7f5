"""Diffs: they show every change, and any diff program can apply them."""

import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lamella.vault_writer import render_diff

LINES = st.lists(st.sampled_from(["one", "two", "three", "", "  four", "-", "+x"]), max_size=12)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


def test_new_note_diff_is_additions_and_change_has_context() -> None:
    assert render_diff("a.md", None, "# A\nnew\n") == "--- /dev/null\n+++ a.md\n@@ -0,0 +1,2 @@\n+# A\n+new\n"
    before = "".join(f"{number}\n" for number in range(1, 21))
    assert render_diff("a.md", before, before.replace("10\n", "ten\n")) == (
        "--- a.md\n+++ a.md\n@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n"
    )


def test_missing_final_newline_is_marked() -> None:
    assert render_diff("a.md", "one\n", "one").endswith("-one\n+one\n\\ No newline at end of file\n")


def test_long_line_is_shown_whole() -> None:
    long = "x" * 5_000
    assert f"+{long}\n" in render_diff("a.md", "short\n", f"{long}\n")


@given(TEXTS, TEXTS)
def test_diff_applies_to_original(before: str, after: str) -> None:
    assert apply(render_diff("a.md", before, after), before) == after


def apply(diff: str, before: str) -> str:
    """The new text by the lines of a diff alone; what no hunk has is as it was."""
    old, new, at, added = before.splitlines(keepends=True), list[str](), 0, False
    for line in diff.split("\n")[2:-1]:
        if line.startswith("@@"):
            start, _, length = line.split()[1].lstrip("-").partition(",")
            begin = int(start) if length == "0" else int(start) - 1
            new += old[at:begin]
            at = begin
        elif line.startswith("\\"):
            new[-1:] = [new[-1].removesuffix("\n")] if added else new[-1:]
        else:
            added = line[0] in "+ "
            at += line[0] in "- "
            new += [f"{line[1:]}\n"] if added else []
    return "".join([*new, *old[at:]])


def test_diff_is_accepted_by_git(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one\ntwo\nthree\n", encoding="utf-8")
    diff = render_diff("a.md", "one\ntwo\nthree\n", "one\n2\nthree\nfour")
    done = subprocess.run(
        ["git", "apply", "-p0", "-"], input=diff.encode(), cwd=tmp_path, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "a.md").read_text(encoding="utf-8") == "one\n2\nthree\nfour"
