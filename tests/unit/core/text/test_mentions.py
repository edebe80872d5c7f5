"""Mentions that a typed text means, and names that it only discusses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.core.text.mentions import (
    FilePart,
    Mention,
    MentionForm,
    find_mentions,
    iter_file_part_readings,
    parse_mention,
)


@pytest.mark.parametrize(
    ("text", "form", "readings"),
    [
        ("@plan.md", MentionForm.PATH, ("plan.md",)),
        ("(@plan.md).", MentionForm.PATH, ("plan.md).", "plan.md")),
        ('@"my plan.md"', MentionForm.QUOTED, ("my plan.md",)),
        ("@[[My plan|mine]]", MentionForm.LINK, ("My plan",)),
        ("see ![[My plan#Costs]]", MentionForm.LINK, ("My plan#Costs",)),
        ("@#garden/beans, too", MentionForm.TAG, ("garden/beans",)),
        ("@plan's", MentionForm.PATH, ("plan's", "plan")),
    ],
)
def test_mention_forms_are_distinguished(text: str, form: MentionForm, readings: tuple[str, ...]) -> None:
    (mention,) = find_mentions(text)
    assert (mention.form, mention.candidate_names) == (form, readings)


def test_names_are_found_in_order_and_each_once() -> None:
    assert [one.token for one in find_mentions("@b, [[a]] @b,@c;@d")] == ["@b", "[[a]]", "@c", "@d"]


def test_name_by_itself_is_read_as_in_a_message() -> None:
    assert parse_mention("my plan.md:1-2") == Mention("my plan.md:1-2", MentionForm.QUOTED, ("my plan.md:1-2",))
    assert parse_mention('"my plan.md"').candidate_names == ("my plan.md",)
    assert [parse_mention(name).form for name in ("[[a]]", "@[[a]]", "#a", "@#a", "a", "@a")] == [
        MentionForm.LINK, MentionForm.LINK, MentionForm.TAG, MentionForm.TAG, MentionForm.QUOTED, MentionForm.QUOTED,
    ]  # fmt: skip


def test_name_may_end_in_lines_or_in_headings_below_each_other() -> None:
    assert list(iter_file_part_readings("a.md:3-4")) == [FilePart("a.md", lines=(3, 4))]
    assert list(iter_file_part_readings("a.md:3")) == [FilePart("a.md", lines=(3, 3))]
    assert list(iter_file_part_readings("c#.md#One#Two")) == [
        FilePart("c#.md#One", heading="Two"),
        FilePart("c#.md", heading="One#Two"),
        FilePart("c", heading=".md#One#Two"),
    ]
    assert list(iter_file_part_readings("a.md")) == list(iter_file_part_readings("#a")) == []


@given(st.text(alphabet='@[]"`#|:{}ab.\n ~/', max_size=200))
def test_mentions_are_found_in_any_text(text: str) -> None:
    for mention in find_mentions(text):
        assert all(mention.candidate_names)
        assert mention.token.removeprefix("@") in text


@pytest.mark.parametrize("piece", ["@", "[[", '@"', "@#", "`", "@a,", "[[a ", "@#1", "]]", "``a"])
def test_long_text_is_parsed_in_linear_steps(piece: str) -> None:
    # What is quadratic in a piece that comes 100,000 times would take hours.
    assert len(find_mentions(piece * 100_000)) <= 100_000
