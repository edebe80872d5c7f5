"""Tags: what counts as one, and when two are the same."""

import pytest

from lamella.sources.markdown import has_tag, normalize_tag, parse_note


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("---\ntags: [a, B]\n---\nbody", ["a", "B"]),
        ("---\ntags: a, b c\n---\n", ["a", "b", "c"]),
        ("---\ntags:\n  - '#a'\n  - no\n---\n", ["a", "no"]),
        ("---\nTag: one\n---\n", ["one"]),
        ("---\ntags: [2026, ~, '12']\n---\n", []),
        ("---\ntags: #gone\n---\n", []),
        ("---\n: broken: [\n---\nwith #inline", ["inline"]),
        ("text #one and #two/three. (not #one again)", ["one", "two/three"]),
        ("#First on a line\n#second", ["First", "second"]),
        ("# Heading\n## Two #in-it", ["in-it"]),
        ("issue #123 is no tag, #v2 is, #1/2 is none", ["v2"]),
        ("a#b http://e.org/#frag \\#escaped &#35;", []),
        ("`#code` and\n```\n#fenced\n```\n\n    #indented\n", []),
        ("$#math$ and <b title='#html'> <!-- #hidden -->", []),
        ("%% #hidden %% #shown", ["shown"]),
        ("[[#Heading]] [x #y](z) #q\n\n[here]: #below", ["q"]),
        ("**#bold** ==#marked== |#cell|\n>#quoted", ["bold", "marked", "cell", "quoted"]),
        ("#élan #日本、x #📚/read #👩‍💻 #µ", ["élan", "日本", "📚/read", "👩‍💻", "µ"]),
        ("#my_long_tag #a-b #/c/", ["my_long_tag", "a-b", "c"]),
        ("", []),
    ],
)
def test_tags_are_found_in_front_matter_and_text_in_their_own_case(text: str, tags: list[str]) -> None:
    assert list(parse_note(text).tags) == tags


def test_tags_are_the_same_in_any_case_and_any_unicode_form() -> None:
    assert normalize_tag("#Project/Étude/") == normalize_tag("project/e\u0301tude")
    assert list(parse_note("#Étude #e\u0301tude").tags) == ["Étude"]


def test_tag_matches_its_subtags_only() -> None:
    assert has_tag({"other", "project/beta"}, "project")
    assert has_tag({"other", "project/beta"}, "#Project/Beta")
    assert not has_tag({"other", "project/beta"}, "#proj")
    assert not has_tag({"project"}, "#project/beta")
