"""Tags of a note: in its front matter and in its text."""

import pytest

from lamella.adapters.sources.tags import carries_tag, find_tags


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("---\ntags: [a, b]\n---\nbody", {"a", "b"}),
        ("---\ntags: a, b c\n---\n", {"a", "b", "c"}),
        ("---\ntags:\n  - '#a'\n  - B\n---\n", {"a", "b"}),
        ("---\ntag: one\n---\n", {"one"}),
        ("---\ntags: 2026\n---\n", set()),
        ("---\n: broken: [\n---\nwith #inline", {"inline"}),
        ("text #one and #two/three.", {"one", "two/three"}),
        ("#first on a line", {"first"}),
        ("# Heading\n## Two", set()),
        ("issue #123 is no tag, #v2 is", {"v2"}),
        ("a#b http://e.org/#frag", set()),
        ("`#code` and\n```\n#fenced\n```", set()),
        ("#élan #日本", {"élan", "日本"}),
        ("---\nnot closed\n#tag", {"tag"}),
        ("", set()),
    ],
)
def test_tags_are_found_in_lower_case_without_their_hash_sign(text: str, tags: set[str]) -> None:
    assert find_tags(text) == tags


def test_a_tag_is_carried_by_the_tags_below_it_and_not_by_others() -> None:
    assert carries_tag({"other", "project/beta"}, "project")
    assert carries_tag({"other", "project/beta"}, "#Project/Beta")
    assert not carries_tag({"other", "project/beta"}, "#proj")
    assert not carries_tag({"project"}, "#project/beta")
