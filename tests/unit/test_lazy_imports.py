"""Names that are fetched when they are asked for: none before, each once, and none that is not there."""

import sys
from types import ModuleType

import pytest

from lamella.lazy_imports import make_lazy_exports


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("shop")
    module.__dict__["__all__"] = ["Fraction", "here"]
    monkeypatch.setitem(sys.modules, "shop", module)
    fetch, list_names = make_lazy_exports("shop", {"fractions": ("Fraction",), "nowhere.at_all": ("gone",)})
    module.__dict__.update(__getattr__=fetch, __dir__=list_names, here=1)
    return module


def test_lazy_name_is_imported_once(shop: ModuleType) -> None:
    assert "Fraction" not in vars(shop)
    assert shop.Fraction(1, 2) * 2 == 1
    assert vars(shop)["Fraction"] is shop.Fraction


def test_all_names_are_listed_before_any_is_fetched(shop: ModuleType) -> None:
    assert {"Fraction", "here"} <= set(dir(shop))
    assert "Fraction" not in vars(shop)


def test_unknown_lazy_name_raises_attribute_error(shop: ModuleType) -> None:
    with pytest.raises(AttributeError, match="module 'shop' has no attribute 'Decimal'"):
        _ = shop.Decimal
