"""Base classes and common field types of JSON bodies, and the body of errors.

A body is a ``msgspec.Struct`` that describes one JSON object: the ``--json`` output of a command, an HTTP response, or
a part of one. Its fields have the names and the order of the JSON. A field with the default ``UNSET`` is left out
unless it is set; every other field is always present. ``docs/reference/json-output.md`` and the OpenAPI document are
generated from the bodies.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from lamella.errors import LamellaError

Count = Annotated[int, Meta(ge=0)]
# Text, so that no digit is lost; null if the price is unknown.
Money = Annotated[str | None, Meta(description="US dollars in plain digits.", examples=["0.0007"])]
Moment = Annotated[str, Meta(description="RFC 3339, UTC.", examples=["2026-11-15T10:00:00Z"])]
Hash = Annotated[str, Meta(examples=["sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"])]


class JsonBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base class of all JSON bodies."""


class VersionedBody(JsonBody, frozen=True, kw_only=True):
    """A body with the version of its format."""

    lamella: Annotated[Literal[1], Meta(description="Version of the format.")] = 1


class ConversationJsonBase(VersionedBody, frozen=True, kw_only=True):
    """A body about a stored conversation."""

    conversation: Annotated[str, Meta(description="Key of the conversation, which never changes.")]


class NamedConversationJsonBase(ConversationJsonBase, frozen=True, kw_only=True):
    """A body about a stored conversation, with its name."""

    name: str


# Errors, the same for every interface.


class RunningTurnJson(JsonBody, frozen=True, kw_only=True):
    """The turn that is running in a conversation."""

    conversation: Annotated[str, Meta(description="Key of the conversation.")]
    message: Annotated[str | None, Meta(description="Id of the question; null until it is stored.")]
    since: Annotated[str | None, Meta(description="When it was asked.")]


class ErrorDetailJson(JsonBody, frozen=True, kw_only=True):
    """An error: what happened, and what to do next."""

    code: Annotated[str, Meta(examples=["not_found"])]
    message: Annotated[str, Meta(examples=["There is no conversation 'garden'."])]
    hint: Annotated[str, Meta(examples=["GET /v1/conversations lists the conversations."])]
    running: Annotated[RunningTurnJson | UnsetType, Meta(description="Only with the code `busy`.")] = UNSET


class ErrorJson(JsonBody, frozen=True, kw_only=True):
    """The body of every error."""

    error: ErrorDetailJson


def error_to_json(
    error: LamellaError,
    *,
    message: str | None = None,
    hint: str | None = None,
    running: RunningTurnJson | UnsetType = UNSET,
) -> ErrorJson:
    """Return the body of an error.

    ``message`` and ``hint`` replace the error's own texts if the interface words them differently.
    """
    detail = ErrorDetailJson(
        code=error.code,
        message=error.message if message is None else message,
        hint=error.hint if hint is None else hint,
        running=running,
    )
    return ErrorJson(error=detail)
