"""How a failure is told as data: one shape for every face."""

from lamella.errors import LamellaError


def view_error(error: LamellaError, *, message: str | None = None, hint: str | None = None) -> dict[str, object]:
    """An error, in the names of docs/errors.md; a face may word it for those who read it."""
    return {
        "error": {
            "code": error.code,
            "message": error.message if message is None else message,
            "hint": error.hint if hint is None else hint,
        }
    }
