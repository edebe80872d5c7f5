"""Citations: numbered by first mention while the answer comes, and never of a source that is not there."""

from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.hypothesis_profile import steady

from lamella.core.log.turn import StoredCitation
from lamella.runners.citations import CitationEditor, format_source_wikilink

OFFERED = tuple(StoredCitation(id=f"{name}.md#passage:Plan", place="Plan") for name in "abcd")
LIST = "\n\n[^1]: [[{}.md#Plan]]"


def edit(*parts: str, offered: tuple[StoredCitation, ...] = OFFERED) -> tuple[str, list[str]]:
    editor = CitationEditor(offered)
    text = "".join(editor.feed(part) for part in parts) + editor.finish(has_tool_calls=False)
    return text.partition("\n\n[^1]: ")[0], [source.id[0] for source in editor.sources]


@pytest.mark.parametrize(
    ("said", "shown", "cited"),
    [
        ("It is so [^3], and so [^1]; so [^3].", "It is so [^1], and so [^2]; so [^1].", "ca"),
        ("Both [^2][^4].", "Both [^1][^2].", "bd"),
        ("Twice [^2][^2] and [^2] [^2].", "Twice [^1] and [^1].", "b"),
        ("Several [^2, ^4] and [^4,2] and [^ 1 ].", "Several [^1][^2] and [^2][^1] and [^3].", "bda"),
        ("None [^9], none [^0], none[^77].", "None, none, none.", ""),
        ("Of two one [^9, ^2].", "Of two one [^1].", "b"),
        ("A note [1], a power 2^3, [^], [^x] and [^12345].", "A note [1], a power 2^3, [^], [^x] and.", ""),
        ("Code `x[^3]` and `` `[^3]` `` and [^3].", "Code `x[^3]` and `` `[^3]` `` and [^1].", "c"),
        ("A tick ` before [^3].", "A tick ` before [^1].", "c"),
        ("```\na[^3]\n```\nThen [^3].", "```\na[^3]\n```\nThen [^1].", "c"),
        ("~~~ r\n[^3]: x\n```\n[^2]\n~~~~ \nThen [^2].", "~~~ r\n[^3]: x\n```\n[^2]\n~~~~ \nThen [^1].", "b"),
        ("```\nnever closed [^3]", "```\nnever closed [^3]", ""),
        ("``` not a fence ``` [^3]", "``` not a fence ``` [^1]", "c"),
        ("Begun [^", "Begun [^", ""),
        ("Begun [^3", "Begun [^3", ""),
        ("", "", ""),
    ],
)
def test_citations_are_numbered_by_first_mention(said: str, shown: str, cited: str) -> None:
    assert edit(said) == (shown, list(cited))
    assert edit(*said) == (shown, list(cited))


def test_answer_with_citations_ends_with_source_list() -> None:
    editor = CitationEditor(OFFERED)
    assert editor.feed("So [^4], so [^2].") + editor.finish(has_tool_calls=False) == (
        "So [^1], so [^2].\n\n[^1]: [[d.md#Plan]]\n[^2]: [[b.md#Plan]]"
    )


def test_answer_without_citations_has_no_list() -> None:
    editor = CitationEditor(OFFERED)
    assert editor.feed("Nothing says so [^9].") + editor.finish(has_tool_calls=False) == "Nothing says so."


def test_source_list_of_model_is_removed() -> None:
    said = "So [^2].\n\n[^2]: somewhere.md\n[^7]: nowhere.md"
    for parts in ([said], list(said)):
        editor = CitationEditor(OFFERED)
        text = "".join(map(editor.feed, parts)) + editor.finish(has_tool_calls=False)
        assert text == "So [^1].\n\n[^1]: [[b.md#Plan]]"


def test_source_list_alone_cites_its_sources() -> None:
    said = "So it is.\n\n[^9]: nowhere.md\n[^3]: somewhere.md"
    for parts in ([said], list(said)):
        editor = CitationEditor(OFFERED)
        text = "".join(map(editor.feed, parts)) + editor.finish(has_tool_calls=False)
        assert text == "So it is.\n\n[^1]: [[c.md#Plan]]"
        assert editor.sources == (OFFERED[2],)


def test_numbering_continues_after_tool_calls() -> None:
    editor = CitationEditor(OFFERED)
    assert editor.feed("As [^3] says, I look") + editor.finish(has_tool_calls=True) == "As [^1] says, I look"
    assert editor.feed("It is [^1], as [^3] says.") == "It is [^2], as [^1] says."
    assert editor.finish(has_tool_calls=False).splitlines()[-2:] == ["[^1]: [[c.md#Plan]]", "[^2]: [[a.md#Plan]]"]


def test_only_possible_citation_part_is_held_back() -> None:
    editor = CitationEditor(OFFERED)
    assert [editor.feed(part) for part in ("It is", " so", " [", "^3", "]", ", a[", "0] `x", "` y")] == [
        "It is", " so", "", "", " [^1]", ", a", "[0] ", "`x` y",
    ]  # fmt: skip


def test_unclosed_code_does_not_hold_back_answer() -> None:
    editor = CitationEditor(OFFERED)
    given = "".join(editor.feed(part) for part in ["one ` tick ", *["word "] * 200])
    assert len(given) > 500


def test_stopped_answer_has_its_sources() -> None:
    editor = CitationEditor(OFFERED)
    assert editor.feed("So [^2], and [^3") == "So [^1], and"
    assert [source.id for source in editor.sources] == ["b.md#passage:Plan"]


def test_two_numbers_of_one_source_are_one() -> None:
    same = (OFFERED[0], OFFERED[1], OFFERED[0])
    assert edit("A [^3], b [^2], a [^1].", offered=same) == ("A [^1], b [^2], a [^1].", ["a", "b"])


@pytest.mark.parametrize(
    ("source", "link"),
    [
        (StoredCitation(id="a b.md#passage:Costs#May~1", place="Costs > May"), "[[a b.md#Costs#May]]"),
        (StoredCitation(id="a.md"), "[[a.md]]"),
        (StoredCitation(id="a.md#passage:x]] [^2]", place="x]] [^2]"), "[[a.md]]"),
        (StoredCitation(id="a]]\n[^3]: b.md", place="May"), "a]] [^3]: b.md"),
    ],
)
def test_citation_link_cannot_be_broken_by_name(source: StoredCitation, link: str) -> None:
    assert format_source_wikilink(source) == link


pieces = st.sampled_from(
    ["[^1]", "[^2, 3]", "[^9]", "[", "^", "[^", "1", "]", "`", "``", "```", "~~~", "\n", " ", "  ", "a", ":", ","]
)


@steady
@given(st.lists(pieces, max_size=24), st.data())
def test_any_split_of_answer_shows_the_same(said: list[str], data: st.DataObject) -> None:
    text = "".join(said)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    parts = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    whole, apart = CitationEditor(OFFERED), CitationEditor(OFFERED)
    shown = [apart.feed(part) for part in parts]
    assert whole.feed(text) + whole.finish(has_tool_calls=False) == "".join(shown) + apart.finish(has_tool_calls=False)
    assert whole.sources == apart.sources


def test_endless_line_is_processed_in_linear_time() -> None:
    editor = CitationEditor(OFFERED)
    for _ in range(2_000):
        editor.feed(" " * 50 + "`" + "\t" * 50 + "[^")
    assert editor.finish(has_tool_calls=False)


@pytest.mark.parametrize("size", [1, 3, 1_000])
@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("No [^12345].", "No."),
        ("No [^" + "9" * 1_500 + "].", "No."),
        ("So [^" + ", ".join(map(str, range(1, 15))) + "].", "So [^1][^2]."),
        ("So [^1, 99999, 2].", "So [^1][^2]."),
        ("[^123456]: other.md\nYes [^2].", "Yes [^1]."),
    ],
)
def test_citations_beyond_sources_are_removed(said: str, shown: str, size: int) -> None:
    editor = CitationEditor([StoredCitation(id="a.md"), StoredCitation(id="b.md")])
    given = "".join(editor.feed(said[at : at + size]) for at in range(0, len(said), size)) + editor.finish(
        has_tool_calls=False
    )
    assert given.partition("\n\n")[0].strip() == shown


def test_unclosed_citation_is_passed_through_quickly() -> None:
    editor = CitationEditor([StoredCitation(id="a.md")])
    said = "x" + "[^" * 20_000 + "1," * 20_000
    begun = monotonic()
    given = "".join(editor.feed(said[at : at + 50]) for at in range(0, len(said), 50)) + editor.finish(
        has_tool_calls=False
    )
    assert (given, monotonic() - begun < 5) == (said, True)
