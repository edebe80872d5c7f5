"""Chunks: a note is divided at its headings, and a chunk keeps its name as long as it stays where it is."""

import pytest

from lamella.retrieval.chunks import CHUNK_CHARS, Chunk, chunk_ids, split_into_chunks
from lamella.sources.markdown import iter_inline_tags, normalize_tag, parse_note

NOTE = """Before any heading. #plan

# Garden #

## Beds

Sow beans. #garden/beans

```sh
# no heading, #notag
```

### Deep

Water `#code` and ~~#old~~.

# Empty

# Last
End."""


def test_each_heading_begins_a_chunk_that_knows_those_above_it() -> None:
    chunks, tags = split_into_chunks(NOTE)
    assert [(chunk.headings, chunk.text.split("\n")[0]) for chunk in chunks] == [
        ((), "Before any heading. #plan"),
        (("Garden", "Beds"), "Sow beans. #garden/beans"),
        (("Garden", "Beds", "Deep"), "Water `#code` and ~~#old~~."),
        (("Empty",), ""),
        (("Last",), "End."),
    ]
    assert tags == ["plan", "garden/beans", "old"]


def test_headings_and_tags_are_those_that_parsing_the_whole_note_finds() -> None:
    chunks, tags = split_into_chunks(NOTE)
    parsed = parse_note(NOTE)
    assert {heading for chunk in chunks for heading in chunk.headings} == {one.text for one in parsed.headings}
    assert {normalize_tag(tag) for tag in tags} == {normalize_tag(tag) for tag in parsed.tags}


def test_a_note_without_anything_is_one_empty_chunk() -> None:
    assert split_into_chunks("") == ([Chunk((), "")], [])
    assert split_into_chunks("\n \n")[0] == [Chunk((), "")]


def test_a_long_section_is_cut_between_paragraphs_and_nothing_is_lost() -> None:
    paragraphs = [f"{number} " + "word " * 60 for number in range(40)]
    chunks, _ = split_into_chunks("# One\n" + "\n\n".join(paragraphs))
    assert len(chunks) > 1
    assert all(len(chunk.text) <= CHUNK_CHARS and chunk.headings == ("One",) for chunk in chunks)
    assert " ".join(" ".join(chunk.text for chunk in chunks).split()) == " ".join(" ".join(paragraphs).split())


def test_a_line_without_an_end_is_cut_somewhere() -> None:
    chunks, _ = split_into_chunks("x" * 1_000_000)
    assert sum(len(chunk.text) for chunk in chunks) == 1_000_000
    assert max(len(chunk.text) for chunk in chunks) == CHUNK_CHARS


def test_of_a_hundred_thousand_headings_the_first_ten_thousand_divide_and_the_others_are_text() -> None:
    chunks, _ = split_into_chunks("".join(f"{'#' * (number % 6 + 1)} h{number}\n" for number in range(100_000)))
    assert max(len(chunk.headings) for chunk in chunks) == 6
    assert {chunk.headings[-1] for chunk in chunks} >= {"h9995", "h9999"}
    assert len(chunks) < 11_000
    assert chunks[-1].text.endswith("h99999")


def test_a_heading_without_an_end_is_not_repeated_in_all_that_stands_below_it() -> None:
    chunks, _ = split_into_chunks(f"# {'long ' * 1_000}end\n" + "## Short\nText.\n" * 50)
    assert max(len(heading) for chunk in chunks for heading in chunk.headings) <= 300
    assert sum(chunk.text.count("long") for chunk in chunks) == 1_000
    assert [chunk.headings[-1] for chunk in chunks[-50:]] == ["Short"] * 50


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("# A #", "A"),
        ("# A ##  ", "A"),
        ("# A#", "A#"),
        ("# C# #", "C#"),
        ("# #", ""),
        ("## ", ""),
        ("# a # b", "a # b"),
    ],
)
def test_hash_signs_close_a_heading_behind_a_blank(line: str, heading: str) -> None:
    assert split_into_chunks(f"{line}\ntext")[0] == [Chunk((heading,), "text")]


def test_blanks_within_a_heading_take_no_longer_than_their_number() -> None:
    chunks, _ = split_into_chunks(f"# a{' ' * 500_000}x#")
    assert {chunk.headings for chunk in chunks} == {("a",)}
    assert chunks[-1].text == "x#"


def test_each_tag_of_a_line_is_found_once() -> None:
    words = [f"t{number}" for number in range(300)]
    assert split_into_chunks("".join(f" #{word}" for word in words))[1] == words


def test_a_tag_stands_behind_any_blank() -> None:
    for blank in (" ", "\t", "\u3000", "\xa0"):
        text = f"a{blank}#tag"
        assert split_into_chunks(text)[1] == [tag for tag, _ in iter_inline_tags(text, 0)] == ["tag"]


def test_a_fence_that_nobody_closes_hides_the_headings_below_it() -> None:
    chunks, _ = split_into_chunks("# One\n~~~\n# Two\n``` \n# Three")
    assert [chunk.headings for chunk in chunks] == [("One",)]


def test_the_name_of_a_chunk_is_its_path_headings_and_number() -> None:
    chunks = [Chunk(("A",), "1"), Chunk(("A",), "2"), Chunk(("A~1",), "3"), Chunk((), "4"), Chunk(("A",), "5")]
    names = chunk_ids("n.md", chunks)
    assert names == ["n.md#A", "n.md#A~1", "n.md#A~1~1", "n.md", "n.md#A~2"]


def test_a_chunk_keeps_its_name_when_others_change() -> None:
    before = chunk_ids("n.md", split_into_chunks("# A\none\n# B\ntwo")[0])
    after = chunk_ids("n.md", split_into_chunks("intro\n# A\none and more\n# C\n# B\ntwo")[0])
    assert set(before) <= set(after)
