"""Origins: which notes rows come from, by sets of paths."""

import pytest

from lamella.adapters.sources.dataview.language.origins import parse_origin
from lamella.adapters.sources.dataview.language.parsing import TokenReader


class Sets:
    """Notes a to f, of which each name means those of its letters."""

    def every(self) -> frozenset[str]:
        return frozenset("abcdef")

    def tagged(self, tag: str) -> frozenset[str]:
        return frozenset(tag)

    def below(self, name: str) -> frozenset[str]:
        return frozenset(name)

    def linking_to(self, target: str) -> frozenset[str]:
        return frozenset(target)

    def linked_from(self, target: str) -> frozenset[str]:
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
def test_an_origin_selects_notes(text: str, notes: str) -> None:
    assert parse_origin(TokenReader(text)).select(Sets()) == frozenset(notes)
