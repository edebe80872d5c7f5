"""Sections of a note: the text under a heading, or a named block."""

import pytest

from lamella.sources.markdown import find_section_range, parse_note

NOTE = "# Plan\nfirst\n## Costs\n12 ^sum\n### In May\n5\n```\n## no heading\n```\n## Costs again ##\n13\n"


@pytest.mark.parametrize(
    ("subpath", "part"),
    [
        ("#Costs", "## Costs\n12 ^sum\n### In May\n5\n```\n## no heading\n```\n"),
        ("#costs", "## Costs\n12 ^sum\n### In May\n5\n```\n## no heading\n```\n"),
        ("#In-May", "### In May\n5\n```\n## no heading\n```\n"),
        ("#Plan#Costs#In May", "### In May\n5\n```\n## no heading\n```\n"),
        ("#Costs again", "## Costs again ##\n13\n"),
        ("#Plan", NOTE),
        ("#^sum", "12 ^sum"),
        ("#^SUM", "12 ^sum"),
        ("#In May#Costs", None),
        ("#no heading", None),
        ("#^none", None),
        ("", None),
        ("#", None),
        ("#...", None),
    ],
)
def test_section_ends_at_heading_of_same_level(subpath: str, part: str | None) -> None:
    place = find_section_range(parse_note(NOTE), subpath, length=len(NOTE))
    assert (None if place is None else NOTE[slice(*place)]) == part
