"""Changes: how a newer text differs from the copy the model already has."""

from difflib import unified_diff

# Past these sizes the matcher's worst case is quadratic and a whole new copy is the better answer.
_MAX_LINES = 4_000
_MAX_CHARS = 400_000
_MUCH_SMALLER = 3


def build_diff(old: str, new: str) -> str | None:
    """A unified diff from old to new, or nothing where sending the new text is about as short."""
    if max(len(old), len(new)) > _MAX_CHARS:
        return None
    before, after = old.split("\n"), new.split("\n")
    if max(len(before), len(after)) > _MAX_LINES:
        return None
    diff = "\n".join(line for line in list(unified_diff(before, after, n=2, lineterm=""))[2:])
    return diff if diff and len(diff) * _MUCH_SMALLER <= len(new) else None
