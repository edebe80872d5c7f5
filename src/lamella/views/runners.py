"""The ways of answering, as data."""

from collections.abc import Mapping


def view_runners(known: Mapping[str, str], *, usual: str) -> dict[str, object]:
    """Every runner with what it does, and whether settings choose it."""
    return {"runners": [{"name": name, "does": does, "usual": name == usual} for name, does in known.items()]}
