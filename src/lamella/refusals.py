"""Refusals: what only those meet who come in over a network, or ask for something while it is being done.

They are children of BadInputError in the tree of ``errors.py``:

BadInputError
├── TokenMissingError          token_missing       no token, or one that nobody gave out
├── ScopeMissingError          scope_missing       the token is good, and may not do this
├── OriginRefusedError         origin_refused      the page or the name that a request comes by is not expected
├── NotFoundError              not_found           there is nothing of that name here
├── NameTakenError             name_taken          a conversation of that name is there already
├── RunUnderwayError           busy                a turn of the conversation is under way
├── RequestTooLargeError       request_too_large   a request has more bytes than are read
├── RequestRefusedError        request_refused     a request is not of a form that is read
├── RequestSlowError           request_slow        a request did not arrive in time
├── TooManyRequestsError       too_many_requests   too many requests in too short a time
└── ServerStoppingError        stopping            the server is being stopped, or has all that it can do
"""

from lamella.doors import Hint
from lamella.errors import BadInputError


class TokenMissingError(BadInputError):
    """No token, or one that nobody gave out."""

    code = "token_missing"


class ScopeMissingError(BadInputError):
    """The token is good, and may not do this."""

    code = "scope_missing"


class OriginRefusedError(BadInputError):
    """The page that a request comes from, or the name it was sent to, is not one that is expected here."""

    code = "origin_refused"


class NotFoundError(BadInputError):
    """There is nothing of that name here, or it is somebody else's."""

    code = "not_found"


class NameTakenError(BadInputError):
    """A conversation of that name is there already."""

    code = "name_taken"


class RunUnderwayError(BadInputError):
    """A turn of the conversation is under way; ``message`` is its question and ``since`` when it began, if known."""

    code = "busy"

    def __init__(self, conversation: str, *, question: str | None, since: str | None) -> None:
        begun = f" since {since}" if since else ""
        named = f", question {question}" if question else ""
        super().__init__(
            f"A turn of {conversation} is under way{begun}{named}.",
            hint="Wait for its answer, follow it, stop it, or ask for this to be queued.",
        )
        self.conversation, self.question, self.since = conversation, question, since


class RequestTooLargeError(BadInputError):
    """A request has more bytes than are read."""

    code = "request_too_large"


class RequestRefusedError(BadInputError):
    """A request is not of a form that is read."""

    code = "request_refused"


class RequestSlowError(BadInputError):
    """A request did not arrive in time."""

    code = "request_slow"


class TooManyRequestsError(BadInputError):
    """Too many requests in too short a time; ``wait`` is how many seconds to wait."""

    code = "too_many_requests"

    def __init__(self, message: str, *, hint: Hint, wait: float) -> None:
        super().__init__(message, hint=hint)
        self.wait = wait


class ServerStoppingError(BadInputError):
    """The server is being stopped, or has as much to do as it takes; ``wait`` is how many seconds to wait."""

    code = "stopping"

    def __init__(self, message: str, *, hint: Hint, wait: float = 5.0) -> None:
        super().__init__(message, hint=hint)
        self.wait = wait
