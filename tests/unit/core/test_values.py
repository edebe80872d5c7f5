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


def test_replace_changes_copy_only() -> None:
    assert replace(APPLE, ripe=True) == Fruit(name="apple", ripe=True)
    assert not APPLE.ripe


def test_replace_keeps_other_field_objects() -> None:
    changed = replace(BASKET, handles=2)
    assert changed == Basket(fruit=APPLE, handles=2)
    assert changed.fruit is APPLE


@pytest.mark.parametrize("value", [APPLE, BASKET])
def test_replace_refuses_unknown_field(value: Fruit | Basket) -> None:
    with pytest.raises(TypeError, match="colour"):
        replace(value, colour="red")  # type: ignore[call-arg]


def test_repr_lists_fields_except_given_ones() -> None:
    assert repr_without(APPLE, without=()) == "Fruit(name='apple', ripe=False)"
    assert repr_without(APPLE, without=("name",)) == "Fruit(ripe=False)"


def test_repr_of_segment_omits_text() -> None:
    text = "a long text"
    segment = Segment(id="m", kind="user", form=ArtifactForm.FULL, place=None, text=text, tokens=3, recoverable=False)
    assert text not in repr(segment)
    assert "tokens=3" in repr(segment)
