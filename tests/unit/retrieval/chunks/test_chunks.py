"""Chunks: a note is divided at its headings, and a chunk keeps its name as long as it stays where it is."""

import pytest

from lamella.retrieval.chunks import CHUNK_CHARS, Chunk, chunk_ids, split_into_chunks_and_tags
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


def test_each_heading_starts_chunk_with_its_ancestors() -> None:
    chunks, tags = split_into_chunks_and_tags(NOTE)
    assert [(chunk.headings, chunk.text.split("\n")[0]) for chunk in chunks] == [
        ((), "Before any heading. #plan"),
        (("Garden", "Beds"), "Sow beans. #garden/beans"),
        (("Garden", "Beds", "Deep"), "Water `#code` and ~~#old~~."),
        (("Empty",), ""),
        (("Last",), "End."),
    ]
    assert tags == ["plan", "garden/beans", "old"]


def test_chunk_headings_and_tags_match_full_parser() -> None:
    chunks, tags = split_into_chunks_and_tags(NOTE)
    parsed = parse_note(NOTE)
    assert {heading for chunk in chunks for heading in chunk.headings} == {one.text for one in parsed.headings}
    assert {normalize_tag(tag) for tag in tags} == {normalize_tag(tag) for tag in parsed.tags}


def test_note_without_anything_is_one_empty_chunk() -> None:
    assert split_into_chunks_and_tags("") == ([Chunk((), "")], [])
    assert split_into_chunks_and_tags("\n \n")[0] == [Chunk((), "")]


def test_long_section_is_split_between_paragraphs() -> None:
    paragraphs = [f"{number} " + "word " * 60 for number in range(40)]
    chunks, _ = split_into_chunks_and_tags("# One\n" + "\n\n".join(paragraphs))
    assert len(chunks) > 1
    assert all(len(chunk.text) <= CHUNK_CHARS and chunk.headings == ("One",) for chunk in chunks)
    assert " ".join(" ".join(chunk.text for chunk in chunks).split()) == " ".join(" ".join(paragraphs).split())


def test_endless_line_is_split() -> None:
    chunks, _ = split_into_chunks_and_tags("x" * 1_000_000)
    assert sum(len(chunk.text) for chunk in chunks) == 1_000_000
    assert max(len(chunk.text) for chunk in chunks) == CHUNK_CHARS


def test_headings_beyond_ten_thousand_are_text() -> None:
    chunks, _ = split_into_chunks_and_tags(
        "".join(f"{'#' * (number % 6 + 1)} h{number}\n" for number in range(100_000))
    )
    assert max(len(chunk.headings) for chunk in chunks) == 6
    assert {chunk.headings[-1] for chunk in chunks} >= {"h9995", "h9999"}
    assert len(chunks) < 11_000
    assert chunks[-1].text.endswith("h99999")


def test_long_heading_is_not_repeated_below() -> None:
    chunks, _ = split_into_chunks_and_tags(f"# {'long ' * 1_000}end\n" + "## Short\nText.\n" * 50)
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
    assert split_into_chunks_and_tags(f"{line}\ntext")[0] == [Chunk((heading,), "text")]


def test_blanks_within_a_heading_take_no_longer_than_their_number() -> None:
    chunks, _ = split_into_chunks_and_tags(f"# a{' ' * 500_000}x#")
    assert {chunk.headings for chunk in chunks} == {("a",)}
    assert chunks[-1].text == "x#"


def test_each_tag_of_a_line_is_found_once() -> None:
    words = [f"t{number}" for number in range(300)]
    assert split_into_chunks_and_tags("".join(f" #{word}" for word in words))[1] == words


def test_tag_follows_any_whitespace() -> None:
    for blank in (" ", "\t", "\u3000", "\xa0"):
        text = f"a{blank}#tag"
        assert split_into_chunks_and_tags(text)[1] == [tag for tag, _ in iter_inline_tags(text, 0)] == ["tag"]


def test_unclosed_fence_hides_later_headings() -> None:
    chunks, _ = split_into_chunks_and_tags("# One\n~~~\n# Two\n``` \n# Three")
    assert [chunk.headings for chunk in chunks] == [("One",)]


def test_chunk_id_is_path_headings_and_number() -> None:
    chunks = [Chunk(("A",), "1"), Chunk(("A",), "2"), Chunk(("A~1",), "3"), Chunk((), "4"), Chunk(("A",), "5")]
    names = chunk_ids("n.md", chunks)
    assert names == ["n.md#A", "n.md#A~1", "n.md#A~1~1", "n.md", "n.md#A~2"]


def test_chunk_keeps_id_when_others_change() -> None:
    before = chunk_ids("n.md", split_into_chunks_and_tags("# A\none\n# B\ntwo")[0])
    after = chunk_ids("n.md", split_into_chunks_and_tags("intro\n# A\none and more\n# C\n# B\ntwo")[0])
    assert set(before) <= set(after)
