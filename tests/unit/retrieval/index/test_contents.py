"""Contents: the properties of a note are read without the rest of its front matter."""

import pytest

from lamella.retrieval.index import MAX_INDEXED_CHARS, file_stem, parse_contents
from lamella.sources.markdown import normalize_tag, parse_note

FRONTS = (
    "title: Plain words\nstatus: open",
    'title: "With: colon"\ntags: [Project/Alpha, beta]\naliases:\n  - The Plan\n  - Plan B\nowner: jo',
    "tags: one, two\nalias: A, B",
    "TAGS:\n- x\n\nTitle: Mine",
    "{title: flow, tags: [a]}",
    "broken: [\ntitle: [",
    "other: 1",
    "title:",
)


@pytest.mark.parametrize("front", FRONTS)
def test_title_tags_and_aliases_match_full_parser(front: str) -> None:
    text = f"---\n{front}\n---\nText with #inline.\n"
    found, parsed = parse_contents("folder/note.md", text, is_markdown=True), parse_note(text)
    named = {name.lower(): value for name, value in parsed.properties.items()}.get("title")
    assert found.title == (named or "note")
    assert found.aliases == tuple(parsed.aliases)
    assert set(found.tags) == {normalize_tag(tag) for tag in parsed.tags}
    assert [chunk.text for chunk in found.chunks] == ["Text with #inline."]


def test_other_properties_are_searched_too() -> None:
    found = parse_contents("a.md", "---\ntitle: T\nstatus: blocked\ntags: [x]\n---\n", is_markdown=True)
    assert found.properties.split() == ["status:", "blocked"]


def test_other_file_has_text_only() -> None:
    found = parse_contents("paper.pdf", "---\ntitle: no\n---\n#tag", is_markdown=False)
    assert (found.title, found.tags, found.aliases) == ("paper", (), ())


def test_line_endings_and_bom_do_not_matter() -> None:
    one, other = (parse_contents("a.md", text, is_markdown=True) for text in ("\ufeff# A\r\nb\r\n", "# A\nb\n"))
    assert one == other


def test_text_beyond_limit_is_not_indexed() -> None:
    found = parse_contents("a.md", "x " * MAX_INDEXED_CHARS, is_markdown=True)
    assert sum(len(chunk.text) for chunk in found.chunks) <= MAX_INDEXED_CHARS


def test_file_stem_has_no_folder_or_extension() -> None:
    assert [file_stem(path) for path in ("a/b.c.md", ".hidden", "x")] == ["b.c", ".hidden", "x"]
