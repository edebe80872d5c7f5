"""Refused fields: requests that an endpoint cannot serve, with the name of the field."""

from lamella.errors import InvalidOperationError


class RefusedFieldError(InvalidOperationError):
    """A field of a request cannot be served; ``param`` is its name as the client wrote it."""

    def __init__(self, param: str | None, message: str, *, hint: str = "Leave it out.") -> None:
        super().__init__(message, hint=hint)
        self.param = param
