"""Origins: which notes rows come from, by sets of paths."""

import pytest

from lamella.sources.dataview.parser import TokenReader
from lamella.sources.dataview.queries import parse_from_clause


class Sets:
    """Notes a to f, of which each name means those of its letters."""

    def all_notes(self) -> frozenset[str]:
        return frozenset("abcdef")

    def notes_with_tag(self, tag: str) -> frozenset[str]:
        return frozenset(tag)

    def notes_below(self, name: str) -> frozenset[str]:
        return frozenset(name)

    def notes_linking_to(self, target: str) -> frozenset[str]:
        return frozenset(target)

    def outgoing_links_of(self, target: str) -> frozenset[str]:
        return frozenset(target[::2])


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("#ab", "ab"),
        ('"cd"', "cd"),
        ("[[ef|x]]", "ef"),
        ("outgoing([[abcd]])", "ac"),
        ("#ab and #bc", "b"),
        ("#ab or #bc", "abc"),
        ("#ab & #bc | #f", "bf"),
        ("#f or #ab and #bc", "b"),
        ("#f or (#ab and #bc)", "bf"),
        ("-#ab", "cdef"),
        ("!(#ab or #cd)", "ef"),
        ("not not #ab", "ab"),
        ("#abc and -#b", "ac"),
    ],
)
def test_origin_selects_notes(text: str, notes: str) -> None:
    assert parse_from_clause(TokenReader(text)).select(Sets()) == frozenset(notes)
