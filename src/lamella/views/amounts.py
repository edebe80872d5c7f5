"""Amounts of money as text, so that no digit is lost."""

from decimal import Decimal


def plain(amount: Decimal) -> str:
    """An amount without exponent or trailing zeros."""
    text = f"{amount:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def plain_if_known(amount: Decimal | None) -> str | None:
    """The same; none where nobody knows the amount, which is not zero."""
    return None if amount is None else plain(amount)
