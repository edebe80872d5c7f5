"""The outline: every heading, the beginning of the first twenty sections, and how many bodies are left out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.hypothesis_profile import steady

from lamella.core.text.outline import MAX_SHOWN_SECTIONS, SECTION_CHARS, build_outline, split_sections


def sections(number: int, body: str = "body") -> str:
    return "\n\n".join(f"# Section {index}\n\n{body} {index}." for index in range(number))


def test_all_headings_are_kept() -> None:
    outline = build_outline(sections(30))
    assert [line for line in outline.split("\n") if line.startswith("#")] == [f"# Section {n}" for n in range(30)]


def test_bodies_are_shown_for_the_first_twenty_sections_and_the_rest_is_counted() -> None:
    outline = build_outline(sections(30))
    assert [n for n in range(30) if f"body {n}." in outline] == list(range(MAX_SHOWN_SECTIONS))
    assert outline.endswith("[The text of 10 more sections is left out.]")


def test_one_omitted_section_is_singular() -> None:
    assert build_outline(sections(21)).endswith("[The text of 1 more section is left out.]")


def test_empty_section_is_not_counted_as_omitted() -> None:
    assert "left out" not in build_outline(sections(20) + "\n\n# Empty\n\n# Empty too\n")


def test_section_of_exactly_as_many_characters_as_are_shown_is_shown_whole() -> None:
    assert build_outline("# One\n\n" + "x" * SECTION_CHARS).endswith("\n" + "x" * SECTION_CHARS)
    assert build_outline("# One\n\n" + "x" * (SECTION_CHARS + 1)).endswith("x …")


def test_long_section_is_cut_at_space_with_ellipsis() -> None:
    body = "word " * 300
    outline = build_outline(f"# One\n\n{body}")
    shown = outline.split("\n", 1)[1]
    assert shown.endswith("word …")
    assert SECTION_CHARS - 5 <= len(shown.removesuffix(" …")) <= SECTION_CHARS


def test_section_without_spaces_is_cut_all_the_same() -> None:
    assert build_outline("# One\n" + "x" * 900) == "# One\n" + "x" * SECTION_CHARS + " …"


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
def test_headings_inside_code_fences_are_not_headings(fence: str) -> None:
    text = f"# Real\n\n{fence}\n# not a heading\n{fence}\n\n# Also real\n"
    assert [section.heading for section in split_sections(text)] == ["# Real", "# Also real"]


@pytest.mark.parametrize("line", ["#hashtag", "####### seven", "    # code", "text # not"])
def test_lines_that_only_look_like_headings_are_body(line: str) -> None:
    assert [section.heading for section in split_sections(f"# One\n{line}")] == ["# One"]


@pytest.mark.parametrize("line", ["# One", "###### Six", "   ## Indented", "#", "#\tTab"])
def test_headings_of_every_level_are_headings(line: str) -> None:
    assert [section.heading for section in split_sections(f"intro\n{line}\nbody")] == [None, line]


def test_text_before_first_heading_is_section() -> None:
    assert build_outline("intro\n\n# One\nbody") == "intro\n# One\nbody"


def test_outline_of_text_without_headings_is_its_beginning() -> None:
    assert build_outline("word " * 400).startswith("word word")
    assert len(build_outline("word " * 400)) <= SECTION_CHARS + 2


@steady
@given(st.lists(st.sampled_from(["# H", "text", "```", "", "## K", "x" * 700]), max_size=60))
def test_outline_keeps_headings_in_order(lines: list[str]) -> None:
    text = "\n".join(lines)
    headings = [section.heading for section in split_sections(text) if section.heading is not None]
    shown = build_outline(text).split("\n")
    position = 0
    for heading in headings:
        position = shown.index(heading, position) + 1
