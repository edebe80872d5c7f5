"""Repeated documents become references, and the references give back the same texts."""

import sys
from collections.abc import Callable
from types import FrameType

from hypothesis import given
from hypothesis import strategies as st

from lamella.conversation.pasted_documents import (
    apply_references,
    expand_references,
    find_documents,
    plan_references_to_earlier_copies,
)

BODY = "The sluice opens at noon, and closes when the heron leaves. " * 8


def frame(name: str, body: str = BODY) -> str:
    return f'<document path="{name}">\n{body}\n</document>'


def lay_out(texts: list[str], *, unchanged: int = 0) -> list[str]:
    plan = plan_references_to_earlier_copies(texts, unchanged_count=unchanged)
    return [apply_references(text, references) for text, references in zip(texts, plan, strict=True)]


def test_first_document_stays_whole_and_later_copies_become_references() -> None:
    texts = [f"{frame('a.md')}\nWhen?", f"{frame('a.md')}\nWhy?"]
    laid = lay_out(texts)
    assert laid == [texts[0], '[Document "a.md": identical to the copy above]\nWhy?']
    assert expand_references(laid) == texts


def test_changed_document_is_whole_and_versions_are_distinguished() -> None:
    first, second = frame("a.md"), frame("a.md", BODY + "Or at one.")
    laid = lay_out([first, second, first, second])
    assert laid[:2] == [first, second]
    assert laid[2:] == [
        '[Document "a.md": identical to version 1 of 2 above]',
        '[Document "a.md": identical to version 2 of 2 above]',
    ]
    assert expand_references(laid) == [first, second, first, second]


def test_documents_of_unchanged_texts_serve_later_references() -> None:
    texts = [frame("a.md"), frame("a.md"), frame("a.md")]
    assert lay_out(texts, unchanged=2) == [texts[0], texts[1], '[Document "a.md": identical to the copy above]']


def test_reference_without_document_is_not_expanded() -> None:
    assert expand_references(['[Document "a.md": identical to the copy above]']) is None
    assert expand_references([frame("a.md"), '[Document "a.md": identical to version 2 of 3 above]']) is None


def test_frames_are_found_by_tag_field_and_fence() -> None:
    fields = f"<document>\n<source>b.md</source>\n<document_content>\n{BODY}\n</document_content>\n</document>"
    fence = f"```python src/app.py\n{BODY}\n```"
    names = [one.name for one in find_documents(f"{frame('a.md')}\n\n{fields}\n{fence}\nWhy?")]
    assert names == ["a.md", "b.md", "src/app.py"]


def test_unclosed_or_unnamed_frame_is_no_document() -> None:
    for text in (f"<document>\n{BODY}\n</document>", frame("a.md")[:-3], f"x {frame('a.md')}", frame("a.md", "short")):
        assert find_documents(text) == []


PIECES = st.sampled_from(
    [
        frame("a.md"),
        frame("a.md", BODY * 2),
        frame("b.md"),
        f"```py c.py\n{BODY}\n```",
        "Why?",
        '[Document "a.md": identical to the copy above]',
        '[Document "a.md": identical to version 1 of 2 above]',
        "<document>",
        "```",
        "é😀",
    ]
)
TEXTS = st.lists(st.lists(PIECES, max_size=5).map("\n".join), max_size=6)


@given(texts=TEXTS, more=TEXTS, unchanged=st.integers(0, 3))
def test_layout_of_a_longer_history_begins_with_that_of_a_shorter_one(
    texts: list[str], more: list[str], unchanged: int
) -> None:
    assert lay_out([*texts, *more], unchanged=unchanged)[: len(texts)] == lay_out(texts, unchanged=unchanged)


@given(texts=TEXTS, unchanged=st.integers(0, 3))
def test_expanded_references_give_the_texts_unless_a_client_wrote_a_reference(texts: list[str], unchanged: int) -> None:
    laid = lay_out(texts, unchanged=unchanged)
    wrote_reference = any("identical to" in text for text in texts)
    assert wrote_reference or expand_references(laid) == texts


def count_parsed_frames(action: Callable[[], object]) -> int:
    """How many frames are looked at, which does not depend on the machine."""
    calls = 0

    def note(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_name == "_parse_frame"

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return calls


def test_checking_a_text_reads_each_of_its_documents_once() -> None:
    frames = [frame("a.md", f"{BODY}{number}") for number in range(100)]
    laid = lay_out(["\n".join(frames), "\n".join(frames)])
    assert laid[1].count("identical to version") == 100
    assert count_parsed_frames(lambda: expand_references(laid)) <= 3 * 100
