"""Values: a struct is replaced, and can be shown without what may be long."""

import pytest
from msgspec import Struct

from lamella.core.log.turn import ArtifactForm
from lamella.core.prompt.layers.model import Segment
from lamella.core.values import replace, repr_without


class Fruit(Struct, frozen=True, kw_only=True):
    name: str
    ripe: bool = False


class Basket(Struct, frozen=True, kw_only=True):
    fruit: Fruit
    handles: int = 1


APPLE = Fruit(name="apple")
BASKET = Basket(fruit=APPLE)


def test_a_struct_is_replaced_and_the_old_one_stays() -> None:
    assert replace(APPLE, ripe=True) == Fruit(name="apple", ripe=True)
    assert not APPLE.ripe


def test_what_a_struct_holds_beside_the_change_stays_the_same_object() -> None:
    changed = replace(BASKET, handles=2)
    assert changed == Basket(fruit=APPLE, handles=2)
    assert changed.fruit is APPLE


@pytest.mark.parametrize("value", [APPLE, BASKET])
def test_a_field_that_is_not_there_is_refused(value: Fruit | Basket) -> None:
    with pytest.raises(TypeError, match="colour"):
        replace(value, colour="red")  # type: ignore[call-arg]


def test_a_value_is_shown_by_its_fields_but_for_those_left_out() -> None:
    assert repr_without(APPLE, without=()) == "Fruit(name='apple', ripe=False)"
    assert repr_without(APPLE, without=("name",)) == "Fruit(ripe=False)"


def test_a_segment_is_shown_without_its_text() -> None:
    text = "a long text"
    segment = Segment(id="m", kind="user", form=ArtifactForm.FULL, place=None, text=text, tokens=3, recoverable=False)
    assert text not in repr(segment)
    assert "tokens=3" in repr(segment)
