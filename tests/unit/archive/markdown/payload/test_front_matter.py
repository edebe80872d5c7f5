"""Front matter: the identity of a file, with any title and any added lines."""

import pytest
import yaml

from lamella.archive.markdown.payload import check_format_version, render_front_matter, split_front_matter
from lamella.errors import BadInputError


def front(title: str = "A title", conversation: str = "018f") -> str:
    return render_front_matter(conversation_key=conversation, title=title, created="2026-11-15T10:00:00Z")


def test_plain_values_are_unquoted() -> None:
    assert front("API review") == (
        "---\nlamella: 1\nconversation: 018f\ntitle: API review\ncreated: 2026-11-15T10:00:00Z\n---\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: b",
        "- a",
        "# no comment",
        "'single' \"double\" \\ back",
        "line\nbreak\r\nand\ttab",
        "---",
        "null",
        "True",
        "0180",
        "1e5",
        "0x1f",
        "2026-11-15",
        "[list]",
        "{map: 1}",
        "&anchor *alias !tag",
        "😀 漢字 \u202e \u2028\u2029\x85\ufeff",
        "nul\x00 bell\x07 del\x7f \uffff",
        " spaces ",
        "trailing ",
        "emoji 👩‍👩‍👧",
    ],
)
def test_any_title_and_id_round_trip_as_text(text: str) -> None:
    read, body = split_front_matter(front(text, text) + "\nbody")
    assert (read.fields["title"], read.fields["conversation"]) == (text, text)
    assert body == "\nbody"
    block = front(text).removeprefix("---\n").removesuffix("---\n")
    assert yaml.safe_load(block)["title"] == text


def test_file_without_front_matter_is_all_body() -> None:
    for text in ("", "no front\n---\n", "---\nnever closed\n", " ---\na: 1\n---\n"):
        read, body = split_front_matter(text)
        assert not read.fields
        assert not read.is_lamella_archive
        assert body == text


def test_front_matter_may_be_empty_or_end_in_dots() -> None:
    assert split_front_matter("---\n---\nbody")[1] == "body"
    assert split_front_matter("---\nlamella: 1\n...\nbody")[0].is_lamella_archive


def test_added_lines_are_kept_in_order() -> None:
    added = "# mine\ntags:\n  - work\n  - 'two: words'"
    text = f"---\n{added}\nlamella: 1\nconversation: x\naliases: [a, b]\n\ntitle: >\n  long\n  text\n---\n"
    read, _ = split_front_matter(text)
    assert read.other_lines == ("# mine", "tags:", "  - work", "  - 'two: words'", "aliases: [a, b]")
    text = render_front_matter(
        conversation_key="x", title="t", created="2026-11-15T10:00:00Z", other_lines=read.other_lines
    )
    assert yaml.safe_load(text.removeprefix("---\n").removesuffix("---\n"))["tags"] == ["work", "two: words"]
    assert split_front_matter(text)[0].other_lines == read.other_lines


def test_archive_with_broken_front_matter_is_refused_with_a_hint() -> None:
    with pytest.raises(BadInputError, match="front matter is not YAML") as caught:
        split_front_matter('---\nlamella: 1\ntitle: "half\n---\n')
    assert "quotes" in caught.value.hint


def test_broken_front_matter_of_other_programs_is_read_line_by_line() -> None:
    read, _ = split_front_matter('---\nepoch: 123\ntopic: "say "hello" twice"\n  - odd: [\n---\n')
    assert read.fields["epoch"] == "123"
    assert read.fields["topic"] == 'say "hello" twice'


def test_deeply_nested_front_matter_does_not_crash() -> None:
    read, _ = split_front_matter(f"---\nepoch: 1\nx: {'[' * 100_000}\n---\n")
    assert read.fields["epoch"] == "1"


def test_another_format_is_refused() -> None:
    read, _ = split_front_matter("---\nlamella: 2\n---\n")
    with pytest.raises(BadInputError, match="format '2'; this version reads format 1"):
        check_format_version(read)
