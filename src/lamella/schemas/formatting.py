"""Amounts of money as text, so that no digit is lost."""

from decimal import Decimal

from lamella.core.text.content import truncate_words

# Text helpers of the core, exported for the command line and the server, which do not import the core.

__all__ = ["truncate_words"]


def format_decimal(amount: Decimal) -> str:
    """Format an amount without exponent and trailing zeros."""
    text = f"{amount:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def format_decimal_or_none(amount: Decimal | None) -> str | None:
    """Format an amount; an unknown amount stays None and does not become zero."""
    return None if amount is None else format_decimal(amount)
