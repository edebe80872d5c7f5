"""A placement: what stays where it was sent, and what is laid anew."""

import pytest

from lamella.core.log.placement import Form, Placement


def test_with_nothing_said_everything_stays() -> None:
    placement = Placement()
    assert placement.keep is None
    assert (placement.forms, placement.promotes, placement.why) == ({}, False, "")


@pytest.mark.parametrize("keep", [0, 1, 40])
def test_keeping_so_many_messages_is_a_fold_of_the_rest(keep: int) -> None:
    assert Placement(keep=keep).keep == keep


def test_a_placement_is_a_value() -> None:
    forms = {"a.md": Form.HANDLE}
    assert Placement(keep=0, forms=forms) == Placement(keep=0, forms={"a.md": Form.HANDLE})
    assert Placement(keep=0, forms=forms) != Placement(keep=0)
    with pytest.raises(AttributeError):
        Placement().keep = 3  # type: ignore[misc]


def test_the_forms_are_the_words_that_people_and_stores_know() -> None:
    assert [form.value for form in Form] == ["full", "preview", "handle", "reference", "update", "summary"]
