"""Fields of stored JSON, by their types: what is of another type than it was written is damage, and said as such."""

from collections.abc import Mapping, Sequence


def as_mapping(value: object) -> Mapping[str, object]:
    """An object of JSON."""
    if not isinstance(value, dict):
        raise ValueError(f"an object was expected, not {type(value).__name__}")
    return value


def as_list(value: object) -> Sequence[object]:
    """A list; nothing where there is none."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ValueError(f"a list was expected, not {type(value).__name__}")
    return value


def as_text(value: object) -> str:
    """A text."""
    if not isinstance(value, str):
        raise ValueError(f"a text was expected, not {type(value).__name__}")
    return value


def as_int(value: object) -> int:
    """A whole number."""
    if not isinstance(value, int):
        raise ValueError(f"a number was expected, not {type(value).__name__}")
    return value
