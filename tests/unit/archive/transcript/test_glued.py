"""Documents glued into messages: frames that are surely one, and everything else as it was typed."""

import pytest

from lamella.archive.transcript import split_message
from lamella.attach import Code, Note, Url

BODY = "The sluice opens at noon. " * 10


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        (f'<document path="spec.md">\n{BODY}\n</document>', "spec.md"),
        (f'<file name="spec.md">\n{BODY}\n</file>', "spec.md"),
        (f"<document>\n<source>b.md</source>\n<document_content>\n{BODY}\n</document_content>\n</document>", "b.md"),
        (f"<note_context>\n<path>a/spec.md</path>\n<content>\n{BODY}\n</content>\n</note_context>", "a/spec.md"),
        (f"<documents>\n<document path=\"spec.md\">\n{BODY}\n</document>\n</documents>", "spec.md"),
    ],
)  # fmt: skip
def test_a_document_in_a_frame_is_attached_and_the_rest_was_typed(frame: str, name: str) -> None:
    typed, (found,) = split_message(f"Before.\n\n{frame}\n\nWhen does it open?")
    assert typed == "Before.\n\nWhen does it open?"
    assert isinstance(found, Note)
    assert (found.path, found.text) == (name, BODY.strip("\n"))


def test_a_page_and_a_source_file_are_known_by_their_names() -> None:
    text = f'<document source="https://example.org/x">\n{BODY}\n</document>\n```python src/app.py\n{BODY}\n```\nWhy?'
    typed, (page, code) = split_message(text)
    assert typed == "Why?"
    assert isinstance(page, Url)
    assert page.url == "https://example.org/x"
    assert isinstance(code, Code)
    assert (code.path, code.text) == ("src/app.py", BODY)


@pytest.mark.parametrize(
    "text",
    [
        f"<document>\n{BODY}\n</document>\nWhy?",
        '<document path="a.md">\nshort\n</document>\nWhy?',
        f'<document path="a.md">\n{BODY}',
        f'See <document path="a.md">\n{BODY}\n</document> here?',
        f'<document path="a.md">\n{BODY}\n</document> as I said',
        f"<system_reminder>\n{BODY}\n</system_reminder>\nWhy?",
        f"```python\n{BODY}\n```\nWhy?",
        "Why?",
        "",
    ],
)
def test_what_is_surely_no_document_stays_as_it_was_typed(text: str) -> None:
    assert split_message(text) == (text, [])


def test_a_message_that_is_nothing_but_a_document_is_what_was_typed() -> None:
    text = f'<document path="a.md">\n{BODY}\n</document>'
    assert split_message(text) == (text, [])


def test_many_frames_that_never_end_take_no_longer_than_their_length() -> None:
    text = '<document path="a.md">\n' * 50_000
    assert split_message(text) == (text, [])
