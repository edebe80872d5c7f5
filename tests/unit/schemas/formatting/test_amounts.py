"""Amounts: every digit that counts, and no other."""

from decimal import Decimal

import pytest

from lamella.schemas.formatting import format_decimal, format_decimal_or_none


@pytest.mark.parametrize(
    ("amount", "text"),
    [("0", "0"), ("0.00", "0"), ("1E-7", "0.0000001"), ("12.50", "12.5"), ("100", "100"), ("-0.0020", "-0.002")],
)
def test_decimal_has_no_exponent_or_trailing_zeros(amount: str, text: str) -> None:
    assert format_decimal(Decimal(amount)) == text


def test_unknown_amount_is_none() -> None:
    assert format_decimal_or_none(None) is None
    assert format_decimal_or_none(Decimal(0)) == "0"
