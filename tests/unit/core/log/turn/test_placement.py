"""A placement: what stays where it was sent, and what is laid anew."""

import pytest

from lamella.core.log.turn import ArtifactForm, LayoutPlan


def test_with_nothing_said_everything_stays() -> None:
    layout_plan = LayoutPlan()
    assert layout_plan.keep_messages is None
    assert (layout_plan.forms, layout_plan.promotes, layout_plan.why) == ({}, False, "")


@pytest.mark.parametrize("keep", [0, 1, 40])
def test_keeping_so_many_messages_is_a_fold_of_the_rest(keep: int) -> None:
    assert LayoutPlan(keep_messages=keep).keep_messages == keep


def test_a_placement_is_a_value() -> None:
    forms = {"a.md": ArtifactForm.HANDLE}
    assert LayoutPlan(keep_messages=0, forms=forms) == LayoutPlan(keep_messages=0, forms={"a.md": ArtifactForm.HANDLE})
    assert LayoutPlan(keep_messages=0, forms=forms) != LayoutPlan(keep_messages=0)
    with pytest.raises(AttributeError):
        LayoutPlan().keep_messages = 3  # type: ignore[misc]


def test_the_forms_are_the_words_that_people_and_stores_know() -> None:
    assert [form.value for form in ArtifactForm] == ["full", "preview", "handle", "reference", "update", "summary"]
