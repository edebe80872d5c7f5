"""Amounts: every digit that counts, and no other."""

from decimal import Decimal

import pytest

from lamella.views.amounts import plain, plain_if_known


@pytest.mark.parametrize(
    ("amount", "text"),
    [("0", "0"), ("0.00", "0"), ("1E-7", "0.0000001"), ("12.50", "12.5"), ("100", "100"), ("-0.0020", "-0.002")],
)
def test_an_amount_has_no_exponent_and_no_zeros_at_its_end(amount: str, text: str) -> None:
    assert plain(Decimal(amount)) == text


def test_an_amount_that_nobody_knows_is_none_and_not_zero() -> None:
    assert plain_if_known(None) is None
    assert plain_if_known(Decimal(0)) == "0"
