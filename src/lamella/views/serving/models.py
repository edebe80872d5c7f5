"""Models as data, in a shape that clients of other APIs read as well."""

from collections.abc import Sequence


def view_models(names: Sequence[str], *, usual: str) -> dict[str, object]:
    """Models by their names; ``usual`` is what conversations begin with that name none."""
    listed = [view_model(name, usual=usual) for name in names]
    edges = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
    return {"lamella": 1, "object": "list", "data": listed, "has_more": False, **edges}


def view_model(name: str, *, usual: str) -> dict[str, object]:
    """A model by its name."""
    return {
        "id": name,
        "object": "model",
        "type": "model",
        "display_name": name,
        "created": 0,
        "created_at": "1970-01-01T00:00:00Z",
        "owned_by": "lamella",
        "usual": name == usual,
    }
