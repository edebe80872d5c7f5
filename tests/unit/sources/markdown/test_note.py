"""Parsing a note: headings, links and embeds with their positions."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.sources.markdown import ParsedNote, parse_note

_SIGNS = st.lists(
    st.sampled_from([*"[]!|#^%`$\\ \n\r-:>*é日😀a1\x00\ud800\ufeff", "---\n", "%%", "[[", "]]"]), max_size=60
).map("".join)


def _links(text: str) -> list[tuple[str, str, str]]:
    return [(link.target, link.subpath, link.alias) for link in parse_note(text).links]


def _embeds(text: str) -> list[tuple[str, str, str]]:
    return [(link.target, link.subpath, link.alias) for link in parse_note(text).embeds]


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("[[Note]]", [("Note", "", "")]),
        ("[[ Note | words ]]", [("Note", "", "words")]),
        ("[[Note#Part#Below|w *b*]]", [("Note", "#Part#Below", "w *b*")]),
        ("[[Note#^id1]] [[#Here]]", [("Note", "#^id1", ""), ("", "#Here", "")]),
        ("|a|b|\n|-|-|\n|[[N\\|words]]|[[M]]|\n", [("N", "", "words"), ("M", "", "")]),
        ("[[a\nb]] [[]] [[|x]] [[#]] \\[[c]]", []),
        ("[w](a%20b.md#Part%20one)", [("a b.md", "#Part one", "w")]),
        ('[w](<a (b).md> "title") [v](c(d).md)', [("a (b).md", "", "w"), ("c(d).md", "", "v")]),
        ("[w][r]\n\n[r]: there.md", [("there.md", "", "w")]),
        ("[](x.md) [a [b] c](y.md)", [("x.md", "", ""), ("y.md", "", "a [b] c")]),
        ("[w](https://e.org/a%20b#c) <mailto:a@b.c>", [("https://e.org/a%20b#c", "", "w"), ("mailto:a@b.c", "", "")]),
        ("`[[a]]` ``` [[b]] ``` $[[c]]$ %%[[d]]%% <!-- [[e]] -->", []),
        ("```\n[[a]]\n```\n\n$$\n[[b]]\n$$\n\n%%\n[[c]]\n\n[[d]]\n%%\n[[e]]", [("e", "", "")]),
        ("100%% sure [[a]]", [("a", "", "")]),
        ("`%%` [[a]] `%%`", [("a", "", "")]),
        ("> [!note] [[a]]\n> - [[b]]", [("a", "", ""), ("b", "", "")]),
        ("---\nup: [[P]]\nto: '[[Q#R|s]]'\n---\n[[a]]", [("P", "", ""), ("Q", "#R", "s"), ("a", "", "")]),
        ("[[日本#見出し|語]]", [("日本", "#見出し", "語")]),
    ],
)
def test_link_has_target_and_subpath(text: str, links: list[tuple[str, str, str]]) -> None:
    assert _links(text) == links
    assert _embeds(text) == []


@pytest.mark.parametrize(
    ("text", "embeds"),
    [
        ("![[Note]]", [("Note", "", "")]),
        ("![[Note#Part]] ![[Note#^b-1]]", [("Note", "#Part", ""), ("Note", "#^b-1", "")]),
        ("![[a b.png|100x200]]", [("a b.png", "", "100x200")]),
        ("![alt|100](a%20b.png)", [("a b.png", "", "alt|100")]),
        ("![](note.md#Part)", [("note.md", "#Part", "")]),
        ("![](data:image/png;base64,AAAA#x)", [("data:image/png;base64,AAAA#x", "", "")]),
        ("[![a](b.png)](c.md)", [("b.png", "", "a")]),
        ("`![[a]]` %%![[b]]%%", []),
    ],
)
def test_embeds_are_distinguished_from_links(text: str, embeds: list[tuple[str, str, str]]) -> None:
    assert _embeds(text) == embeds


def test_url_is_external_and_name_with_colon_is_not() -> None:
    note = parse_note("[a](https://e.org) [b](b.md) [[c: d]] [e](obsidian://open?vault=x)")
    assert [link.is_external for link in note.links] == [True, False, False, True]
    assert [link.is_wiki for link in note.links] == [False, False, True, False]


def test_link_positions_are_exact() -> None:
    text = "---\nü: '[[Ä]]'\n---\n😀 é [[日本|x]] ![[b]] [c](d)"
    note = parse_note(text)
    assert [text[link.start : link.end] for link in (*note.links, *note.embeds)] == [
        "[[Ä]]",
        "[[日本|x]]",
        "[c](d)",
        "![[b]]",
    ]


def test_headings_have_level_words_offset_and_line() -> None:
    text = "---\na: b\n---\n# É *one* ##\n\n```\n# no\n```\nTwo\nlines\n---\n\n> ### In it #tag\n\n#nospace\n\n## \n"
    note = parse_note(text)
    assert [(heading.level, heading.text, heading.line) for heading in note.headings] == [
        (1, "É *one*", 4),
        (2, "Two lines", 9),
        (3, "In it #tag", 13),
        (2, "", 17),
    ]
    assert [text[heading.offset :][:5] for heading in note.headings] == ["# É *", "Two\nl", "### I", "## \n"]


def test_commented_text_has_no_headings() -> None:
    assert [heading.text for heading in parse_note("%%\n# a\n\n# b\n%%\n\n# c").headings] == ["c"]


def test_aliases_are_a_list_or_words_between_commas() -> None:
    assert parse_note("---\naliases: [One, 'Two, three', 4]\n---\n").aliases == ("One", "Two, three")
    assert parse_note("---\nalias: One two, three\n---\n").aliases == ("One two", "three")
    assert parse_note("---\naliases:\n---\n").aliases == ()


def test_broken_front_matter_is_a_warning_and_the_note_is_read() -> None:
    note = parse_note("---\ntitle: A: B\n---\n# H\n[[a]] #t")
    assert note.properties == {}
    assert note.warnings == ("The front matter is not YAML (line 2).",)
    assert (len(note.headings), len(note.links), note.tags) == (1, 1, ("t",))


def _parts(note: ParsedNote, text: str) -> list[str]:
    return [text[link.start : link.end] for link in (*note.links, *note.embeds)]


@given(_SIGNS)
def test_any_text_parses_and_links_have_brackets(text: str) -> None:
    note = parse_note(text)
    assert all(part.lstrip("!")[:1] in "[<" and part[-1] in "])>" for part in _parts(note, text))
    assert all(0 <= start < end <= len(text) for start, end in note.blocks.values())
    assert all(0 <= heading.offset <= len(text) for heading in note.headings)


@pytest.mark.parametrize(
    "text",
    [
        "![a" * 30_000 + "](b)" * 30_000,
        "[[" * 50_000,
        "![[" * 50_000 + "]]" * 50_000,
        "[[a|" * 50_000,
        "a ^b\n" * 50_000,
        "^b\n\n" * 30_000,
        "%%" * 100_000,
        "#a/" * 50_000,
        ">" * 30_000 + "[[a]]",
        "---\n" + "\n" * 500_000,
        "\x00" * 100_000,
    ],
)
def test_hostile_text_is_parsed_in_linear_time(text: str) -> None:
    began = process_time()
    parse_note(text)
    assert process_time() - began < 3
