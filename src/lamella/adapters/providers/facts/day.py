"""The day on which the facts here were as the providers document them."""

FACTS_DATE = "2026-11-15"
