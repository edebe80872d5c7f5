"""A layout plan: what keeps its position, and what is placed again."""

import pytest

from lamella.core.log.turn import ArtifactForm, LayoutPlan


def test_default_plan_keeps_everything() -> None:
    layout_plan = LayoutPlan()
    assert layout_plan.keep_messages is None
    assert (layout_plan.forms, layout_plan.promotes, layout_plan.why) == ({}, False, "")


@pytest.mark.parametrize("keep", [0, 1, 40])
def test_keep_messages_means_fold_after_them(keep: int) -> None:
    assert LayoutPlan(keep_messages=keep).keep_messages == keep


def test_layout_plan_is_a_value() -> None:
    forms = {"a.md": ArtifactForm.HANDLE}
    assert LayoutPlan(keep_messages=0, forms=forms) == LayoutPlan(keep_messages=0, forms={"a.md": ArtifactForm.HANDLE})
    assert LayoutPlan(keep_messages=0, forms=forms) != LayoutPlan(keep_messages=0)
    with pytest.raises(AttributeError):
        LayoutPlan().keep_messages = 3  # type: ignore[misc]


def test_artifact_forms_are_the_stored_words() -> None:
    assert [form.value for form in ArtifactForm] == ["full", "preview", "handle", "reference", "update", "summary"]
